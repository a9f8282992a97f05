// SPDX-License-Identifier: MIT
/// @file
/// How many threads this process may usefully run.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>

namespace stoker {
inline namespace v0 {
namespace detail {

/// The contents of a small file of the system's, 4095 bytes at most; empty where it cannot be read.
[[nodiscard]] inline std::string small_file(const std::string& path) {
    char text[4095];
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
        return {};
    }
    const ssize_t bytes = ::read(descriptor, text, sizeof text);
    ::close(descriptor);
    return bytes > 0 ? std::string(text, static_cast<std::size_t>(bytes)) : std::string{};
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
    const std::string groups = small_file(root + "/proc/self/cgroup");  // lines "number:controllers:path"
    for (std::size_t begin = 0; begin < groups.size();) {
        const std::size_t end =
            groups.find('\n', begin) == std::string::npos ? groups.size() : groups.find('\n', begin);
        const std::string line = groups.substr(begin, end - begin);
        begin = end + 1;
        const std::size_t first = line.find(':');
        const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
        if (second == std::string::npos) {
            continue;
        }
        const std::string names = line.substr(first + 1, second - first - 1);
        const std::string path = line.substr(second + 1);
        if (names.empty()) {  // version 2
            walk(root + "/sys/fs/cgroup", path, [&](const std::string& folder) {
                const std::string text = small_file(folder + "/cpu.max");
                char* rest = nullptr;
                const double quota = std::strtod(text.c_str(), &rest);  // "max" reads as 0
                consider(quota, std::strtod(rest, nullptr));
            });
        } else if ((',' + names + ',').find(",cpu,") != std::string::npos) {
            walk(root + "/sys/fs/cgroup/cpu", path, [&](const std::string& folder) {
                consider(std::strtod(small_file(folder + "/cpu.cfs_quota_us").c_str(), nullptr),
                         std::strtod(small_file(folder + "/cpu.cfs_period_us").c_str(), nullptr));
            });
        }
    }
    return least;
}

/// CPUs that the scheduler lets this process use; 0 where it does not say.
[[nodiscard]] inline std::size_t affinity_cpus() {
    std::uint64_t mask[1024] = {};  // for 65536 CPUs: the kernel's mask may be wider than cpu_set_t
    if (sched_getaffinity(0, sizeof mask, reinterpret_cast<cpu_set_t*>(mask)) != 0) {
        return 0;
    }
    std::size_t cpus = 0;
    for (const std::uint64_t word : mask) {
        cpus += static_cast<std::size_t>(__builtin_popcountll(word));
    }
    return cpus;
}

/// The default number of workers: 1 or more.
[[nodiscard]] constexpr std::size_t usable_cpus(std::size_t affinity, std::optional<std::size_t> quota) noexcept {
    const std::size_t cpus = quota && (affinity == 0 || *quota < affinity) ? *quota : affinity;
    return cpus == 0 ? 1 : cpus > 1024 ? 1024 : cpus;
}

}  // namespace detail
}  // namespace v0
}  // namespace stoker
