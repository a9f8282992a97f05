// While the GPU works, can the CPU already load the next images? Yes: wrap any loading function in a Prefetcher of
// plain values. Five tasks of host work (100 waits of 10 ms each, as a disk would make them), each followed by 0.3 s of
// device work on an asynchronous queue; printed are the sequential time and the overlapped ones. `--small`: a tenth of
// all times.
#include <stoker/core.hpp>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <future>
#include <thread>
#include <vector>

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

struct Times {
    std::vector<Clock::time_point> load_began = std::vector<Clock::time_point>(5),
                                   device_ended = std::vector<Clock::time_point>(5);
    double seconds = 0;
    bool is_right = true;
};

// The "device": work starts at once on its own and the host need not wait for it.
std::future<Clock::time_point> start_on_device(int value, Milliseconds cost, int& result) {
    return std::async(std::launch::async, [value, cost, &result] {
        std::this_thread::sleep_for(cost);
        result = value * value;
        return Clock::now();
    });
}

Times run(std::size_t workers, double scale) {
    Times times;
    // The general wrapper: any function of a sample; results come in order, however many threads run it.
    const auto load = [&times, scale](stoker::Sample& sample) {
        times.load_began[sample.index()] = Clock::now();
        for (int wait = 0; wait < 100; ++wait) {
            std::this_thread::sleep_for(Milliseconds{10 * scale});
        }
        return static_cast<int>(sample.index()) + 1;
    };
    const auto begin = Clock::now();
    stoker::Prefetcher<int> feed{stoker::values(5, load), {.workers = workers, .prefetch_batches = 4, .epochs = 1}};
    int task = 0;
    for (auto&& value : feed.epoch()) {  // task N + 1 is being loaded while the device works on task N
        int result = 0;
        times.device_ended[static_cast<std::size_t>(task)] =
            start_on_device(*value, Milliseconds{300 * scale}, result).get();
        ++task;
        times.is_right = times.is_right && result == task * task;
    }
    times.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    times.is_right = times.is_right && task == 5;
    return times;
}

int main(int argc, char** argv) {
    const bool is_small = argc > 1 && std::strcmp(argv[1], "--small") == 0;
    const double scale = is_small ? 0.1 : 1.0;
    const Times sequential = run(0, scale);  // 0 workers: everything on this thread, one after the other
    bool is_right = sequential.is_right;
    std::printf("sequential            %6.2f s\n", sequential.seconds);
    for (const std::size_t workers : {std::size_t{1}, std::size_t{4}}) {
        const Times overlapped = run(workers, scale);
        std::printf("overlapped, %zu worker%s %6.2f s\n", workers, workers == 1 ? " " : "s", overlapped.seconds);
        is_right = is_right && overlapped.is_right;
        for (std::size_t n = 0; n + 1 < 5; ++n) {
            is_right = is_right && overlapped.load_began[n + 1] < overlapped.device_ended[n];
        }
        is_right = is_right && (is_small || overlapped.seconds < sequential.seconds);
    }
    std::puts(is_right ? "values, order and overlap are right" : "WRONG");
    return is_right ? 0 : 1;
}
