// SPDX-License-Identifier: MIT
#include <stoker/prefetcher.hpp>

#include <pthread.h>
#include <signal.h>

#include <array>
#include <concepts>
#include <set>
#include <type_traits>

#include "support/core_kit.hpp"

namespace {

using namespace testing_support;
using namespace std::chrono_literals;
using stoker::DataError;
using stoker::LastBatch;
using stoker::Lease;
using stoker::LeaseError;
using stoker::OnError;
using stoker::OptionError;
using stoker::Poll;
using stoker::PrefetcherOptions;
using stoker::Row;
using stoker::Sample;
using stoker::SampleError;
using stoker::StateError;
using stoker::TimeoutError;

static_assert(std::is_nothrow_move_constructible_v<NumberFeed> && std::is_nothrow_move_assignable_v<NumberFeed>);
static_assert(!std::copyable<NumberFeed> && !std::copyable<NumberLease> && !std::copyable<stoker::Epoch<NumberBatch>>);
static_assert(std::is_nothrow_move_constructible_v<NumberLease> && std::is_nothrow_destructible_v<NumberLease>);
static_assert(std::input_iterator<stoker::detail::BatchIterator<NumberBatch, stoker::HostDevice>>);

// ---- Taking batches -------------------------------------------------------------------------------------------------

TEST(PrefetcherTest, EpochGivesEveryBatchOfThePlanInOrder) {
    for (const std::size_t workers : {0U, 1U, 3U}) {
        auto feed = number_feed(10, {.batch_size = 4, .workers = workers});
        Ledger ledger;
        for (auto&& batch : feed.epoch()) {
            EXPECT_TRUE(is_right(batch));
            EXPECT_EQ(batch.info().batch(), ledger.size());
            EXPECT_EQ(batch.info().position(), 4 * ledger.size());
            EXPECT_EQ(batch.info().epoch(), 0U);
            EXPECT_EQ(batch.info().rows(), batch.size());
            EXPECT_TRUE(batch.info().failures().empty());
            EXPECT_GT(batch.info().used_bytes(), 0U);
            ledger.push_back(ids_of(batch));
        }
        EXPECT_EQ(ledger, sequential_ledger(10, 4));
    }
}

TEST(PrefetcherTest, EpochEndIsStickyAndTheNextEpochIsAnother) {
    auto feed = number_feed(5, {.batch_size = 2, .workers = 2});
    auto first = feed.epoch();
    EXPECT_EQ(first.number(), 0U);
    EXPECT_EQ(first.remaining(), 3U);
    EXPECT_EQ(collect(first), sequential_ledger(5, 2));
    EXPECT_EQ(first.remaining(), 0U);
    for (int i = 0; i < 3; ++i) {
        EXPECT_FALSE(first.next());
        EXPECT_EQ(first.try_next().status, Poll::end);
        EXPECT_FALSE(first.next_for(0ns));
        EXPECT_EQ(first.begin(), first.end());
    }
    auto second = feed.epoch();
    EXPECT_EQ(second.number(), 1U);
    EXPECT_FALSE(first.next()) << "an ended epoch must not take from the next one";
    EXPECT_EQ(collect(second), sequential_ledger(5, 2));
}

TEST(PrefetcherTest, NextRunsAcrossEpochs) {
    auto feed = number_feed(3, {.batch_size = 2, .workers = 1});
    for (std::uint64_t i = 0; i < 6; ++i) {
        const auto batch = feed.next();
        ASSERT_TRUE(batch);
        EXPECT_EQ(batch->info().epoch(), i / 2);
        EXPECT_EQ(batch->info().batch(), i % 2);
        EXPECT_TRUE(is_right(*batch));
    }
}

TEST(PrefetcherTest, TheRangeOfThePrefetcherIsEndlessAndLeavingItDropsNothing) {
    auto feed = number_feed(3, {.batch_size = 3, .workers = 1});
    std::uint64_t seen = 0;
    for (auto&& batch : feed) {
        EXPECT_EQ(batch.info().epoch(), seen);
        if (++seen == 5) {
            break;
        }
    }
    EXPECT_EQ(feed.next()->info().epoch(), 5U);
}

TEST(PrefetcherTest, EpochsOptionEndsThePlanAndNothingBehindItIsFetched) {
    const SampleCounter counter;
    auto feed = number_feed(4, {.batch_size = 2, .workers = 2, .epochs = 2}, counter.hook());
    std::size_t batches = 0;
    for (auto&& batch : feed) {
        EXPECT_LT(batch.info().epoch(), 2U);
        ++batches;
    }
    EXPECT_EQ(batches, 4U);
    EXPECT_EQ(counter.total(), 8U);
    EXPECT_FALSE(feed.next());
    EXPECT_EQ(feed.try_next().status, Poll::end);
    auto epoch = feed.epoch();
    EXPECT_FALSE(epoch.next());
    EXPECT_EQ(epoch.remaining(), 0U);
}

TEST(PrefetcherTest, EpochsMakesOneRangeOfSeveral) {
    auto feed = number_feed(5, {.batch_size = 2, .workers = 2});
    auto range = feed.epochs(3);
    EXPECT_EQ(range.number(), 0U);
    Ledger expected;
    for (int i = 0; i < 3; ++i) {
        const Ledger one = sequential_ledger(5, 2);
        expected.insert(expected.end(), one.begin(), one.end());
    }
    EXPECT_EQ(collect(range), expected);
    EXPECT_EQ(feed.epoch().number(), 3U);
    EXPECT_THROW(static_cast<void>(feed.epochs(0)), OptionError);
}

TEST(PrefetcherTest, DroppingAnEpochEarlyDropsItsRest) {
    for (const std::size_t workers : {0U, 1U, 3U}) {
        auto feed = number_feed(12, {.batch_size = 2, .workers = workers, .prefetch_batches = 3});
        for (auto&& batch : feed.epoch()) {
            EXPECT_EQ(ids_of(batch), (std::vector<std::uint64_t>{0, 1}));
            break;
        }
        const auto batch = feed.next();
        EXPECT_EQ(batch->info().epoch(), 1U);
        EXPECT_EQ(batch->info().batch(), 0U);
        EXPECT_TRUE(is_right(*batch));
    }
}

TEST(PrefetcherTest, AnEpochNobodyTookFromIsDroppedToo) {
    auto feed = number_feed(4, {.batch_size = 2, .workers = 1});
    { const auto unused = feed.epoch(); }
    EXPECT_EQ(feed.epoch().number(), 1U);
}

TEST(PrefetcherTest, DroppingARangeOfEpochsDropsTheEpochAtHandOnly) {
    auto feed = number_feed(4, {.batch_size = 2, .workers = 1});
    {
        auto range = feed.epochs(10);
        static_cast<void>(take(range, 3));
    }
    EXPECT_EQ(feed.next()->info().epoch(), 2U);
}

TEST(PrefetcherTest, ANewEpochEndsAnEarlierOneThatIsUnfinished) {
    auto feed = number_feed(8, {.batch_size = 2, .workers = 2});
    auto first = feed.epoch();
    ASSERT_TRUE(first.next());
    auto second = feed.epoch();
    EXPECT_EQ(second.number(), 1U);
    EXPECT_FALSE(first.next());
    EXPECT_EQ(first.remaining(), 0U);
    EXPECT_EQ(collect(second), sequential_ledger(8, 2));
}

TEST(PrefetcherTest, EpochFinishesWhatNextBegan) {
    auto feed = number_feed(6, {.batch_size = 2, .workers = 1});
    ASSERT_TRUE(feed.next());
    auto rest = feed.epoch();
    EXPECT_EQ(rest.number(), 0U);
    EXPECT_EQ(rest.remaining(), 2U);
    EXPECT_EQ(collect(rest), (Ledger{{2, 3}, {4, 5}}));
}

TEST(PrefetcherTest, MovedEpochGoesOnAndMovedOntoEndsTheOld) {
    auto feed = number_feed(6, {.batch_size = 2, .workers = 1});
    auto first = feed.epoch();
    ASSERT_TRUE(first.next());
    auto moved = std::move(first);
    EXPECT_EQ(ids_of(*moved.next()), (std::vector<std::uint64_t>{2, 3}));
    moved = feed.epoch();
    EXPECT_EQ(moved.number(), 1U);
    EXPECT_EQ(collect(moved), sequential_ledger(6, 2));
}

TEST(PrefetcherTest, RemainingCountsDown) {
    auto feed = number_feed(9, {.batch_size = 2, .workers = 1});
    EXPECT_EQ(feed.length(), 5U);
    auto epoch = feed.epoch();
    for (std::uint64_t left = 5; left > 0; --left) {
        EXPECT_EQ(epoch.remaining(), left);
        ASSERT_TRUE(epoch.next());
    }
    EXPECT_EQ(epoch.remaining(), 0U);
    EXPECT_EQ(feed.length(), 5U);
}

TEST(PrefetcherTest, TryNextSaysNotReadyUntilThereIsABatch) {
    const SampleLatch latch{1};
    auto feed = number_feed(4, {.batch_size = 2, .workers = 1}, latch.hook());
    latch.wait_until_reached();
    const auto nothing = feed.try_next();
    EXPECT_EQ(nothing.status, Poll::not_ready);
    EXPECT_FALSE(nothing);
    EXPECT_FALSE(nothing.lease);
    latch.open();
    feed.wait_full();
    const auto ready = feed.try_next();
    EXPECT_TRUE(ready);
    ASSERT_TRUE(ready.lease);
    EXPECT_TRUE(is_right(*ready.lease));
}

TEST(PrefetcherTest, TryNextWithoutWorkersDoesTheWork) {
    auto feed = number_feed(4, {.batch_size = 2, .workers = 0});
    const auto first = feed.try_next();
    ASSERT_EQ(first.status, Poll::ready);
    EXPECT_TRUE(is_right(*first.lease));
}

TEST(PrefetcherTest, NextForNamesTheSampleThatIsWaitedForAndLosesNothing) {
    const SampleLatch latch{2};
    auto feed = number_feed(8, {.batch_size = 4, .workers = 1}, latch.hook());
    latch.wait_until_reached();
    for (int i = 0; i < 2; ++i) {
        try {
            static_cast<void>(feed.next_for(1ms));
            ADD_FAILURE() << "no TimeoutError";
        } catch (const TimeoutError& error) {
            EXPECT_EQ(error.index(), 2U);
            EXPECT_EQ(error.path(), "number/2");
            EXPECT_TRUE(has_words(error.what(), {"sample 2", "number/2"}));
        }
    }
    latch.open();
    EXPECT_EQ(ids_of(*feed.next_for(hang_limit())), (std::vector<std::uint64_t>{0, 1, 2, 3}));
    EXPECT_EQ(ids_of(*feed.next_for(std::chrono::nanoseconds::max())), (std::vector<std::uint64_t>{4, 5, 6, 7}));
}

TEST(PrefetcherTest, NextForWithoutWorkersLooksAtTheLimitBetweenSamples) {
    auto feed = number_feed(4, {.batch_size = 4, .workers = 0});
    std::size_t timeouts = 0;
    std::optional<NumberLease> batch;
    while (!batch && timeouts < 100) {
        try {
            batch = feed.next_for(0ns);
        } catch (const TimeoutError&) {
            ++timeouts;
        }
    }
    ASSERT_TRUE(batch);
    EXPECT_GT(timeouts, 0U);
    EXPECT_TRUE(is_right(*batch));
}

TEST(PrefetcherTest, ManyConsumersOfOneEpochShareItsBatches) {
    for (const std::size_t workers : {0U, 3U}) {
        auto feed = number_feed(203, {.batch_size = 2, .workers = workers, .order = stoker::shuffled(3), .leases = 4});
        auto epoch = feed.epoch();
        std::mutex mutex;
        Ledger all;
        {
            std::vector<std::jthread> consumers;
            for (int i = 0; i < 4; ++i) {
                consumers.emplace_back([&] {
                    while (const auto batch = epoch.next()) {
                        EXPECT_TRUE(is_right(*batch));
                        const std::lock_guard lock{mutex};
                        all.push_back(ids_of(*batch));
                    }
                });
            }
        }
        EXPECT_EQ(all.size(), 102U);
        EXPECT_EQ(flattened_sorted(all), numbers_below(203));
    }
}

TEST(PrefetcherTest, UnorderedDeliveryOvertakesWithinAnEpoch) {
    const SampleLatch latch{0};
    auto feed = number_feed(
        8, {.batch_size = 2, .workers = 2, .prefetch_batches = 4, .leases = 1, .delivery = stoker::Delivery::unordered},
        latch.hook());
    auto epoch = feed.epoch();
    Ledger ledger = take(epoch, 3);
    EXPECT_EQ(flattened_sorted(ledger), (std::vector<std::uint64_t>{2, 3, 4, 5, 6, 7}));
    EXPECT_EQ(epoch.try_next().status, Poll::not_ready) << "batches of the next epoch have to wait";
    EXPECT_EQ(epoch.remaining(), 1U);
    latch.open();
    auto last = epoch.next();
    ASSERT_TRUE(last);
    EXPECT_EQ(ids_of(*last), (std::vector<std::uint64_t>{0, 1}));
    EXPECT_THROW(static_cast<void>(last->state()), StateError);
    EXPECT_THROW(static_cast<void>(feed.state()), StateError);
    EXPECT_FALSE(epoch.next());
    last.reset();
    auto second = feed.epoch();
    EXPECT_EQ(flattened_sorted(collect(second)), numbers_below(8));
}

// ---- Leases ---------------------------------------------------------------------------------------------------------

TEST(LeaseTest, SeveralLeasesStandSideBySide) {
    auto feed = number_feed(12, {.batch_size = 2, .workers = 2, .leases = 3});
    auto a = feed.next();
    auto b = feed.next();
    auto c = feed.next();
    EXPECT_EQ(feed.report().batches_leased, 3U);
    EXPECT_EQ(ids_of(*a), (std::vector<std::uint64_t>{0, 1}));
    EXPECT_EQ(ids_of(*c), (std::vector<std::uint64_t>{4, 5}));
    b->release();
    const auto d = feed.next();
    EXPECT_EQ(ids_of(*d), (std::vector<std::uint64_t>{6, 7}));
    feed.wait_full();
    EXPECT_TRUE(is_right(*a) && is_right(*c) && is_right(*d)) << "a leased slot was written to";
}

TEST(LeaseTest, TheThreadThatHoldsAllIsToldAtOnce) {
    auto feed = number_feed(12, {.batch_size = 2, .workers = 1, .leases = 2});
    auto a = feed.next();
    const auto b = feed.next();
    EXPECT_TRUE(has_words(message_of<LeaseError>([&] { static_cast<void>(feed.next()); }), {"all 2 leases", "leases"}));
    feed.wait_full();
    EXPECT_EQ(feed.try_next().status, Poll::not_ready);
    EXPECT_THROW(static_cast<void>(feed.next_for(1ms)), TimeoutError) << "another thread may give one back: D-7";
    a.reset();
    EXPECT_EQ(ids_of(*feed.next()), (std::vector<std::uint64_t>{4, 5})) << "nothing is lost";
}

TEST(LeaseTest, AnotherThreadWaitsUntilOneIsGivenBack) {
    auto feed = number_feed(12, {.batch_size = 2, .workers = 1});
    auto held = feed.next();
    feed.wait_full();
    std::vector<std::uint64_t> got;
    std::jthread other{[&] { got = ids_of(*feed.next()); }};
    while (feed.report().batches_leased != 1) {
        std::this_thread::yield();
    }
    held.reset();
    other.join();
    EXPECT_EQ(got, (std::vector<std::uint64_t>{2, 3}));
}

TEST(LeaseTest, IsGivenBackOnAnotherThread) {
    auto feed = number_feed(12, {.batch_size = 2, .workers = 1});
    auto held = feed.next();
    std::jthread{[lease = std::move(*held)]() mutable { lease.release(); }}.join();
    EXPECT_EQ(ids_of(*feed.next()), (std::vector<std::uint64_t>{2, 3}));
}

TEST(LeaseTest, OutlivesItsPrefetcher) {
    std::optional<NumberLease> held;
    {
        auto feed = number_feed(12, {.batch_size = 4, .workers = 3});
        held = feed.next();
    }
    expect_no_library_threads();
    EXPECT_TRUE(is_right(*held));
    EXPECT_EQ(held->state().position, 4U);
    held.reset();
}

TEST(LeaseTest, MovedFromOrGivenBackIsEmpty) {
    auto feed = number_feed(12, {.batch_size = 2, .workers = 1, .leases = 2});
    auto taken = feed.next();
    NumberLease a = std::move(*taken);
    EXPECT_TRUE(a);
    EXPECT_FALSE(*taken);
    EXPECT_THROW(static_cast<void>((*taken)->ids), LeaseError);
    EXPECT_THROW(static_cast<void>(taken->info()), LeaseError);
    EXPECT_THROW(static_cast<void>(taken->size()), LeaseError);
    EXPECT_THROW(static_cast<void>(taken->state()), LeaseError);
    EXPECT_THROW(static_cast<void>(taken->on({})), LeaseError);
    auto b = feed.next();
    a = std::move(*b);  // gives the first one back
    EXPECT_EQ(feed.report().batches_leased, 1U);
    EXPECT_EQ(ids_of(a), (std::vector<std::uint64_t>{2, 3}));
    a.release();
    a.release();
    EXPECT_FALSE(a);
    EXPECT_EQ(feed.report().batches_leased, 0U);
}

TEST(LeaseTest, ReadsTheSameThroughEveryDoor) {
    auto feed = number_feed(4, {.batch_size = 2, .workers = 1});
    const auto batch = feed.next();
    EXPECT_EQ((*batch)->ids.data(), (**batch).ids.data());
    EXPECT_EQ((*batch)->ids.data(), batch->on({}).ids.data());
    EXPECT_EQ((*batch)->ids.extent(0), 2U);
}

TEST(LeaseTest, SaysWhereItWasTaken) {
    auto feed = number_feed(40, {.batch_size = 1, .workers = 1});
    const auto a = feed.next();
    EXPECT_EQ(a->taken_at().line(), static_cast<unsigned>(__LINE__ - 1));
    EXPECT_NE(std::string{a->taken_at().file_name()}.find("prefetcher_test.cpp"), std::string::npos);
    auto feed2 = number_feed(40, {.batch_size = 1, .workers = 0});
    const auto b = feed2.try_next();
    EXPECT_EQ(b.lease->taken_at().line(), static_cast<unsigned>(__LINE__ - 1));
    auto feed3 = number_feed(40, {.batch_size = 1, .workers = 0});
    for (auto&& batch : feed3.epoch()) {
        EXPECT_EQ(batch.taken_at().line(), static_cast<unsigned>(__LINE__ - 1));
        break;
    }
}

TEST(LeaseTest, StateIsTheOneBehindItsBatch) {
    auto feed = number_feed(5, {.batch_size = 2, .workers = 1, .leases = 3});
    const auto a = feed.next();
    const auto b = feed.next();
    const auto c = feed.next();
    EXPECT_EQ(a->state().position, 2U);
    EXPECT_EQ(b->state().position, 4U);
    EXPECT_EQ(c->state().position, 0U);
    EXPECT_EQ(c->state().epoch, 1U);
    EXPECT_EQ(feed.state(), c->state());
}

// ---- The prefetcher itself ------------------------------------------------------------------------------------------

TEST(PrefetcherTest, MovesKeepThreadsSlotsAndPlace) {
    auto feed = number_feed(12, {.batch_size = 2, .workers = 2});
    ASSERT_TRUE(feed.next());
    auto moved = std::move(feed);
    expect_library_threads(2);
    EXPECT_EQ(ids_of(*moved.next()), (std::vector<std::uint64_t>{2, 3}));
    moved = number_feed(3, {.batch_size = 3, .workers = 1});
    expect_library_threads(1);  // assignment ended the old ones
    EXPECT_EQ(ids_of(*moved.next()), (std::vector<std::uint64_t>{0, 1, 2}));
    feed = std::move(moved);
    EXPECT_TRUE(feed.next());
}

TEST(PrefetcherTest, StopEndsConsumersForGoodFromAnyThread) {
    const SampleLatch latch{0};
    auto feed = number_feed(12, {.batch_size = 2, .workers = 2}, latch.stoppable_hook());
    auto epoch = feed.epoch();
    latch.wait_until_reached();
    const Gate done;
    std::jthread consumer{[&] {
        EXPECT_FALSE(epoch.next());
        done.open();
    }};
    std::jthread{[&] { feed.stop(); }}.join();
    done.wait();
    feed.stop();
    feed.wait_full();
    EXPECT_FALSE(feed.next());
    EXPECT_EQ(feed.try_next().status, Poll::end);
    EXPECT_FALSE(feed.next_for(1ms));
    EXPECT_EQ(epoch.begin(), epoch.end());
}

TEST(PrefetcherTest, StopBeginsNoFurtherSample) {
    const SampleLatch latch{0};
    const SampleCounter counter;
    {
        auto feed = number_feed(100, {.batch_size = 50, .workers = 1}, all_of({counter.hook(), latch.hook()}));
        latch.wait_until_reached();
        feed.stop();
        latch.open();
    }
    EXPECT_EQ(counter.total(), 1U);
}

TEST(PrefetcherTest, WaitFullFillsTheRingAndNoMore) {
    for (const std::size_t workers : {0U, 2U}) {
        const SampleCounter counter;
        auto feed =
            number_feed(100, {.batch_size = 2, .workers = workers, .prefetch_batches = 3, .leases = 2}, counter.hook());
        feed.wait_full();
        EXPECT_EQ(counter.total(), 6U);
        EXPECT_EQ(feed.report().batches_ready, 3U);
        const auto held = feed.next();
        feed.wait_full();
        EXPECT_EQ(counter.total(), 8U) << "the next batch is loaded while one is used";
    }
    auto finite = number_feed(3, {.batch_size = 2, .workers = 1, .prefetch_batches = 9, .epochs = 1});
    finite.wait_full();
    EXPECT_EQ(finite.report().batches_ready, 2U);
}

TEST(PrefetcherTest, SeekGoesBackAndForth) {
    for (const std::size_t workers : {0U, 2U}) {
        auto feed = number_feed(10, {.batch_size = 2, .workers = workers, .order = stoker::shuffled(9)});
        const stoker::State start = feed.state();
        auto epoch = feed.epochs(2);
        const Ledger first = take(epoch, 3);
        const stoker::State middle = feed.state();
        const Ledger rest = take(epoch, 4);
        feed.seek(start);
        EXPECT_FALSE(epoch.next()) << "a seek ends earlier Epoch objects";
        EXPECT_EQ(feed.state(), start);
        EXPECT_EQ(take(feed, 3), first);
        feed.seek(middle);
        EXPECT_EQ(take(feed, 4), rest);
    }
}

TEST(PrefetcherTest, SeekKeepsLeases) {
    auto feed = number_feed(10, {.batch_size = 2, .workers = 2});
    const stoker::State start = feed.state();
    auto held = feed.next();
    feed.seek(start);
    EXPECT_TRUE(is_right(*held));
    EXPECT_EQ(ids_of(*held), (std::vector<std::uint64_t>{0, 1}));
    held.reset();
    EXPECT_EQ(ids_of(*feed.next()), (std::vector<std::uint64_t>{0, 1}));
}

TEST(PrefetcherTest, RefusedSeekChangesNothing) {
    auto feed = number_feed(10, {.batch_size = 2, .workers = 2});
    ASSERT_TRUE(feed.next());
    auto other = number_feed(11, {.batch_size = 2, .workers = 0});
    EXPECT_THROW(feed.seek(other.state()), StateError);
    EXPECT_EQ(ids_of(*feed.next()), (std::vector<std::uint64_t>{2, 3}));
}

TEST(PrefetcherTest, ReportCountsWhatWasDone) {
    auto feed = number_feed(10, {.batch_size = 4, .workers = 2, .epochs = 1});
    EXPECT_EQ(flattened_sorted(collect(feed)), numbers_below(10));
    const stoker::Report report = feed.report();
    EXPECT_EQ(report.batches, 3U);
    EXPECT_EQ(report.samples, 10U);
    EXPECT_EQ(report.fill.count, 10U);
    EXPECT_EQ(report.finish.count, 3U);
    EXPECT_EQ(report.fetch.count, 0U);
    EXPECT_EQ(report.copy.count, 0U);
    EXPECT_GT(report.bytes, 0U);
    EXPECT_EQ(report.failures, 0U);
    EXPECT_EQ(report.workers, 2U);
    EXPECT_EQ(report.slots, 3U);
    EXPECT_EQ(report.device_slots, 0U);
    EXPECT_GT(report.slot_bytes, 0U);
    EXPECT_EQ(report.batches_ready, 0U);
    EXPECT_EQ(report.batches_leased, 0U);
    EXPECT_GE(report.mean_wait_seconds(), 0.0);
    EXPECT_FALSE(report.page_locked);
}

TEST(PrefetcherTest, ReportAndFailuresAreReadableWhileRunning) {
    auto feed = draw_feed(60, {.batch_size = 3, .workers = 2, .on_error = OnError::skip, .epochs = 3},
                          [](std::uint64_t i) { return i % 7 == 0; });
    std::atomic<bool> is_over{false};  // publishes nothing
    std::jthread reader{[&] {
        std::uint64_t last = 0;
        while (!is_over) {
            const std::uint64_t batches = feed.report().batches;
            EXPECT_GE(batches, last);
            last = batches;
            EXPECT_LE(feed.failures().size(), 1000U);
        }
    }};
    EXPECT_EQ(collect(feed).size(), 60U);
    is_over = true;
    reader.join();
    EXPECT_EQ(feed.report().failures, 27U);
}

TEST(PrefetcherTest, OptionsAreTheResolvedOnes) {
    auto automatic = number_feed(100, {.batch_size = 4});
    ASSERT_TRUE(automatic.options().workers);
    EXPECT_GE(*automatic.options().workers, 1U);
    expect_library_threads(*automatic.options().workers);
    const std::size_t slot = NumberFeed::planned_bytes(NumberSource{100}, {.batch_size = 4}).slot_bytes;
    // The kit's ragged field needs memory beside the slots; whatever that is, two slots and that are the least.
    const auto least = NumberFeed::planned_bytes(NumberSource{100}, {.batch_size = 4, .prefetch_batches = 1}).total();
    auto lowered = number_feed(
        100, {.batch_size = 4, .workers = 1, .prefetch_batches = 50, .max_bytes = least + 3 * slot + slot / 2});
    EXPECT_EQ(lowered.options().prefetch_batches, 4U) << "the smaller of the two wins";
    EXPECT_EQ(lowered.report().slots, 5U);
}

TEST(PrefetcherTest, PlannedBytesAreWhatIsAllocated) {
    const PrefetcherOptions options{.batch_size = 16, .workers = 0, .prefetch_batches = 3, .leases = 2};
    const auto planned = NumberFeed::planned_bytes(NumberSource{1000}, options);
    EXPECT_EQ(planned.host_slots, 5U);
    EXPECT_EQ(planned.device_slots, 0U);
    EXPECT_EQ(planned.device, 0U);
    EXPECT_GE(planned.host, 5 * planned.slot_bytes);
    EXPECT_EQ(planned.total(), planned.host);
    if (counts_allocations()) {
        const std::size_t before = live_heap_bytes();
        const auto feed = number_feed(1000, options);
        const std::size_t used = live_heap_bytes() - before;
        EXPECT_GE(used, planned.total());
        EXPECT_LE(used, planned.total() + 64 * 1024);
    }
    EXPECT_THROW(static_cast<void>(NumberFeed::planned_bytes(NumberSource{10}, {.batch_size = 4, .max_bytes = 1})),
                 OptionError);
}

TEST(PrefetcherTest, BudgetTooSmallNamesTheLeastThatWorks) {
    const std::string text = message_of<OptionError>(
        [] { static_cast<void>(number_feed(10, {.batch_size = 4, .max_bytes = 100, .leases = 2})); });
    const auto least =
        NumberFeed::planned_bytes(NumberSource{10}, {.batch_size = 4, .prefetch_batches = 1, .leases = 2}).total();
    EXPECT_TRUE(has_words(text, {"max_bytes", "100", std::to_string(least)}));
    auto feed = number_feed(10, {.batch_size = 4, .workers = 1, .max_bytes = least, .leases = 2});
    EXPECT_EQ(collect(feed.epoch()), sequential_ledger(10, 4));
}

// ---- Workers --------------------------------------------------------------------------------------------------------

TEST(WorkerTest, ThreadsAreNamedAndBlockAllSignals) {
    std::mutex mutex;
    std::set<std::string> names;
    std::set<std::size_t> numbers;
    sigset_t before;
    pthread_sigmask(SIG_SETMASK, nullptr, &before);
    const auto on_start = [&](std::size_t number) {
        std::array<char, 16> name{};
        pthread_getname_np(pthread_self(), name.data(), name.size());
        sigset_t mask;
        pthread_sigmask(SIG_SETMASK, nullptr, &mask);
        for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD, SIGALRM, SIGPIPE, SIGPROF}) {
            EXPECT_EQ(sigismember(&mask, signal), 1) << signal;
        }
        const std::lock_guard lock{mutex};
        names.insert(name.data());
        numbers.insert(number);
    };
    const auto feed = number_feed(8, {.batch_size = 2, .workers = 3, .on_worker_start = on_start});
    EXPECT_EQ(names, (std::set<std::string>{"stoker/0", "stoker/1", "stoker/2"}));
    EXPECT_EQ(numbers, (std::set<std::size_t>{0, 1, 2}));
    EXPECT_EQ(library_threads(), (std::vector<std::string>{"stoker/0", "stoker/1", "stoker/2"}));
    sigset_t after;
    pthread_sigmask(SIG_SETMASK, nullptr, &after);
    for (int signal = 1; signal < 32; ++signal) {
        EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal)) << "the caller's mask changed";
    }
}

TEST(WorkerTest, AThrowingStartHookIsThrownByTheConstructor) {
    const auto on_start = [](std::size_t number) {
        if (number == 1) {
            throw std::domain_error{"no such core"};
        }
    };
    EXPECT_EQ(message_of<std::domain_error>(
                  [&] { static_cast<void>(number_feed(8, {.workers = 3, .on_worker_start = on_start})); }),
              "no such core");
    expect_no_library_threads();
}

TEST(WorkerTest, WithoutWorkersTheStartHookRunsOnceOnTheConsumer) {
    std::size_t calls = 0;
    std::thread::id thread;
    const auto on_start = [&](std::size_t number) {
        EXPECT_EQ(number, 0U);
        thread = std::this_thread::get_id();
        ++calls;
    };
    auto feed = number_feed(8, {.batch_size = 2, .workers = 0, .on_worker_start = on_start});
    EXPECT_EQ(collect(feed.epoch()).size(), 4U);
    EXPECT_EQ(calls, 1U);
    EXPECT_EQ(thread, std::this_thread::get_id());
    auto broken = number_feed(8, {.workers = 0, .on_worker_start = [](std::size_t) { throw std::domain_error{"no"}; }});
    EXPECT_THROW(static_cast<void>(broken.next()), std::domain_error);
    EXPECT_THROW(static_cast<void>(broken.next()), std::domain_error);
}

TEST(WorkerTest, ScratchIsOnePerWorkerAndReused) {
    struct Buffer {
        std::thread::id owner;
        std::size_t uses = 0;
    };
    std::atomic<std::size_t> made{0};  // publishes nothing
    auto feed = number_feed(64, {.batch_size = 4, .workers = 3, .epochs = 1}, [&](Sample& sample) {
        auto& buffer = sample.scratch<Buffer>();
        if (buffer.uses++ == 0) {
            buffer.owner = std::this_thread::get_id();
            ++made;
        }
        EXPECT_EQ(buffer.owner, std::this_thread::get_id());
    });
    EXPECT_EQ(collect(feed).size(), 16U);
    EXPECT_LE(made, 3U);
}

TEST(WorkerTest, WarningsAndFailuresBecomeEvents) {
    std::mutex mutex;
    std::vector<stoker::Event> events;
    const auto on_event = [&](const stoker::Event& event) {
        const std::lock_guard lock{mutex};
        events.push_back(event);
    };
    auto feed =
        number_feed(6, {.batch_size = 2, .workers = 1, .on_error = OnError::skip, .epochs = 1, .on_event = on_event},
                    [](Sample& sample) {
                        if (sample.index() == 1) {
                            sample.warn("two extra bytes");
                        }
                        if (sample.index() == 4) {
                            throw std::runtime_error{"broken"};
                        }
                    });
    EXPECT_EQ(flattened_sorted(collect(feed)), (std::vector<std::uint64_t>{0, 1, 2, 3, 5}));
    const std::lock_guard lock{mutex};
    ASSERT_EQ(events.size(), 2U);
    EXPECT_EQ(events[0].kind, stoker::Event::Kind::sample_warning);
    EXPECT_EQ(events[0].index, 1U);
    EXPECT_EQ(events[0].path, "number/1");
    EXPECT_EQ(events[0].message, "two extra bytes");
    EXPECT_EQ(events[1].kind, stoker::Event::Kind::sample_failed);
    EXPECT_EQ(events[1].index, 4U);
    EXPECT_TRUE(has_words(events[1].message, {"broken"}));
}

TEST(WorkerTest, AnEventHandlerMayAskThePrefetcher) {
    NumberFeed* self = nullptr;
    const Gate ready;
    auto feed = number_feed(4,
                            {.batch_size = 2,
                             .workers = 1,
                             .on_error = OnError::skip,
                             .epochs = 1,
                             .on_event =
                                 [&](const stoker::Event&) {
                                     ready.wait();
                                     EXPECT_LE(self->report().failures, 1U);
                                     static_cast<void>(self->failures());
                                 }},
                            throw_on({1}, std::runtime_error{"broken"}));
    self = &feed;
    ready.open();
    EXPECT_EQ(flattened_sorted(collect(feed)), (std::vector<std::uint64_t>{0, 2, 3})) << "called with a lock held?";
}

// ---- Last batches, ranks, options -----------------------------------------------------------------------------------

TEST(PlanOptionsTest, PadGivesEveryBatchAllRows) {
    auto feed = number_feed(5, {.batch_size = 4, .workers = 1, .last_batch = LastBatch::pad});
    EXPECT_EQ(feed.length(), 2U);
    auto epoch = feed.epoch();
    ASSERT_TRUE(epoch.next());
    auto last = epoch.next();
    EXPECT_EQ(last->size(), 1U);
    EXPECT_EQ(last->info().rows(), 4U);
    EXPECT_EQ((*last)->ids.extent(0), 4U);
    EXPECT_EQ((*last)->items.rows(), 4U);
    EXPECT_TRUE(is_right(*last));
    for (std::size_t row = 1; row < 4; ++row) {
        EXPECT_EQ((*last)->ids[row], 0U);
        EXPECT_EQ((*last)->numbers[row][3], 0U) << "rows behind the valid ones are zero";
        EXPECT_EQ((*last)->items[row].size(), 0U);
    }
    last.reset();
    EXPECT_EQ(feed.next()->info().epoch(), 1U);
}

TEST(PlanOptionsTest, DropLeavesTheLastBatchOut) {
    auto feed = number_feed(5, {.batch_size = 4, .workers = 1, .last_batch = LastBatch::drop});
    EXPECT_EQ(feed.length(), 1U);
    EXPECT_EQ(collect(feed.epoch()), (Ledger{{0, 1, 2, 3}}));
    EXPECT_EQ(feed.next()->info().epoch(), 1U);
}

TEST(PlanOptionsTest, EqualRankBatchesGivesEmptyOnesWhereARankRanOut) {
    for (const std::size_t workers : {0U, 2U}) {
        for (const std::uint64_t rank : {0U, 1U, 2U}) {
            auto feed = number_feed(7, {.batch_size = 1,
                                        .workers = workers,
                                        .rank = rank,
                                        .ranks = 3,
                                        .rank_batches = stoker::RankBatches::equal});
            EXPECT_EQ(feed.length(), 3U);
            const Ledger ledger = collect(feed.epoch());
            ASSERT_EQ(ledger.size(), 3U);
            EXPECT_EQ(ledger[0], (std::vector<std::uint64_t>{rank}));
            EXPECT_EQ(ledger[2].size(), rank == 0 ? 1U : 0U);
            EXPECT_EQ(feed.state().epoch, 1U);
        }
    }
}

TEST(PlanOptionsTest, EqualRankBatchesPadsAnEmptyOne) {
    auto feed = number_feed(3, {.batch_size = 2,
                                .workers = 1,
                                .last_batch = LastBatch::pad,
                                .rank = 1,
                                .ranks = 2,
                                .split = stoker::Split::contiguous,
                                .rank_batches = stoker::RankBatches::equal});
    const auto batch = feed.next();
    EXPECT_EQ(batch->info().rows(), 2U);
}

TEST(PlanOptionsTest, EverythingThatIsWrongIsSaidAtOnce) {
    const std::string text = message_of<OptionError>([] {
        static_cast<void>(number_feed(
            0, {.batch_size = 0, .workers = 10000, .prefetch_batches = 0, .rank = 3, .ranks = 3, .leases = 0}));
    });
    EXPECT_TRUE(has_words(text, {"batch_size is 0", "workers is 10000", "1024", "prefetch_batches is 0", "rank is 3",
                                 "leases is 0", "size()"}));
    expect_no_library_threads();
}

struct PartialBatch {
    stoker::Tensor<float, 1> listed;
    stoker::Tensor<float, 2> forgotten;
    stoker::Ragged<float, 1> ragged;
    static constexpr auto fields = stoker::fields<&PartialBatch::listed>("listed");
};

TEST(PlanOptionsTest, AFieldThatIsNotListedIsRefused) {
    EXPECT_THROW(static_cast<void>(stoker::Layout<PartialBatch>{}.shape(&PartialBatch::forgotten, {4})), OptionError);
    EXPECT_THROW(static_cast<void>(stoker::Layout<PartialBatch>{}.capacity(&PartialBatch::ragged, 4)), OptionError);
}

}  // namespace
