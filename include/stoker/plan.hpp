// SPDX-License-Identifier: MIT
/// @file
/// Which samples an epoch visits, in which order, and which batch of which rank each of them is in: arithmetic, without
/// threads and without state. Every function here is pure, O(1) in time and memory, and exact up to 2^63 samples.
///
/// The N samples of an epoch stand at *positions* 0 .. N - 1, counted over all ranks. An epoch may go on from a *base*:
/// the position that a state was saved at. With Split::striped everything from the base on is dealt out as if the epoch
/// began there (entry l of rank r is position base + l * ranks + r), so another number of ranks, or another batch size,
/// can go on exactly. With Split::contiguous a base says that each rank has taken base / ranks entries of its own part.
#pragma once

#include <cassert>
#include <cstdint>
#include <utility>
#include <vector>

#include <stoker/order.hpp>
#include <stoker/random.hpp>

namespace stoker {
inline namespace v0 {

namespace detail {

/// std::min, without the cost of including <algorithm>.
[[nodiscard]] constexpr std::uint64_t lesser(std::uint64_t a, std::uint64_t b) noexcept { return a < b ? a : b; }

}  // namespace detail

/// What a plan is made of. Nothing is checked here; options are, where they are given.
struct PlanSpec {
    Order order = sequential();
    std::uint64_t samples = 1;     ///< Of the source, 1 to 2^63. With a subset of the order, that counts instead.
    std::uint64_t batch_size = 1;  ///< 1 or more.
    LastBatch last_batch = LastBatch::keep;
    std::uint64_t rank = 0;   ///< Below `ranks`.
    std::uint64_t ranks = 1;  ///< 1 or more; may be more than there are samples.
    Split split = Split::striped;
    RankBatches rank_batches = RankBatches::as_they_fall;
};

/// One epoch of one rank, or the rest of it. A small value without heap; made by Plan::epoch(), whose plan (or a copy
/// of its order) has to outlive it where the order has a subset. Thread-safety: const use from many threads.
class EpochPlan {
  public:
    /// An epoch without a batch.
    EpochPlan() = default;

    /// This rank's batches from the base to the end of the epoch, exactly as many as will be delivered.
    [[nodiscard]] std::uint64_t batches() const noexcept { return batches_; }

    /// Entries of this rank's `k`-th batch from the base, k < batches(). 1 to batch_size; 0 only with
    /// RankBatches::equal, for a rank that has run out.
    [[nodiscard]] std::uint64_t batch_rows(std::uint64_t k) const noexcept {
        assert(k < batches_);
        const detail::Wide start = detail::Wide{k} * batch_size_;
        return start >= entries_ ? 0 : detail::lesser(batch_size_, entries_ - static_cast<std::uint64_t>(start));
    }

    /// The position of entry `row` < batch_rows(k) of this rank's `k`-th batch from the base.
    [[nodiscard]] std::uint64_t position(std::uint64_t k, std::uint64_t row) const noexcept {
        assert(row < batch_rows(k));
        return first_ + (k * batch_size_ + row) * step_;
    }

    /// The sample in the source that stands at `position` < N, of any rank. Cost: about 40 ns where shuffled.
    [[nodiscard]] std::uint64_t index(std::uint64_t position) const noexcept {
        assert(position < samples_);
        const std::uint64_t entry = is_shuffled_ ? permutation_(position) : position;
        return subset_ == nullptr ? entry : (*subset_)[static_cast<std::size_t>(entry)];
    }

    /// Where the epoch stands, for all ranks alike, when each has taken its first `k` batches from the base:
    /// min(base + k * batch_size * ranks, N). It serves as the base to go on from; N: the epoch is done.
    [[nodiscard]] std::uint64_t position_after(std::uint64_t k) const noexcept {
        const std::uint64_t left = samples_ - base_;
        const detail::Wide rows = detail::Wide{k} * batch_size_;
        if (rows >= left) {  // also keeps the product below within 128 bits
            return samples_;
        }
        const detail::Wide taken = rows * ranks_;
        return taken >= left ? samples_ : base_ + static_cast<std::uint64_t>(taken);
    }

  private:
    friend class Plan;

    std::uint64_t samples_ = 0;  // N
    std::uint64_t base_ = 0;
    std::uint64_t batch_size_ = 1;
    std::uint64_t ranks_ = 1;
    std::uint64_t first_ = 0;    // position of this rank's first entry
    std::uint64_t step_ = 1;     // from one of its entries to the next
    std::uint64_t entries_ = 0;  // it has in all, from the base on
    std::uint64_t batches_ = 0;
    const std::vector<std::uint64_t>* subset_ = nullptr;
    Permutation permutation_;
    bool is_shuffled_ = false;
};

/// The plan of a run, seen by one rank. A value, cheap to copy. Thread-safety: const use from many threads.
class Plan {
  public:
    explicit Plan(PlanSpec spec) : spec_{std::move(spec)} {
        const std::vector<std::uint64_t>* const subset = spec_.order.subset_ids();
        samples_ = subset == nullptr ? spec_.samples : subset->size();
        assert(samples_ <= std::uint64_t{1} << 63);
        assert(spec_.batch_size >= 1 && spec_.rank < spec_.ranks);
    }

    /// N: the positions of an epoch, over all ranks.
    [[nodiscard]] std::uint64_t samples() const noexcept { return samples_; }

    /// Epoch `number`, counted from 0, from position `base` on; nothing is left where base >= N.
    /// Cost: below 1 us.
    [[nodiscard]] EpochPlan epoch(std::uint64_t number, std::uint64_t base = 0) const noexcept {
        EpochPlan plan;
        plan.samples_ = samples_;
        plan.base_ = base = detail::lesser(base, samples_);
        plan.batch_size_ = spec_.batch_size;
        plan.ranks_ = spec_.ranks;
        plan.subset_ = spec_.order.subset_ids();
        plan.is_shuffled_ = spec_.order.is_shuffled() && samples_ != 0;
        if (plan.is_shuffled_) {
            plan.permutation_ =
                Permutation{samples_, spec_.order.seed(), spec_.order.is_same_every_epoch() ? 0 : number};
        }
        const std::uint64_t left = samples_ - base;
        std::uint64_t most = 0, least = 0;  // entries of any rank
        if (base == samples_) {
            // Nothing is left; for contiguous parts of unequal size base / ranks would say otherwise.
        } else if (spec_.split == Split::striped) {
            plan.first_ = base + detail::lesser(spec_.rank, left);
            plan.step_ = spec_.ranks;
            plan.entries_ = spec_.rank < left ? (left - 1 - spec_.rank) / spec_.ranks + 1 : 0;
            least = left / spec_.ranks;
            most = (left - 1) / spec_.ranks + 1;
        } else {
            const std::uint64_t taken = base / spec_.ranks;
            const std::uint64_t begin = part_begin(spec_.rank);
            const std::uint64_t size = part_begin(spec_.rank + 1) - begin;
            plan.first_ = begin + detail::lesser(taken, size);
            plan.entries_ = size - detail::lesser(taken, size);
            least = samples_ / spec_.ranks - taken;
            most = (samples_ - 1) / spec_.ranks + 1 - taken;
        }
        const bool is_drop = spec_.last_batch == LastBatch::drop;
        const std::uint64_t counted =
            spec_.rank_batches == RankBatches::as_they_fall ? plan.entries_ : (is_drop ? least : most);
        plan.batches_ = counted / spec_.batch_size + (!is_drop && counted % spec_.batch_size != 0 ? 1 : 0);
        return plan;
    }

    /// The sample in the source that stands in for the one at `position` of epoch `number`, at attempt 1, 2, ...:
    /// uniform over all N, so that it may be in the epoch at its own place too, and may be the failed one again.
    [[nodiscard]] std::uint64_t substitute(std::uint64_t number, std::uint64_t position,
                                           std::uint32_t attempt) const noexcept {
        assert(samples_ >= 1 && attempt >= 1);
        const auto stream = static_cast<RandomStream>(static_cast<std::uint64_t>(RandomStream::substitute) + attempt);
        const std::uint64_t entry = Random{spec_.order.seed(), number, position, stream}.below(samples_);
        const std::vector<std::uint64_t>* const subset = spec_.order.subset_ids();
        return subset == nullptr ? entry : (*subset)[static_cast<std::size_t>(entry)];
    }

  private:
    /// floor(rank * N / ranks): where a contiguous part begins.
    [[nodiscard]] std::uint64_t part_begin(std::uint64_t rank) const noexcept {
        return static_cast<std::uint64_t>(detail::Wide{rank} * samples_ / spec_.ranks);
    }

    PlanSpec spec_;
    std::uint64_t samples_ = 0;
};

}  // namespace v0
}  // namespace stoker
