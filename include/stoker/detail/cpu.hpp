// SPDX-License-Identifier: MIT
/// @file
/// How many threads this process may usefully run.
#pragma once

#include <sched.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

namespace stoker {
inline namespace v0 {
namespace detail {

/// The first line of a small text file, without its end; nothing where it cannot be read.
[[nodiscard]] inline std::optional<std::string> first_line(const std::string& path) {
    struct Close {
        void operator()(std::FILE* file) const noexcept { static_cast<void>(std::fclose(file)); }
    };
    const std::unique_ptr<std::FILE, Close> file{std::fopen(path.c_str(), "re")};
    char line[4096];
    if (file == nullptr || std::fgets(line, sizeof line, file.get()) == nullptr) {
        return std::nullopt;
    }
    line[std::strcspn(line, "\n")] = '\0';
    return std::string{line};
}

/// CPUs as a control group's quota allows, rounded up, from cgroup v2 `cpu.max` ("200000 100000" or "max 100000"), or
/// the two files of v1; the least value on the way from the process's group to the root counts. `root` is "" but in
/// tests.
[[nodiscard]] inline std::optional<std::size_t> cgroup_cpus(const std::string& root = {}) {
    std::optional<std::size_t> least;
    const auto consider = [&least](double quota, double period) {
        if (quota > 0 && period > 0) {
            const double share = quota / period;
            auto cpus = static_cast<std::size_t>(share);
            cpus += static_cast<double>(cpus) < share ? 1 : 0;
            cpus = cpus == 0 ? 1 : cpus;
            least = !least || cpus < *least ? cpus : *least;
        }
    };
    const auto walk = [&](const std::string& mount, std::string group, const auto& read) {
        while (true) {
            read(mount + group);
            if (group.empty() || group == "/") {
                break;
            }
            group.erase(group.find_last_of('/'));
        }
    };
    struct Close {
        void operator()(std::FILE* file) const noexcept { static_cast<void>(std::fclose(file)); }
    };
    const std::unique_ptr<std::FILE, Close> groups{std::fopen((root + "/proc/self/cgroup").c_str(), "re")};
    char line[4096];
    while (groups != nullptr && std::fgets(line, sizeof line, groups.get()) != nullptr) {
        line[std::strcspn(line, "\n")] = '\0';
        const char* const controllers = std::strchr(line, ':');
        const char* const path = controllers == nullptr ? nullptr : std::strchr(controllers + 1, ':');
        if (path == nullptr) {
            continue;
        }
        const std::string names{controllers + 1, path};
        if (names.empty()) {  // version 2
            walk(root + "/sys/fs/cgroup", path + 1, [&](const std::string& folder) {
                if (const auto text = first_line(folder + "/cpu.max")) {
                    char* rest = nullptr;
                    const double quota = std::strtod(text->c_str(), &rest);  // "max" reads as 0
                    consider(quota, rest == text->c_str() ? 0.0 : std::strtod(rest, nullptr));
                }
            });
        } else if ((',' + names + ',').find(",cpu,") != std::string::npos) {
            walk(root + "/sys/fs/cgroup/cpu", path + 1, [&](const std::string& folder) {
                const auto quota = first_line(folder + "/cpu.cfs_quota_us");
                const auto period = first_line(folder + "/cpu.cfs_period_us");
                if (quota && period) {
                    consider(std::strtod(quota->c_str(), nullptr), std::strtod(period->c_str(), nullptr));
                }
            });
        }
    }
    return least;
}

/// CPUs that the scheduler lets this process use; 0 where it does not say.
[[nodiscard]] inline std::size_t affinity_cpus() {
    for (int cpus = 1024; cpus <= 1 << 20; cpus *= 4) {  // the kernel's mask may be wider than cpu_set_t
        struct Free {
            void operator()(cpu_set_t* set) const noexcept { CPU_FREE(set); }
        };
        const std::unique_ptr<cpu_set_t, Free> set{CPU_ALLOC(static_cast<std::size_t>(cpus))};
        const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(cpus));
        if (set != nullptr && sched_getaffinity(0, bytes, set.get()) == 0) {
            return static_cast<std::size_t>(CPU_COUNT_S(bytes, set.get()));
        }
    }
    return 0;
}

/// The default number of workers: 1 or more.
[[nodiscard]] constexpr std::size_t usable_cpus(std::size_t affinity, std::optional<std::size_t> quota) noexcept {
    const std::size_t cpus = quota && (affinity == 0 || *quota < affinity) ? *quota : affinity;
    return cpus == 0 ? 1 : cpus > 1024 ? 1024 : cpus;
}

}  // namespace detail
}  // namespace v0
}  // namespace stoker
