// SPDX-License-Identifier: MIT
/// @file
/// From options as given to options in use: everything is checked, and every default chosen, before anything is
/// allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <stoker/detail/arena.hpp>
#include <stoker/detail/cpu.hpp>
#include <stoker/detail/source_model.hpp>
#include <stoker/detail/text.hpp>
#include <stoker/error.hpp>
#include <stoker/options.hpp>
#include <stoker/plan.hpp>

namespace stoker {
inline namespace v0 {

/// Memory of a prefetcher's slots, in bytes, as its options and its source's layout fix it.
struct PlannedBytes {
    std::size_t host = 0;        ///< Slots on the host, and what packing ragged fields needs beside them.
    std::size_t device = 0;      ///< Slots on the device; 0 where batches are used in host memory.
    std::size_t slot_bytes = 0;  ///< One arena.
    std::size_t host_slots = 0;
    std::size_t device_slots = 0;

    [[nodiscard]] std::size_t total() const noexcept { return host + device; }
};

namespace detail {

template <class B>
struct Resolved {
    PrefetcherOptions options;
    std::optional<Plan> plan;
    std::optional<ArenaLayout> arena;
    std::optional<std::uint64_t> epochs;
    std::size_t slots = 0;
    std::size_t slot_bytes = 0;
    std::size_t item_share = 0;
    std::uint64_t fingerprint = 0;
    PlannedBytes planned;
};

/// Collects everything that is wrong with the options, so that a user mends it in one go.
class OptionChecks {
  public:
    void require(bool is_right, const char* name, const std::string& value, const std::string& rule) {
        if (!is_right) {
            text_.add(text_.empty() ? "" : "; ").add(name).add(" is ").add(value).add(", but ").add(rule);
        }
    }
    void throw_if_any() const {
        if (!text_.empty()) {
            throw OptionError{Text{"cannot make the prefetcher: "}.add(text_.str()).str()};
        }
    }

  private:
    Text text_;
};

/// The state that describes `options` at a place in the plan.
[[nodiscard]] inline State describe_state(const PrefetcherOptions& options, std::uint64_t fingerprint,
                                          std::optional<std::uint64_t> samples, std::uint64_t epoch,
                                          std::uint64_t position) {
    State state = State::of(options.order);
    state.epoch = epoch;
    state.position = position;
    state.samples = samples;
    state.fingerprint = fingerprint;
    state.batch_size = options.batch_size;
    state.ranks = options.ranks;
    state.split = options.split;
    state.last_batch = options.last_batch;
    state.rank_batches = options.rank_batches;
    return state;
}

template <class B>
[[nodiscard]] Resolved<B> resolve(const SourceModel<B>& source, PrefetcherOptions options, bool needs_copy) {
    constexpr bool is_tensor = TensorBatch<B>;
    constexpr std::size_t most = 65536;
    const bool is_generator = !source.size();
    const bool copies = is_tensor && needs_copy;
    const auto number = [](std::uint64_t value) { return std::to_string(value); };
    OptionChecks checks;
    checks.require(options.batch_size >= 1 && options.batch_size <= 0x7fffffff, "batch_size",
                   number(options.batch_size), "it has to be 1 to 2147483647");
    if (!is_tensor) {
        checks.require(options.batch_size == 1, "batch_size", number(options.batch_size),
                       "a prefetcher of plain values delivers one value at a time: it has to be 1");
    }
    if (options.workers) {
        checks.require(*options.workers <= 1024, "workers", number(*options.workers),
                       "it has to be 0 (the calling thread) to 1024");
    }
    checks.require(options.prefetch_batches >= 1 && options.prefetch_batches <= most, "prefetch_batches",
                   number(options.prefetch_batches), "it has to be 1 to 65536");
    checks.require(options.leases >= 1 && options.leases <= most, "leases", number(options.leases),
                   "it has to be 1 to 65536");
    checks.require(options.ranks >= 1, "ranks", number(options.ranks), "it has to be 1 or more");
    checks.require(options.rank < options.ranks || options.ranks == 0, "rank", number(options.rank),
                   Text{"it has to be less than ranks, which is "}.add(options.ranks).str());
    if (options.epochs) {
        checks.require(*options.epochs >= 1, "epochs", number(*options.epochs), "it has to be 1 or more, or unset");
    }
    const std::vector<std::uint64_t>* const subset = options.order.subset_ids();
    if (is_generator) {
        checks.require(!options.order.is_shuffled() && subset == nullptr, "order", "shuffled or a subset",
                       "a generator gives its samples in its own order: it has to be sequential()");
        checks.require(options.ranks == 1, "ranks", number(options.ranks),
                       "a generator cannot be shared by index: it has to be 1");
        checks.require(options.on_error != OnError::substitute, "on_error", "substitute",
                       "a generator cannot be asked for another sample: it has to be fail or skip");
        if (!source.can_restart() && options.epochs) {
            checks.require(*options.epochs == 1, "epochs", number(*options.epochs),
                           "a generator without restart(epoch) has exactly one epoch");
        }
    } else {
        const std::uint64_t size = *source.size();
        checks.require(size >= 1, "the source's size()", number(size), "there has to be a sample");
        checks.require(size <= std::uint64_t{1} << 63, "the source's size()", number(size),
                       "at most 2^63 are possible");
        if (subset != nullptr) {
            checks.require(!subset->empty(), "the order's subset", "empty", "it has to name a sample");
            for (const std::uint64_t id : *subset) {
                if (id >= size) {
                    checks.require(false, "the order's subset", Text{"a list with sample "}.add(id).str(),
                                   Text{"the source has only "}.add(size).str());
                    break;
                }
            }
        }
        checks.require(options.on_error != OnError::substitute || !source.is_whole_batch(), "on_error", "substitute",
                       "a whole-batch source cannot replace one sample: it has to be fail or skip");
    }
    checks.throw_if_any();

    Resolved<B> resolved;
    if (!options.workers) {
        options.workers = usable_cpus(affinity_cpus(), cgroup_cpus());
    }
    if (!is_generator) {
        resolved.plan.emplace(PlanSpec{options.order, *source.size(), options.batch_size, options.last_batch,
                                       options.rank, options.ranks, options.split, options.rank_batches});
        if (resolved.plan->epoch(0).batches() == 0) {
            throw OptionError{
                Text{"cannot make the prefetcher: with "}
                    .add(resolved.plan->samples())
                    .add(" samples, batch_size ")
                    .add(options.batch_size)
                    .add(", rank ")
                    .add(options.rank)
                    .add(" of ")
                    .add(options.ranks)
                    .add(" and this last_batch rule an epoch has no batch; lower batch_size, keep the last "
                         "batch, or use fewer ranks")
                    .str()};
        }
    }
    resolved.epochs = options.epochs;
    if (is_generator && !source.can_restart()) {
        resolved.epochs = 1;
    }
    std::size_t beside = 0;
    if constexpr (is_tensor) {
        const Layout<B> layout = source.layout();
        resolved.arena.emplace(layout.specs(), options.batch_size);
        resolved.slot_bytes = resolved.arena->bytes();
        beside = resolved.arena->scratch_bytes();
    } else {
        resolved.slot_bytes = sizeof(B);
    }

    // Slots (D-7): the device that copies has its leases in slots of its own.
    const std::size_t extra = copies ? 0 : options.leases;
    resolved.slots = options.prefetch_batches + extra;
    const auto times = [](std::size_t count, std::size_t bytes) {
        std::size_t product = 0;
        return __builtin_mul_overflow(count, bytes, &product) ? (std::numeric_limits<std::size_t>::max)() / 2 : product;
    };
    if (options.max_bytes) {
        const std::size_t least = times(1 + extra, resolved.slot_bytes) + beside;
        if (*options.max_bytes < least) {
            Text text{"cannot make the prefetcher: max_bytes is "};
            text.add(*options.max_bytes).add(", but one batch ahead");
            if (!copies) {
                text.add(" and ").add(options.leases).add(" leased");
            }
            throw OptionError{text.add(" take ").add(least).add(" bytes; raise it to that, or lower batch_size").str()};
        }
        const std::size_t room = (*options.max_bytes - beside) / resolved.slot_bytes;
        resolved.slots = room < resolved.slots ? room : resolved.slots;
        options.prefetch_batches = resolved.slots - extra;
        resolved.item_share = *options.max_bytes - beside - resolved.slots * resolved.slot_bytes;
    }
    resolved.planned.slot_bytes = resolved.slot_bytes;
    resolved.planned.host_slots = resolved.slots;
    resolved.planned.device_slots = copies ? options.leases + 1 : 0;
    resolved.planned.host = times(resolved.slots, resolved.slot_bytes) + beside;
    resolved.planned.device = times(resolved.planned.device_slots, resolved.slot_bytes);

    resolved.fingerprint = source.fingerprint();
    if (options.resume) {
        check_state(*options.resume,
                    describe_state(options, resolved.fingerprint,
                                   is_generator ? std::nullopt : std::optional{resolved.plan->samples()}, 0, 0),
                    options.elastic);
    }
    resolved.options = std::move(options);
    return resolved;
}

}  // namespace detail
}  // namespace v0
}  // namespace stoker
