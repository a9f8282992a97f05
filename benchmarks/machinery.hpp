// SPDX-License-Identifier: MIT
/// @file
/// What the machinery costs when the work is empty: per batch on the consumer's side, per sample over all threads.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <stoker/core.hpp>

#include "support.hpp"

namespace benchmarks {

inline constexpr std::uint64_t endless = std::uint64_t{1} << 62;  // samples of a source whose first epoch never ends

/// Lets samples through up to a position; whoever comes too early waits inside the source, which counts as being busy.
class Gate {
  public:
    void pass(std::uint64_t position) const noexcept {
        for (std::uint64_t end = end_.load(); position >= end; end = end_.load()) {
            end_.wait(end);
        }
    }
    void open(std::uint64_t end) noexcept {
        end_.store(end);
        end_.notify_all();
    }

  private:
    std::atomic<std::uint64_t> end_{0};
};

/// A source of tensors, or of plain values, that does nothing else than pass a gate.
struct GatedSource {
    std::shared_ptr<const Gate> gate;
    [[nodiscard]] std::uint64_t size() const noexcept { return endless; }
    [[nodiscard]] stoker::Layout<NumberBatch> layout() const { return {}; }
    void fill(stoker::Row<NumberBatch> row, stoker::Sample& sample) const {
        gate->pass(sample.index());
        row[&NumberBatch::numbers] = sample.index();
    }
};
struct GatedValues {
    std::shared_ptr<const Gate> gate;
    [[nodiscard]] std::uint64_t size() const noexcept { return endless; }
    [[nodiscard]] std::uint64_t make(stoker::Sample& sample) const {
        gate->pass(sample.index());
        return sample.index();
    }
};

/// Seconds of each `next()` plus giving back, with a batch ready and the worker busy: no thread has to be woken.
/// `Batch`: NumberBatch or std::uint64_t, a plain value.
template <class Batch, class Source>
[[nodiscard]] std::vector<double> next_and_give_back(std::size_t rounds) {
    constexpr std::size_t ready = 8;
    const auto gate = std::make_shared<Gate>();
    stoker::Prefetcher<Batch> feed{Source{gate}, {.workers = 1, .prefetch_batches = ready + 1}};
    const struct OpenAtEnd {  // before the prefetcher joins its worker
        Gate& gate;
        ~OpenAtEnd() { gate.open(endless); }
    } open_at_end{*gate};
    std::vector<double> times;
    times.reserve(rounds * ready);
    for (std::size_t round = 1; round <= rounds; ++round) {
        gate->open(round * ready);
        while (feed.report().batches_ready != ready) {
            sleep_for(std::chrono::microseconds{20});
        }
        sleep_for(std::chrono::microseconds{50});  // the worker has come to the gate
        Clock::time_point before = Clock::now();
        for (std::size_t i = 0; i < ready; ++i) {
            keep(feed.next());
            const Clock::time_point now = Clock::now();
            times.push_back(seconds(now - before));
            before = now;
        }
    }
    return times;
}

struct EmptySource {
    std::uint64_t samples = endless;
    [[nodiscard]] std::uint64_t size() const noexcept { return samples; }
    [[nodiscard]] stoker::Layout<NumberBatch> layout() const { return {}; }
    void fill(stoker::Row<NumberBatch> row, stoker::Sample& sample) const {
        row[&NumberBatch::numbers] = sample.index();
    }
};
struct EmptyValues {
    [[nodiscard]] std::uint64_t size() const noexcept { return endless; }
    [[nodiscard]] std::uint64_t make(stoker::Sample& sample) const { return sample.index(); }
};

/// As next_and_give_back, but the worker sleeps since the ring is full, and is woken.
template <class Batch, class Source>
[[nodiscard]] std::vector<double> next_and_give_back_waking(std::size_t rounds) {
    stoker::Prefetcher<Batch> feed{Source{}, {.workers = 1, .prefetch_batches = 4}};
    std::vector<double> times;
    times.reserve(rounds);
    for (std::size_t round = 0; round < rounds; ++round) {
        feed.wait_full();
        sleep_for(std::chrono::microseconds{100});  // the worker has fallen asleep
        const Clock::time_point before = Clock::now();
        keep(feed.next());
        times.push_back(seconds(Clock::now() - before));
    }
    return times;
}

/// Seconds from the end of a fill to the return of the `next()` that slept for it.
[[nodiscard]] inline std::vector<double> hand_over_to_sleeping_consumer(std::size_t rounds) {
    use_exact_timers();
    stoker::Prefetcher<Clock::time_point> feed{stoker::values(endless,
                                                              [](stoker::Sample&) {
                                                                  sleep_for(std::chrono::microseconds{500});
                                                                  return Clock::now();
                                                              }),
                                               {.workers = 1, .prefetch_batches = 1}};
    std::vector<double> times;
    times.reserve(rounds);
    for (std::size_t round = 0; round < rounds; ++round) {
        const auto lease = feed.next();
        const Clock::time_point now = Clock::now();
        times.push_back(seconds(now - **lease));
    }
    return times;
}

inline constexpr std::array<double, 8> sample_batch_sizes = {1, 2, 4, 8, 16, 32, 64, 128};

/// CPU seconds over all threads per batch of `batch_size` empty samples.
[[nodiscard]] inline double cpu_per_batch(std::size_t batch_size, std::size_t workers, std::size_t batches) {
    stoker::Prefetcher<NumberBatch> feed{EmptySource{}, {.batch_size = batch_size, .workers = workers}};
    for (std::size_t k = 0; k < batches / 10; ++k) {
        keep(feed.next());
    }
    const double begin = cpu_seconds();
    for (std::size_t k = 0; k < batches; ++k) {
        keep(feed.next());
    }
    return (cpu_seconds() - begin) / static_cast<double>(batches);
}

/// CPU seconds = offset per batch + slope per sample, over batches of 1 to 128 samples.
[[nodiscard]] inline Line cpu_per_sample(std::size_t workers, std::size_t rounds = 9, std::size_t batches = 2000) {
    std::array<std::vector<double>, sample_batch_sizes.size()> measured;
    for (std::size_t round = 0; round < rounds; ++round) {
        for (std::size_t i = 0; i < sample_batch_sizes.size(); ++i) {
            measured[i].push_back(cpu_per_batch(static_cast<std::size_t>(sample_batch_sizes[i]), workers, batches));
        }
    }
    std::array<double, sample_batch_sizes.size()> medians{};
    for (std::size_t i = 0; i < sample_batch_sizes.size(); ++i) {
        medians[i] = median(measured[i]);
    }
    return fit_line(sample_batch_sizes, medians);
}

}  // namespace benchmarks
