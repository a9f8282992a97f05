// SPDX-License-Identifier: MIT
// What does a prefetcher take of the heap? Constructing one with a shuffled order, in time and bytes besides the slots;
// and the live heap after epoch 40 against that after epoch 2. Baseline: an array of the same shuffled indices.
#include <benchmark/benchmark.h>

#include <numeric>

#include "memory.hpp"

namespace {

void construct(benchmark::State& state) {
    const benchmarks::Construction result = benchmarks::construct(static_cast<std::uint64_t>(state.range(0)));
    for (auto _ : state) {
        state.SetIterationTime(result.seconds);
    }
    state.counters["bytes_besides_slots"] = static_cast<double>(result.bytes);
}
BENCHMARK(construct)
    ->Arg(1'000)
    ->Arg(1'000'000)
    ->Arg(1'000'000'000)
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

void array(benchmark::State& state) {
    for (auto _ : state) {
        std::vector<std::uint64_t> indices(static_cast<std::size_t>(state.range(0)));
        std::iota(indices.begin(), indices.end(), 0);
        stoker::Random random{1, 0, 0};
        for (std::size_t i = indices.size(); i > 1; --i) {
            std::swap(indices[i - 1], indices[random.below(i)]);
        }
        benchmark::DoNotOptimize(indices.data());
    }
}
BENCHMARK(array)->Name("construct/baseline:array")->Arg(1'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

void growth_of_pictures(benchmark::State& state) {
    const benchmarks::Pictures pictures{benchmarks::data_folder()};
    for (auto _ : state) {
        state.counters["bytes"] = static_cast<double>(benchmarks::heap_growth_of_pictures(pictures));
    }
}
BENCHMARK(growth_of_pictures)
    ->Name("growth_from_epoch_2_to_40/pictures")
    ->Iterations(1)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

void growth_of_empty_work(benchmark::State& state) {
    for (auto _ : state) {
        state.counters["bytes"] = static_cast<double>(benchmarks::heap_growth_of_empty_work());
    }
}
BENCHMARK(growth_of_empty_work)
    ->Name("growth_from_epoch_2_to_40/empty_work")
    ->Iterations(1)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
