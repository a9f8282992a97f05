// SPDX-License-Identifier: MIT
// Five tasks of 0.1 s host work, as waits, and 0.03 s device work each: how long with host task N + 1 beside device
// task N, against the makespan with nothing lost? Baseline: the plain loop.
#include <benchmark/benchmark.h>

#include "host_and_device.hpp"

namespace {

void host_beside_device(benchmark::State& state) {
    const auto workers = static_cast<std::size_t>(state.range(0));
    const double ratio = benchmarks::host_beside_device_ratio(workers);
    const double ideal = benchmarks::ideal_host_beside_device(workers);
    for (auto _ : state) {
        state.SetIterationTime(ratio * ideal);
    }
    state.counters["ideal_s"] = ideal;
    state.counters["ratio"] = ratio;
}
BENCHMARK(host_beside_device)
    ->ArgName("workers")
    ->Arg(1)
    ->Arg(4)
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

void plain_loop(benchmark::State& state) {
    benchmarks::use_exact_timers();
    for (auto _ : state) {
        benchmarks::ComputeQueue queue;
        for (std::size_t k = 0; k < benchmarks::host_tasks; ++k) {
            benchmarks::keep(benchmarks::host_task(k));
            queue.wait(queue.submit(benchmarks::device_cost));
        }
    }
}
BENCHMARK(plain_loop)
    ->Name("host_beside_device/baseline:plain_loop")
    ->Iterations(1)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
