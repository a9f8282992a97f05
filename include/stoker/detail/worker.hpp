// SPDX-License-Identifier: MIT
/// @file
/// What belongs to one loader thread: its counters and its reusable memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <stoker/detail/counters.hpp>
#include <stoker/detail/slots.hpp>
#include <stoker/source.hpp>

namespace stoker {
inline namespace v0 {
namespace detail {

/// Used by its own thread alone, but for what is atomic. With 0 workers there is one, used by whoever drives.
struct alignas(cache_line) Worker {
    static constexpr std::uint64_t none = ~std::uint64_t{0};

    explicit Worker(std::size_t n) : number{n} {}

    std::size_t number;
    WorkerContext context;
    Clock::time_point last{};  // up to where the time is accounted for
    StageCounter fetch, fill, finish, copy;
    Counter waited_for_consumer, waited_for_budget, waited_for_turn;
    std::atomic<std::uint64_t> busy_batch{none};  // for the text of a TimeoutError; a hint, publishes nothing else
    std::atomic<std::uint64_t> busy_index{0};     // as above
    std::vector<std::size_t> order;
    std::vector<std::uint64_t> ids, positions;
    std::string row_scratch;  // bytes

    /// The time since `last` was spent in `stage`.
    void account(StageCounter& stage) noexcept {
        const Clock::time_point now = Clock::now();
        stage.add(now - last);
        last = now;
    }
    /// The time since `last` was spent waiting.
    void account(Counter& waiting) noexcept {
        const Clock::time_point now = Clock::now();
        waiting.add(static_cast<std::uint64_t>(std::chrono::nanoseconds{now - last}.count()));
        last = now;
    }
    void is_at(std::uint64_t batch, std::uint64_t index) noexcept {
        busy_index.store(index, std::memory_order_relaxed);
        busy_batch.store(batch, std::memory_order_relaxed);
    }
    void is_at_nothing() noexcept { busy_batch.store(none, std::memory_order_relaxed); }
};

}  // namespace detail
}  // namespace v0
}  // namespace stoker
