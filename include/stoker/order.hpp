// SPDX-License-Identifier: MIT
/// @file
/// In which order an epoch visits which samples, and the choices of how ranks and batches divide it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace stoker {
inline namespace v0 {

/// How the ranks (processes) share the positions of an epoch, N in all.
enum class Split : std::uint8_t {
    striped,     ///< Position p belongs to rank p mod ranks.
    contiguous,  ///< Rank r has the positions from floor(r * N / ranks) to just before floor((r + 1) * N / ranks).
};

/// What becomes of a rank's last batch of an epoch when it is not full.
enum class LastBatch : std::uint8_t {
    keep,  ///< It comes with fewer rows.
    drop,  ///< It is left out.
    pad,   ///< It comes with all rows, zeros behind the valid ones.
};

/// Whether a state may be restored under another number of ranks or another batch size.
enum class Elastic : std::uint8_t {
    refuse,  ///< Every difference is a StateError.
    allow,   ///< The rest of the epoch is dealt anew; see check_state().
};

/// How many batches the ranks have, when they cannot all have as many samples.
enum class RankBatches : std::uint8_t {
    as_they_fall,  ///< Each rank as its own samples give.
    equal,         ///< All ranks as many as the one with the most (empty batches for who runs out), or, where last
                   ///< batches are dropped, with the least.
};

/// The order of an epoch's samples, and the seed of every random draw. Made by sequential() or shuffled().
/// A value, cheap to copy: a subset is shared and never changes. Thread-safety: const use from many threads.
class Order {
  public:
    /// The same order in every epoch: a shuffle is that of epoch 0. Random draws still differ from epoch to epoch.
    [[nodiscard]] Order same_every_epoch() const {
        Order order{*this};
        order.is_same_every_epoch_ = true;
        return order;
    }

    /// Visits only these samples of the source, in the listed order or shuffled; replaces an earlier subset. An id may
    /// be listed more than once: each entry is a sample of its own, with its own place and random draws. Whether the
    /// source has them is checked where source and order meet.
    /// Cost: linear in the list, once.
    [[nodiscard]] Order subset(std::vector<std::uint64_t> ids) const {
        // FNV-1a (Fowler, Noll, Vo) over the ids, 64 bits at a time, folded so that high bits reach low ones.
        std::uint64_t hash = 0xcbf29ce484222325 ^ ids.size();
        for (const std::uint64_t id : ids) {
            hash = (hash ^ id) * 0x100000001b3;
            hash ^= hash >> 32;
        }
        Order order{*this};
        order.subset_ = std::make_shared<const std::vector<std::uint64_t>>(std::move(ids));
        order.subset_hash_ = hash == 0 ? 1 : hash;
        return order;
    }

    [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
    [[nodiscard]] bool is_shuffled() const noexcept { return is_shuffled_; }
    [[nodiscard]] bool is_same_every_epoch() const noexcept { return is_same_every_epoch_; }
    /// The listed samples; nullptr: all of the source. Valid as long as any copy of this order.
    [[nodiscard]] const std::vector<std::uint64_t>* subset_ids() const noexcept { return subset_.get(); }
    /// A fingerprint of the listed ids and their order; 0: all of the source.
    [[nodiscard]] std::uint64_t subset_hash() const noexcept { return subset_hash_; }

    friend Order sequential(std::uint64_t seed);
    friend Order shuffled(std::uint64_t seed);

  private:
    Order(std::uint64_t seed, bool is_shuffled) noexcept : seed_{seed}, is_shuffled_{is_shuffled} {}

    std::uint64_t seed_;
    std::uint64_t subset_hash_ = 0;
    std::shared_ptr<const std::vector<std::uint64_t>> subset_;
    bool is_shuffled_;
    bool is_same_every_epoch_ = false;
};

/// The source's own order; `seed` is that of the random draws.
[[nodiscard]] inline Order sequential(std::uint64_t seed = 0) { return Order{seed, false}; }

/// All samples of an epoch in an order of their own: a pure function of seed and epoch, independent from epoch to
/// epoch. `seed` is also that of the random draws. Memory: none beyond the order itself; see Permutation.
[[nodiscard]] inline Order shuffled(std::uint64_t seed) { return Order{seed, true}; }

}  // namespace v0
}  // namespace stoker
