// SPDX-License-Identifier: MIT
// Guarantee 6: prefix(k) + resume(k) equals the unbroken run, byte for byte; and rows B127 to B131 of acceptance.md.
#include <map>
#include <set>

#include <stoker/prefetcher.hpp>

#include "support/core_kit.hpp"

namespace {

using namespace testing_support;
using stoker::Elastic;
using stoker::LastBatch;
using stoker::OnError;
using stoker::OptionError;
using stoker::PrefetcherOptions;
using stoker::RankBatches;
using stoker::Split;
using stoker::State;
using stoker::StateError;

/// Draws for a test's own choices.
class Dice {
  public:
    explicit Dice(std::uint64_t seed) : random_{seed, 0, 0} {}
    /// 0 .. n - 1.
    [[nodiscard]] std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_.below(n)); }
    template <class T>
    [[nodiscard]] T of(std::initializer_list<T> values) {
        return *(values.begin() + below(values.size()));
    }

  private:
    stoker::Random random_;
};

struct Case {
    std::uint64_t size = 1;
    PrefetcherOptions options;
    Fails fails, finish_fails;
    bool has_finish = false;

    [[nodiscard]] NumberFeed make(std::optional<State> resume, std::size_t workers, std::size_t depth) const {
        PrefetcherOptions with = options;
        with.workers = workers;
        with.prefetch_batches = depth;
        with.resume = std::move(resume);
        return has_finish ? finished_draw_feed(size, with, fails, finish_fails) : draw_feed(size, with, fails);
    }
};

[[nodiscard]] stoker::Order random_order(Dice& dice, std::uint64_t size) {
    stoker::Order order = dice.below(3) == 0 ? stoker::sequential(dice.below(100)) : stoker::shuffled(dice.below(100));
    if (dice.below(4) == 0) {
        order = order.same_every_epoch();
    }
    if (dice.below(4) == 0) {
        std::vector<std::uint64_t> ids(1 + dice.below(40));
        for (std::uint64_t& id : ids) {
            id = dice.below(static_cast<std::size_t>(size));
        }
        order = order.subset(std::move(ids));
    }
    return order;
}

[[nodiscard]] Case random_case(std::uint64_t seed) {
    Dice dice{seed};
    Case one;
    one.size = 1 + dice.below(60);
    PrefetcherOptions& options = one.options;
    options.batch_size = 1 + dice.below(7);
    options.order = random_order(dice, one.size);
    options.last_batch = dice.of({LastBatch::keep, LastBatch::drop, LastBatch::pad});
    options.ranks = dice.of<std::uint64_t>({1, 1, 2, 3, 4});
    options.rank = dice.below(static_cast<std::size_t>(options.ranks));
    options.split = dice.of({Split::striped, Split::contiguous});
    options.rank_batches = dice.of({RankBatches::as_they_fall, RankBatches::equal});
    options.on_error = dice.of({OnError::fail, OnError::skip, OnError::substitute});
    options.epochs = 1 + dice.below(3);
    const std::size_t every = dice.of<std::size_t>({2, 3, 5, 1000});
    one.fails = [every](std::uint64_t index) { return index % every == every - 1; };
    one.has_finish = dice.below(2) == 0;
    one.finish_fails = [every](std::uint64_t batch) { return batch % every == 1; };
    return one;
}

/// Where `history` has taken its n-th batch.
[[nodiscard]] std::size_t end_of_batch(const History& history, std::size_t batches) {
    std::size_t i = 0;
    for (std::size_t taken = 0; taken < batches; ++i) {
        taken += history[i].error.empty() ? 1 : 0;
    }
    return i;
}
[[nodiscard]] std::size_t batches_in(const History& history) {
    return static_cast<std::size_t>(
        std::count_if(history.begin(), history.end(), [](const Delivered& one) { return one.error.empty(); }));
}

TEST(ResumeTest, PrefixAndResumeMakeTheUnbrokenRun) {
    const std::size_t cases = 25 * repeats();
    std::size_t tried = 0, resumed_in_the_middle = 0;
    for (std::uint64_t seed = 0; tried < cases; ++seed) {
        const Case one = random_case(seed);
        Dice dice{seed + 1000000};
        SCOPED_TRACE("case " + std::to_string(seed));
        History whole;
        try {
            auto feed = one.make({}, dice.of<std::size_t>({0, 1, 3}), 1 + dice.below(4));
            whole = record_run(feed);
        } catch (const OptionError&) {
            continue;  // this rank has no batch
        }
        ++tried;
        const std::size_t batches = batches_in(whole);
        ASSERT_GE(batches, 1U);
        for (int i = 0; i < 2; ++i) {
            const std::size_t k = dice.below(batches + 1);
            resumed_in_the_middle += k != 0 && k != batches ? 1 : 0;
            History got;
            State state;
            {
                auto feed = one.make({}, dice.of<std::size_t>({0, 1, 4}), 1 + dice.below(4));
                got = record_run(feed, k);
                state = feed.state();
            }
            const std::size_t middle = end_of_batch(whole, k);
            ASSERT_EQ(got, History(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(middle))) << "k " << k;
            if (k != 0) {
                EXPECT_EQ(state, whole[middle - 1].state);
            }
            const State read = State::parse(state.to_string());
            EXPECT_EQ(read, state);
            auto feed = one.make(read, dice.of<std::size_t>({0, 1, 4}), 1 + dice.below(4));
            ASSERT_EQ(record_run(feed), History(whole.begin() + static_cast<std::ptrdiff_t>(middle), whole.end()))
                << "k " << k << ", state " << state.to_string();
        }
        if (HasFailure()) {
            break;
        }
    }
    EXPECT_GT(resumed_in_the_middle, cases / 2);
}

TEST(ResumeTest, EveryRankHasTheSameStateAtTheSameStep) {
    for (const Split split : {Split::striped, Split::contiguous}) {
        std::vector<std::vector<std::string>> texts;
        for (std::uint64_t rank = 0; rank < 3; ++rank) {
            auto feed = draw_feed(31, {.batch_size = 4,
                                       .workers = 1,
                                       .order = stoker::shuffled(2),
                                       .rank = rank,
                                       .ranks = 3,
                                       .split = split,
                                       .rank_batches = RankBatches::equal});
            texts.emplace_back();
            for (int i = 0; i < 7; ++i) {
                texts.back().push_back(feed.next()->state().to_string());
            }
        }
        EXPECT_EQ(texts[0], texts[1]);
        EXPECT_EQ(texts[0], texts[2]);
    }
}

TEST(ResumeTest, ElasticGoesOnWithOtherRanksAndBatchSizes) {
    constexpr std::uint64_t size = 203;
    const PrefetcherOptions base{.workers = 1, .order = stoker::shuffled(8), .epochs = 1};
    for (std::uint64_t seed = 0; seed < 4 * repeats(); ++seed) {
        Dice dice{seed};
        SCOPED_TRACE("seed " + std::to_string(seed));
        PrefetcherOptions first = base;
        first.batch_size = 1 + dice.below(6);
        first.ranks = 1 + dice.below(4);
        const std::uint64_t steps = 1 + dice.below(8);
        State state;
        std::map<std::uint64_t, std::uint64_t> all;
        for (first.rank = 0; first.rank < first.ranks; ++first.rank) {
            auto feed = draw_feed(size, first);
            for (std::uint64_t step = 0; step < steps; ++step) {
                const auto batch = feed.next();
                std::uint64_t position = batch->info().position();
                for (const std::uint64_t id : batch->info().sample_ids()) {
                    EXPECT_TRUE(all.emplace(position, id).second);
                    position += first.ranks;
                }
            }
            state = feed.state();
        }
        EXPECT_EQ(state.position, steps * first.batch_size * first.ranks);
        PrefetcherOptions second = base;
        second.batch_size = 1 + dice.below(6);
        second.ranks = 1 + dice.below(5);
        second.resume = State::parse(state.to_string());
        second.elastic = Elastic::allow;
        for (second.rank = 0; second.rank < second.ranks; ++second.rank) {
            auto feed = draw_feed(size, second);
            while (const auto batch = feed.next()) {
                std::uint64_t position = batch->info().position();
                EXPECT_EQ((position - state.position) % second.ranks, second.rank) << "striped anew from the state";
                for (const std::uint64_t id : batch->info().sample_ids()) {
                    EXPECT_TRUE(all.emplace(position, id).second) << "position " << position << " twice";
                    position += second.ranks;
                }
            }
        }
        // Every position once, with the sample that an unbroken run of one rank has there.
        PrefetcherOptions alone = base;
        alone.batch_size = 7;
        auto feed = draw_feed(size, alone);
        const std::vector<std::uint64_t> order = flattened(collect(feed));
        ASSERT_EQ(all.size(), size);
        for (const auto& [position, id] : all) {
            ASSERT_EQ(id, order[static_cast<std::size_t>(position)]) << position;
        }
    }
}

TEST(ResumeTest, ElasticIsOffUnlessAskedForAndSeekIsTheSamePath) {
    auto saved = draw_feed(40, {.batch_size = 4, .workers = 1, .order = stoker::shuffled(1)});
    static_cast<void>(take(saved, 3));
    const State state = saved.state();
    auto strict = draw_feed(40, {.batch_size = 5, .workers = 1, .order = stoker::shuffled(1)});
    EXPECT_THROW(strict.seek(state), StateError);
    auto elastic =
        draw_feed(40, {.batch_size = 5, .workers = 1, .order = stoker::shuffled(1), .elastic = Elastic::allow});
    elastic.seek(state);
    const auto rest = flattened(collect(elastic.epoch()));
    auto epoch = saved.epoch();
    EXPECT_EQ(rest, flattened(collect(epoch)));
    EXPECT_EQ(rest.size(), 28U);
}

TEST(ResumeTest, AContiguousSplitChangesRanksAtEpochBordersOnly) {
    const PrefetcherOptions two{.batch_size = 5,
                                .workers = 1,
                                .order = stoker::shuffled(1),
                                .ranks = 2,
                                .split = Split::contiguous,
                                .elastic = Elastic::allow};
    auto saved = draw_feed(40, two);
    static_cast<void>(take(saved, 3));
    PrefetcherOptions three = two;
    three.ranks = 3;
    three.resume = saved.state();
    EXPECT_EQ(message_of<StateError>([&] { static_cast<void>(draw_feed(40, three)); }).empty(), false);
    static_cast<void>(take(saved, 1));
    three.resume = saved.state();
    EXPECT_EQ(three.resume->epoch, 1U);
    std::set<std::uint64_t> all;
    for (three.rank = 0; three.rank < 3; ++three.rank) {
        auto feed = draw_feed(40, three);
        for (const std::uint64_t id : flattened(collect(feed.epoch()))) {
            EXPECT_TRUE(all.insert(id).second);
        }
    }
    EXPECT_EQ(all.size(), 40U);
}

TEST(ResumeTest, ARankOfWhichNothingIsLeftGoesOnWithTheNextEpoch) {
    // 5 samples, 2 ranks of batch 2: after one step position 4; the last sample is rank 0's.
    PrefetcherOptions options{.batch_size = 2, .workers = 1, .rank = 1, .ranks = 2};
    auto saved = draw_feed(5, options);
    static_cast<void>(take(saved, 1));
    EXPECT_EQ(saved.state().position, 4U);
    options.resume = saved.state();
    auto feed = draw_feed(5, options);
    EXPECT_EQ(feed.state(), saved.state()) << "the same text on every rank";
    auto epoch = feed.epoch();
    EXPECT_EQ(epoch.number(), 1U);
    EXPECT_EQ(collect(epoch), (Ledger{{1, 3}}));
}

TEST(ResumeTest, StateCountsWhatWasTakenNotWhatWasLoaded) {
    auto feed = draw_feed(40, {.batch_size = 4, .workers = 2, .prefetch_batches = 5});
    feed.wait_full();
    EXPECT_EQ(feed.state().position, 0U);
    const auto batch = feed.next();
    feed.wait_full();
    EXPECT_EQ(feed.state().position, 4U);
    EXPECT_EQ(feed.state(), batch->state());
}

TEST(ResumeTest, ADroppedEpochIsDoneInTheStateToo) {
    auto feed = draw_feed(40, {.batch_size = 4, .workers = 2, .order = stoker::shuffled(3)});
    {
        auto epoch = feed.epoch();
        static_cast<void>(take(epoch, 2));
    }
    const State state = feed.state();
    EXPECT_EQ(state.epoch, 1U);
    EXPECT_EQ(state.position, 0U);
    auto resumed = draw_feed(40, {.batch_size = 4, .workers = 0, .order = stoker::shuffled(3), .resume = state});
    EXPECT_EQ(take(resumed, 12), take(feed, 12));
}

TEST(ResumeTest, AnotherFingerprintIsRefused) {
    const State state = draw_feed(8, {.workers = 0}).state();
    try {
        static_cast<void>(number_feed(8, {.workers = 0, .resume = state}));
        FAIL() << "nothing was thrown";
    } catch (const StateError& error) {
        EXPECT_EQ(error.field(), "fingerprint");
    }
}

// ---- Rows of acceptance.md ------------------------------------------------------------------------------------------

TEST(AcceptanceTest, B127AResumeSkipsInItsOwnEpochOnly) {
    const PrefetcherOptions options{.batch_size = 4, .workers = 2, .order = stoker::shuffled(5)};
    auto saved = colour_feed(40, options);
    static_cast<void>(take(saved, 16));  // 10 of epoch 0, 6 of epoch 1
    PrefetcherOptions again = options;
    again.resume = saved.state();
    auto resumed = colour_feed(40, again);
    const Ledger expected = take(saved, 4);
    auto epoch = resumed.epoch();
    EXPECT_EQ(epoch.number(), 1U);
    EXPECT_EQ(collect_identities(epoch), expected);
    EXPECT_EQ(collect_identities(resumed.epoch()).size(), 10U);
    EXPECT_EQ(collect_identities(resumed.epoch()).size(), 10U);
}

TEST(AcceptanceTest, B128SavingAtTheEndOfAnEpochRestoresToTheNext) {
    const PrefetcherOptions options{.batch_size = 4, .workers = 2, .order = stoker::shuffled(5)};
    auto feed = colour_feed(12, options);
    std::vector<State> states;
    {
        auto epoch = feed.epoch();
        static_cast<void>(take(epoch, 3));
        states.push_back(feed.state());  // before the end is seen
        EXPECT_FALSE(epoch.next());
        states.push_back(feed.state());  // and after
    }
    states.push_back(feed.state());  // and with the epoch gone
    const Ledger expected = take(feed, 3);
    for (const State& state : states) {
        PrefetcherOptions again = options;
        again.resume = state;
        auto restored = colour_feed(12, again);
        auto epoch = restored.epoch();
        EXPECT_EQ(epoch.number(), 1U);
        EXPECT_EQ(collect_identities(epoch), expected);
    }
}

TEST(AcceptanceTest, B129ResumeNeedsNoParticularWorkers) {
    const auto options = [](std::size_t workers, std::size_t depth, std::optional<State> resume) {
        return PrefetcherOptions{.batch_size = 4,
                                 .workers = workers,
                                 .prefetch_batches = depth,
                                 .order = stoker::shuffled(5),
                                 .resume = std::move(resume)};
    };
    auto saved = colour_feed(40, options(4, 4, {}));
    static_cast<void>(take(saved, 7));
    const State state = saved.state();
    const Ledger expected = take(saved, 13);
    for (const auto& [workers, depth] : {std::pair{1U, 1U}, {8U, 2U}, {0U, 3U}}) {
        auto feed = colour_feed(40, options(workers, depth, state));
        EXPECT_EQ(take_identities(feed, 13), expected);
    }
}

TEST(AcceptanceTest, B130WhatDoesNotFitIsRefusedByName) {
    const PrefetcherOptions options{
        .batch_size = 4, .workers = 1, .order = stoker::shuffled(5), .last_batch = LastBatch::drop, .ranks = 2};
    auto saved = colour_feed(40, options);
    static_cast<void>(take(saved, 2));
    const State state = saved.state();
    PrefetcherOptions same = options;
    same.resume = state;
    auto restored = colour_feed(40, same);
    EXPECT_EQ(restored.options().batch_size, 4U);
    EXPECT_EQ(restored.options().order.seed(), 5U);
    EXPECT_EQ(restored.options().last_batch, LastBatch::drop);
    EXPECT_EQ(restored.options().ranks, 2U);
    const Ledger expected = take(saved, 5);
    EXPECT_EQ(take_identities(restored, 5), expected);

    const auto field_of = [&](std::uint64_t size, const auto& change) {
        PrefetcherOptions other = options;
        change(other);
        auto late = colour_feed(size, other);
        EXPECT_TRUE(late.next());
        std::string field;
        try {
            late.seek(state);  // a late restore, after the first next()
        } catch (const StateError& error) {
            field = error.field();
            EXPECT_TRUE(has_words(error.what(), {field}));
        }
        other.resume = state;
        try {
            static_cast<void>(colour_feed(size, other));
            ADD_FAILURE() << "accepted";
        } catch (const StateError& error) {
            EXPECT_EQ(error.field(), field);
        }
        return field;
    };
    const auto nothing = [](PrefetcherOptions&) {};
    EXPECT_EQ(field_of(41, nothing), "samples");
    EXPECT_EQ(field_of(40, [](PrefetcherOptions& o) { o.batch_size = 5; }), "batch_size");
    EXPECT_EQ(field_of(40, [](PrefetcherOptions& o) { o.order = stoker::shuffled(6); }), "seed");
    EXPECT_EQ(field_of(40, [](PrefetcherOptions& o) { o.ranks = 3; }), "ranks");
    EXPECT_EQ(field_of(40, [](PrefetcherOptions& o) { o.last_batch = LastBatch::keep; }), "last_batch");
    EXPECT_EQ(field_of(40, [](PrefetcherOptions& o) { o.order = stoker::sequential(5); }), "order");

    auto late = colour_feed(40, options);
    static_cast<void>(take(late, 1));
    late.seek(state);
    EXPECT_EQ(take_identities(late, 5), expected) << "a late restore that fits works";
}

TEST(AcceptanceTest, B131BrokenStatesAreRefusedWithAReason) {
    const PrefetcherOptions options{.batch_size = 4, .workers = 1, .order = stoker::shuffled(5)};
    auto feed = colour_feed(40, options);
    const std::string good = feed.state().to_string();
    EXPECT_THROW(static_cast<void>(State::parse("")), StateError);
    for (std::size_t length = 0; length < good.size(); length += 7) {
        EXPECT_THROW(static_cast<void>(State::parse(good.substr(0, length))), StateError) << length;
    }
    for (std::size_t i = 0; i < good.size(); i += 3) {
        std::string flipped = good;
        flipped[i] = static_cast<char>(flipped[i] ^ 1);
        EXPECT_THROW(static_cast<void>(State::parse(flipped)), StateError) << i;
    }
    State foreign = feed.state();
    foreign.version = 999;
    EXPECT_TRUE(
        has_words(message_of<StateError>([&] { static_cast<void>(State::parse(foreign.to_string())); }), {"999"}));
    EXPECT_TRUE(has_words(message_of<StateError>([&] { feed.seek(foreign); }), {"version", "999"}));
    State beyond = feed.state();
    beyond.position = 41;
    EXPECT_TRUE(has_words(message_of<StateError>([&] { feed.seek(beyond); }), {"position", "41", "40"}));
    EXPECT_THROW(static_cast<void>(State::parse(beyond.to_string())), StateError);
    EXPECT_EQ(flattened_sorted(collect(feed.epoch())), numbers_below(40)) << "still usable from the start";
}

}  // namespace
