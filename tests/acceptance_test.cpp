// SPDX-License-Identifier: MIT
// Rows of acceptance.md about the core: shutdown, concurrency, memory, lengths and shards, start-up. The rows of resume
// and of random draws stand in resume_test.cpp and determinism_test.cpp, those of the CPU count in cpu_test.cpp.
#include <sys/resource.h>

#include <array>
#include <fstream>
#include <iterator>
#include <set>

#include <stoker/data/read_file.hpp>
#include <stoker/prefetcher.hpp>

#include "support/core_kit.hpp"

namespace {

using namespace testing_support;
using namespace std::chrono_literals;
using stoker::LastBatch;
using stoker::OnError;
using stoker::OptionError;
using stoker::Poll;
using stoker::PrefetcherOptions;
using stoker::Sample;
using stoker::SampleError;
using stoker::Split;

// ---- 1. Shutdown and lifetime ---------------------------------------------------------------------------------------

TEST(AcceptanceTest, B002ExitWaitsForNoTimeOutOfAnyWorker) {
    // Asleep, with a full queue: nothing but the destructor's own call can wake the workers.
    for (const std::size_t workers : {1U, 16U}) {
        const Watchdog watchdog;
        auto feed = colour_feed(256, {.batch_size = 4, .workers = workers});
        feed.wait_full();
    }
    expect_no_library_threads();
}

TEST(AcceptanceRaceTest, B003EveryEpochEndsOnce) {
    const Watchdog watchdog{std::chrono::seconds{120}};
    for (std::size_t run = 0; run < repeats(); ++run) {
        auto feed = colour_feed(5, {.batch_size = 2, .workers = 7});
        for (std::uint64_t number = 0; number < 10; ++number) {
            auto epoch = feed.epoch();
            EXPECT_EQ(epoch.number(), number);
            ASSERT_EQ(sizes_of(collect_identities(epoch)), (std::vector<std::size_t>{2, 2, 1}));
            ASSERT_FALSE(epoch.next());
            ASSERT_EQ(epoch.try_next().status, Poll::end);
        }
    }
}

TEST(AcceptanceTest, B004AStuckSampleIsNamedAndDoesNotStopTheShutdown) {
    const Watchdog watchdog;
    const SampleLatch latch{3};
    {
        auto feed = colour_feed(16, {.batch_size = 4, .workers = 1}, latch.hook());
        latch.wait_until_reached();
        try {
            static_cast<void>(feed.next_for(200ms));
            ADD_FAILURE() << "no time-out";
        } catch (const stoker::TimeoutError& error) {
            EXPECT_EQ(error.index(), 3U);
            EXPECT_EQ(error.path(), "id/3.png");
            EXPECT_TRUE(has_words(error.what(), {"sample 3", "id/3.png"}));
        }
        feed.stop();
        EXPECT_FALSE(feed.next());
        latch.open();
    }
    expect_no_library_threads();
}

TEST(AcceptanceRaceTest, B007AnErrorWhileStoppingIsCountedAndEndsNothing) {
    for (std::size_t run = 0; run < repeats(); ++run) {
        const Arrivals begun;
        const auto throw_when_stopped = [&](Sample& sample) {
            begun.arrive();
            const Gate never;
            if (!never.wait(sample.stop_token())) {
                throw std::runtime_error{"the decoder was interrupted"};
            }
        };
        {
            auto feed = colour_feed(64, {.batch_size = 4, .workers = 3}, throw_when_stopped);
            begun.wait_for(3);
            feed.stop();
            EXPECT_FALSE(feed.next());
            const auto deadline = std::chrono::steady_clock::now() + hang_limit();
            while (feed.report().failures < 3 && std::chrono::steady_clock::now() < deadline) {
                std::this_thread::yield();
            }
            EXPECT_GE(feed.report().failures, 3U);
            EXPECT_GE(feed.failures().size(), 3U);
        }
    }
    {
        const SampleLatch latch{0};  // and with the destructor alone
        auto feed = colour_feed(64, {.batch_size = 4, .workers = 2}, latch.stoppable_hook());
        latch.wait_until_reached();
    }
    expect_no_library_threads();
}

TEST(AcceptanceTest, B008BeginningEpochsAgainAndAgainLeaksNothing) {
    auto feed = colour_feed(64, {.batch_size = 4, .workers = 2});
    std::size_t early = 0;
    for (int i = 1; i <= 1000; ++i) {
        {
            auto epoch = feed.epoch();
            ASSERT_TRUE(epoch.next());
        }
        if (i == 50 || i == 1000) {
            feed.wait_full();
            EXPECT_LE(library_threads().size(), 2U);
            const std::size_t live = live_heap_bytes();
            if (i == 50) {
                early = live;
            } else if (counts_allocations()) {
                EXPECT_EQ(live, early);
            }
        }
    }
}

// ---- 2. Concurrency and error transport -----------------------------------------------------------------------------

TEST(AcceptanceTest, B012TheDeathOfAProducerIsAnError) {
    const Watchdog watchdog;
    for (const std::size_t workers : {0U, 1U, 4U}) {
        auto feed = number_generator_feed(1000, {.batch_size = 2, .workers = workers}, [](Sample& sample) {
            if (sample.index() >= 6) {
                throw std::runtime_error{"the source died"};
            }
        });
        EXPECT_EQ(take(feed, 3), sequential_ledger(6, 2));
        EXPECT_TRUE(has_words(message_of<SampleError>([&] { static_cast<void>(feed.next()); }), {"the source died"}));
        auto odd = colour_feed(16, {.batch_size = 2, .workers = workers}, throw_on({6}, 7));
        EXPECT_EQ(take(odd, 3), sequential_ledger(6, 2));
        EXPECT_THROW(static_cast<void>(odd.next()), SampleError);
    }
}

TEST(AcceptanceRaceTest, B014NoMixOfThreadsDepthAndBatchSizeDeadlocks) {
    const Watchdog watchdog{std::chrono::seconds{120}};
    for (const std::size_t workers : {1U, 2U, 16U}) {
        for (const std::size_t depth : {1U, 2U, 3U}) {
            for (const std::size_t batch_size : {1U, 3U, 7U}) {
                auto feed = colour_feed(23, {.batch_size = batch_size, .workers = workers, .prefetch_batches = depth});
                ASSERT_EQ(collect_identities(feed.epoch()), sequential_ledger(23, batch_size));
            }
        }
    }
}

TEST(AcceptanceRaceTest, B015AResetAtAnyMomentLosesNothing) {
    const Watchdog watchdog{std::chrono::seconds{120}};
    const Ledger expected = sequential_ledger(16, 6);
    for (std::size_t run = 0; run < repeats(); ++run) {
        for (const int moment : {0, 1, 2}) {
            const SampleCounter counter;
            auto feed = colour_feed(16, {.batch_size = 6, .workers = 3}, counter.hook());
            const stoker::State start = feed.state();
            if (moment == 1) {
                counter.wait_for(1 + run % 12);
            } else if (moment == 2) {
                feed.wait_full();
            }
            feed.seek(start);
            ASSERT_EQ(collect_identities(feed.epoch()), expected);
            feed.seek(start);
            ASSERT_EQ(collect_identities(feed.epoch()), expected);
        }
    }
}

TEST(AcceptanceTest, B016OneResetIsEnough) {
    auto feed = colour_feed(579, {.batch_size = 64, .workers = 2});
    const stoker::State start = feed.state();
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(sizes_of(collect(feed.epoch())), (std::vector<std::size_t>{64, 64, 64, 64, 64, 64, 64, 64, 64, 3}));
        feed.seek(start);
    }
}

TEST(AcceptanceRaceTest, B017AnExceptionIsHandedOverWithoutARace) {
    for (std::size_t run = 0; run < repeats(); ++run) {
        auto feed = colour_feed(32, {.batch_size = 4, .workers = 8, .epochs = 1},
                                throw_on({10}, std::runtime_error{"exception at sample 10"}));
        const Account account = collect_through_errors(feed);
        ASSERT_EQ(account.failed_ids(), (std::vector<std::uint64_t>{10}));
        ASSERT_TRUE(has_words(account.thrown[0].message, {"exception at sample 10"}));
        ASSERT_EQ(flattened_sorted(account.ledger).size(), 31U);
    }
}

TEST(AcceptanceTest, B018NothingOfTheCallersIsKeptByReference) {
    std::optional<ColourFeed> feed;
    {
        std::vector<std::uint64_t> ids{3, 1, 2};
        auto words = std::make_unique<std::string>(100, 'x');
        PrefetcherOptions options{.batch_size = 2, .workers = 2, .order = stoker::sequential().subset(ids)};
        std::function<void(const stoker::Event&)> handler = [text = *words](const stoker::Event&) {
            EXPECT_EQ(text, std::string(100, 'x'));
        };
        options.on_event = handler;
        Hook hook = [text = *words](Sample& sample) {
            sample.warn(text);
            EXPECT_EQ(text, std::string(100, 'x'));
        };
        feed.emplace(colour_feed(10, options, hook));
        words->assign(100, 'y');
        ids.assign(3, 9);
        options = {};
        handler = {};
        hook = {};
    }
    EXPECT_EQ(collect_identities(feed->epoch()), (Ledger{{3, 1}, {2}}));
}

TEST(AcceptanceTest, B023AForkedChildIsToldAndMayMakeItsOwn) {
    auto feed = colour_feed(20, {.batch_size = 4, .workers = 2});
    const stoker::State start = feed.state();
    auto epoch = std::make_optional(feed.epoch());
    Ledger ledger = take(*epoch, 1);
    auto held = epoch->next();
    ledger.push_back(identities(*held));
    const int status = in_child([&] {
        const auto is_refused = [](const auto& action) {
            try {
                action();
            } catch (const stoker::LeaseError& error) {
                return std::string{error.what()}.find("made in another process") != std::string::npos;
            }
            return false;
        };
        bool is_right = is_refused([&] { static_cast<void>(feed.next()); }) &&
                        is_refused([&] { static_cast<void>(epoch->next()); }) &&
                        is_refused([&] { static_cast<void>(feed.epoch()); }) &&
                        is_refused([&] { static_cast<void>(feed.try_next()); }) &&
                        is_refused([&] { static_cast<void>(feed.state()); }) &&
                        is_refused([&] { static_cast<void>(feed.report()); }) &&
                        is_refused([&] { static_cast<void>(feed.failures()); }) &&
                        is_refused([&] { static_cast<void>(epoch->remaining()); }) &&
                        is_refused([&] { feed.seek(start); }) && is_refused([&] { feed.stop(); }) &&
                        is_refused([&] { feed.wait_full(); });
        held.reset();
        epoch.reset();
        { const ColourFeed gone = std::move(feed); }
        // ThreadSanitizer allows no thread in a forked child.
        auto own = colour_feed(20, {.batch_size = 4, .workers = has_thread_sanitizer ? 0U : 2U});
        is_right = is_right && collect(own.epoch()) == sequential_ledger(20, 4);
        return is_right ? 0 : 1;
    });
    EXPECT_EQ(status, 0);
    held.reset();
    for (const auto& batch : collect_identities(*epoch)) {
        ledger.push_back(batch);
    }
    EXPECT_EQ(ledger, sequential_ledger(20, 4)) << "the parent's ledger is complete";
}

TEST(AcceptanceTest, B025ASlowSampleHoldsBackAtMostTheRing) {
    const Watchdog watchdog;
    {
        const SampleLatch latch{0};
        const SampleCounter counter;
        auto feed = colour_feed(64, {.batch_size = 4, .workers = 4, .prefetch_batches = 4},
                                all_of({counter.hook(), latch.hook()}));
        counter.wait_for(16);  // the window is full while sample 0 is still being made
        EXPECT_EQ(feed.try_next().status, Poll::not_ready);
        latch.open();
        EXPECT_EQ(collect_identities(feed.epoch()), sequential_ledger(64, 4));
    }
    const SampleLatch latch{0};
    auto feed =
        colour_feed(64, {.batch_size = 4, .workers = 4, .prefetch_batches = 4, .delivery = stoker::Delivery::unordered},
                    latch.hook());
    auto epoch = feed.epoch();
    Ledger ledger = take(epoch, 15);
    EXPECT_FALSE(latch.is_reached() && ledger.size() != 15) << "the others come while sample 0 is being made";
    latch.open();
    for (const auto& batch : collect_identities(epoch)) {
        ledger.push_back(batch);
    }
    EXPECT_EQ(ledger.back(), (std::vector<std::uint64_t>{0, 1, 2, 3}));
    EXPECT_EQ(flattened_sorted(ledger), numbers_below(64));
}

TEST(AcceptanceTest, B028TwoLoadersShareNothing) {
    const PrefetcherOptions second{.batch_size = 3, .workers = 3, .order = stoker::shuffled(2), .epochs = 2};
    History expected;
    {
        auto alone = draw_feed(17, second);
        expected = record_run(alone);
    }
    std::optional<NumberFeed> a;
    a.emplace(draw_feed(30, {.batch_size = 4, .workers = 2, .order = stoker::shuffled(1)}));
    auto b = draw_feed(17, second);
    expect_library_threads(5);
    History got;
    for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(record_run(*a, 1).size(), 1U);
        for (Delivered& one : record_run(b, 1)) {
            got.push_back(std::move(one));
        }
    }
    a.reset();
    expect_library_threads(3);
    for (Delivered& one : record_run(b)) {
        got.push_back(std::move(one));
    }
    EXPECT_EQ(got, expected);
}

TEST(AcceptanceTest, B029ThreadsAreTheWorkersAndNoMore) {
    const std::size_t before = thread_names().size();
    auto feed = colour_feed(64, {.batch_size = 4, .workers = 4});
    for (int i = 0; i < 40; ++i) {
        ASSERT_TRUE(feed.next());
        EXPECT_LE(thread_names().size(), before + 4 + 2);
    }
}

// ---- 3. Device copies: the host form --------------------------------------------------------------------------------

TEST(AcceptanceTest, B042TheLastBatchComesOnceThenTheEndAgainAndAgain) {
    for (const std::size_t workers : {0U, 1U, 3U}) {
        auto feed = colour_feed(10, {.batch_size = 4, .workers = workers, .epochs = 1});
        EXPECT_EQ(sizes_of(take_identities(feed, 3)), (std::vector<std::size_t>{4, 4, 2}));
        for (int i = 0; i < 5; ++i) {
            EXPECT_FALSE(feed.next());
        }
    }
}

// ---- 4. Memory and limits -------------------------------------------------------------------------------------------

TEST(AcceptanceTest, B050AFullShuffleCostsNoMemory) {
    const auto run = [](const stoker::Order& order) {
        const std::size_t before = live_heap_bytes();
        auto feed = number_feed(1000000, {.batch_size = 8, .workers = 2, .order = order});
        for (int number = 0; number < 2; ++number) {
            auto epoch = feed.epoch();
            EXPECT_EQ(take(epoch, 10).size(), 10U);
        }
        feed.wait_full();
        return live_heap_bytes() - before;
    };
    const std::size_t plain = run(stoker::sequential());
    const std::size_t shuffled = run(stoker::shuffled(1));
    if (counts_allocations()) {
        EXPECT_LE(shuffled, plain + 4096);  // the row allows 16 MB; threads differ by a few bytes
    }
}

TEST(AcceptanceTest, B051TheQueueIsBoundedByDepthAndByBytes) {
    auto feed = colour_feed(2000, {.batch_size = 16, .workers = 2, .prefetch_batches = 3});
    feed.wait_full();
    const std::size_t slot = feed.report().slot_bytes;
    EXPECT_GE(slot, 16U * (8 * 8 * 3 + 4 + 8));
    EXPECT_EQ(feed.report().batches_ready, 3U);
    EXPECT_EQ(feed.report().bytes_ready, 3 * slot);
    EXPECT_EQ(feed.report().slots, 4U);
    auto limited =
        colour_feed(2000, {.batch_size = 16, .workers = 2, .prefetch_batches = 3, .max_bytes = 3 * slot - 1});
    limited.wait_full();
    EXPECT_EQ(limited.options().prefetch_batches, 1U);
    EXPECT_EQ(limited.report().batches_ready, 1U);
    EXPECT_EQ(limited.report().slots, 2U);
}

/// One file per sample, read in the first phase.
class FileSource {
  public:
    FileSource(std::filesystem::path folder, std::uint64_t size) : folder_{std::move(folder)}, size_{size} {}
    [[nodiscard]] std::uint64_t size() const { return size_; }
    [[nodiscard]] stoker::Layout<NumberBatch> layout() const { return number_layout(); }
    [[nodiscard]] stoker::ByteBuffer fetch(Sample& sample) const {
        stoker::ByteBuffer bytes;
        stoker::read_file(describe(sample.index()), bytes);
        return bytes;
    }
    void fill(stoker::Row<NumberBatch> row, stoker::ByteBuffer& item, Sample& sample) const {
        EXPECT_EQ(item.size(), 5U);
        write_number(row, sample.index());
    }
    [[nodiscard]] std::string describe(std::uint64_t index) const { return folder_ / std::to_string(index); }

  private:
    std::filesystem::path folder_;
    std::uint64_t size_;
};

class DescriptorLimit {
  public:
    explicit DescriptorLimit(rlim_t limit) {
        getrlimit(RLIMIT_NOFILE, &before_);
        const rlimit lower{limit, before_.rlim_max};
        setrlimit(RLIMIT_NOFILE, &lower);
    }
    DescriptorLimit(const DescriptorLimit&) = delete;
    DescriptorLimit& operator=(const DescriptorLimit&) = delete;
    ~DescriptorLimit() { setrlimit(RLIMIT_NOFILE, &before_); }

  private:
    rlimit before_{};
};

[[nodiscard]] std::size_t open_descriptors() {
    const std::filesystem::directory_iterator all{"/proc/self/fd"};
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST(AcceptanceTest, B057DescriptorsAreClosedAndTheirLackIsNamed) {
    const auto folder = std::filesystem::path{testing::TempDir()} / ("stoker_b057_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder);
    constexpr std::uint64_t size = 300;
    for (std::uint64_t i = 0; i < size; ++i) {
        std::ofstream{folder / std::to_string(i)} << "bytes";
    }
    const std::size_t before = open_descriptors();
    {
        const DescriptorLimit limit{before + 64};
        NumberFeed feed{FileSource{folder, size}, {.batch_size = 16, .workers = 8, .epochs = 2}};
        std::size_t batches = 0;
        while (feed.next()) {
            ++batches;
            EXPECT_LE(open_descriptors(), before + 8 + 20);
        }
        EXPECT_EQ(batches, 38U);
        EXPECT_EQ(feed.report().failures, 0U);
    }
    EXPECT_EQ(open_descriptors(), before);
    if (!has_address_sanitizer) {  // whose companion for undefined behaviour opens a pipe to look at an object
        NumberFeed feed{FileSource{folder, size}, {.batch_size = 16, .workers = 0, .epochs = 1}};
        const DescriptorLimit limit{3};
        try {
            static_cast<void>(feed.next());
            ADD_FAILURE() << "nothing was thrown";
        } catch (const SampleError& error) {
            EXPECT_EQ(error.kind(), stoker::ErrorKind::io);
            std::string text = error.what();
            std::transform(text.begin(), text.end(), text.begin(), [](char c) { return c == 'T' ? 't' : c; });
            EXPECT_TRUE(has_words(text, {"too many open files", folder.string()}));
        }
    }
    std::filesystem::remove_all(folder);
}

TEST(AcceptanceTest, B058WhatWasChosenCanBeRead) {
    auto feed = colour_feed(100, {.batch_size = 8, .on_error = OnError::skip, .epochs = 1},
                            throw_on({5}, std::runtime_error{"broken"}));
    ASSERT_TRUE(feed.options().workers);
    expect_library_threads(*feed.options().workers);
    feed.wait_full();
    EXPECT_EQ(feed.report().workers, *feed.options().workers);
    EXPECT_EQ(feed.report().batches_ready, feed.options().prefetch_batches);
    EXPECT_EQ(feed.report().bytes_ready, feed.options().prefetch_batches * feed.report().slot_bytes);
    EXPECT_EQ(flattened(collect(feed)).size(), 99U);
    EXPECT_EQ(feed.report().skipped, 1U);
    EXPECT_GE(feed.report().mean_wait_seconds(), 0.0);
    EXPECT_EQ(feed.report().samples, 99U);
}

// ---- 7. Bad samples -------------------------------------------------------------------------------------------------

TEST(AcceptanceTest, B100ErrorsInEveryEpochLeaveThePrefetcherUsable) {
    const Watchdog watchdog;
    for (const std::size_t workers : {0U, 4U}) {
        auto feed = colour_feed(20, {.batch_size = 4, .workers = workers}, [](Sample& sample) {
            switch (sample.index()) {
                case 2: throw stoker::DataError{stoker::ErrorKind::damaged, "cut short"};
                case 9: throw std::bad_alloc{};
                case 19: throw 19;
                default: break;
            }
        });
        for (int number = 0; number < 3; ++number) {
            auto epoch = feed.epoch();
            const Account account = collect_through_errors(epoch);
            EXPECT_EQ(account.failed_ids(), (std::vector<std::uint64_t>{2, 9, 19}));
            EXPECT_EQ(flattened_sorted(account.ledger).size(), 17U);
        }
    }
}

// ---- 9. Epoch length, last batch, sharding --------------------------------------------------------------------------

/// The batch sizes of one epoch of each rank, floor split.
[[nodiscard]] std::vector<std::vector<std::size_t>> shard_sizes(std::uint64_t size, std::uint64_t ranks,
                                                                std::size_t batch_size, int epochs) {
    std::vector<std::vector<std::size_t>> all;
    for (std::uint64_t rank = 0; rank < ranks; ++rank) {
        auto feed = colour_feed(size, {.batch_size = batch_size,
                                       .workers = 2,
                                       .order = stoker::shuffled(6),
                                       .rank = rank,
                                       .ranks = ranks,
                                       .split = Split::contiguous});
        for (int number = 0; number < epochs; ++number) {
            const std::uint64_t length = *feed.length();
            const auto sizes = sizes_of(collect(feed.epoch()));
            EXPECT_EQ(sizes.size(), length);
            if (number == 0) {
                all.push_back(sizes);
            } else {
                EXPECT_EQ(sizes, all.back()) << "the same in every epoch";
            }
        }
    }
    return all;
}

TEST(AcceptanceTest, B115NoShardGivesAnEmptyBatch) {
    EXPECT_EQ(shard_sizes(26, 4, 6, 2), (std::vector<std::vector<std::size_t>>{{6}, {6, 1}, {6}, {6, 1}}));
}

TEST(AcceptanceTest, B116LengthHoldsInEveryEpoch) {
    const auto shards = shard_sizes(1709, 6, 10, 3);
    for (std::size_t rank = 0; rank < 6; ++rank) {
        EXPECT_EQ(shards[rank].size(), 29U);
        EXPECT_EQ(std::accumulate(shards[rank].begin(), shards[rank].end(), std::size_t{0}), rank == 0 ? 284U : 285U);
    }
}

TEST(AcceptanceTest, B118WorkersShareTheDataAndDoNotRepeatIt) {
    for (const std::size_t workers : {1U, 4U}) {
        auto random_access = colour_feed(10, {.batch_size = 2, .workers = workers});
        EXPECT_EQ(collect_identities(random_access.epoch()), sequential_ledger(10, 2));
        auto stream = number_generator_feed(10, {.batch_size = 2, .workers = workers});
        EXPECT_EQ(collect(stream.epoch()), sequential_ledger(10, 2));
    }
}

TEST(AcceptanceTest, B119WorkersMakeNoTailBatchesOfTheirOwn) {
    auto feed = colour_feed(100, {.batch_size = 4, .workers = 4});
    EXPECT_EQ(sizes_of(collect(feed.epoch())), std::vector<std::size_t>(25, 4));
}

TEST(AcceptanceTest, B120AFullShuffleVisitsEachSampleOnce) {
    auto feed = number_feed(4096, {.batch_size = 64, .workers = 2, .order = stoker::shuffled(3)});
    for (int number = 0; number < 2; ++number) {
        EXPECT_EQ(flattened_sorted(collect(feed.epoch())), numbers_below(4096));
    }
}

TEST(AcceptanceTest, B121ASubsetDeliversTheListedIds) {
    const std::vector<std::uint64_t> ids{5, 9, 2, 40, 17};
    auto in_order = colour_feed(50, {.batch_size = 2, .workers = 2, .order = stoker::sequential().subset(ids)});
    EXPECT_EQ(flattened(collect_identities(in_order.epoch())), ids);
    auto mixed = colour_feed(50, {.batch_size = 2, .workers = 2, .order = stoker::shuffled(1).subset(ids)});
    EXPECT_EQ(flattened_sorted(collect_identities(mixed.epoch())), (std::vector<std::uint64_t>{2, 5, 9, 17, 40}));
    const auto shard = [&](std::uint64_t rank) {
        auto feed = colour_feed(50, {.batch_size = 2,
                                     .workers = 2,
                                     .order = stoker::sequential().subset(ids),
                                     .rank = rank,
                                     .ranks = 2,
                                     .split = Split::contiguous});
        return flattened(collect_identities(feed.epoch()));
    };
    EXPECT_EQ(shard(0), (std::vector<std::uint64_t>{5, 9}));
    EXPECT_EQ(shard(1), (std::vector<std::uint64_t>{2, 40, 17}));
}

TEST(AcceptanceTest, B122AnEpochWithoutABatchIsRefused) {
    const std::string text = message_of<OptionError>(
        [] { static_cast<void>(colour_feed(5, {.batch_size = 8, .last_batch = LastBatch::drop})); });
    EXPECT_TRUE(has_words(text, {"5 samples", "batch_size 8", "no batch"}));
    EXPECT_TRUE(has_words(message_of<OptionError>([] { static_cast<void>(colour_feed(0)); }), {"size()", "0"}));
}

TEST(AcceptanceTest, B123TheStatementBehindAnEpochRunsOncePerEpoch) {
    for (const std::size_t workers : {0U, 1U, 4U}) {
        auto feed = colour_feed(10, {.batch_size = 4, .workers = workers, .epochs = 3});
        std::string log;
        for (int number = 0; number < 3; ++number) {
            for (auto&& batch : feed.epoch()) {
                log += std::to_string(batch.info().epoch());
            }
            log += '.';
        }
        EXPECT_EQ(log, "000.111.222.");
        EXPECT_FALSE(feed.next());
    }
}

// ---- 11. API, build and start-up ------------------------------------------------------------------------------------

TEST(AcceptanceTest, B133BadOptionsAreNamedWithValueAndRange) {
    const auto text_of = [](PrefetcherOptions options) {
        return message_of<OptionError>([&] { static_cast<void>(colour_feed(10, options)); });
    };
    EXPECT_TRUE(has_words(text_of({.batch_size = 0}), {"batch_size is 0", "1 to 2147483647"}));
    EXPECT_TRUE(has_words(text_of({.workers = static_cast<std::size_t>(-1)}),
                          {"workers is 18446744073709551615", "0 (the calling thread) to 1024"}));
    EXPECT_TRUE(has_words(text_of({.workers = 10000}), {"workers is 10000", "1024"}));
    EXPECT_TRUE(has_words(text_of({.prefetch_batches = 0}), {"prefetch_batches is 0", "1 to 65536"}));
    EXPECT_TRUE(has_words(text_of({.rank = 3, .ranks = 3}), {"rank is 3", "less than ranks, which is 3"}));
    EXPECT_TRUE(has_words(text_of({.ranks = 0}), {"ranks is 0", "1 or more"}));
    EXPECT_TRUE(has_words(text_of({.leases = 0}), {"leases is 0", "1 to 65536"}));
    EXPECT_TRUE(has_words(text_of({.epochs = 0}), {"epochs is 0", "1 or more"}));
    EXPECT_TRUE(has_words(text_of({.order = stoker::sequential().subset({3, 10})}), {"subset", "10"}));
    EXPECT_TRUE(has_words(text_of({.order = stoker::sequential().subset({})}), {"subset", "empty"}));
    EXPECT_TRUE(has_words(text_of({.batch_size = 0, .prefetch_batches = 0, .ranks = 0}),
                          {"batch_size is 0", "prefetch_batches is 0", "ranks is 0"}))
        << "all at once";
    std::atomic<std::size_t> started{0};  // publishes nothing
    EXPECT_FALSE(text_of({.batch_size = 0, .workers = 4, .on_worker_start = [&](std::size_t) { ++started; }}).empty());
    EXPECT_EQ(started, 0U) << "no thread was started";
    expect_no_library_threads();
}

TEST(AcceptanceTest, B134NoWorkersIsTheSameRunOnTheCallersThread) {
    struct Result {
        Ledger ledger;
        std::vector<std::size_t> hooks;
        std::vector<std::uint64_t> made;
        bool operator==(const Result&) const = default;
    };
    const auto run = [](std::size_t workers, bool expect_here) {
        Result result;
        std::mutex mutex;
        const auto here = std::this_thread::get_id();
        auto feed = colour_feed(10,
                                {.batch_size = 4,
                                 .workers = workers,
                                 .epochs = 2,
                                 .on_worker_start =
                                     [&](std::size_t number) {
                                         const std::lock_guard lock{mutex};
                                         result.hooks.push_back(number);
                                         EXPECT_EQ(std::this_thread::get_id() == here, expect_here);
                                     }},
                                [&](Sample& sample) {
                                    const std::lock_guard lock{mutex};
                                    result.made.push_back(sample.index());
                                    EXPECT_EQ(std::this_thread::get_id() == here, expect_here);
                                });
        while (const auto batch = feed.next()) {
            result.ledger.push_back(identities(*batch));
        }
        std::sort(result.made.begin(), result.made.end());
        return result;
    };
    const Result zero = run(0, true);
    const Result one = run(1, false);
    EXPECT_EQ(zero, one);
    const Result three = run(3, false);
    EXPECT_EQ(three.ledger, one.ledger);
    EXPECT_EQ(three.made, one.made);
    expect_no_library_threads();
}

TEST(AcceptanceTest, B135AMissingShapeIsRefusedByTheFieldsName) {
    // The core's half; pictures of mixed sizes are the decoder's.
    const auto fill = [](stoker::Row<NumberBatch>, Sample&) {};
    const auto text_of = [&](const stoker::Layout<NumberBatch>& layout) {
        return message_of<OptionError>(
            [&] { static_cast<void>(NumberFeed{stoker::samples<NumberBatch>(4, layout, fill)}); });
    };
    EXPECT_TRUE(has_words(text_of(stoker::Layout<NumberBatch>{}), {"shape", "\"numbers\""}));
    EXPECT_TRUE(
        has_words(text_of(stoker::Layout<NumberBatch>{}.shape(&NumberBatch::numbers, {8})), {"capacity", "\"items\""}));
    EXPECT_TRUE(has_words(
        text_of(stoker::Layout<NumberBatch>{}.shape(&NumberBatch::numbers, {0}).capacity(&NumberBatch::items, 4)),
        {"\"numbers\"", "0"}));
}

TEST(AcceptanceTest, B136OptionsAreCopiedAndLeftAlone) {
    PrefetcherOptions options{
        .batch_size = 4, .prefetch_batches = 100, .max_bytes = std::size_t{1} << 14, .order = stoker::shuffled(3)};
    auto a = colour_feed(20, options);
    auto b = colour_feed(20, options);
    EXPECT_FALSE(options.workers) << "the object is the caller's";
    EXPECT_EQ(options.prefetch_batches, 100U);
    EXPECT_LT(a.options().prefetch_batches, 100U);
    options.batch_size = 1;
    options.order = stoker::shuffled(4);
    options.epochs = 1;
    const Ledger ledger = collect(a.epoch());
    EXPECT_EQ(sizes_of(ledger), std::vector<std::size_t>(5, 4));
    EXPECT_EQ(collect(b.epoch()), ledger);
    EXPECT_TRUE(a.next());
}

TEST(AcceptanceTest, B138ThreadsStayAndTheNextEpochIsLoadedAhead) {
    const Watchdog watchdog;
    std::mutex mutex;
    std::set<std::thread::id> threads;
    std::array<std::size_t, 6> begun{};
    std::condition_variable changed;
    auto feed = colour_feed(40, {.batch_size = 4, .workers = 2, .epochs = 5}, [&](Sample& sample) {
        const std::lock_guard lock{mutex};
        threads.insert(std::this_thread::get_id());
        ++begun[static_cast<std::size_t>(sample.epoch())];
        changed.notify_all();
    });
    for (std::size_t number = 0; number < 5; ++number) {
        auto epoch = feed.epoch();
        for (int i = 0; i < 9; ++i) {
            ASSERT_TRUE(epoch.next());
        }
        const auto last = epoch.next();
        ASSERT_TRUE(last);
        std::unique_lock lock{mutex};
        if (number + 1 < 5) {  // while the last batch is in use, two of the next epoch are loaded
            EXPECT_TRUE(changed.wait_for(lock, hang_limit(), [&] { return begun[number + 1] >= 8; }));
        }
    }
    EXPECT_LE(threads.size(), 2U);
    EXPECT_EQ(begun, (std::array<std::size_t, 6>{40, 40, 40, 40, 40, 0}));
}

TEST(AcceptanceTest, B139AllWorkersMakeTheFirstBatch) {
    const Watchdog watchdog;
    const Arrivals inside;
    std::atomic<std::uint64_t> highest{0};  // read when all eight have arrived
    auto feed = colour_feed(64, {.batch_size = 32, .workers = 8}, [&](Sample& sample) {
        if (inside.count() < 8) {
            std::uint64_t seen = highest;
            while (seen < sample.index() && !highest.compare_exchange_weak(seen, sample.index())) {
            }
            inside.arrive();
            inside.wait_for(8);  // eight samples at once, or nothing goes on
        }
    });
    inside.wait_for(8);
    EXPECT_LT(highest, 32U) << "all of the first batch";
    EXPECT_EQ(collect_identities(feed.epoch()), sequential_ledger(64, 32));
}

}  // namespace
