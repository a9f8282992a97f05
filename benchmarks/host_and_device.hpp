// SPDX-License-Identifier: MIT
/// @file
/// The first question of all: host task N + 1 beside device task N. Five tasks of 10 waits on the host and one device
/// task each, at a tenth of the size of examples/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <stoker/core.hpp>

#include "support.hpp"

namespace benchmarks {

inline constexpr std::size_t host_tasks = 5;
inline constexpr std::size_t host_waits = 10;
inline constexpr Duration host_wait = std::chrono::milliseconds{10};
inline constexpr Duration host_cost = host_waits * host_wait;
inline constexpr Duration device_cost = std::chrono::milliseconds{30};

/// Host work, as waits for something outside.
inline std::uint64_t host_task(std::uint64_t number) {
    const Clock::time_point begin = Clock::now();
    for (std::size_t i = 1; i <= host_waits; ++i) {
        sleep_until(begin + i * host_wait);
    }
    return number;
}

/// Seconds for all tasks, from before the construction of the prefetcher to the end of the last device task.
[[nodiscard]] inline double host_beside_device(std::size_t workers) {
    use_exact_timers();
    ComputeQueue queue;
    const Clock::time_point begin = Clock::now();
    stoker::Prefetcher<std::uint64_t> feed{
        stoker::values(host_tasks, [](stoker::Sample& sample) { return host_task(sample.index()); }),
        {.workers = workers, .prefetch_batches = host_tasks, .epochs = 1}};
    ComputeQueue::Task task{};
    while (const auto lease = feed.next()) {
        task = queue.submit(device_cost);  // a value may be used up at once: only the device's time matters here
    }
    ComputeQueue::wait(task);
    return seconds(Clock::now() - begin);
}

/// The makespan of the same with nothing lost.
[[nodiscard]] inline double ideal_host_beside_device(std::size_t workers) {
    double done = 0;
    for (std::size_t k = 0; k < host_tasks; ++k) {
        const double ready = seconds(host_cost) * static_cast<double>(k / workers + 1);
        done = std::max(ready, done) + seconds(device_cost);
    }
    return done;
}

/// Median of the measured time over the ideal one.
[[nodiscard]] inline double host_beside_device_ratio(std::size_t workers, std::size_t rounds = 5) {
    std::vector<double> times;
    for (std::size_t round = 0; round < rounds; ++round) {
        times.push_back(host_beside_device(workers));
    }
    return median(times) / ideal_host_beside_device(workers);
}

}  // namespace benchmarks
