// SPDX-License-Identifier: MIT
/// @file
/// What a prefetcher takes of the heap: at its construction, and with time. For programs that count the live heap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <stoker/core.hpp>

#include "live_heap.hpp"
#include "machinery.hpp"
#include "pictures.hpp"
#include "support.hpp"

namespace benchmarks {

/// Making a prefetcher with a shuffled order over `samples` samples.
struct Construction {
    double seconds = 0;      // median
    std::int64_t bytes = 0;  // of the heap, slots left out
};
[[nodiscard]] inline Construction construct(std::uint64_t samples, std::size_t rounds = 51) {
    const EmptySource source{samples};
    const stoker::PrefetcherOptions options{.batch_size = 256, .order = stoker::shuffled(1)};
    Construction result;
    std::vector<double> times;
    times.reserve(rounds);
    for (std::size_t round = 0; round < rounds; ++round) {
        const std::int64_t before = live_bytes();
        const Clock::time_point begin = Clock::now();
        stoker::Prefetcher<NumberBatch> feed{source, options};
        times.push_back(benchmarks::seconds(Clock::now() - begin));
        feed.wait_full();
        result.bytes = std::max(result.bytes, live_bytes() - before);
    }
    result.seconds = median(times);
    result.bytes -= static_cast<std::int64_t>(stoker::Prefetcher<NumberBatch>::planned_bytes(source, options).total());
    return result;
}

inline constexpr std::uint64_t growth_from = 2, growth_to = 40;  // epochs

/// Live heap after epoch 40 less that after epoch 2, each with the ring full and the workers asleep.
template <class Batch, class Source>
[[nodiscard]] std::int64_t heap_growth(Source source, std::size_t batch_size) {
    stoker::Prefetcher<Batch> feed{std::move(source), {.batch_size = batch_size, .order = stoker::shuffled(1)}};
    std::int64_t after_first = 0;
    for (std::uint64_t number = 1; number <= growth_to; ++number) {
        auto epoch = feed.epoch();
        while (epoch.next()) {
        }
        if (number == growth_from) {
            feed.wait_full();
            after_first = live_bytes();
        }
    }
    feed.wait_full();
    return live_bytes() - after_first;
}

/// Pictures from files, and empty work.
[[nodiscard]] inline std::int64_t heap_growth_of_pictures(const Pictures& pictures) {
    return heap_growth<stoker::ImageBatch>(pictures.source(Pictures::rendered), 8);
}
[[nodiscard]] inline std::int64_t heap_growth_of_empty_work() {
    return heap_growth<NumberBatch>(EmptySource{10'000}, 32);
}

}  // namespace benchmarks
