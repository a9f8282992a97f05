// SPDX-License-Identifier: MIT
// How near does overlapping come to the ideal schedule, on real pictures? Each case prints the sequential, the
// overlapped and the ideal time of 200 batches, and the efficiency = ideal / overlapped, as medians of 5 interleaved
// runs. STOKER_BENCH_DATA=DIR takes the JPEG files below DIR instead of rendered ones.
#include <benchmark/benchmark.h>

#include "overlap.hpp"

namespace {

void overlap(benchmark::State& state) {
    static const benchmarks::Pictures pictures{benchmarks::data_folder()};
    static const auto results = benchmarks::measure_overlap(pictures, true);
    const auto& result = results[static_cast<std::size_t>(state.range(0))];
    for (auto _ : state) {
        state.SetIterationTime(result.overlapped);
    }
    state.SetLabel(benchmarks::overlap_cases[static_cast<std::size_t>(state.range(0))].name);
    state.counters["sequential_s"] = result.sequential;
    state.counters["overlapped_s"] = result.overlapped;
    state.counters["ideal_s"] = result.ideal;
    state.counters["efficiency"] = result.efficiency;
    state.counters["efficiency_least"] = result.least;
    state.counters["efficiency_most"] = result.most;
    state.counters["load_ms"] = result.load * 1e3;
    state.SetItemsProcessed(static_cast<std::int64_t>(benchmarks::overlap_batches * pictures.batch_size()));
    state.SetBytesProcessed(static_cast<std::int64_t>(result.bytes));
}
BENCHMARK(overlap)->DenseRange(0, 2)->Iterations(1)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
