// SPDX-License-Identifier: MIT
// Prefetcher on a device that copies: slots, streams, events and errors, on the fake device.
#include <gtest/gtest.h>
#include <stoker/core.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/fake_device.hpp"
#include "support/kit.hpp"

namespace {

using namespace testing_support;
using stoker::PrefetcherOptions;
using Feed = stoker::Prefetcher<NumberBatch, FakeDevice>;
using FeedLease = stoker::Lease<NumberBatch, FakeDevice>;

/// What kernels found in their batches.
class Findings {
  public:
    void add(bool is_right, std::uint64_t first) const {
        const std::lock_guard lock{state_->mutex};
        state_->wrong += is_right ? 0U : 1U;
        state_->first_ids.push_back(first);
    }
    [[nodiscard]] std::size_t wrong() const {
        const std::lock_guard lock{state_->mutex};
        return state_->wrong;
    }
    [[nodiscard]] std::size_t count() const {
        const std::lock_guard lock{state_->mutex};
        return state_->first_ids.size();
    }

  private:
    struct State {
        std::mutex mutex;
        std::size_t wrong = 0;
        std::vector<std::uint64_t> first_ids;
    };
    std::shared_ptr<State> state_ = std::make_shared<State>();
};

/// Enqueues a kernel that reads the whole batch and checks every byte of it.
void use_on(FakeDevice device, const FeedLease& lease, FakeDevice::Stream stream, const Findings& findings) {
    const NumberBatch batch = lease.on(stream);
    device.kernel(stream, batch.ids.data(), lease.info().used_bytes(), [batch, ids = ids_of(lease), findings] {
        findings.add(static_cast<bool>(is_right(batch, ids)), ids.empty() ? 0 : ids[0]);
    });
}

TEST(PrefetcherDeviceTest, SlotsAreAllocatedAsTheOptionsSay) {
    FakeDevice device;
    const PrefetcherOptions options{.batch_size = 4, .workers = 1, .prefetch_batches = 3, .leases = 2};
    const stoker::PlannedBytes planned = Feed::planned_bytes(NumberSource{100}, options, device);
    {
        Feed feed{NumberSource{100}, options, device};
        EXPECT_EQ(device.calls(Call::allocate_host), 3U);
        EXPECT_EQ(device.calls(Call::allocate_device), 3U);
        EXPECT_EQ(planned.host_slots, 3U);
        EXPECT_EQ(planned.device_slots, 3U);
        EXPECT_EQ(planned.device, 3 * planned.slot_bytes);
        for (const auto& entry : device.log_of({Call::allocate_host, Call::allocate_device})) {
            EXPECT_EQ(entry.bytes, planned.slot_bytes);
        }
        const stoker::Report report = feed.report();
        EXPECT_EQ(report.slots, 3U);
        EXPECT_EQ(report.device_slots, 3U);
        EXPECT_TRUE(report.page_locked);
    }
    device.expect_clean();
}

TEST(PrefetcherDeviceTest, EveryByteArrivesForAnyWorkersAndDepth) {
    const Watchdog watchdog;
    for (const std::size_t workers : {0U, 1U, 3U}) {
        for (const std::size_t prefetch : {1U, 3U}) {
            for (const std::size_t leases : {1U, 2U}) {
                FakeDevice device;
                const auto stream = device.new_stream();
                const Findings findings;
                {
                    Feed feed{NumberSource{23},
                              {.batch_size = 4, .workers = workers, .prefetch_batches = prefetch, .leases = leases},
                              device};
                    for (int epoch = 0; epoch < 3; ++epoch) {
                        Ledger ledger;
                        for (auto&& lease : feed.epoch()) {
                            use_on(device, lease, stream, findings);
                            ledger.push_back(ids_of(lease));
                        }
                        EXPECT_EQ(ledger, sequential_ledger(23, 4));
                    }
                }
                EXPECT_EQ(findings.count(), 18U);
                EXPECT_EQ(findings.wrong(), 0U);
                device.expect_clean();
            }
        }
    }
}

TEST(PrefetcherDeviceTest, CopyWaitsForTheUsersThenCopiesThenRecords) {
    FakeDevice device;
    const auto stream = device.new_stream();
    {
        Feed feed{NumberSource{64}, {.batch_size = 4, .workers = 0, .prefetch_batches = 1}, device};
        for (int i = 0; i < 6; ++i) {
            auto lease = feed.next();
            static_cast<void>(lease->on(stream));
        }
    }
    std::map<const void*, std::size_t> copies_to;
    std::set<std::uint32_t> consumed;  // events recorded on the consumer's stream
    const auto log = device.log_of({Call::wait, Call::copy_in, Call::record});
    for (std::size_t i = 0; i < log.size(); ++i) {
        if (log[i].call == Call::record && log[i].stream == stream.id) {
            consumed.insert(log[i].event);
        }
        if (log[i].call != Call::copy_in) {
            continue;
        }
        ASSERT_LT(i + 2, log.size());
        EXPECT_EQ(log[i + 1].call, Call::record);
        EXPECT_EQ(log[i + 1].stream, 0U);
        EXPECT_EQ(log[i + 2].call, Call::record);
        EXPECT_EQ(log[i + 2].stream, 0U);
        if (copies_to[log[i].to]++ != 0) {
            ASSERT_GT(i, 0U);
            EXPECT_EQ(log[i - 1].call, Call::wait);
            EXPECT_EQ(log[i - 1].stream, 0U);
            EXPECT_EQ(consumed.count(log[i - 1].event), 1U);
        }
    }
    EXPECT_EQ(consumed.size(), copies_to.size());
    device.expect_clean();
}

TEST(PrefetcherDeviceTest, StreamOfTheConsumerWaitsForTheCopyAndTheHostDoesNot) {
    const Watchdog watchdog;
    FakeDevice device{Completion::when_told};
    const auto stream = device.new_stream();
    const Findings findings;
    {
        Feed feed{NumberSource{64}, {.batch_size = 4, .workers = 1, .prefetch_batches = 2}, device};
        auto lease = feed.next();  // returns though no copy has ended
        ASSERT_TRUE(lease);
        use_on(device, *lease, stream, findings);
        EXPECT_FALSE(device.finish_next(stream));
        EXPECT_EQ(findings.count(), 0U);
        EXPECT_TRUE(device.finish_next());  // the copy
        EXPECT_TRUE(device.finish_next(stream));
        EXPECT_EQ(findings.count(), 1U);
        EXPECT_EQ(findings.wrong(), 0U);
        lease.reset();
        device.set_completion(Completion::at_once);
    }
    device.expect_clean();
}

TEST(PrefetcherDeviceTest, HostSlotIsRefilledWhenItsCopyEndedThoughTheBatchIsStillLeased) {
    const Watchdog watchdog;
    FakeDevice device{Completion::when_told};
    const auto stream = device.new_stream();
    const SampleCounter counter;
    const Findings findings;
    {
        Feed feed{NumberSource{64, counter.hook()}, {.batch_size = 4, .workers = 1, .prefetch_batches = 1}, device};
        auto lease = feed.next();
        device.wait_for_host_waits(1);  // the worker has nothing but the copy to wait for
        EXPECT_EQ(counter.total(), 4U);
        EXPECT_TRUE(device.finish_next());
        counter.wait_for(8);                      // refilled,
        device.wait_for_calls(Call::copy_in, 2);  // and copied to the other device slot
        EXPECT_EQ(ids_of(*lease), (std::vector<std::uint64_t>{0, 1, 2, 3}));
        EXPECT_EQ(lease->info().batch(), 0U);
        EXPECT_EQ(lease->info().position(), 0U);
        EXPECT_EQ(lease->state().position, 4U);
        use_on(device, *lease, stream, findings);
        device.finish_all();
        EXPECT_EQ(findings.count(), 1U);
        EXPECT_EQ(findings.wrong(), 0U);
        device.set_completion(Completion::at_once);
    }
    device.expect_clean();
}

TEST(PrefetcherDeviceTest, DeviceSlotIsOverwrittenOnlyBehindAllStreamsThatUsedIt) {
    const Watchdog watchdog;
    FakeDevice device{Completion::when_told};
    const auto first = device.new_stream();
    const auto second = device.new_stream();
    const Findings findings;
    {
        Feed feed{NumberSource{64}, {.batch_size = 4, .workers = 1, .prefetch_batches = 2}, device};
        auto lease = feed.next();
        const void* const slot = lease->on(first).ids.data();
        use_on(device, *lease, first, findings);
        use_on(device, *lease, second, findings);
        device.wait_for_calls(Call::copy_in, 2);
        lease.reset();
        while (device.calls(Call::copy_in) < 3) {  // the third copy, into the same slot, is enqueued early
            device.finish_next(FakeDevice::Stream{0});
            std::this_thread::yield();
        }
        while (device.finish_next(FakeDevice::Stream{0})) {
        }
        EXPECT_EQ(device.log_of({Call::copy_in})[2].to, slot);
        EXPECT_EQ(device.pending_work(), 3U);  // two kernels and the copy behind them
        EXPECT_TRUE(device.finish_next(first));
        EXPECT_FALSE(device.finish_next(FakeDevice::Stream{0}));
        EXPECT_TRUE(device.finish_next(second));
        EXPECT_TRUE(device.finish_next(FakeDevice::Stream{0}));
        EXPECT_EQ(findings.count(), 2U);
        EXPECT_EQ(findings.wrong(), 0U);
        device.set_completion(Completion::at_once);
    }
    device.expect_clean();
}

TEST(PrefetcherDeviceTest, SeveralLeasesAreHeldAtOnceAndOneMoreIsAnError) {
    const Watchdog watchdog;
    FakeDevice device;
    const auto stream = device.new_stream();
    const Findings findings;
    {
        Feed feed{NumberSource{64}, {.batch_size = 4, .workers = 2, .prefetch_batches = 2, .leases = 3}, device};
        std::vector<FeedLease> held;
        std::set<const void*> addresses;
        for (int i = 0; i < 3; ++i) {
            auto lease = feed.next();
            ASSERT_TRUE(lease);
            addresses.insert(lease->on(stream).ids.data());
            held.push_back(std::move(*lease));
        }
        EXPECT_EQ(addresses.size(), 3U);
        EXPECT_THROW(static_cast<void>(feed.next()), stoker::LeaseError);
        EXPECT_EQ(feed.try_next().status, stoker::Poll::not_ready);
        for (const FeedLease& lease : held) {
            use_on(device, lease, stream, findings);
        }
        held.erase(held.begin());
        EXPECT_EQ(ids_of(*feed.next())[0], 12U);
    }
    EXPECT_EQ(findings.wrong(), 0U);
    device.expect_clean();
}

TEST(PrefetcherDeviceTest, LeaseMayBeGivenBackWithoutAStream) {
    const Watchdog watchdog;
    FakeDevice device;
    {
        Feed feed{NumberSource{64}, {.batch_size = 4, .workers = 1}, device};
        EXPECT_EQ(take(feed, 16), sequential_ledger(64, 4));
    }
    EXPECT_EQ(device.calls(Call::wait), 0U);
    device.expect_clean();
}

// ---- What is copied ----

TEST(PrefetcherDeviceTest, CopyEndsAtTheLastUsedByteOfTheLastRaggedField) {
    FakeDevice device;
    const auto stream = device.new_stream();
    {
        Feed feed{NumberSource{10}, {.batch_size = 4, .workers = 1, .prefetch_batches = 2, .epochs = 1}, device};
        std::vector<std::size_t> used;
        for (auto&& lease : feed.epoch()) {
            const NumberBatch& batch = lease.on(stream);
            const auto* const base = reinterpret_cast<const std::byte*>(batch.ids.data());
            const auto* const values = reinterpret_cast<const std::byte*>(batch.items.values().data());
            const std::size_t items = batch.items.values().extent(0);
            std::size_t expected_items = 0;
            for (const std::uint64_t id : lease.info().sample_ids()) {
                expected_items += item_count_of(id);
            }
            EXPECT_EQ(items, expected_items);
            EXPECT_EQ(lease.info().used_bytes(),
                      static_cast<std::size_t>(values - base) + items * sizeof(std::uint32_t));
            used.push_back(lease.info().used_bytes());
            EXPECT_TRUE(is_right(lease));
        }
        const auto copies = device.log_of({Call::copy_in});
        ASSERT_EQ(copies.size(), 3U);
        for (std::size_t i = 0; i < copies.size(); ++i) {
            EXPECT_EQ(copies[i].bytes, used[i]);
        }
        const auto* const end =
            static_cast<const std::byte*>(copies[1].to) + copies[1].bytes;  // its slot was used once
        EXPECT_EQ(end[0], FakeDevice::fresh);
        EXPECT_EQ(end[99], FakeDevice::fresh);
    }
    device.expect_clean();
}

TEST(PrefetcherDeviceTest, AddressesStayAndNothingIsAllocatedAfterConstruction) {
    FakeDevice device;
    const auto stream = device.new_stream();
    {
        Feed feed{NumberSource{40}, {.batch_size = 4, .workers = 2, .prefetch_batches = 2}, device};
        const std::size_t events = device.calls(Call::create_event);
        std::set<const void*> to;
        for (int epoch = 0; epoch < 5; ++epoch) {
            for (auto&& lease : feed.epoch()) {
                to.insert(lease.on(stream).ids.data());
            }
        }
        EXPECT_EQ(to.size(), 2U);
        std::set<const void*> from;
        for (const auto& entry : device.log_of({Call::copy_in})) {
            from.insert(entry.from);
        }
        EXPECT_EQ(from.size(), 2U);
        EXPECT_EQ(device.calls(Call::allocate_host), 2U);
        EXPECT_EQ(device.calls(Call::allocate_device), 2U);
        EXPECT_EQ(device.calls(Call::create_event), events);
    }
    device.expect_clean();
}

TEST(PrefetcherDeviceTest, HostHeapIsLeftAloneOnceWarm) {
    if (!counts_allocations()) {
        GTEST_SKIP() << "no file of this executable counts allocations";
    }
    stoker::Prefetcher<NumberBatch> feed{NumberSource{64}, {.batch_size = 4, .workers = 2, .prefetch_batches = 2}};
    EXPECT_EQ(take(feed, 64).size(), 64U);
    feed.wait_full();
    const std::size_t before = allocations();
    for (int i = 0; i < 200; ++i) {
        auto lease = feed.next();
        lease.reset();
    }
    feed.wait_full();
    EXPECT_EQ(allocations() - before, 0U);
}

// ---- Errors ----

TEST(PrefetcherDeviceTest, FailedCallAroundTheCopyReachesTheConsumerOnceAndNothingIsLost) {
    const Watchdog watchdog;
    for (const Call call : {Call::copy_stream, Call::copy_in, Call::record, Call::wait}) {
        for (const std::size_t workers : {0U, 1U, 2U}) {
            SCOPED_TRACE(std::string{to_string(call)} + ", workers " + std::to_string(workers));
            FakeDevice device;
            const Findings findings;
            {
                device.fail(call, call == Call::record ? 2 : 1);
                Feed feed{NumberSource{40},
                          {.batch_size = 4, .workers = workers, .prefetch_batches = 2, .epochs = 1},
                          device};
                const auto stream = device.new_stream();
                Ledger ledger;
                std::size_t errors = 0;
                while (true) {
                    try {
                        auto lease = feed.next();
                        if (!lease) {
                            break;
                        }
                        while (true) {
                            try {
                                use_on(device, *lease, stream, findings);
                                break;
                            } catch (const FakeDeviceError&) {  // a wait of `on`: the lease is as it was
                                ++errors;
                            }
                        }
                        ledger.push_back(ids_of(*lease));
                    } catch (const FakeDeviceError& error) {
                        EXPECT_EQ(error.call(), call);
                        ++errors;
                    }
                }
                EXPECT_EQ(errors, 1U);
                EXPECT_EQ(ledger, sequential_ledger(40, 4));
                EXPECT_EQ(findings.count(), 10U);
                EXPECT_EQ(findings.wrong(), 0U);
            }
            device.expect_clean();
        }
    }
}

TEST(PrefetcherDeviceTest, FailedWaitForACopysEndIsToldAndSeekGoesOnWithoutOverwriting) {
    const Watchdog watchdog;
    for (const std::size_t workers : {1U, 2U}) {
        FakeDevice device{Completion::when_told};
        device.fail(Call::synchronize);
        {
            Feed feed{NumberSource{400}, {.batch_size = 4, .workers = workers, .prefetch_batches = 2}, device};
            device.wait_for_calls(Call::synchronize, 1);
            std::size_t batches = 0;
            try {
                while (feed.next()) {
                    ++batches;
                    ASSERT_LT(batches, 100U);
                }
            } catch (const FakeDeviceError& error) {
                EXPECT_EQ(error.call(), Call::synchronize);
            }
            EXPECT_GE(batches, 1U);
            stoker::State state = feed.state();
            EXPECT_EQ(state.position, 4 * batches);
            state.position = 200;
            feed.seek(state);
            device.wait_for_host_waits(1);
            device.set_completion(Completion::at_once);
            EXPECT_EQ(ids_of(*feed.next())[0], 200U);
        }
        device.expect_clean();
    }
}

TEST(PrefetcherDeviceTest, FailedRecordOfAUsersStreamIsMadeUpForByWaiting) {
    const Watchdog watchdog;
    FakeDevice device;
    const auto stream = device.new_stream();
    const Findings findings;
    {
        Feed feed{NumberSource{64}, {.batch_size = 4, .workers = 1}, device};
        auto lease = feed.next();
        use_on(device, *lease, stream, findings);
        feed.wait_full();
        device.fail(Call::record);
        lease.reset();
        EXPECT_EQ(take(feed, 3).size(), 3U);
    }
    EXPECT_GE(device.calls(Call::synchronize_stream), 1U);
    EXPECT_EQ(findings.wrong(), 0U);
    device.expect_clean();
}

TEST(PrefetcherDeviceTest, LostStreamIsToldThoughAGeneratorsBatchIsOpen) {
    const Watchdog watchdog;
    FakeDevice device;
    const SampleLatch latch{9};
    {
        Feed feed{NumberGenerator{100, latch.hook()},
                  {.batch_size = 4, .workers = 2, .prefetch_batches = 3, .epochs = 1},
                  device};
        {
            auto lease = feed.next();
            static_cast<void>(lease->on(device.new_stream()));
            latch.wait_until_reached();
            device.fail(Call::record);
            device.fail(Call::synchronize_stream);
        }
        latch.open();
        EXPECT_THROW(while (feed.next()){}, FakeDeviceError);
    }
}

TEST(PrefetcherDeviceTest, FailedAllocationLeavesNothingBehind) {
    for (const Call call : {Call::allocate_host, Call::allocate_device, Call::create_event, Call::bind_thread}) {
        for (std::size_t n = 1; n <= (call == Call::bind_thread ? 1U : 3U); ++n) {
            SCOPED_TRACE(std::string{to_string(call)} + " number " + std::to_string(n));
            FakeDevice device;
            device.fail(call, n);
            const auto make = [&] {
                Feed feed{
                    NumberSource{64}, {.batch_size = 4, .workers = 1, .prefetch_batches = 3, .leases = 2}, device};
            };
            EXPECT_THROW(make(), FakeDeviceError);
            device.expect_clean();
            expect_no_library_threads();
        }
    }
}

TEST(PrefetcherDeviceTest, WorkerThatCannotBindTellsTheConsumer) {
    const Watchdog watchdog;
    FakeDevice device;
    device.fail(Call::bind_thread, 2, 1);
    {
        Feed feed{NumberSource{64}, {.batch_size = 4, .workers = 1}, device};
        EXPECT_THROW(static_cast<void>(feed.next()), FakeDeviceError);
    }
    device.expect_clean();
}

TEST(PrefetcherDeviceTest, SampleErrorsComeInPlanOrderThroughTheDevice) {
    const Watchdog watchdog;
    for (const std::size_t workers : {0U, 2U}) {
        FakeDevice device;
        {
            Feed feed{
                NumberSource{12, throw_on({1, 6, 7}, 3)}, {.batch_size = 4, .workers = workers, .epochs = 1}, device};
            const Account account = collect_through_errors(feed);
            EXPECT_EQ(account.failed_ids(), (std::vector<std::uint64_t>{1, 6, 7}));
            EXPECT_EQ(account.ledger, (Ledger{{0, 2, 3}, {4, 5}, {8, 9, 10, 11}}));
        }
        device.expect_clean();
    }
}

// ---- Threads and ends ----

TEST(PrefetcherDeviceTest, EveryThreadIsBoundBeforeItsFirstCall) {
    const Watchdog watchdog;
    FakeDevice device;
    const auto stream = device.new_stream();
    {
        Feed feed{NumberSource{64}, {.batch_size = 4, .workers = 2}, device};
        std::jthread{[&] {
            for (int i = 0; i < 5; ++i) {
                auto lease = feed.next();
                static_cast<void>(lease->on(stream));
            }
        }}.join();
        std::optional<FeedLease> lease = feed.next();
        std::jthread{[&] { lease.reset(); }}.join();
    }
    EXPECT_EQ(device.unbound_calls(), std::vector<Call>{});
    device.expect_clean();
}

TEST(PrefetcherDeviceTest, DestructionWaitsForPendingCopiesAndFreesOnlyThen) {
    const Watchdog watchdog;
    for (const std::size_t taken : {0U, 1U, 2U}) {
        for (const std::size_t workers : {1U, 2U}) {
            FakeDevice device{Completion::when_told};
            {
                std::optional<Feed> feed{std::in_place, NumberSource{64},
                                         PrefetcherOptions{.batch_size = 4, .workers = workers, .prefetch_batches = 3},
                                         device};
                device.wait_for_calls(Call::copy_in, 2);
                EXPECT_EQ(take(*feed, taken).size(), taken);
                std::jthread destroyer{[&] { feed.reset(); }};
                device.wait_for_host_waits(1);
                EXPECT_EQ(device.calls(Call::free_host) + device.calls(Call::free_device), 0U);
                while (device.calls(Call::free_device) < 2) {
                    device.finish_all();
                    std::this_thread::yield();
                }
            }
            device.expect_clean();
        }
    }
}

TEST(PrefetcherDeviceTest, DestructionWaitsForTheKernelsOfLeasesThatWereGivenBack) {
    const Watchdog watchdog;
    FakeDevice device;
    const auto stream = device.new_stream();
    const Findings findings;
    {
        Feed feed{NumberSource{64}, {.batch_size = 4, .workers = 1}, device};
        feed.wait_full();
        auto lease = feed.next();
        use_on(device, *lease, stream, findings);
    }
    EXPECT_EQ(findings.count(), 1U);
    device.expect_clean();
}

TEST(PrefetcherDeviceTest, LeaseOutlivesItsPrefetcherAndKeepsItsMemory) {
    const Watchdog watchdog;
    FakeDevice device;
    const auto stream = device.new_stream();
    const Findings findings;
    std::optional<FeedLease> lease;
    {
        Feed feed{NumberSource{64}, {.batch_size = 4, .workers = 1}, device};
        lease = feed.next();
    }
    expect_no_library_threads();
    EXPECT_GT(device.live_allocations(), 0U);
    use_on(device, *lease, stream, findings);
    lease.reset();
    EXPECT_EQ(findings.wrong(), 0U);
    device.expect_clean();
}

TEST(PrefetcherDeviceTest, FilledBatchIsCopiedThoughAllWorkersAreInsideUserCode) {
    const Watchdog watchdog;
    FakeDevice device;
    const SampleLatch latch{12};
    {
        Feed feed{
            NumberSource{64, latch.stoppable_hook()}, {.batch_size = 4, .workers = 1, .prefetch_batches = 2}, device};
        auto lease = feed.next();
        latch.wait_until_reached();
        lease.reset();
        EXPECT_EQ(ids_of(*feed.next())[0], 4U);
        EXPECT_EQ(ids_of(*feed.next())[0], 8U);
        EXPECT_EQ(feed.try_next().status, stoker::Poll::not_ready);
        latch.open();
        EXPECT_EQ(ids_of(*feed.next())[0], 12U);
    }
    device.expect_clean();
}

TEST(PrefetcherDeviceTest, DroppedEpochsAndSeeksLeaveTheDeviceInOrder) {
    const Watchdog watchdog;
    for (const std::size_t workers : {0U, 1U, 2U}) {
        FakeDevice device{Completion::when_told};
        const FakeDeviceRunner runner{device};
        const auto stream = device.new_stream();
        const Findings findings;
        {
            Feed feed{NumberSource{40}, {.batch_size = 4, .workers = workers, .prefetch_batches = 3}, device};
            const stoker::State start = feed.state();
            for (std::size_t i = 0; i < 12; ++i) {
                auto epoch = feed.epoch();
                for (std::size_t k = 0; k < i % 4; ++k) {
                    auto lease = epoch.next();
                    ASSERT_TRUE(lease);
                    EXPECT_EQ(ids_of(*lease)[0], 4 * k);
                    use_on(device, *lease, stream, findings);
                }
                if (i % 5 == 4) {
                    feed.seek(start);
                }
            }
            device.synchronize_stream(stream);
        }
        EXPECT_EQ(findings.wrong(), 0U);
        device.expect_clean();
    }
}

TEST(PrefetcherDeviceTest, UnorderedBatchesOvertakeEachOther) {
    const Watchdog watchdog;
    FakeDevice device;
    const SampleLatch latch{1};
    const auto stream = device.new_stream();
    const Findings findings;
    {
        Feed feed{NumberSource{16, latch.hook()},
                  {.batch_size = 4,
                   .workers = 2,
                   .prefetch_batches = 3,
                   .delivery = stoker::Delivery::unordered,
                   .epochs = 2},
                  device};
        latch.wait_until_reached();
        Ledger ledger;
        const auto take_one = [&] {
            auto lease = feed.next();
            ASSERT_TRUE(lease);
            use_on(device, *lease, stream, findings);
            ledger.push_back(ids_of(*lease));
        };
        take_one();
        take_one();
        EXPECT_NE(ledger[0][0], 0U);
        EXPECT_NE(ledger[1][0], 0U);
        latch.open();
        take_one();
        take_one();
        EXPECT_EQ(flattened_sorted(ledger), numbers_below(16));  // no batch of the next epoch is among them
        ledger = take(feed, 100);
        EXPECT_EQ(flattened_sorted(ledger), numbers_below(16));
    }
    EXPECT_EQ(findings.wrong(), 0U);
    device.expect_clean();
}

TEST(PrefetcherDeviceTest, GeneratorsAndPlainValuesRunBesideTheDevice) {
    const Watchdog watchdog;
    FakeDevice device;
    {
        Feed feed{NumberGenerator{11}, {.batch_size = 4, .workers = 2, .epochs = 2}, device};
        for (int epoch = 0; epoch < 2; ++epoch) {
            EXPECT_EQ(collect(feed.epoch()), sequential_ledger(11, 4));
        }
        stoker::Prefetcher<std::string, FakeDevice> values{
            stoker::values(5, [](stoker::Sample& sample) { return std::to_string(sample.index()); }),
            {.workers = 1},
            device};
        auto value = values.next();
        EXPECT_EQ(**value, "0");  // plain values stay on the host
        EXPECT_EQ(device.calls(Call::copy_in), 6U);
    }
    device.expect_clean();
}

TEST(PrefetcherDeviceTest, ManyConsumersWithTheirOwnStreamsRaceTest) {
    const Watchdog watchdog{10 * hang_limit()};
    for (std::size_t round = 0; round < repeats(); ++round) {
        FakeDevice device{Completion::when_told};
        const FakeDeviceRunner runner{device};
        const Findings findings;
        {
            Feed feed{NumberSource{61},
                      {.batch_size = 4, .workers = 2, .prefetch_batches = 1 + round % 3, .leases = 3, .epochs = 4},
                      device};
            std::vector<std::jthread> consumers;
            for (int c = 0; c < 3; ++c) {
                consumers.emplace_back([&] {
                    const auto first = device.new_stream();
                    const auto second = device.new_stream();
                    while (auto lease = feed.next()) {
                        use_on(device, *lease, first, findings);
                        if (ids_of(*lease)[0] % 8 == 0) {
                            use_on(device, *lease, second, findings);
                        }
                    }
                });
            }
            consumers.clear();
            EXPECT_EQ(feed.report().batches, 64U);
        }
        EXPECT_EQ(findings.wrong(), 0U);
        EXPECT_EQ(findings.count(), 96U);
        EXPECT_EQ(device.unbound_calls(), std::vector<Call>{});
        device.expect_clean();
    }
}

TEST(PrefetcherDeviceTest, TeardownAtAnyMomentRaceTest) {
    const Watchdog watchdog{10 * hang_limit()};
    for (std::size_t round = 0; round < 5 * repeats(); ++round) {
        FakeDevice device{Completion::when_told};
        const FakeDeviceRunner runner{device};
        {
            Feed feed{NumberSource{61},
                      {.batch_size = 4, .workers = 1 + round % 2, .prefetch_batches = 1 + round % 3},
                      device};
            const auto stream = device.new_stream();
            for (std::size_t i = 0; i < round % 7; ++i) {
                auto lease = feed.next();
                static_cast<void>(lease->on(stream));
            }
        }
        device.expect_clean();
    }
}

}  // namespace
