// SPDX-License-Identifier: MIT
/// @file
/// How long the first batch takes beyond its own decoding.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <stoker/core.hpp>

#include "pictures.hpp"
#include "support.hpp"

namespace benchmarks {

inline constexpr std::size_t first_batch_size = 32;

/// Pictures, with the time that the first batch's samples take, on whatever threads.
class TimedPictures {
  public:
    explicit TimedPictures(PictureSource source) : source_{std::move(source)} {}
    [[nodiscard]] double first_batch_busy() const { return static_cast<double>(*nanoseconds_) * 1e-9; }

    [[nodiscard]] std::uint64_t size() const { return source_.size(); }
    [[nodiscard]] stoker::Layout<stoker::ImageBatch> layout() const { return source_.layout(); }
    [[nodiscard]] stoker::EncodedFile fetch(stoker::Sample& sample) const {
        const Clock::time_point begin = Clock::now();
        stoker::EncodedFile file = source_.fetch(sample);
        add(sample, begin);
        return file;
    }
    void fill(stoker::Row<stoker::ImageBatch> row, stoker::EncodedFile& file, stoker::Sample& sample) const {
        const Clock::time_point begin = Clock::now();
        source_.fill(row, file, sample);
        add(sample, begin);
    }

  private:
    void add(const stoker::Sample& sample, Clock::time_point begin) const {
        if (sample.epoch() == 0 && sample.position() < first_batch_size) {
            nanoseconds_->fetch_add(static_cast<std::uint64_t>(Duration{Clock::now() - begin}.count()));
        }
    }

    PictureSource source_;
    std::shared_ptr<std::atomic<std::uint64_t>> nanoseconds_ = std::make_shared<std::atomic<std::uint64_t>>(0);
};

/// Times in seconds, from before the construction of the prefetcher.
struct FirstBatch {
    double total = 0;
    double own = 0;  // its decoding, by all workers together
    [[nodiscard]] double extra() const { return total - own; }
};
[[nodiscard]] inline FirstBatch first_batch(const Pictures& pictures) {
    const TimedPictures source{pictures.source(16 * first_batch_size)};
    const Clock::time_point begin = Clock::now();
    stoker::Prefetcher<stoker::ImageBatch> feed{source, {.batch_size = first_batch_size, .order = stoker::shuffled(1)}};
    const auto lease = feed.next();
    const double total = seconds(Clock::now() - begin);
    return {total, source.first_batch_busy() / static_cast<double>(*feed.options().workers)};
}

/// Runs in ascending order of extra time. Two more before them read the files into the page cache.
[[nodiscard]] inline std::vector<FirstBatch> first_batches(const Pictures& pictures, std::size_t rounds = 21) {
    for (std::size_t round = 0; round < 2; ++round) {
        keep(first_batch(pictures).total);
    }
    std::vector<FirstBatch> runs;
    for (std::size_t round = 0; round < rounds; ++round) {
        runs.push_back(first_batch(pictures));
    }
    std::sort(runs.begin(), runs.end(), [](const FirstBatch& a, const FirstBatch& b) { return a.extra() < b.extra(); });
    return runs;
}

}  // namespace benchmarks
