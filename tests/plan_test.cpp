// SPDX-License-Identifier: MIT
#include <stoker/plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace {

using stoker::EpochPlan;
using stoker::LastBatch;
using stoker::Plan;
using stoker::PlanSpec;
using stoker::Random;
using stoker::RankBatches;
using stoker::sequential;
using stoker::shuffled;
using stoker::Split;

using Ids = std::vector<std::uint64_t>;

/// The positions of every batch of a rank's epoch, from the base on.
std::vector<Ids> batches_of(const EpochPlan& plan) {
    std::vector<Ids> batches(plan.batches());
    for (std::uint64_t k = 0; k < batches.size(); ++k) {
        for (std::uint64_t row = 0; row < plan.batch_rows(k); ++row) {
            batches[k].push_back(plan.position(k, row));
        }
    }
    return batches;
}

std::vector<std::uint64_t> sizes_of(const EpochPlan& plan) {
    std::vector<std::uint64_t> sizes;
    for (const Ids& batch : batches_of(plan)) {
        sizes.push_back(batch.size());
    }
    return sizes;
}

Ids samples_of(const EpochPlan& plan) {
    Ids samples;
    for (const Ids& batch : batches_of(plan)) {
        for (const std::uint64_t position : batch) {
            samples.push_back(plan.index(position));
        }
    }
    return samples;
}

/// The plan again, written down as lists: what each rank's batches have to be.
std::vector<std::vector<Ids>> model(const PlanSpec& spec, std::uint64_t base) {
    std::vector<Ids> entries(spec.ranks);
    if (spec.split == Split::striped) {
        for (std::uint64_t p = base; p < spec.samples; ++p) {
            entries[(p - base) % spec.ranks].push_back(p);
        }
    } else {
        for (std::uint64_t r = 0; r < spec.ranks && base < spec.samples; ++r) {
            const std::uint64_t end = (r + 1) * spec.samples / spec.ranks;
            for (std::uint64_t p = r * spec.samples / spec.ranks + base / spec.ranks; p < end; ++p) {
                entries[r].push_back(p);
            }
        }
    }
    std::vector<std::vector<Ids>> batches(spec.ranks);
    std::size_t most = 0, least = ~std::size_t{0};
    for (std::uint64_t r = 0; r < spec.ranks; ++r) {
        for (std::size_t i = 0; i < entries[r].size(); ++i) {
            if (i % spec.batch_size == 0) {
                batches[r].emplace_back();
            }
            batches[r].back().push_back(entries[r][i]);
        }
        if (spec.last_batch == LastBatch::drop && !batches[r].empty() && batches[r].back().size() < spec.batch_size) {
            batches[r].pop_back();
        }
        most = std::max(most, batches[r].size());
        least = std::min(least, batches[r].size());
    }
    if (spec.rank_batches == RankBatches::equal) {
        for (std::vector<Ids>& list : batches) {
            list.resize(spec.last_batch == LastBatch::drop ? least : most);
        }
    }
    return batches;
}

/// A plan of any shape with up to 200 samples.
PlanSpec any_spec(Random& random) {
    PlanSpec spec;
    spec.order = random.chance(0.5) ? shuffled(random.bits()) : sequential();
    spec.samples = 1 + random.below(200);
    spec.batch_size = 1 + random.below(12);
    spec.ranks = 1 + random.below(9);
    spec.split = random.chance(0.5) ? Split::striped : Split::contiguous;
    spec.last_batch = static_cast<LastBatch>(random.below(3));
    spec.rank_batches = random.chance(0.5) ? RankBatches::as_they_fall : RankBatches::equal;
    return spec;
}

EpochPlan of_rank(PlanSpec spec, std::uint64_t rank, std::uint64_t epoch, std::uint64_t base) {
    spec.rank = rank;
    return Plan{spec}.epoch(epoch, base);
}

TEST(PlanTest, DefaultEpochHasNothing) {
    EXPECT_EQ(EpochPlan{}.batches(), 0u);
    EXPECT_EQ(EpochPlan{}.position_after(0), 0u);
}

TEST(PlanTest, AgreesWithTheListsForAnyShape) {
    for (std::uint64_t trial = 0; trial < 3000; ++trial) {
        Random random{1, 0, trial};
        const PlanSpec spec = any_spec(random);
        std::uint64_t base = random.chance(0.3) ? 0 : random.below(spec.samples + 1);
        if (spec.split == Split::contiguous && base != spec.samples) {
            base -= base % spec.ranks;
        }
        const std::vector<std::vector<Ids>> expected = model(spec, base);
        for (std::uint64_t rank = 0; rank < spec.ranks; ++rank) {
            ASSERT_EQ(batches_of(of_rank(spec, rank, trial, base)), expected[rank])
                << "trial " << trial << " rank " << rank << " samples " << spec.samples << " base " << base;
        }
    }
}

TEST(PlanTest, TheRanksTogetherVisitEverySampleOnce) {
    for (std::uint64_t trial = 0; trial < 1000; ++trial) {
        Random random{2, 0, trial};
        PlanSpec spec = any_spec(random);
        spec.last_batch = random.chance(0.5) ? LastBatch::keep : LastBatch::pad;
        Ids all;
        std::set<std::uint64_t> counts;
        for (std::uint64_t rank = 0; rank < spec.ranks; ++rank) {
            const EpochPlan plan = of_rank(spec, rank, trial, 0);
            const Ids ids = samples_of(plan);
            all.insert(all.end(), ids.begin(), ids.end());
            counts.insert(plan.batches());
        }
        std::sort(all.begin(), all.end());
        ASSERT_EQ(all.size(), spec.samples);
        for (std::uint64_t i = 0; i < all.size(); ++i) {
            ASSERT_EQ(all[i], i) << trial;
        }
        if (spec.rank_batches == RankBatches::equal) {
            ASSERT_EQ(counts.size(), 1u);
        }
    }
}

TEST(PlanTest, DroppingLeavesFullBatchesOnly) {
    for (std::uint64_t trial = 0; trial < 500; ++trial) {
        Random random{3, 0, trial};
        PlanSpec spec = any_spec(random);
        spec.last_batch = LastBatch::drop;
        for (std::uint64_t rank = 0; rank < spec.ranks; ++rank) {
            for (const std::uint64_t size : sizes_of(of_rank(spec, rank, 0, 0))) {
                ASSERT_EQ(size, spec.batch_size);
            }
        }
    }
}

TEST(PlanTest, TheSameRanksGoOnAsIfUnbroken) {
    for (std::uint64_t trial = 0; trial < 1000; ++trial) {
        Random random{4, 0, trial};
        const PlanSpec spec = any_spec(random);
        const std::uint64_t k = random.below(of_rank(spec, 0, 0, 0).batches() + 1);
        for (std::uint64_t rank = 0; rank < spec.ranks; ++rank) {
            const EpochPlan whole = of_rank(spec, rank, trial, 0);
            const EpochPlan rest = of_rank(spec, rank, trial, whole.position_after(k));
            std::vector<Ids> expected = batches_of(whole);
            expected.erase(expected.begin(),
                           expected.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(k, expected.size())));
            ASSERT_EQ(batches_of(rest), expected) << trial;
            ASSERT_EQ(whole.index(0), rest.index(0));
        }
    }
}

// Twice over: the restored run is stopped and restored under yet another shape.
TEST(PlanTest, OtherRanksAndBatchSizesGoOnExactlyWhenStriped) {
    for (std::uint64_t trial = 0; trial < 1000; ++trial) {
        Random random{5, 0, trial};
        PlanSpec spec = any_spec(random);
        spec.split = Split::striped;
        spec.last_batch = LastBatch::keep;
        Ids all;
        std::uint64_t base = 0;
        for (int part = 0; part < 3; ++part) {
            spec.ranks = 1 + random.below(9);
            spec.batch_size = 1 + random.below(12);
            const std::uint64_t whole = of_rank(spec, 0, trial, base).batches();
            const std::uint64_t k = part == 2 ? whole : random.below(whole + 1);
            for (std::uint64_t rank = 0; rank < spec.ranks; ++rank) {
                const EpochPlan plan = of_rank(spec, rank, trial, base);
                const std::vector<Ids> batches = batches_of(plan);
                for (std::uint64_t i = 0; i < std::min<std::uint64_t>(k, batches.size()); ++i) {
                    for (const std::uint64_t position : batches[i]) {
                        all.push_back(plan.index(position));
                    }
                }
            }
            base = of_rank(spec, spec.ranks - 1, trial, base).position_after(k);
        }
        ASSERT_EQ(base, spec.samples);
        std::sort(all.begin(), all.end());
        ASSERT_EQ(all.size(), spec.samples) << trial;
        for (std::uint64_t i = 0; i < all.size(); ++i) {
            ASSERT_EQ(all[i], i) << trial;
        }
    }
}

TEST(PlanTest, PositionAfterIsTheSameOnEveryRank) {
    for (std::uint64_t rank = 0; rank < 3; ++rank) {
        const EpochPlan plan = of_rank({.samples = 20, .batch_size = 2, .ranks = 3}, rank, 0, 1);
        EXPECT_EQ(plan.position_after(0), 1u);
        EXPECT_EQ(plan.position_after(1), 7u);
        EXPECT_EQ(plan.position_after(3), 19u);
        EXPECT_EQ(plan.position_after(4), 20u);
        EXPECT_EQ(plan.position_after(~std::uint64_t{0}), 20u);
    }
}

TEST(PlanTest, NothingIsLeftAtOrBeyondTheEnd) {
    for (const Split split : {Split::striped, Split::contiguous}) {
        for (const RankBatches rank_batches : {RankBatches::as_they_fall, RankBatches::equal}) {
            for (std::uint64_t rank = 0; rank < 4; ++rank) {
                const PlanSpec spec{
                    .samples = 26, .batch_size = 6, .ranks = 4, .split = split, .rank_batches = rank_batches};
                EXPECT_EQ(of_rank(spec, rank, 0, 26).batches(), 0u);
                EXPECT_EQ(of_rank(spec, rank, 0, 27).batches(), 0u);
                EXPECT_EQ(of_rank(spec, rank, 0, ~std::uint64_t{0}).position_after(1), 26u);
            }
        }
    }
}

TEST(PlanTest, MoreRanksThanSamplesLeaveSomeWithNothing) {
    PlanSpec spec{.samples = 2, .batch_size = 4, .ranks = 5};
    std::vector<std::uint64_t> batches;
    for (std::uint64_t rank = 0; rank < 5; ++rank) {
        batches.push_back(of_rank(spec, rank, 0, 0).batches());
    }
    EXPECT_EQ(batches, (std::vector<std::uint64_t>{1, 1, 0, 0, 0}));
    spec.rank_batches = RankBatches::equal;
    EXPECT_EQ(sizes_of(of_rank(spec, 4, 0, 0)), (std::vector<std::uint64_t>{0}));
    spec.last_batch = LastBatch::drop;
    EXPECT_EQ(of_rank(spec, 0, 0, 0).batches(), 0u);
}

// B115: parts of 6, 7, 6 and 7 samples, and never a batch of none.
TEST(PlanTest, ContiguousPartsAreTheFloorSplit) {
    const PlanSpec spec{.samples = 26, .batch_size = 6, .ranks = 4, .split = Split::contiguous};
    const std::vector<std::vector<std::uint64_t>> expected{{6}, {6, 1}, {6}, {6, 1}};
    for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
        for (std::uint64_t rank = 0; rank < 4; ++rank) {
            EXPECT_EQ(sizes_of(of_rank(spec, rank, epoch, 0)), expected[rank]);
        }
    }
}

// B116: the length told is the number of batches, in every epoch.
TEST(PlanTest, LengthIsTheSameInEveryEpoch) {
    PlanSpec spec{.order = shuffled(1), .samples = 1709, .batch_size = 10, .ranks = 6, .split = Split::contiguous};
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
        for (std::uint64_t rank = 0; rank < 6; ++rank) {
            const EpochPlan plan = of_rank(spec, rank, epoch, 0);
            EXPECT_EQ(samples_of(plan).size(), rank == 0 ? 284u : 285u);
            EXPECT_EQ(plan.batches(), 29u);
        }
    }
}

// B119: one tail at most, that of the epoch.
TEST(PlanTest, EveryBatchIsFullWhereTheSizeDivides) {
    EXPECT_EQ(sizes_of(Plan{{.samples = 100, .batch_size = 4}}.epoch(0)), std::vector<std::uint64_t>(25, 4));
}

// B121: the listed ids are delivered, not positions.
TEST(PlanTest, ASubsetIsDeliveredById) {
    const Ids ids{5, 9, 2, 40, 17};
    PlanSpec spec{.order = sequential().subset(ids), .samples = 50, .batch_size = 2};
    EXPECT_EQ(Plan{spec}.samples(), 5u);
    EXPECT_EQ(samples_of(Plan{spec}.epoch(0)), ids);
    spec.ranks = 2;
    spec.split = Split::contiguous;
    EXPECT_EQ(samples_of(of_rank(spec, 0, 0, 0)), (Ids{5, 9}));
    EXPECT_EQ(samples_of(of_rank(spec, 1, 0, 0)), (Ids{2, 40, 17}));
    const PlanSpec mixed{.order = shuffled(3).subset(ids), .samples = 50, .batch_size = 2};
    Ids sorted = samples_of(Plan{mixed}.epoch(0));
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(sorted, (Ids{2, 5, 9, 17, 40}));
}

// B122, the plan's half: no full batch is no batch, and no division by zero; the options then refuse it.
TEST(PlanTest, FewerSamplesThanABatchGiveNoneWhenDropped) {
    EXPECT_EQ(Plan({.samples = 5, .batch_size = 8, .last_batch = LastBatch::drop}).epoch(0).batches(), 0u);
    EXPECT_EQ(sizes_of(Plan{{.samples = 5, .batch_size = 8}}.epoch(0)), (std::vector<std::uint64_t>{5}));
    for (const Split split : {Split::striped, Split::contiguous}) {
        const Plan none{{.order = shuffled(1), .samples = 0, .batch_size = 8, .ranks = 3, .split = split}};
        EXPECT_EQ(none.epoch(0).batches(), 0u);
        EXPECT_EQ(none.epoch(1, 7).position_after(3), 0u);
    }
}

TEST(PlanTest, NothingOverflows) {
    constexpr std::uint64_t n = std::uint64_t{1} << 63;
    constexpr std::uint64_t most = ~std::uint64_t{0};
    for (const Split split : {Split::striped, Split::contiguous}) {
        for (const std::uint64_t ranks : {std::uint64_t{1}, std::uint64_t{3}, std::uint64_t{1} << 32, n - 1, n, most}) {
            for (const std::uint64_t batch_size : {std::uint64_t{1}, (std::uint64_t{1} << 31) - 1, n, most}) {
                PlanSpec spec{
                    .order = shuffled(1), .samples = n, .batch_size = batch_size, .ranks = ranks, .split = split};
                for (const std::uint64_t rank : {std::uint64_t{0}, ranks / 2, ranks - 1}) {
                    const EpochPlan plan = of_rank(spec, rank, 0, 0);
                    if (plan.batches() == 0) {
                        EXPECT_GT(ranks, n);
                        continue;
                    }
                    const std::uint64_t k = plan.batches() - 1;
                    const std::uint64_t rows = plan.batch_rows(k);
                    ASSERT_GE(rows, 1u);
                    ASSERT_LE(rows, batch_size);
                    const std::uint64_t first = plan.position(0, 0), last = plan.position(k, rows - 1);
                    ASSERT_LE(first, last);
                    ASSERT_LT(last, n);
                    ASSERT_LT(plan.index(last), n);
                    const std::uint64_t step = split == Split::striped ? ranks : 1;
                    EXPECT_EQ((last - first) % step, 0u);
                    if (split == Split::striped) {
                        EXPECT_EQ(first, rank);
                        EXPECT_GE(last, n - std::min(n, ranks));  // no further entry would fit
                    } else if (rank == ranks - 1) {
                        EXPECT_EQ(last, n - 1);
                    }
                    EXPECT_EQ(plan.position_after(most), n);
                    EXPECT_EQ(plan.position_after(0), 0u);
                    EXPECT_LE(plan.position_after(1), n);
                    EXPECT_EQ(of_rank(spec, rank, 0, n - 1).position_after(1), n);
                }
                spec.rank_batches = RankBatches::equal;
                EXPECT_EQ(of_rank(spec, 0, 0, 0).batches(), of_rank(spec, ranks - 1, 0, 0).batches());
            }
        }
    }
}

TEST(PlanTest, AnEpochNeedsNotItsPlanWithoutASubset) {
    const EpochPlan part = Plan{{.order = shuffled(5), .samples = 10, .batch_size = 3}}.epoch(2);
    EXPECT_EQ(samples_of(part).size(), 10u);
    EXPECT_LE(sizeof(EpochPlan), 200u);
}

TEST(PlanTest, SubstitutesAreUniformOverTheSubset) {
    const Ids ids{5, 9, 2, 40, 17};
    const Plan plan{{.order = shuffled(3).subset(ids), .samples = 50}};
    std::vector<int> counts(50);
    for (std::uint64_t position = 0; position < 1000; ++position) {
        for (std::uint32_t attempt = 1; attempt <= 8; ++attempt) {
            ++counts[plan.substitute(1, position, attempt)];
        }
    }
    for (const std::uint64_t id : ids) {
        EXPECT_NEAR(counts[id], 1600, 4 * 36);  // four standard deviations of 8000 draws with probability 1/5
        counts[id] = 0;
    }
    EXPECT_EQ(counts, std::vector<int>(50));
}

TEST(PlanTest, SubstitutesDependOnSeedEpochPositionAndAttempt) {
    const auto choose = [](std::uint64_t seed, std::uint64_t epoch, std::uint64_t position, std::uint32_t attempt) {
        return Plan{{.order = sequential(seed), .samples = std::uint64_t{1} << 62}}.substitute(epoch, position,
                                                                                               attempt);
    };
    const std::uint64_t id = choose(1, 2, 3, 1);
    EXPECT_EQ(choose(1, 2, 3, 1), id);
    const std::set<std::uint64_t> ids{
        id, choose(2, 2, 3, 1), choose(1, 3, 3, 1), choose(1, 2, 4, 1), choose(1, 2, 3, 2), choose(1, 2, 3, 8)};
    EXPECT_EQ(ids.size(), 6u);
}

}  // namespace
