// SPDX-License-Identifier: MIT
// The figures of the core, one line each: name value unit. About a minute; wants a quiet machine.
// figures_core [--data DIR] [--verbose] [WORD...]: the JPEG files below DIR instead of rendered ones; how much the
// values scatter, on standard error; only figures whose name contains one of the words.
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "first_batch.hpp"
#include "host_and_device.hpp"
#include "machinery.hpp"
#include "memory.hpp"
#include "overlap.hpp"
#include "pictures.hpp"
#include "shuffle.hpp"

namespace {

struct Settings {
    std::string data = benchmarks::data_folder();
    bool is_verbose = false;
    std::vector<std::string_view> words;

    [[nodiscard]] bool wants(std::string_view name) const {
        bool is_wanted = words.empty();
        for (const std::string_view word : words) {
            is_wanted = is_wanted || name.find(word) != std::string_view::npos;
        }
        return is_wanted;
    }
};

[[nodiscard]] std::optional<Settings> parse(int count, char** arguments) {
    Settings settings;
    for (int i = 1; i < count; ++i) {
        const std::string_view argument = arguments[i];
        if (argument == "--data" && i + 1 < count) {
            settings.data = arguments[++i];
        } else if (argument == "--verbose") {
            settings.is_verbose = true;
        } else if (argument.starts_with("-")) {
            return std::nullopt;
        } else {
            settings.words.push_back(argument);
        }
    }
    return settings;
}

void print(const char* name, double value, int decimals, const char* unit) {
    std::printf("%s %.*f %s\n", name, decimals, value, unit);
    std::fflush(stdout);
}

void print_scatter(const Settings& settings, const char* name, const std::vector<double>& times) {
    if (settings.is_verbose) {
        std::fprintf(stderr, "  %s: least %.3f, median %.3f, 90 %% %.3f, 99 %% %.3f us\n", name,
                     benchmarks::quantile(times, 0) * 1e6, benchmarks::median(times) * 1e6,
                     benchmarks::quantile(times, 0.9) * 1e6, benchmarks::quantile(times, 0.99) * 1e6);
    }
}

void overlap(const Settings& settings, const benchmarks::Pictures& pictures) {
    bool is_wanted = false;
    for (const auto& overlap_case : benchmarks::overlap_cases) {
        is_wanted = is_wanted || settings.wants("efficiency_" + std::string{overlap_case.name});
    }
    if (!is_wanted) {
        return;
    }
    const benchmarks::OthersWatch others;
    const auto results = benchmarks::measure_overlap(pictures, false);
    for (std::size_t i = 0; i < results.size(); ++i) {
        print(("efficiency_" + std::string{benchmarks::overlap_cases[i].name}).c_str(), results[i].efficiency, 4,
              "fraction");
        if (settings.is_verbose) {
            std::fprintf(stderr, "  overlapped %.3f s, ideal %.3f s, load %.2f ms per batch, efficiency %.4f to %.4f\n",
                         results[i].overlapped, results[i].ideal, results[i].load * 1e3, results[i].least,
                         results[i].most);
        }
    }
    if (settings.is_verbose) {
        std::fprintf(stderr, "  meanwhile others kept %.2f CPUs busy\n", others.busy_cpus());
    }
}

void machinery(const Settings& settings) {
    if (settings.wants("machinery_us_per_batch")) {
        const auto tensors = benchmarks::next_and_give_back<benchmarks::NumberBatch, benchmarks::GatedSource>(1000);
        const auto values = benchmarks::next_and_give_back<std::uint64_t, benchmarks::GatedValues>(1000);
        print("machinery_us_per_batch", std::max(benchmarks::median(tensors), benchmarks::median(values)) * 1e6, 3,
              "us");
        print_scatter(settings, "tensors", tensors);
        print_scatter(settings, "values", values);
        print_scatter(settings, "tensors, worker asleep",
                      benchmarks::next_and_give_back_waking<benchmarks::NumberBatch, benchmarks::EmptySource>(2000));
        print_scatter(settings, "values, worker asleep",
                      benchmarks::next_and_give_back_waking<std::uint64_t, benchmarks::EmptyValues>(2000));
        print_scatter(settings, "hand-over to a sleeping consumer", benchmarks::hand_over_to_sleeping_consumer(1000));
    }
    if (settings.wants("machinery_ns_per_sample")) {
        const benchmarks::Line one = benchmarks::cpu_per_sample(1);
        const benchmarks::Line two = benchmarks::cpu_per_sample(2);
        print("machinery_ns_per_sample", std::max(one.slope, two.slope) * 1e9, 1, "ns");
        if (settings.is_verbose) {
            std::fprintf(stderr, "  1 worker %.1f ns + %.2f us per batch, 2 workers %.1f ns + %.2f us per batch\n",
                         one.slope * 1e9, one.offset * 1e6, two.slope * 1e9, two.offset * 1e6);
        }
    }
}

void measure(const Settings& settings) {
    const benchmarks::Pictures pictures{settings.data};
    if (settings.is_verbose) {
        std::fprintf(stderr, "  %zu %s, %zu per batch\n", pictures.files(),
                     pictures.are_rendered() ? "rendered JPEG files" : "JPEG files", pictures.batch_size());
    }
    overlap(settings, pictures);
    if (settings.wants("example1_one_worker_vs_ideal")) {
        print("example1_one_worker_vs_ideal", benchmarks::host_beside_device_ratio(1), 4, "ratio");
        if (settings.is_verbose) {
            std::fprintf(stderr, "  4 workers: %.4f of their ideal\n", benchmarks::host_beside_device_ratio(4));
        }
    }
    machinery(settings);
    if (settings.wants("first_batch_extra_ms")) {
        const auto runs = benchmarks::first_batches(pictures);
        const benchmarks::FirstBatch first = runs[runs.size() / 2];
        print("first_batch_extra_ms", first.extra() * 1e3, 3, "ms");
        if (settings.is_verbose) {
            std::fprintf(stderr, "  %.2f ms in all, its decoding %.2f ms; extra %.3f to %.3f ms\n", first.total * 1e3,
                         first.own * 1e3, runs.front().extra() * 1e3, runs.back().extra() * 1e3);
        }
    }
    if (settings.wants("shuffle_ns_per_index_1e9")) {
        print("shuffle_ns_per_index_1e9", benchmarks::shuffle_per_index(1'000'000'000) * 1e9, 1, "ns");
        if (settings.is_verbose) {
            std::fprintf(stderr, "  10^3: %.1f ns, 10^6: %.1f ns\n", benchmarks::shuffle_per_index(1'000) * 1e9,
                         benchmarks::shuffle_per_index(1'000'000) * 1e9);
        }
    }
    if (settings.wants("construct_ms_1e9")) {
        const benchmarks::Construction result = benchmarks::construct(1'000'000'000);
        print("construct_ms_1e9", result.seconds * 1e3, 3, "ms");
        if (settings.is_verbose) {
            std::fprintf(stderr, "  %lld bytes besides the slots\n", static_cast<long long>(result.bytes));
        }
    }
    if (settings.wants("live_bytes_growth")) {
        const std::int64_t of_pictures = benchmarks::heap_growth_of_pictures(pictures);
        const std::int64_t of_empty_work = benchmarks::heap_growth_of_empty_work();
        print("live_bytes_growth", static_cast<double>(std::max(of_pictures, of_empty_work)), 0, "bytes");
        if (settings.is_verbose) {
            std::fprintf(stderr, "  pictures %lld, empty work %lld\n", static_cast<long long>(of_pictures),
                         static_cast<long long>(of_empty_work));
        }
    }
}

}  // namespace

int main(int count, char** arguments) {
    const std::optional<Settings> settings = parse(count, arguments);
    if (!settings) {
        std::fputs("usage: figures_core [--data DIR] [--verbose] [WORD...]\n", stderr);
        return 2;
    }
    try {
        measure(*settings);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "figures_core: %s\n", error.what());
        return 1;
    }
    return 0;
}
