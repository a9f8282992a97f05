// SPDX-License-Identifier: MIT
/// @file
/// What the shuffle costs per index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <stoker/core.hpp>

#include "support.hpp"

namespace benchmarks {

/// The first epoch of a shuffled plan over `samples` samples, as the workers ask it.
[[nodiscard]] inline stoker::Plan shuffled_plan(std::uint64_t samples) {
    return stoker::Plan{{.order = stoker::shuffled(1),
                         .samples = samples,
                         .batch_size = 32,
                         .last_batch = stoker::LastBatch::keep,
                         .rank = 0,
                         .ranks = 1,
                         .split = stoker::Split::striped,
                         .rank_batches = stoker::RankBatches::as_they_fall}};
}

/// Seconds per index over `count` positions from `first` on (wrapping). Each index has to wait for the one before it,
/// as if a sample were made in between: the processor does not work on several at once.
[[nodiscard]] inline double shuffle_run(const stoker::EpochPlan& epoch, std::uint64_t samples, std::uint64_t first,
                                        std::uint64_t count) {
    std::uint64_t position = first % samples;
    std::uint64_t index = 0;
    const Clock::time_point begin = Clock::now();
    for (std::uint64_t i = 0; i < count; ++i) {
        asm volatile("" : "+r"(position) : "r"(index));
        index = epoch.index(position + (index >> 63));  // that is 0, but the processor has to see the index to know
        position = position + 1 < samples ? position + 1 : 0;
    }
    keep(index);
    return seconds(Clock::now() - begin) / static_cast<double>(count);
}

/// Median seconds per index.
[[nodiscard]] inline double shuffle_per_index(std::uint64_t samples, std::size_t rounds = 51,
                                              std::uint64_t count = 20'000) {
    const stoker::Plan plan = shuffled_plan(samples);
    const stoker::EpochPlan epoch = plan.epoch(0);
    std::vector<double> times;
    for (std::size_t round = 0; round < rounds; ++round) {
        times.push_back(shuffle_run(epoch, samples, round * 19'000'013, count));
    }
    return median(times);
}

}  // namespace benchmarks
