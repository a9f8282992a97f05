// SPDX-License-Identifier: MIT
// How long does the first batch take, from before the construction of the prefetcher, and how much of that is beyond
// decoding it on all workers? Baseline: the same batch on the calling thread.
#include <benchmark/benchmark.h>

#include "first_batch.hpp"

namespace {

void first_batch(benchmark::State& state) {
    const benchmarks::Pictures pictures{benchmarks::data_folder()};
    const auto runs = benchmarks::first_batches(pictures);
    const benchmarks::FirstBatch first = runs[runs.size() / 2];
    for (auto _ : state) {
        state.SetIterationTime(first.total);
    }
    state.counters["own_decoding_ms"] = first.own * 1e3;
    state.counters["extra_ms"] = first.extra() * 1e3;
    state.counters["least_extra_ms"] = runs.front().extra() * 1e3;
    state.SetItemsProcessed(benchmarks::first_batch_size);
}
BENCHMARK(first_batch)->Iterations(1)->UseManualTime()->Unit(benchmark::kMillisecond);

void on_the_calling_thread(benchmark::State& state) {
    const benchmarks::Pictures pictures{benchmarks::data_folder()};
    for (auto _ : state) {
        stoker::Prefetcher<stoker::ImageBatch> feed{
            pictures.source(16 * benchmarks::first_batch_size),
            {.batch_size = benchmarks::first_batch_size, .workers = 0, .order = stoker::shuffled(1)}};
        benchmarks::keep(feed.next());
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(benchmarks::first_batch_size) * state.iterations());
}
BENCHMARK(on_the_calling_thread)->Name("first_batch/baseline:on_the_calling_thread")->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
