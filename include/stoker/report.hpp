// SPDX-License-Identifier: MIT
/// @file
/// Where the time went, in numbers: what a prefetcher did and who waited for whom.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stoker {
inline namespace v0 {

/// A snapshot of a prefetcher's counters since construction. Times are seconds, added up over the threads that spent
/// them; counts that belong together may be one sample apart, since the workers go on while it is taken.
struct Report {
    /// One stage of the workers' part.
    struct Stage {
        std::uint64_t count = 0;    ///< Calls that ended, failed ones included.
        double busy_seconds = 0.0;  ///< Time inside them.
    };

    Stage fetch;   ///< The source's first phase; 0 for sources of one phase.
    Stage fill;    ///< `fill`, `fill_batch`, `make` or `next`.
    Stage finish;  ///< Sealing batches: closing gaps, packing, the source's `finish`.
    Stage copy;    ///< Enqueueing copies to the device, and waiting for their end.

    double workers_waited_for_consumer_seconds = 0.0;  ///< No free slot: the loop is the slower side.
    double workers_waited_for_budget_seconds = 0.0;    ///< No room in the byte budget for another item.
    double workers_waited_for_turn_seconds = 0.0;      ///< Another thread was inside the generator.
    double consumer_waited_seconds = 0.0;  ///< In `next()` and its kin for a batch: the workers are the slower side.

    std::uint64_t batches = 0;   ///< Delivered.
    std::uint64_t samples = 0;   ///< Delivered, padding excluded.
    std::uint64_t bytes = 0;     ///< Of the delivered batches, as the arena's layout counts them; 0 for plain values.
    std::uint64_t failures = 0;  ///< Samples (and whole batches) that failed, whatever the policy.
    std::uint64_t skipped = 0;   ///< Samples left out of their batch.
    std::uint64_t substituted = 0;  ///< Samples that another one stands in for.

    std::size_t workers = 0;         ///< Threads; 0: the calling thread does the work.
    std::size_t slots = 0;           ///< Host slots.
    std::size_t device_slots = 0;    ///< 0 where nothing is copied.
    std::size_t slot_bytes = 0;      ///< Of one arena.
    std::size_t batches_ready = 0;   ///< Right now.
    std::size_t batches_leased = 0;  ///< Right now.
    std::size_t bytes_ready = 0;     ///< Right now, in whole arenas.
    bool page_locked = false;        ///< Whether the slots are in page-locked memory.

    /// Mean time that the consumer waited for a batch.
    [[nodiscard]] double mean_wait_seconds() const noexcept {
        return batches == 0 ? 0.0 : consumer_waited_seconds / static_cast<double>(batches);
    }
};

}  // namespace v0
}  // namespace stoker
