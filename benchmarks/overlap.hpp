// SPDX-License-Identifier: MIT
/// @file
/// How much of the time that overlapping can save is saved: a training loop on real pictures, with a device that does
/// not use the CPU, against the ideal schedule of the same loads and computations.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <stoker/core.hpp>

#include "pictures.hpp"
#include "support.hpp"

namespace benchmarks {

struct OverlapCase {
    const char* name;
    double compute_per_load;  // time of a batch's computation, against that of its loading by all workers together
};
inline constexpr std::array<OverlapCase, 3> overlap_cases = {
    {{"load_bound", 0.5}, {"balanced", 1.0}, {"compute_bound", 2.0}}};

inline constexpr std::size_t overlap_batches = 200;  // of one run
inline constexpr std::size_t overlap_runs = 5;
// Ahead so many: with batches as small as these, of a few milliseconds, 2 would be less than what the system takes from
// a worker at a time when the machine is not quiet.
inline constexpr std::size_t overlap_prefetch = 4;

/// One run of `overlap_batches` batches. Times in seconds.
struct OverlapRun {
    double total = 0;  // from before the construction of the prefetcher to the end of the last computation
    double load = 0;   // of one batch, by all workers together: time busy / workers
    double ideal = 0;  // see ideal_makespan
    std::uint64_t bytes = 0;
};

/// Makespan of ready_k = max(ready_(k-1), done_(k-d)) + load, done_k = max(ready_k, done_(k-1)) + compute_k.
[[nodiscard]] inline double ideal_makespan(double load, const std::vector<double>& compute, std::size_t d) {
    std::vector<double> done(compute.size());
    double ready = 0;
    for (std::size_t k = 0; k < compute.size(); ++k) {
        const double room = k < d ? 0.0 : done[k - d];
        ready = std::max(ready, room) + load;
        done[k] = std::max(ready, k == 0 ? 0.0 : done[k - 1]) + compute[k];
    }
    return done.back();
}

/// Time busy per batch, divided by the workers.
[[nodiscard]] inline double load_of(const stoker::Report& report) {
    const double busy = report.fetch.busy_seconds + report.fill.busy_seconds + report.finish.busy_seconds;
    return busy / static_cast<double>(report.workers) / static_cast<double>(report.batches);
}

[[nodiscard]] inline PictureSource overlap_source(const Pictures& pictures) {
    return pictures.source(overlap_batches * pictures.batch_size());
}

/// The training loop: a batch's computation is submitted as soon as the batch is there, behind the one that still runs;
/// each lease is held until its computation has ended. The number of workers is the default.
[[nodiscard]] inline OverlapRun run_overlapped(const Pictures& pictures, Duration cost, std::uint64_t seed) {
    const PictureSource source = overlap_source(pictures);
    ComputeQueue queue;
    std::vector<double> costs;
    costs.reserve(overlap_batches);
    OverlapRun run;
    const Clock::time_point begin = Clock::now();
    stoker::Prefetcher<stoker::ImageBatch> feed{source,
                                                {.batch_size = pictures.batch_size(),
                                                 .prefetch_batches = overlap_prefetch,
                                                 .order = stoker::shuffled(seed),
                                                 .leases = 2,
                                                 .epochs = 1}};
    std::optional<stoker::Lease<stoker::ImageBatch>> before;
    ComputeQueue::Task task{};
    while (auto lease = feed.next()) {
        const ComputeQueue::Task running = std::exchange(task, queue.submit(cost));
        costs.push_back(task.cost());
        if (before) {
            queue.wait(running);
        }
        before = std::move(*lease);
    }
    queue.wait(task);
    run.total = seconds(Clock::now() - begin);
    const stoker::Report report = feed.report();
    run.load = load_of(report);
    run.ideal = ideal_makespan(run.load, costs, feed.options().prefetch_batches + feed.options().leases);
    run.bytes = report.bytes;
    return run;
}

/// The plain loop: load, compute, wait, on one thread.
[[nodiscard]] inline double run_sequential(const Pictures& pictures, Duration cost, std::uint64_t seed) {
    const PictureSource source = overlap_source(pictures);
    ComputeQueue queue;
    const Clock::time_point begin = Clock::now();
    stoker::Prefetcher<stoker::ImageBatch> feed{source,
                                                {.batch_size = pictures.batch_size(),
                                                 .workers = 0,
                                                 .prefetch_batches = 1,
                                                 .order = stoker::shuffled(seed),
                                                 .epochs = 1}};
    while (auto lease = feed.next()) {
        queue.wait(queue.submit(cost));
    }
    return seconds(Clock::now() - begin);
}

/// Medians of `overlap_runs` runs.
struct OverlapResult {
    double sequential = 0, overlapped = 0, ideal = 0, efficiency = 0;
    double least = 0, most = 0;  // efficiency
    double load = 0;             // of one batch
    std::uint64_t bytes = 0;     // of one run
};

/// Measures all cases, interleaved. `with_sequential`: the plain loop too; it takes twice as long as all else.
[[nodiscard]] inline std::array<OverlapResult, overlap_cases.size()> measure_overlap(const Pictures& pictures,
                                                                                     bool with_sequential) {
    use_exact_timers();
    std::array<std::vector<double>, overlap_cases.size()> sequential, overlapped, ideal, efficiency, load;
    std::array<OverlapResult, overlap_cases.size()> results;
    double last_load = run_overlapped(pictures, Duration{0}, 0).load;  // also warms the caches
    for (std::size_t round = 0; round < overlap_runs; ++round) {
        for (std::size_t i = 0; i < overlap_cases.size(); ++i) {
            const Duration cost = from_seconds(overlap_cases[i].compute_per_load * last_load);
            if (with_sequential) {
                sequential[i].push_back(run_sequential(pictures, cost, round + 1));
            }
            const OverlapRun run = run_overlapped(pictures, cost, round + 1);
            last_load = run.load;
            overlapped[i].push_back(run.total);
            ideal[i].push_back(run.ideal);
            efficiency[i].push_back(run.ideal / run.total);
            load[i].push_back(run.load);
            results[i].bytes = run.bytes;
        }
    }
    for (std::size_t i = 0; i < overlap_cases.size(); ++i) {
        results[i].sequential = with_sequential ? median(sequential[i]) : 0;
        results[i].overlapped = median(overlapped[i]);
        results[i].ideal = median(ideal[i]);
        results[i].efficiency = median(efficiency[i]);
        results[i].least = quantile(efficiency[i], 0);
        results[i].most = quantile(efficiency[i], 1);
        results[i].load = median(load[i]);
    }
    return results;
}

}  // namespace benchmarks
