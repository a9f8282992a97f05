// SPDX-License-Identifier: MIT
/// @file
/// What the benchmarks share: clocks, medians, and a queue that stands for a device and uses no CPU.
#pragma once

#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <stoker/core.hpp>

namespace benchmarks {

using Clock = std::chrono::steady_clock;
using Duration = std::chrono::nanoseconds;

[[nodiscard]] inline double seconds(Clock::duration time) { return std::chrono::duration<double>{time}.count(); }
[[nodiscard]] inline Duration from_seconds(double time) { return Duration{static_cast<Duration::rep>(time * 1e9)}; }

/// Makes timed waits of this thread, and of the threads that it starts, end as exactly as the system can: by default
/// they may end 50 us late.
inline void use_exact_timers() { static_cast<void>(::prctl(PR_SET_TIMERSLACK, 1UL)); }

/// Sleeps until a moment, not for a while: what comes late does not add up.
inline void sleep_until(Clock::time_point moment) {
    const auto since_boot = std::chrono::duration_cast<Duration>(moment.time_since_epoch()).count();
    const ::timespec at{static_cast<::time_t>(since_boot / 1'000'000'000),
                        static_cast<long>(since_boot % 1'000'000'000)};
    while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) == EINTR) {
    }
}
inline void sleep_for(Duration time) { sleep_until(Clock::now() + time); }

/// CPU time of all threads of this process together.
[[nodiscard]] inline double cpu_seconds() {
    ::timespec now{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// How much of the machine others use meanwhile: what a measurement is worth depends on it.
class OthersWatch {
  public:
    OthersWatch() : begin_{now()} {}
    /// CPUs that were busy with anything but this process, on average since construction; -1 where the system does not
    /// say.
    [[nodiscard]] double busy_cpus() const {
        const Moment end = now();
        const double elapsed = seconds(end.time - begin_.time);
        if (begin_.all < 0 || end.all < 0 || elapsed <= 0) {
            return -1;
        }
        return std::max(0.0, (end.all - begin_.all) - (end.own - begin_.own)) / elapsed;
    }

  private:
    struct Moment {
        Clock::time_point time;
        double all, own;  // CPU seconds
    };
    [[nodiscard]] static Moment now() {
        std::ifstream file{"/proc/stat"};
        std::string word;
        double user = 0, nice = 0, system = 0, idle = 0, wait = 0, interrupt = 0, soft = 0, steal = 0;
        if (!(file >> word >> user >> nice >> system >> idle >> wait >> interrupt >> soft >> steal)) {
            return {Clock::now(), -1, 0};
        }
        const double ticks = user + nice + system + interrupt + soft + steal;
        return {Clock::now(), ticks / static_cast<double>(::sysconf(_SC_CLK_TCK)), cpu_seconds()};
    }

    Moment begin_;
};

/// Makes the compiler believe that somebody looks at `value`.
template <class T>
void keep(const T& value) {
    asm volatile("" : : "r,m"(value) : "memory");
}

/// The `share` quantile, 0 to 1, of some values; 0.5 is the median.
[[nodiscard]] inline double quantile(std::vector<double> values, double share) {
    if (values.empty()) {
        throw std::logic_error{"a quantile of nothing"};
    }
    std::sort(values.begin(), values.end());
    const double at = share * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = below + 1 < values.size() ? below + 1 : below;
    return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}
[[nodiscard]] inline double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

/// Line through points by least squares.
struct Line {
    double offset = 0, slope = 0;
};
[[nodiscard]] inline Line fit_line(std::span<const double> x, std::span<const double> y) {
    const auto n = static_cast<double>(x.size());
    double sum_x = 0, sum_y = 0, sum_xx = 0, sum_xy = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        sum_x += x[i];
        sum_y += y[i];
        sum_xx += x[i] * x[i];
        sum_xy += x[i] * y[i];
    }
    const double slope = (n * sum_xy - sum_x * sum_y) / (n * sum_xx - sum_x * sum_x);
    return {(sum_y - slope * sum_x) / n, slope};
}

/// Stands for a device: tasks run one behind the other, each for a given time, while the host does something else. Like
/// a stream, a task that is submitted while another one runs begins in the moment the other one ends, whatever the host
/// does; the host learns of an end by waiting for it. It is a time-line only: it uses no CPU and no thread of its own.
/// Thread-safety: one thread at a time.
class ComputeQueue {
  public:
    struct Task {
        Clock::time_point begin, end;
        [[nodiscard]] double cost() const { return seconds(end - begin); }
    };

    /// Enqueues a task that takes `cost`, and returns at once.
    Task submit(Duration cost) {
        const Clock::time_point now = Clock::now();
        const Clock::time_point begin = now < free_at_ ? free_at_ : now;
        free_at_ = begin + cost;
        return {begin, free_at_};
    }
    /// Sleeps until the task has ended.
    static void wait(const Task& task) { sleep_until(task.end); }

  private:
    Clock::time_point free_at_{};
};

/// One number per sample: for measurements in which the data does not matter.
struct NumberBatch {
    stoker::Tensor<std::uint64_t, 1> numbers;
    static constexpr auto fields = stoker::fields<&NumberBatch::numbers>("numbers");
};

}  // namespace benchmarks
