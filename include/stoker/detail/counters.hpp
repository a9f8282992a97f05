// SPDX-License-Identifier: MIT
/// @file
/// The engine's clock, and counters cheap enough to be always on.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace stoker {
inline namespace v0 {
namespace detail {

using Clock = std::chrono::steady_clock;

/// A number that one thread adds to and any thread reads: a relaxed load and store, no read-modify-write.
class Counter {
  public:
    void add(std::uint64_t amount) noexcept {
        value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

  private:
    std::atomic<std::uint64_t> value_{0};  // statistics: publishes nothing else
};

/// Calls of a stage and the time inside them.
struct StageCounter {
    Counter count, nanoseconds;
    void add(Clock::duration time) noexcept {
        count.add(1);
        nanoseconds.add(static_cast<std::uint64_t>(std::chrono::nanoseconds{time}.count()));
    }
};

}  // namespace detail
}  // namespace v0
}  // namespace stoker
