// SPDX-License-Identifier: MIT
#include <stoker/order.hpp>

#include <cstdint>
#include <cstdlib>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include <stoker/plan.hpp>

namespace {

using stoker::Order;
using stoker::Plan;
using stoker::sequential;
using stoker::shuffled;

using Ids = std::vector<std::uint64_t>;

/// What one rank is given in an epoch of `samples`, in order.
Ids delivered(const Order& order, std::uint64_t samples, std::uint64_t epoch, std::uint64_t rank = 0,
              std::uint64_t ranks = 1) {
    const Plan plan{{.order = order, .samples = samples, .batch_size = 4, .rank = rank, .ranks = ranks}};
    const stoker::EpochPlan part = plan.epoch(epoch);
    Ids ids;
    for (std::uint64_t k = 0; k < part.batches(); ++k) {
        for (std::uint64_t row = 0; row < part.batch_rows(k); ++row) {
            ids.push_back(part.index(part.position(k, row)));
        }
    }
    return ids;
}

Ids counted(std::uint64_t n) {
    Ids ids(n);
    for (std::uint64_t i = 0; i < n; ++i) {
        ids[i] = i;
    }
    return ids;
}

TEST(OrderTest, SequentialIsTheSourcesOrderInEveryEpoch) {
    EXPECT_EQ(delivered(sequential(), 22, 0), counted(22));
    EXPECT_EQ(delivered(sequential(9), 22, 3), counted(22));
}

TEST(OrderTest, TellsWhatItIs) {
    EXPECT_EQ(sequential().seed(), 0u);
    EXPECT_FALSE(sequential().is_shuffled());
    EXPECT_FALSE(sequential().is_same_every_epoch());
    EXPECT_EQ(sequential().subset_ids(), nullptr);
    EXPECT_EQ(sequential().subset_hash(), 0u);
    const Order order = shuffled(7).same_every_epoch().subset({3, 1});
    EXPECT_EQ(order.seed(), 7u);
    EXPECT_TRUE(order.is_shuffled());
    EXPECT_TRUE(order.is_same_every_epoch());
    ASSERT_NE(order.subset_ids(), nullptr);
    EXPECT_EQ(*order.subset_ids(), (Ids{3, 1}));
}

TEST(OrderTest, ChangesAreMadeToACopy) {
    const Order order = shuffled(7);
    static_cast<void>(order.same_every_epoch());
    static_cast<void>(order.subset({1}));
    EXPECT_FALSE(order.is_same_every_epoch());
    EXPECT_EQ(order.subset_ids(), nullptr);
}

TEST(OrderTest, CopiesShareTheSubset) {
    const Order order = sequential().subset({5, 9, 2});
    const Order copy = order;
    EXPECT_EQ(copy.subset_ids(), order.subset_ids());
    EXPECT_EQ(*order.subset({4}).subset_ids(), (Ids{4}));  // a later subset replaces an earlier one
}

TEST(OrderTest, SubsetHashKnowsIdsOrderAndCount) {
    std::set<std::uint64_t> hashes;
    for (const Ids& ids : {Ids{}, Ids{0}, Ids{0, 0}, Ids{1}, Ids{1, 2}, Ids{2, 1}, Ids{1, 2, 0}, Ids{1ull << 63}}) {
        hashes.insert(sequential().subset(ids).subset_hash());
    }
    EXPECT_EQ(hashes.size(), 8u);
    EXPECT_FALSE(hashes.contains(0));
    EXPECT_EQ(sequential().subset({1, 2}).subset_hash(), shuffled(5).subset({1, 2}).subset_hash());
}

// B063: every epoch has an order of its own without anybody telling the epoch; the ranks are disjoint and cover all.
TEST(OrderTest, EveryEpochHasItsOwnOrder) {
    std::set<Ids> orders;
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
        orders.insert(delivered(shuffled(1), 22, epoch));
        std::multiset<std::uint64_t> both;
        for (std::uint64_t rank = 0; rank < 2; ++rank) {
            const Ids ids = delivered(shuffled(1), 22, epoch, rank, 2);
            both.insert(ids.begin(), ids.end());
        }
        const Ids all = counted(22);
        EXPECT_EQ(both, std::multiset<std::uint64_t>(all.begin(), all.end()));
    }
    EXPECT_EQ(orders.size(), 3u);
}

// B064: the seed changes the order of every epoch, and nothing else does; ranks of one seed stay disjoint.
TEST(OrderTest, TheSeedDecides) {
    for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
        EXPECT_NE(delivered(shuffled(1), 100, epoch), delivered(shuffled(2), 100, epoch));
        EXPECT_EQ(delivered(shuffled(1), 100, epoch), delivered(shuffled(1), 100, epoch));
        std::set<std::uint64_t> seen;
        for (std::uint64_t rank = 0; rank < 3; ++rank) {
            for (const std::uint64_t id : delivered(shuffled(2), 100, epoch, rank, 3)) {
                EXPECT_TRUE(seen.insert(id).second);
            }
        }
        EXPECT_EQ(seen.size(), 100u);
    }
}

// B065: class-sorted data is mixed over its whole length, in the first epoch already.
TEST(OrderTest, AShuffleMixesClassSortedData) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
        const Ids ids = delivered(shuffled(seed), 1000, 0);
        ASSERT_EQ(ids.size(), 1000u);
        EXPECT_NE(ids, counted(1000));
        double distance = 0;
        std::vector<int> classes(10);
        for (std::size_t i = 0; i < ids.size(); ++i) {
            distance += std::abs(static_cast<double>(i) - static_cast<double>(ids[i]));
            if (i < 100) {
                ++classes[ids[i] / 100];
            }
        }
        EXPECT_GE(distance / 1000, 290) << seed;
        EXPECT_LE(distance / 1000, 377) << seed;
        for (const int count : classes) {
            EXPECT_GE(count, 1) << seed;
            EXPECT_LE(count, 25) << seed;
        }
    }
}

TEST(OrderTest, SameEveryEpochRepeatsEpochZero) {
    const Ids first = delivered(shuffled(3), 50, 0);
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
        EXPECT_EQ(delivered(shuffled(3).same_every_epoch(), 50, epoch), first);
    }
    EXPECT_NE(delivered(shuffled(3), 50, 1), first);
}

TEST(OrderTest, ARepeatedIdIsVisitedAsOftenAsListed) {
    const Ids ids = delivered(shuffled(3).subset({4, 4, 7, 4, 1}), 10, 0);
    EXPECT_EQ(std::multiset<std::uint64_t>(ids.begin(), ids.end()), (std::multiset<std::uint64_t>{1, 4, 4, 4, 7}));
}

}  // namespace
