// SPDX-License-Identifier: MIT
#include <stoker/state.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace {

using stoker::check_state;
using stoker::Elastic;
using stoker::LastBatch;
using stoker::RankBatches;
using stoker::Split;
using stoker::State;
using stoker::StateError;

State example() {
    State state = State::of(stoker::shuffled(5));
    state.epoch = 1;
    state.position = 16;
    state.samples = 40;
    state.fingerprint = 0xfeed;
    state.batch_size = 4;
    state.ranks = 2;
    state.last_batch = LastBatch::drop;
    return state;
}

/// The field that the error of `action` names; "nothing thrown" without one. Its text has to say what to do.
std::string field_of(const std::function<void()>& action) {
    try {
        action();
    } catch (const StateError& error) {
        const std::string text = error.what();
        EXPECT_EQ(text.rfind("cannot re", 0), 0u) << text;
        EXPECT_NE(text.find("; "), std::string::npos) << text;
        return error.field();
    }
    return "nothing thrown";
}

std::string parse_field(const std::string& text) {
    return field_of([&text] { static_cast<void>(State::parse(text)); });
}

/// The example's text with `from` replaced and the checksum made to fit.
std::string edited(const std::string& from, const std::string& to) {
    std::string text = example().to_string();
    const std::size_t place = text.find(from);
    EXPECT_NE(place, std::string::npos) << from;
    text.replace(place, from.size(), to);
    text.resize(text.rfind(" check="));
    return text + " check=" + stoker::detail::hex(stoker::detail::fnv1a(text));
}

std::string check_field(const State& saved, const State& expected, Elastic elastic = Elastic::refuse) {
    return field_of([&] { check_state(saved, expected, elastic); });
}

constexpr const char* none = "nothing thrown";

TEST(StateTest, TextIsFixedForEver) {
    EXPECT_EQ(example().to_string(),
              "stoker-state version=1 seed=5 epoch=1 position=16 samples=40 fingerprint=000000000000feed batch_size=4 "
              "ranks=2 split=striped last_batch=drop rank_batches=as_they_fall order=shuffled same_every_epoch=no "
              "subset=0000000000000000 check=6658bc755e2d43a5");
}

TEST(StateTest, ChecksumIsFnv1a) {  // vectors of the algorithm's authors
    EXPECT_EQ(stoker::detail::fnv1a(""), 0xcbf29ce484222325);
    EXPECT_EQ(stoker::detail::fnv1a("a"), 0xaf63dc4c8601ec8c);
    EXPECT_EQ(stoker::detail::fnv1a("foobar"), 0x85944171f73967e8);
}

TEST(StateTest, TakesTheOrdersPart) {
    const stoker::Order order = stoker::shuffled(9).same_every_epoch().subset({1, 2});
    const State state = State::of(order);
    EXPECT_EQ(state.seed, 9u);
    EXPECT_TRUE(state.is_shuffled);
    EXPECT_TRUE(state.is_same_every_epoch);
    EXPECT_EQ(state.subset, order.subset_hash());
    EXPECT_EQ(state.epoch, 0u);
    EXPECT_EQ(state.position, 0u);
    EXPECT_EQ(State::of(stoker::sequential()), State{});
}

TEST(StateTest, RoundTripIsExact) {
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    std::vector<State> states{State{}, example()};
    State state;
    state.seed = state.epoch = state.position = state.fingerprint = state.batch_size = state.ranks = state.subset =
        most;
    states.push_back(state);  // a generator's: any position
    state.samples = most;
    states.push_back(state);
    for (const Split split : {Split::striped, Split::contiguous}) {
        for (const LastBatch last : {LastBatch::keep, LastBatch::drop, LastBatch::pad}) {
            for (const RankBatches batches : {RankBatches::as_they_fall, RankBatches::equal}) {
                State other = example();
                other.split = split;
                other.last_batch = last;
                other.rank_batches = batches;
                other.is_shuffled = split == Split::striped;
                other.is_same_every_epoch = last == LastBatch::pad;
                states.push_back(other);
            }
        }
    }
    for (const State& saved : states) {
        const std::string text = saved.to_string();
        EXPECT_EQ(State::parse(text), saved) << text;
        EXPECT_EQ(State::parse(text).to_string(), text);
        EXPECT_LT(text.size(), 400u);
        for (const char c : text) {
            ASSERT_TRUE(c >= ' ' && c <= '~');
        }
    }
}

TEST(StateTest, WhiteSpaceAroundTheTextIsAllowed) {
    EXPECT_EQ(State::parse(" \t" + example().to_string() + "\r\n"), example());
}

// B131: empty, cut-off, bit-flipped, of another version, beyond the end: each has a plain reason.
TEST(StateTest, BrokenTextIsRefused) {
    const std::string text = example().to_string();
    EXPECT_EQ(parse_field(""), "text");
    EXPECT_EQ(parse_field("  \n"), "text");
    EXPECT_EQ(parse_field("{\"epoch\": 1}"), "text");
    EXPECT_EQ(parse_field(text + " more=1"), "text");
    EXPECT_EQ(parse_field(text + "0"), "check");
    EXPECT_EQ(parse_field(text + text), "check");
    EXPECT_EQ(parse_field(std::string(100000, 'a')), "text");
    for (std::size_t length = 0; length < text.size(); ++length) {
        EXPECT_NE(parse_field(text.substr(0, length)), none) << length;
    }
}

TEST(StateTest, EveryFlippedBitIsNoticed) {
    const std::string text = example().to_string();
    for (std::size_t i = 0; i < text.size(); ++i) {
        for (int bit = 0; bit < 8; ++bit) {
            std::string flipped = text;
            flipped[i] = static_cast<char>(static_cast<unsigned char>(flipped[i]) ^ (1u << bit));
            EXPECT_NE(parse_field(flipped), none) << flipped;
        }
    }
}

TEST(StateTest, AnotherVersionIsNamed) {
    EXPECT_EQ(parse_field(edited("version=1 ", "version=999 ")), "version");
    EXPECT_EQ(parse_field("stoker-state version=999"), "version");
    EXPECT_EQ(parse_field("stoker-state version=2 anything else"), "version");
    EXPECT_EQ(parse_field("stoker-state version="), "version");
    EXPECT_EQ(parse_field("stoker-state"), "text");
}

TEST(StateTest, ImpossibleValuesAreNamed) {
    EXPECT_EQ(parse_field(edited("position=16", "position=41")), "position");
    EXPECT_EQ(parse_field(edited("position=16", "position=40")), none);
    EXPECT_EQ(parse_field(edited("position=16", "position=-1")), "position");
    EXPECT_EQ(parse_field(edited("position=16", "position=16x")), "position");
    EXPECT_EQ(parse_field(edited("position=16", "position= 16")), "position");
    EXPECT_EQ(parse_field(edited("position=16", "position=0x10")), "position");
    EXPECT_EQ(parse_field(edited("position=16", "position=016")), "text");
    EXPECT_EQ(parse_field(edited("seed=5", "seed=18446744073709551616")), "seed");
    EXPECT_EQ(parse_field(edited("seed=5", "seed=18446744073709551615")), none);
    EXPECT_EQ(parse_field(edited("epoch=1 ", "epoch=1e3 ")), "epoch");
    EXPECT_EQ(parse_field(edited("samples=40", "samples=some")), "samples");
    EXPECT_EQ(parse_field(edited("batch_size=4", "batch_size=0")), "batch_size");
    EXPECT_EQ(parse_field(edited("ranks=2", "ranks=0")), "ranks");
    EXPECT_EQ(parse_field(edited("split=striped", "split=sideways")), "split");
    EXPECT_EQ(parse_field(edited("last_batch=drop", "last_batch=none")), "last_batch");
    EXPECT_EQ(parse_field(edited("rank_batches=as_they_fall", "rank_batches=0")), "rank_batches");
    EXPECT_EQ(parse_field(edited("order=shuffled", "order=Shuffled")), "order");
    EXPECT_EQ(parse_field(edited("same_every_epoch=no", "same_every_epoch=maybe")), "same_every_epoch");
    EXPECT_EQ(parse_field(edited("fingerprint=000000000000feed", "fingerprint=0g")), "fingerprint");
    EXPECT_EQ(parse_field(edited("seed=5 epoch=1", "epoch=1 seed=5")), "text");
}

TEST(StateTest, AChangeWithoutItsChecksumIsNoticed) {
    std::string text = example().to_string();
    text.replace(text.find("position=16"), 11, "position=20");
    EXPECT_EQ(parse_field(text), "text");
}

TEST(StateTest, MessagesStayPrintable) {
    try {
        static_cast<void>(State::parse(edited("position=16", "position=\x01\xff" + std::string(1000, '9'))));
        FAIL();
    } catch (const StateError& error) {
        const std::string text = error.what();
        EXPECT_LT(text.size(), 300u);
        for (const char c : text) {
            EXPECT_TRUE(c >= ' ' && c <= '~');
        }
    }
}

TEST(CheckStateTest, PlaceIsNotCompared) {
    State saved = example();
    saved.epoch = 7;
    saved.position = 39;
    EXPECT_EQ(check_field(saved, example()), none);
    saved.position = 40;  // the epoch's end
    EXPECT_EQ(check_field(saved, example()), none);
}

// B130: every difference is refused by name.
TEST(CheckStateTest, EveryDifferenceIsRefusedByName) {
    const std::vector<std::pair<std::string, std::function<void(State&)>>> changes{
        {"samples", [](State& s) { s.samples = 41; }},
        {"samples", [](State& s) { s.samples.reset(); }},
        {"fingerprint", [](State& s) { s.fingerprint = 1; }},
        {"subset", [](State& s) { s.subset = 1; }},
        {"seed", [](State& s) { s.seed = 6; }},
        {"order", [](State& s) { s.is_shuffled = false; }},
        {"same_every_epoch", [](State& s) { s.is_same_every_epoch = true; }},
        {"split", [](State& s) { s.split = Split::contiguous; }},
        {"last_batch", [](State& s) { s.last_batch = LastBatch::keep; }},
        {"rank_batches", [](State& s) { s.rank_batches = RankBatches::equal; }},
        {"batch_size", [](State& s) { s.batch_size = 5; }},
        {"ranks", [](State& s) { s.ranks = 3; }},
    };
    for (const auto& [field, change] : changes) {
        State here = example();
        change(here);
        EXPECT_EQ(check_field(example(), here), field);
        const bool is_elastic = field == "batch_size" || field == "ranks";
        EXPECT_EQ(check_field(example(), here, Elastic::allow), is_elastic ? none : field);
    }
    State saved = example();
    saved.version = 2;
    EXPECT_EQ(check_field(saved, example()), "version");
}

TEST(CheckStateTest, TheMessageHasBothValues) {
    State here = example();
    here.batch_size = 5;
    try {
        check_state(example(), here, Elastic::refuse);
        FAIL();
    } catch (const StateError& error) {
        EXPECT_STREQ(
            error.what(),
            "cannot restore: batch_size is 4 in the state, but 5 here; use the options that the state was saved "
            "with, or set elastic = Elastic::allow");
    }
}

TEST(CheckStateTest, PositionBeyondTheEndIsRefused) {
    State saved = example();
    saved.position = 41;
    EXPECT_EQ(check_field(saved, example()), "position");
    EXPECT_EQ(check_field(saved, example(), Elastic::allow), "position");
}

TEST(CheckStateTest, ContiguousRanksChangeAtEpochBordersOnly) {
    State saved = example();
    saved.split = Split::contiguous;
    State here = saved;
    here.ranks = 3;
    EXPECT_EQ(check_field(saved, here), "ranks");
    EXPECT_EQ(check_field(saved, here, Elastic::allow), "ranks");
    for (const std::uint64_t border : {0u, 40u}) {
        saved.position = border;
        EXPECT_EQ(check_field(saved, here), "ranks");
        EXPECT_EQ(check_field(saved, here, Elastic::allow), none);
    }
    saved.position = 16;
    here = saved;
    here.batch_size = 5;  // each part goes on behind what was taken of it
    EXPECT_EQ(check_field(saved, here, Elastic::allow), none);
    saved.position = 17;  // not the same for both ranks
    EXPECT_EQ(check_field(saved, saved), "position");
}

TEST(CheckStateTest, AGeneratorHasNoSamplesToCompare) {
    State saved;
    saved.position = 1234;
    EXPECT_EQ(check_field(saved, State{}), none);
}

}  // namespace
