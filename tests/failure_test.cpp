// SPDX-License-Identifier: MIT
// What becomes of samples that fail, under each policy.
#include <set>

#include <stoker/detail/failures.hpp>
#include <stoker/prefetcher.hpp>

#include "support/core_kit.hpp"

namespace {

using namespace testing_support;
using stoker::DataError;
using stoker::ErrorKind;
using stoker::OnError;
using stoker::Sample;
using stoker::SampleError;

constexpr std::size_t worker_counts[] = {0, 1, 3};

[[nodiscard]] Fails one_of(std::set<std::uint64_t> ids) {
    return [ids = std::move(ids)](std::uint64_t index) { return ids.contains(index); };
}

TEST(FailureTest, FailThrowsEachOnceInPlanOrderAndGoesOn) {
    for (const std::size_t workers : worker_counts) {
        auto feed = number_feed(10, {.batch_size = 4, .workers = workers, .epochs = 1},
                                throw_on({1, 3, 9}, std::runtime_error{"broken"}));
        EXPECT_EQ(feed.length(), 3U);
        const Account account = collect_through_errors(feed);
        EXPECT_EQ(account.ledger, (Ledger{{0, 2}, {4, 5, 6, 7}, {8}}));
        EXPECT_EQ(account.failed_ids(), (std::vector<std::uint64_t>{1, 3, 9}));
        EXPECT_EQ(account.thrown[0].before_batch, 0U);
        EXPECT_EQ(account.thrown[1].before_batch, 0U);
        EXPECT_EQ(account.thrown[2].before_batch, 2U);
        EXPECT_EQ(feed.length(), 3U);
        EXPECT_EQ(feed.report().failures, 3U);
    }
}

TEST(FailureTest, TheSameEpochIsIteratedOnBehindAnError) {
    for (const std::size_t workers : worker_counts) {
        auto feed = number_feed(10, {.batch_size = 2, .workers = workers}, throw_on({4}, std::runtime_error{"broken"}));
        auto epoch = feed.epoch();
        Ledger ledger;
        std::size_t errors = 0;
        for (int attempt = 0; attempt < 2; ++attempt) {
            try {
                for (auto&& batch : epoch) {
                    EXPECT_TRUE(is_right(batch));
                    ledger.push_back(ids_of(batch));
                }
            } catch (const SampleError&) {
                ++errors;
                EXPECT_EQ(epoch.remaining(), 3U);
            }
        }
        EXPECT_EQ(errors, 1U);
        EXPECT_EQ(ledger, (Ledger{{0, 1}, {2, 3}, {5}, {6, 7}, {8, 9}}));
    }
}

TEST(FailureTest, TheErrorHoldsItsFactsAndTheOriginal) {
    auto feed = draw_feed(10, {.batch_size = 3, .workers = 1, .order = stoker::shuffled(7)}, one_of({6}));
    try {
        for (int epoch = 0; epoch < 2; ++epoch) {
            static_cast<void>(take(feed, 4));
        }
        FAIL() << "nothing was thrown";
    } catch (const SampleError& error) {
        EXPECT_EQ(error.index(), 6U);
        EXPECT_EQ(error.epoch(), 0U);
        EXPECT_EQ(error.batch(), error.position() / 3);
        EXPECT_EQ(error.kind(), ErrorKind::damaged);
        EXPECT_EQ(error.path(), "draw/6.bin");
        EXPECT_EQ(error.bytes(), 7U);
        EXPECT_TRUE(has_words(
            error.what(), {"cannot load \"draw/6.bin\"", "sample 6", "epoch 0", "a planted fault", "OnError::skip"}));
        try {
            std::rethrow_if_nested(error);
            FAIL() << "the original is not nested";
        } catch (const DataError& original) {
            EXPECT_STREQ(original.what(), "a planted fault");
        }
    }
}

template <class E>
void expect_nested(E exception, const std::string& word) {
    auto feed = number_feed(2, {.batch_size = 2, .workers = 1}, throw_on({1}, exception));
    try {
        static_cast<void>(feed.next());
        FAIL() << "nothing was thrown";
    } catch (const SampleError& error) {
        EXPECT_EQ(error.index(), 1U);
        EXPECT_EQ(error.kind(), ErrorKind::other);
        EXPECT_EQ(error.path(), "number/1");
        EXPECT_TRUE(has_words(error.what(), {word, "number/1"}));
        EXPECT_THROW(std::rethrow_if_nested(error), E);
    }
    EXPECT_EQ(ids_of(*feed.next()), (std::vector<std::uint64_t>{0}));
}

TEST(FailureTest, AnyTypeOfExceptionArrivesNested) {
    struct Nothing {};
    expect_nested(std::logic_error{"a logic error"}, "a logic error");
    expect_nested(std::bad_alloc{}, "bad_alloc");
    expect_nested(42, "no std::exception");
    expect_nested(std::string{"text"}, "no std::exception");
    expect_nested(Nothing{}, "no std::exception");
    expect_nested(stoker::OptionError{"an error of the library's own"}, "of the library's own");
}

TEST(FailureTest, ThePathOfTheReaderWinsOverDescribe) {
    auto feed = number_feed(1, {.workers = 1},
                            throw_on({0}, DataError{ErrorKind::io, "no such file", "real/path", std::uint64_t{12}}));
    try {
        static_cast<void>(feed.next());
        FAIL() << "nothing was thrown";
    } catch (const SampleError& error) {
        EXPECT_EQ(error.path(), "real/path");
        EXPECT_EQ(error.bytes(), 12U);
    }
}

TEST(FailureTest, ASourceWithoutDescribeIsNamedByNumber) {
    NumberFeed feed{
        stoker::samples<NumberBatch>(1, number_layout(), [](auto, Sample&) { throw std::runtime_error{"broken"}; }),
        {.workers = 1}};
    const std::string text = message_of<SampleError>([&] { static_cast<void>(feed.next()); });
    EXPECT_TRUE(has_words(text, {"cannot load sample 0 for batch 0"}));
}

TEST(FailureTest, SkipLeavesThemOutAndListsThem) {
    for (const std::size_t workers : worker_counts) {
        auto feed = draw_feed(10, {.batch_size = 3, .workers = workers, .on_error = OnError::skip, .epochs = 2},
                              one_of({0, 4, 5, 6, 7, 8}));
        EXPECT_EQ(feed.length(), 4U);
        Ledger ledger;
        std::vector<std::size_t> failed;
        for (auto&& batch : feed) {
            ledger.push_back(ids_of(batch));
            failed.push_back(batch.info().failures().size());
            EXPECT_EQ(batch->ids.extent(0), batch.size());
            for (const stoker::Failure& failure : batch.info().failures()) {
                EXPECT_EQ(failure.epoch, batch.info().epoch());
                EXPECT_EQ(failure.batch, batch.info().batch());
                EXPECT_EQ(failure.position, failure.index);
                EXPECT_EQ(failure.path, "draw/" + std::to_string(failure.index) + ".bin");
                EXPECT_EQ(failure.kind, ErrorKind::damaged);
                EXPECT_EQ(failure.replaced_by, std::nullopt);
            }
        }
        EXPECT_EQ(ledger, (Ledger{{1, 2}, {3}, {}, {9}, {1, 2}, {3}, {}, {9}}))
            << "a batch with none left is still delivered";
        EXPECT_EQ(failed, (std::vector<std::size_t>{1, 2, 3, 0, 1, 2, 3, 0}));
        const stoker::Report report = feed.report();
        EXPECT_EQ(report.failures, 12U);
        EXPECT_EQ(report.skipped, 12U);
        EXPECT_EQ(report.substituted, 0U);
        EXPECT_EQ(report.samples, 8U);
        EXPECT_EQ(report.batches, 8U);
        EXPECT_EQ(feed.failures().size(), 12U);
    }
}

TEST(FailureTest, TheRingHoldsNothingOfFailedRows) {
    // Rows that survive move up whole, and the rows behind them are zero: with padding they can be seen.
    auto feed =
        number_feed(4, {.batch_size = 4, .workers = 2, .last_batch = stoker::LastBatch::pad, .on_error = OnError::skip},
                    throw_on({0, 2}, std::runtime_error{"broken"}));
    for (int i = 0; i < 4; ++i) {
        const auto batch = feed.next();
        EXPECT_EQ(ids_of(*batch), (std::vector<std::uint64_t>{1, 3}));
        EXPECT_TRUE(is_right(*batch));
        EXPECT_EQ(batch->info().rows(), 4U);
        for (std::size_t row = 2; row < 4; ++row) {
            EXPECT_EQ((*batch)->ids[row], 0U);
            EXPECT_EQ((*batch)->numbers[row][0], 0U);
            EXPECT_EQ((*batch)->items[row].size(), 0U);
        }
    }
}

TEST(FailureTest, SubstituteIsAFunctionOfThePlanAlone) {
    const Fails fails = [](std::uint64_t index) { return index % 3 == 0; };
    History expected;
    for (const std::size_t workers : worker_counts) {
        auto feed = draw_feed(30,
                              {.batch_size = 4,
                               .workers = workers,
                               .prefetch_batches = 1 + workers,
                               .order = stoker::shuffled(11),
                               .on_error = OnError::substitute,
                               .epochs = 2},
                              fails);
        const History run = record_run(feed);
        if (expected.empty()) {
            expected = run;
        }
        EXPECT_EQ(run, expected);
        for (const Delivered& batch : run) {
            EXPECT_EQ(batch.ids.size(), batch.batch == 7 ? 2U : 4U);
            for (const std::uint64_t id : batch.ids) {
                EXPECT_NE(id % 3, 0U);
            }
        }
        EXPECT_EQ(feed.report().failures, 20U);
        EXPECT_EQ(feed.report().substituted, 20U);
        EXPECT_EQ(feed.report().skipped, 0U);
    }
}

TEST(FailureTest, SubstitutesDrawFromTheWholeSubsetAndAreListed) {
    auto feed = draw_feed(100,
                          {.batch_size = 2,
                           .workers = 2,
                           .order = stoker::sequential(3).subset({10, 20, 30, 40}),
                           .on_error = OnError::substitute,
                           .epochs = 50},
                          one_of({10}));
    std::set<std::uint64_t> replacements;
    for (auto&& batch : feed) {
        for (const stoker::Failure& failure : batch.info().failures()) {
            EXPECT_EQ(failure.index, 10U);
            ASSERT_TRUE(failure.replaced_by);
            EXPECT_EQ(batch.info().sample_ids()[0], *failure.replaced_by);
            EXPECT_EQ(batch->ids[0], *failure.replaced_by);
            replacements.insert(*failure.replaced_by);
        }
    }
    EXPECT_EQ(replacements, (std::set<std::uint64_t>{20, 30, 40}));
}

TEST(FailureTest, EightSubstitutesAreTriedThenTheSampleIsSkipped) {
    for (const std::size_t workers : worker_counts) {
        const SampleCounter counter;
        auto feed = number_feed(5, {.batch_size = 5, .workers = workers, .on_error = OnError::substitute, .epochs = 1},
                                all_of({counter.hook(), [](Sample&) { throw std::runtime_error{"all broken"}; }}));
        const auto batch = feed.next();
        ASSERT_TRUE(batch);
        EXPECT_EQ(batch->size(), 0U);
        EXPECT_EQ(counter.total(), 5U * (1 + 8));
        ASSERT_EQ(batch->info().failures().size(), 5U);
        for (std::uint64_t i = 0; i < 5; ++i) {
            EXPECT_EQ(batch->info().failures()[static_cast<std::size_t>(i)].index, i) << "the first sample is named";
        }
        EXPECT_EQ(feed.report().skipped, 5U);
        EXPECT_EQ(feed.report().substituted, 0U);
    }
}

TEST(FailureTest, ASubstituteStartsFromACleanRow) {
    // The failed attempt has written items; the substitute writes none.
    NumberFeed feed{stoker::samples<NumberBatch>(2, number_layout(),
                                                 [](stoker::Row<NumberBatch> row, Sample& sample) {
                                                     row[&NumberBatch::ids] = sample.index();
                                                     if (sample.index() == 0) {
                                                         static_cast<void>(row[&NumberBatch::items].resize(5));
                                                         throw std::runtime_error{"broken"};
                                                     }
                                                 }),
                    {.batch_size = 2, .workers = 1, .on_error = OnError::substitute}};
    const auto batch = feed.next();
    ASSERT_EQ(ids_of(*batch), (std::vector<std::uint64_t>{1, 1}));
    EXPECT_EQ((*batch)->items[0].size(), 0U);
    EXPECT_EQ((*batch)->items[1].size(), 0U);
}

TEST(FailureTest, RaggedCapacityFailsRowsByTheirSizesAlone) {
    // 10 items in all; rows of 6, 6 and 3 items: the second has no room, and so has no later row with items.
    for (const std::uint64_t last : {0U, 1U, 2U, 3U}) {
        const SampleLatch latch{last};
        const SampleCounter counter;
        constexpr std::size_t sizes[] = {6, 6, 3, 0};
        NumberFeed feed{
            stoker::samples<NumberBatch>(
                4, number_layout(10),
                [&, hold = latch.hook(), count = counter.hook()](stoker::Row<NumberBatch> row, Sample& sample) {
                    hold(sample);
                    row[&NumberBatch::ids] = sample.index();
                    auto items = row[&NumberBatch::items].resize(sizes[sample.index()]);
                    for (auto& item : items) {
                        item = static_cast<std::uint32_t>(sample.index());
                    }
                    count(sample);
                }),
            {.batch_size = 4, .workers = 2, .prefetch_batches = 1, .on_error = OnError::skip}};
        counter.wait_for(3);
        latch.open();
        const auto batch = feed.next();
        EXPECT_EQ(ids_of(*batch), (std::vector<std::uint64_t>{0, 3})) << "with row " << last << " last";
        EXPECT_EQ((*batch)->items[0].size(), 6U);
        EXPECT_EQ((*batch)->items[0][5], 0U);
        ASSERT_EQ(batch->info().failures().size(), 2U);
        EXPECT_EQ(batch->info().failures()[0].kind, ErrorKind::capacity);
        EXPECT_EQ(batch->info().failures()[0].index, 1U);
        EXPECT_TRUE(has_words(batch->info().failures()[0].message, {"items", "at most 10", "this sample has 6"}));
    }
}

TEST(FailureTest, ARowLargerThanItsWholeFieldFailsByItself) {
    NumberFeed feed{stoker::samples<NumberBatch>(
                        3, number_layout(4),
                        [](stoker::Row<NumberBatch> row, Sample& sample) {
                            row[&NumberBatch::ids] = sample.index();
                            for (auto& item : row[&NumberBatch::items].resize(sample.index() == 1 ? 5 : 2)) {
                                item = 1;
                            }
                        }),
                    {.batch_size = 3, .workers = 1}};
    try {
        static_cast<void>(feed.next());
        FAIL() << "nothing was thrown";
    } catch (const SampleError& error) {
        EXPECT_EQ(error.index(), 1U);
        EXPECT_EQ(error.kind(), ErrorKind::capacity);
        EXPECT_TRUE(has_words(error.what(), {"\"items\"", "at most 4", "5"}));
    }
    EXPECT_EQ(ids_of(*feed.next()), (std::vector<std::uint64_t>{0, 2}));
}

TEST(FailureTest, TheLastThousandAreKept) {
    auto feed = draw_feed(1500, {.batch_size = 10, .workers = 2, .on_error = OnError::skip, .epochs = 1},
                          [](std::uint64_t index) { return index != 3; });
    EXPECT_EQ(flattened(collect(feed)), (std::vector<std::uint64_t>{3}));
    EXPECT_EQ(feed.report().failures, 1499U);
    const auto kept = feed.failures();
    ASSERT_EQ(kept.size(), 1000U);
    // Two batches may be put in their final form at once, so neighbours in time may be swapped, but not far.
    EXPECT_NEAR(static_cast<double>(kept.front().index), 500.0, 40.0);
    EXPECT_NEAR(static_cast<double>(kept.back().index), 1499.0, 40.0);
}

TEST(FailureTest, TheLogKeepsTheLastOnesOldestFirst) {
    stoker::detail::FailureLog log;
    EXPECT_TRUE(log.list().empty());
    for (std::uint64_t i = 0; i < 2500; ++i) {
        stoker::Failure failure;
        failure.index = i;
        failure.replaced_by = i % 2 == 0 ? std::optional{i} : std::nullopt;
        log.add(failure, i % 2);
        const auto list = log.list();
        if (i % 500 == 0 || i == 2499) {
            ASSERT_EQ(list.size(), std::min<std::uint64_t>(i + 1, 1000));
            EXPECT_EQ(list.back().index, i);
            EXPECT_EQ(list.front().index, i + 1 - list.size());
        }
    }
    EXPECT_EQ(log.count(), 2500U);
    EXPECT_EQ(log.skipped(), 1250U);
    EXPECT_EQ(log.substituted(), 1250U);
}

TEST(FailureTest, LengthIsExactUnderEveryPolicy) {
    for (const OnError policy : {OnError::fail, OnError::skip, OnError::substitute}) {
        auto feed = draw_feed(23, {.batch_size = 4, .workers = 2, .on_error = policy},
                              [](std::uint64_t index) { return index >= 4 && index < 13; });
        for (int number = 0; number < 3; ++number) {
            const std::uint64_t length = *feed.length();
            auto epoch = feed.epoch();
            EXPECT_EQ(collect_through_errors(epoch).ledger.size(), length);
        }
    }
}

TEST(FailureTest, AnErrorIsNotToldTwiceByLaterCallsOfTheSameKind) {
    auto feed = number_feed(4, {.batch_size = 4, .workers = 1}, throw_on({0, 1}, std::runtime_error{"broken"}));
    feed.wait_full();
    EXPECT_THROW(static_cast<void>(feed.try_next()), SampleError);
    EXPECT_THROW(static_cast<void>(feed.next_for(hang_limit())), SampleError);
    EXPECT_EQ(ids_of(*feed.next()), (std::vector<std::uint64_t>{2, 3}));
}

TEST(FailureTest, SeveralConsumersGetEachErrorOnce) {
    auto feed = draw_feed(200, {.batch_size = 2, .workers = 2, .leases = 3, .epochs = 1},
                          [](std::uint64_t index) { return index % 5 == 0; });
    std::atomic<std::size_t> errors{0}, samples{0};  // publish nothing
    {
        std::vector<std::jthread> consumers;
        for (int i = 0; i < 3; ++i) {
            consumers.emplace_back([&] {
                const Account account = collect_through_errors(feed);
                errors += account.thrown.size();
                samples += flattened_sorted(account.ledger).size();
            });
        }
    }
    EXPECT_EQ(errors, 40U);
    EXPECT_EQ(samples, 160U);
}

}  // namespace
