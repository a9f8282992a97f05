// SPDX-License-Identifier: MIT
#include <stoker/detail/cpu.hpp>

#include <sched.h>
#include <unistd.h>

#include "support/core_kit.hpp"

namespace {

using namespace testing_support;
using stoker::detail::affinity_cpus;
using stoker::detail::cgroup_cpus;
using stoker::detail::usable_cpus;

/// A folder that stands for "/", removed at the end.
class FakeRoot {
  public:
    FakeRoot() : root_{std::filesystem::path{testing::TempDir()} / ("stoker_root_" + std::to_string(::getpid()))} {
        std::filesystem::remove_all(root_);
        std::filesystem::create_directories(root_);
    }
    FakeRoot(const FakeRoot&) = delete;
    FakeRoot& operator=(const FakeRoot&) = delete;
    ~FakeRoot() {
        std::error_code ignored;
        std::filesystem::remove_all(root_, ignored);
    }
    FakeRoot& file(const std::string& path, const std::string& text) {
        const auto full = root_ / path;
        std::filesystem::create_directories(full.parent_path());
        std::ofstream{full} << text;
        return *this;
    }
    [[nodiscard]] std::optional<std::size_t> cpus() const { return cgroup_cpus(root_.string()); }

  private:
    std::filesystem::path root_;
};

TEST(CpuTest, WithoutControlGroupsThereIsNoQuota) {
    EXPECT_EQ(FakeRoot{}.cpus(), std::nullopt);
    EXPECT_EQ(FakeRoot{}.file("proc/self/cgroup", "").cpus(), std::nullopt);
    EXPECT_EQ(FakeRoot{}.file("proc/self/cgroup", "0::/a\n").cpus(), std::nullopt);
    EXPECT_EQ(FakeRoot{}.file("proc/self/cgroup", "no colons\n0:one").cpus(), std::nullopt);
}

TEST(CpuTest, VersionTwoQuotaIsRoundedUp) {
    const auto cpus_of = [](const std::string& text) {
        return FakeRoot{}.file("proc/self/cgroup", "0::/a/b\n").file("sys/fs/cgroup/a/b/cpu.max", text).cpus();
    };
    EXPECT_EQ(cpus_of("200000 100000\n"), 2U);
    EXPECT_EQ(cpus_of("150000 100000\n"), 2U);
    EXPECT_EQ(cpus_of("50000 100000\n"), 1U);
    EXPECT_EQ(cpus_of("1000 100000"), 1U);
    EXPECT_EQ(cpus_of("1600000 50000\n"), 32U);
    EXPECT_EQ(cpus_of("max 100000\n"), std::nullopt);
    EXPECT_EQ(cpus_of(""), std::nullopt);
    EXPECT_EQ(cpus_of("nonsense\n"), std::nullopt);
    EXPECT_EQ(cpus_of("200000\n"), std::nullopt);
}

TEST(CpuTest, TheLeastQuotaOnTheWayUpCounts) {
    FakeRoot root;
    root.file("proc/self/cgroup", "0::/a/b/c\n")
        .file("sys/fs/cgroup/a/cpu.max", "300000 100000\n")
        .file("sys/fs/cgroup/a/b/cpu.max", "max 100000\n")
        .file("sys/fs/cgroup/a/b/c/cpu.max", "500000 100000\n");
    EXPECT_EQ(root.cpus(), 3U);
    root.file("sys/fs/cgroup/cpu.max", "100000 100000\n");
    EXPECT_EQ(root.cpus(), 1U);
}

TEST(CpuTest, InAContainerTheQuotaStandsAtTheMountsRoot) {
    // The group's path is the host's; the container sees its own group as the root of the mount.
    FakeRoot two;
    two.file("proc/self/cgroup", "0::/\n").file("sys/fs/cgroup/cpu.max", "400000 100000\n");
    EXPECT_EQ(two.cpus(), 4U);
    FakeRoot one;
    one.file("proc/self/cgroup", "11:memory:/docker/0123\n4:cpu,cpuacct:/docker/0123\n0::/\n")
        .file("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "250000\n")
        .file("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(one.cpus(), 3U);
}

TEST(CpuTest, VersionOneQuota) {
    const auto cpus_of = [](const std::string& controllers, const std::string& quota) {
        return FakeRoot{}
            .file("proc/self/cgroup", "4:" + controllers + ":/a\n")
            .file("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", quota)
            .file("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n")
            .cpus();
    };
    EXPECT_EQ(cpus_of("cpu", "200000\n"), 2U);
    EXPECT_EQ(cpus_of("cpu,cpuacct", "200000\n"), 2U);
    EXPECT_EQ(cpus_of("cpuacct,cpu", "200000\n"), 2U);
    EXPECT_EQ(cpus_of("cpuset", "200000\n"), std::nullopt) << "another controller";
    EXPECT_EQ(cpus_of("cpu", "-1\n"), std::nullopt) << "no limit";
}

TEST(CpuTest, TheSmallerOfAffinityAndQuotaIsUsable) {
    EXPECT_EQ(usable_cpus(8, std::nullopt), 8U);
    EXPECT_EQ(usable_cpus(8, 2), 2U);
    EXPECT_EQ(usable_cpus(2, 8), 2U);
    EXPECT_EQ(usable_cpus(0, 3), 3U);
    EXPECT_EQ(usable_cpus(0, std::nullopt), 1U);
    EXPECT_EQ(usable_cpus(5000, std::nullopt), 1024U) << "what the option `workers` allows";
}

TEST(AcceptanceTest, B137TheDefaultWorkersFollowAffinityAndQuota) {
    // Under taskset on 1 CPU; a thread's own mask is what taskset sets.
    std::jthread{[] {
        cpu_set_t allowed;
        ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
        for (std::size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
            if (CPU_ISSET(cpu, &allowed)) {
                CPU_ZERO(&allowed);
                CPU_SET(cpu, &allowed);
                break;
            }
        }
        ASSERT_EQ(sched_setaffinity(0, sizeof allowed, &allowed), 0);
        EXPECT_EQ(affinity_cpus(), 1U);
        const auto feed = number_feed(4);
        EXPECT_EQ(feed.options().workers, 1U);
        expect_library_threads(1);
    }}.join();
    // Under a quota of 2 CPUs.
    FakeRoot root;
    root.file("proc/self/cgroup", "0::/box\n").file("sys/fs/cgroup/box/cpu.max", "200000 100000\n");
    EXPECT_EQ(usable_cpus(64, root.cpus()), 2U);
    EXPECT_LE(usable_cpus(affinity_cpus(), root.cpus()), 2U);
    // With 0 reported by the system.
    EXPECT_EQ(usable_cpus(0, std::nullopt), 1U);
    const auto feed = number_feed(4);
    EXPECT_EQ(feed.options().workers, usable_cpus(affinity_cpus(), cgroup_cpus()));
}

}  // namespace
