// SPDX-License-Identifier: MIT
// What does the shuffle cost per index? One after the other, as workers ask for them, and many at once. Baselines: the
// same plan in sequential order, and reading an index from a shuffled array (which for 10^9 samples would take 8 GB).
#include <benchmark/benchmark.h>

#include <numeric>

#include "shuffle.hpp"

namespace {

void one_by_one(benchmark::State& state) {
    const auto samples = static_cast<std::uint64_t>(state.range(0));
    const stoker::Plan plan = benchmarks::shuffled_plan(samples);
    const stoker::EpochPlan epoch = plan.epoch(0);
    constexpr std::uint64_t count = 1000;
    std::uint64_t first = 0;
    for (auto _ : state) {
        benchmark::DoNotOptimize(benchmarks::shuffle_run(epoch, samples, first, count));
        first += 19'000'013;
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(count) * state.iterations());
}
BENCHMARK(one_by_one)
    ->Arg(1'000)
    ->Arg(1'000'000)
    ->Arg(1'000'000'000)
    ->Unit(benchmark::kMicrosecond)
    ->Name("1000_indices/one_by_one");

void at_once(benchmark::State& state, const stoker::Order& order) {
    const auto samples = static_cast<std::uint64_t>(state.range(0));
    const stoker::Plan plan{{.order = order,
                             .samples = samples,
                             .batch_size = 32,
                             .last_batch = stoker::LastBatch::keep,
                             .rank = 0,
                             .ranks = 1,
                             .split = stoker::Split::striped,
                             .rank_batches = stoker::RankBatches::as_they_fall}};
    const stoker::EpochPlan epoch = plan.epoch(0);
    for (auto _ : state) {
        for (std::uint64_t i = 0; i < 1000; ++i) {
            benchmark::DoNotOptimize(epoch.index(i));
        }
    }
    state.SetItemsProcessed(1000 * state.iterations());
}
void shuffled(benchmark::State& state) { at_once(state, stoker::shuffled(1)); }
void sequential(benchmark::State& state) { at_once(state, stoker::sequential()); }
BENCHMARK(shuffled)
    ->Arg(1'000)
    ->Arg(1'000'000)
    ->Arg(1'000'000'000)
    ->Unit(benchmark::kMicrosecond)
    ->Name("1000_indices/at_once");
BENCHMARK(sequential)
    ->Arg(1'000)
    ->Arg(1'000'000'000)
    ->Unit(benchmark::kMicrosecond)
    ->Name("1000_indices/baseline:sequential");

void array(benchmark::State& state) {
    std::vector<std::uint64_t> indices(static_cast<std::size_t>(state.range(0)));
    std::iota(indices.begin(), indices.end(), 0);
    stoker::Random random{1, 0, 0};
    for (std::size_t i = indices.size(); i > 1; --i) {
        std::swap(indices[i - 1], indices[random.below(i)]);
    }
    for (auto _ : state) {
        for (std::size_t i = 0; i < 1000; ++i) {
            benchmark::DoNotOptimize(indices[i]);
        }
    }
    state.SetItemsProcessed(1000 * state.iterations());
}
BENCHMARK(array)->Arg(1'000)->Arg(1'000'000)->Unit(benchmark::kMicrosecond)->Name("1000_indices/baseline:array");

void new_epoch(benchmark::State& state) {
    const stoker::Plan plan = benchmarks::shuffled_plan(static_cast<std::uint64_t>(state.range(0)));
    std::uint64_t epoch = 0;
    for (auto _ : state) {
        benchmark::DoNotOptimize(plan.epoch(epoch++));
    }
}
BENCHMARK(new_epoch)->Arg(60)->Arg(1'000)->Arg(1'000'000'000);

}  // namespace

BENCHMARK_MAIN();
