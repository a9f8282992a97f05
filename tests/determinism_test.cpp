// SPDX-License-Identifier: MIT
// The same bytes for any number of workers and any depth, and random draws that depend on the plan alone.
#include <array>
#include <cmath>
#include <cstdlib>
#include <random>
#include <set>

#include <stoker/prefetcher.hpp>

#include "support/core_kit.hpp"

namespace {

using namespace testing_support;
using stoker::LastBatch;
using stoker::OnError;
using stoker::PrefetcherOptions;
using stoker::Sample;

TEST(DeterminismTest, WorkersDepthAndLeasesDoNotChangeAByte) {
    const Fails fails = [](std::uint64_t index) { return index % 9 == 4; };
    const Fails finish_fails = [](std::uint64_t batch) { return batch == 3; };
    for (const OnError policy : {OnError::fail, OnError::skip, OnError::substitute}) {
        History expected;
        for (const std::size_t workers : {0U, 1U, 2U, 4U, 8U}) {
            for (const std::size_t depth : {1U, 2U, 5U}) {
                auto feed = finished_draw_feed(50,
                                               {.batch_size = 6,
                                                .workers = workers,
                                                .prefetch_batches = depth,
                                                .order = stoker::shuffled(21),
                                                .last_batch = LastBatch::pad,
                                                .leases = 1 + depth % 3,
                                                .on_error = policy,
                                                .epochs = 3},
                                               fails, finish_fails);
                const History run = record_run(feed);
                if (expected.empty()) {
                    expected = run;
                }
                ASSERT_EQ(run, expected) << workers << " workers, depth " << depth;
            }
        }
    }
}

TEST(DeterminismTest, AByteBudgetDoesNotChangeAByte) {
    const PrefetcherOptions options{.batch_size = 6, .workers = 3, .prefetch_batches = 8, .epochs = 2};
    auto wide = draw_feed(50, options);
    PrefetcherOptions narrow = options;
    narrow.max_bytes = NumberFeed::planned_bytes(NumberSource{50}, {.batch_size = 6, .prefetch_batches = 1}).total();
    auto tight = draw_feed(50, narrow);
    EXPECT_EQ(tight.options().prefetch_batches, 1U);
    EXPECT_EQ(record_run(tight), record_run(wide));
}

TEST(DeterminismTest, UnorderedDeliveryDeliversTheSameBatches) {
    const PrefetcherOptions options{.batch_size = 3, .workers = 4, .prefetch_batches = 6, .order = stoker::shuffled(2)};
    PrefetcherOptions unordered = options;
    unordered.delivery = stoker::Delivery::unordered;
    auto a = draw_feed(50, options);
    auto b = draw_feed(50, unordered);
    for (std::uint64_t number = 0; number < 3; ++number) {
        std::vector<std::string> left, right;
        for (auto&& batch : a.epoch()) {
            left.push_back(record(batch, false).bytes);
        }
        for (auto&& batch : b.epoch()) {
            EXPECT_EQ(batch.info().epoch(), number);
            right.push_back(record(batch, false).bytes);
        }
        std::sort(left.begin(), left.end());
        std::sort(right.begin(), right.end());
        EXPECT_EQ(left, right);
    }
}

TEST(DeterminismTest, AnyNumberOfRanksSharesTheSamePlan) {
    // Sample by sample, the draws of an epoch are those of its global positions, whoever has them.
    const auto draws_of = [](std::uint64_t ranks) {
        std::vector<std::pair<std::uint64_t, std::string>> rows;
        for (std::uint64_t rank = 0; rank < ranks; ++rank) {
            auto feed =
                draw_feed(23, {.workers = 2, .order = stoker::shuffled(4), .rank = rank, .ranks = ranks, .epochs = 1});
            for (auto&& batch : feed) {
                rows.emplace_back(batch.info().position(), record(batch).bytes);
            }
        }
        std::sort(rows.begin(), rows.end());
        return rows;
    };
    const auto alone = draws_of(1);
    EXPECT_EQ(alone.size(), 23U);
    EXPECT_EQ(draws_of(2), alone);
    EXPECT_EQ(draws_of(5), alone);
}

// ---- Rows of acceptance.md ------------------------------------------------------------------------------------------

TEST(AcceptanceTest, B059EverySampleHasDrawsOfItsOwn) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
        std::mutex mutex;
        std::set<std::uint64_t> draws;
        auto feed = colour_feed(64, {.batch_size = 4, .workers = 8, .order = stoker::shuffled(seed), .epochs = 1},
                                [&](Sample& sample) {
                                    const std::uint64_t draw = sample.random().bits();
                                    const std::lock_guard lock{mutex};
                                    draws.insert(draw);
                                });
        EXPECT_EQ(collect(feed).size(), 16U);
        EXPECT_EQ(draws.size(), 64U);
    }
}

TEST(AcceptanceTest, B062TheProgramsOwnGeneratorsAreNotTouched) {
    const auto draw = [](bool with_loader) {
        std::srand(1);
        std::mt19937 generator{1};
        if (with_loader) {
            auto feed = draw_feed(64, {.batch_size = 4, .workers = 0, .order = stoker::shuffled(3), .epochs = 1});
            EXPECT_EQ(collect(feed).size(), 16U);
            auto threaded = draw_feed(64, {.batch_size = 4, .workers = 3, .order = stoker::shuffled(3), .epochs = 1});
            EXPECT_EQ(collect(threaded).size(), 16U);
        }
        std::vector<std::uint64_t> numbers;
        for (int i = 0; i < 10; ++i) {
            numbers.push_back(static_cast<std::uint64_t>(std::rand()));  // NOLINT(cert-msc50-cpp): that is the point
            numbers.push_back(generator());
        }
        return numbers;
    };
    EXPECT_EQ(draw(true), draw(false));
}

TEST(AcceptanceTest, B063EveryEpochHasItsOwnOrderWithoutBeingTold) {
    std::vector<stoker::Prefetcher<stoker::ImageBatch>> ranks;
    for (std::uint64_t rank = 0; rank < 2; ++rank) {
        ranks.push_back(
            colour_feed(22, {.batch_size = 4, .workers = 2, .order = stoker::shuffled(1), .rank = rank, .ranks = 2}));
    }
    std::set<std::vector<std::uint64_t>> orders;
    for (int number = 0; number < 3; ++number) {
        std::vector<std::uint64_t> both;
        for (auto& rank : ranks) {
            const auto ids = flattened(collect_identities(rank.epoch()));
            both.insert(both.end(), ids.begin(), ids.end());
        }
        orders.insert(both);
        std::sort(both.begin(), both.end());
        EXPECT_EQ(both, numbers_below(22)) << "disjoint, and all of them";
    }
    EXPECT_EQ(orders.size(), 3U);
}

TEST(AcceptanceTest, B064TheSeedChangesTheOrder) {
    const auto orders = [](std::uint64_t seed) {
        auto feed = colour_feed(100, {.batch_size = 10, .workers = 2, .order = stoker::shuffled(seed)});
        std::vector<std::vector<std::uint64_t>> both;
        both.push_back(flattened(collect(feed.epoch())));
        both.push_back(flattened(collect(feed.epoch())));
        return both;
    };
    const auto one = orders(1);
    const auto two = orders(2);
    EXPECT_NE(one[0], two[0]);
    EXPECT_NE(one[1], two[1]);
    EXPECT_NE(one[0], one[1]);
    EXPECT_EQ(one, orders(1));
    std::vector<std::uint64_t> all;
    for (std::uint64_t rank = 0; rank < 3; ++rank) {
        auto feed =
            colour_feed(100, {.batch_size = 10, .workers = 1, .order = stoker::shuffled(2), .rank = rank, .ranks = 3});
        const auto ids = flattened(collect(feed.epoch()));
        all.insert(all.end(), ids.begin(), ids.end());
    }
    std::sort(all.begin(), all.end());
    EXPECT_EQ(all, numbers_below(100)) << "the shards of one seed are disjoint";
}

TEST(AcceptanceTest, B065TheFirstEpochIsShuffledFarAndWide) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
        auto feed = number_feed(1000, {.batch_size = 100, .workers = 1, .order = stoker::shuffled(seed), .epochs = 1});
        const auto ids = flattened(collect(feed));
        EXPECT_NE(ids, numbers_below(1000));
        double sum = 0.0;
        std::array<int, 10> classes{};
        for (std::size_t i = 0; i < ids.size(); ++i) {
            sum += std::abs(static_cast<double>(i) - static_cast<double>(ids[i]));
            if (i < 100) {
                ++classes[static_cast<std::size_t>(ids[i] / 100)];
            }
        }
        EXPECT_GE(sum / 1000, 290.0);
        EXPECT_LE(sum / 1000, 377.0);
        for (const int count : classes) {
            EXPECT_GE(count, 1);
            EXPECT_LE(count, 25);
        }
    }
}

TEST(AcceptanceTest, B019DrawsWorkWithEveryOptionAtItsDefault) {
    const auto run = [] {
        auto feed = draw_feed(12);
        return record_run(feed, 24);
    };
    EXPECT_EQ(run(), run()) << "the default seed is 0";
}

}  // namespace
