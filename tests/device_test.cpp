// SPDX-License-Identifier: MIT
// The device concept and its model for the host; and the fake device that other tests rely on.
#include <gtest/gtest.h>
#include <stoker/device.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "support/fake_device.hpp"

namespace {

using testing_support::Call;
using testing_support::Completion;
using testing_support::FakeDevice;
using testing_support::FakeDeviceError;

TEST(HostDeviceTest, NeedsNoCopyAndIsReadable) {
    static_assert(stoker::DeviceModel<stoker::HostDevice>);
    static_assert(stoker::HostDevice::is_host_readable);
    const stoker::HostDevice device;
    EXPECT_EQ(device.name(), "host");
    EXPECT_FALSE(device.needs_copy());
    EXPECT_FALSE(device.page_locked());
}

TEST(HostDeviceTest, MemoryIsAlignedAndCopiesAreDoneAtOnce) {
    stoker::HostDevice device;
    for (const std::size_t bytes : {1U, 100U, 4096U}) {
        void* const host = device.allocate_host(bytes);
        void* const other = device.allocate_device(bytes);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(host) % 256, 0U);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(other) % 256, 0U);
        std::memset(host, 42, bytes);
        device.copy_in(other, host, bytes, device.copy_stream());
        EXPECT_EQ(std::memcmp(other, host, bytes), 0);
        std::memset(host, 0, bytes);
        device.copy_out(host, other, bytes, device.copy_stream());
        EXPECT_EQ(static_cast<unsigned char*>(host)[bytes - 1], 42);
        device.free_device(other, bytes);
        device.free_host(host, bytes);
    }
}

TEST(HostDeviceTest, StreamsAndEventsAreNothing) {
    stoker::HostDevice device;
    device.bind_thread();
    const auto event = device.create_event();
    device.record(event, device.copy_stream());
    device.wait(device.copy_stream(), event);
    device.synchronize(event);
    device.synchronize_stream(device.copy_stream());
    EXPECT_TRUE(device.is_done(event));
    EXPECT_EQ(device.copy_stream(), device.copy_stream());
    device.destroy_event(event);
}

/// A fake device with one host and one device block.
class FakeDeviceTest : public ::testing::Test {
  protected:
    static constexpr std::size_t bytes = 512;

    FakeDeviceTest() {
        device_.bind_thread();
        host_ = device_.allocate_host(bytes);
        other_ = device_.allocate_device(bytes);
        std::memset(host_, 1, bytes);
    }
    /// Ends the test's device; further violations do not count.
    std::vector<std::string> finish() {
        device_.finish_all();
        std::vector<std::string> violations = device_.violations();
        device_.synchronize_stream(copies_);
        return violations;
    }
    [[nodiscard]] unsigned char seen(std::size_t i) const { return static_cast<const unsigned char*>(other_)[i]; }

    FakeDevice device_{Completion::when_told};
    FakeDevice::Stream copies_{};
    void* host_ = nullptr;
    void* other_ = nullptr;
};

TEST_F(FakeDeviceTest, CopiesEndWhenTold) {
    const auto event = device_.create_event();
    device_.copy_in(other_, host_, bytes, copies_);
    device_.record(event, copies_);
    EXPECT_FALSE(device_.is_done(event));
    EXPECT_EQ(seen(0), 0xdd);
    EXPECT_EQ(device_.pending_work(), 1U);
    EXPECT_TRUE(device_.finish_next());
    EXPECT_TRUE(device_.is_done(event));
    EXPECT_EQ(seen(bytes - 1), 1);
    EXPECT_FALSE(device_.finish_next());
    device_.synchronize(event);
    device_.destroy_event(event);
    EXPECT_EQ(finish(), std::vector<std::string>{});
}

TEST_F(FakeDeviceTest, WaitsHoldAStreamUntilTheEvent) {
    const auto event = device_.create_event();
    const auto stream = device_.new_stream();
    bool has_run = false;
    device_.wait(stream, event);  // never recorded: no wait
    device_.copy_in(other_, host_, bytes, copies_);
    device_.record(event, copies_);
    device_.wait(stream, event);
    device_.kernel(stream, other_, bytes, [&] { has_run = true; });
    EXPECT_FALSE(device_.finish_next(stream));
    EXPECT_TRUE(device_.finish_next(copies_));
    EXPECT_TRUE(device_.finish_next(stream));
    EXPECT_TRUE(has_run);
    EXPECT_EQ(finish(), std::vector<std::string>{});
}

TEST_F(FakeDeviceTest, HostWriteUnderAPendingCopyIsSeen) {
    device_.copy_in(other_, host_, bytes, copies_);
    static_cast<unsigned char*>(host_)[7] = 2;
    const auto violations = finish();
    ASSERT_EQ(violations.size(), 1U);
    EXPECT_NE(violations[0].find("written while"), std::string::npos);
}

TEST_F(FakeDeviceTest, CopyThatDoesNotWaitForAReaderIsSeen) {
    device_.set_completion(Completion::at_once);  // it is found even when it does no harm
    const auto event = device_.create_event();
    const auto stream = device_.new_stream();
    device_.copy_in(other_, host_, bytes, copies_);
    device_.record(event, copies_);
    device_.wait(stream, event);
    device_.kernel(stream, other_, bytes);
    device_.copy_in(other_, host_, bytes, copies_);
    const auto violations = finish();
    ASSERT_EQ(violations.size(), 1U);
    EXPECT_NE(violations[0].find("may still read"), std::string::npos);
}

TEST_F(FakeDeviceTest, KernelThatDoesNotWaitForTheCopyIsSeen) {
    device_.set_completion(Completion::at_once);
    device_.copy_in(other_, host_, bytes, copies_);
    device_.kernel(device_.new_stream(), other_, bytes);
    const auto violations = finish();
    ASSERT_EQ(violations.size(), 1U);
    EXPECT_NE(violations[0].find("may still write"), std::string::npos);
}

TEST_F(FakeDeviceTest, FreesInFlightAreSeen) {
    device_.copy_in(other_, host_, bytes, copies_);
    device_.free_device(other_, bytes);
    auto violations = device_.violations();
    ASSERT_EQ(violations.size(), 1U);
    EXPECT_NE(violations[0].find("in flight"), std::string::npos);
    device_.free_host(host_, bytes);  // the copy ended (it was dropped with its target), but nobody waited for it
    violations = device_.violations();
    ASSERT_EQ(violations.size(), 2U);
    EXPECT_NE(violations[1].find("without waiting"), std::string::npos);
}

TEST_F(FakeDeviceTest, EventDestroyedInUseAndUsedAfterwardsIsSeen) {
    const auto event = device_.create_event();
    device_.copy_in(other_, host_, bytes, copies_);
    device_.record(event, copies_);
    device_.destroy_event(event);
    device_.record(event, copies_);
    const auto violations = finish();
    ASSERT_EQ(violations.size(), 2U);
    EXPECT_NE(violations[0].find("still uses"), std::string::npos);
    EXPECT_NE(violations[1].find("after its destruction"), std::string::npos);
}

TEST_F(FakeDeviceTest, CallsFailOnDemandAndEnqueueNothing) {
    device_.fail(Call::copy_in, 2);
    device_.copy_in(other_, host_, bytes, copies_);
    EXPECT_THROW(device_.copy_in(other_, host_, bytes, copies_), FakeDeviceError);
    EXPECT_EQ(device_.pending_work(), 1U);
    device_.copy_in(other_, host_, bytes, copies_);
    EXPECT_EQ(finish(), std::vector<std::string>{});
}

TEST_F(FakeDeviceTest, LogAndBoundThreadsAreKept) {
    EXPECT_EQ(device_.log_of({Call::allocate_host, Call::allocate_device}).size(), 2U);
    EXPECT_TRUE(device_.unbound_calls().empty());
    std::jthread{[&] { static_cast<void>(device_.copy_stream()); }}.join();
    EXPECT_EQ(device_.unbound_calls(), std::vector<Call>{Call::copy_stream});
}

}  // namespace
