// SPDX-License-Identifier: MIT
// What does the machinery cost when the work is empty? `next()` plus giving back with a batch ready; the same when a
// sleeping worker has to be woken; from the end of a fill to a consumer that sleeps for it; and CPU time per sample
// over all threads. Baselines: an uncontended mutex, a condition variable's wake-up, and the plain loop.
#include <benchmark/benchmark.h>

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

#include "machinery.hpp"

namespace {

void report(benchmark::State& state, const std::vector<double>& times) {
    for (auto _ : state) {
        state.SetIterationTime(benchmarks::median(times));
    }
    state.counters["least_us"] = benchmarks::quantile(times, 0) * 1e6;
    state.counters["p90_us"] = benchmarks::quantile(times, 0.9) * 1e6;
    state.counters["p99_us"] = benchmarks::quantile(times, 0.99) * 1e6;
}

template <class Batch, class Source>
void next_and_give_back(benchmark::State& state) {
    report(state, benchmarks::next_and_give_back<Batch, Source>(500));
}
BENCHMARK(next_and_give_back<benchmarks::NumberBatch, benchmarks::GatedSource>)
    ->Name("next_and_give_back/tensors")
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(next_and_give_back<std::uint64_t, benchmarks::GatedValues>)
    ->Name("next_and_give_back/values")
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

void lock_twice(benchmark::State& state) {
    std::mutex mutex;
    for (auto _ : state) {
        {
            const std::lock_guard lock{mutex};
        }
        { const std::lock_guard lock{mutex}; }
    }
}
BENCHMARK(lock_twice)->Name("next_and_give_back/baseline:lock_twice")->Unit(benchmark::kMicrosecond);

template <class Batch, class Source>
void next_and_give_back_waking(benchmark::State& state) {
    report(state, benchmarks::next_and_give_back_waking<Batch, Source>(2000));
}
BENCHMARK(next_and_give_back_waking<benchmarks::NumberBatch, benchmarks::EmptySource>)
    ->Name("next_and_give_back_waking/tensors")
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(next_and_give_back_waking<std::uint64_t, benchmarks::EmptyValues>)
    ->Name("next_and_give_back_waking/values")
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

void hand_over(benchmark::State& state) { report(state, benchmarks::hand_over_to_sleeping_consumer(1000)); }
BENCHMARK(hand_over)
    ->Name("hand_over_to_sleeping_consumer")
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

/// From before notify_one to the return of the wait, on another thread.
void wake_up(benchmark::State& state) {
    benchmarks::use_exact_timers();
    std::mutex mutex;
    std::condition_variable_any changed;
    bool is_sent = false;
    benchmarks::Clock::time_point sent{};
    std::vector<double> times;
    {
        std::jthread sender{[&](const std::stop_token& stop) {
            while (!stop.stop_requested()) {
                benchmarks::sleep_for(std::chrono::microseconds{500});
                std::unique_lock lock{mutex};
                sent = benchmarks::Clock::now();
                is_sent = true;
                lock.unlock();
                changed.notify_one();
            }
        }};
        for (std::size_t round = 0; round < 1000; ++round) {
            std::unique_lock lock{mutex};
            changed.wait(lock, [&] { return is_sent; });
            times.push_back(benchmarks::seconds(benchmarks::Clock::now() - sent));
            is_sent = false;
        }
    }
    report(state, times);
}
BENCHMARK(wake_up)
    ->Name("hand_over_to_sleeping_consumer/baseline:condition_variable")
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

void cpu_per_sample(benchmark::State& state) {
    const benchmarks::Line line = benchmarks::cpu_per_sample(static_cast<std::size_t>(state.range(0)));
    for (auto _ : state) {
        state.SetIterationTime(line.slope);
    }
    state.counters["per_batch_us"] = line.offset * 1e6;
}
BENCHMARK(cpu_per_sample)
    ->ArgName("workers")
    ->Arg(1)
    ->Arg(2)
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kNanosecond);

void plain_loop(benchmark::State& state) {
    std::vector<std::uint64_t> batch(128);
    for (auto _ : state) {
        for (std::uint64_t i = 0; i < batch.size(); ++i) {
            batch[i] = i;
            benchmarks::keep(batch[i]);
        }
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(batch.size()) * state.iterations());
}
BENCHMARK(plain_loop)->Name("cpu_per_sample/baseline:plain_loop_of_128_samples")->Unit(benchmark::kNanosecond);

}  // namespace

BENCHMARK_MAIN();
