// SPDX-License-Identifier: MIT
// Sources: which type is which kind, what their context arguments offer, and the callables that make one.
#include <gtest/gtest.h>
#include <stoker/core.hpp>
#include <stoker/source.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/kit.hpp"

namespace {

using namespace testing_support;
using stoker::BatchContext;
using stoker::Layout;
using stoker::Row;
using stoker::Rows;
using stoker::Sample;
using stoker::WorkerContext;

struct OnePhase {
    std::uint64_t size() const { return 10; }
    Layout<NumberBatch> layout() const { return number_layout(); }
    void fill(Row<NumberBatch> row, Sample& sample) const { write_number(row, sample.index()); }
};
struct TwoPhase {
    using Item = std::vector<std::uint64_t>;
    std::uint64_t size() const { return 10; }
    Layout<NumberBatch> layout() const { return number_layout(); }
    Item fetch(Sample& sample) const { return {sample.index()}; }
    void fill(Row<NumberBatch> row, Item& item, Sample&) const { write_number(row, item[0]); }
};
struct Whole {
    std::uint64_t size() const { return 10; }
    Layout<NumberBatch> layout() const { return number_layout(); }
    void fill_batch(Rows<NumberBatch> rows, BatchContext& context) const {
        for (std::size_t i = 0; i < rows.size(); ++i) {
            write_number(rows[i], context.sample_ids()[i]);
        }
    }
};
struct MoveOnlyGenerator {
    std::unique_ptr<std::uint64_t> next_id = std::make_unique<std::uint64_t>(0);
    Layout<NumberBatch> layout() const { return number_layout(); }
    bool next(Row<NumberBatch> row, Sample&) {
        if (*next_id == 10) {
            return false;
        }
        write_number(row, (*next_id)++);
        return true;
    }
};
struct TwoPhaseGenerator {
    std::uint64_t id = 0;
    Layout<NumberBatch> layout() const { return number_layout(); }
    std::optional<std::string> fetch(Sample&) { return id == 10 ? std::nullopt : std::optional{std::to_string(id++)}; }
    void fill(Row<NumberBatch> row, std::string& item, Sample&) const { write_number(row, std::stoull(item)); }
};
struct NoLayout {
    std::uint64_t size() const { return 10; }
    void fill(Row<NumberBatch>, Sample&) const {}
};
struct FillNotConst {
    std::uint64_t size() const { return 10; }
    Layout<NumberBatch> layout() const { return number_layout(); }
    void fill(Row<NumberBatch>, Sample&) {}
};

TEST(SourceTest, ConceptsTellTheKindsApart) {
    static_assert(stoker::RandomAccessSource<OnePhase, NumberBatch>);
    static_assert(stoker::RandomAccessSource<TwoPhase, NumberBatch>);
    static_assert(stoker::WholeBatchSource<Whole, NumberBatch>);
    static_assert(stoker::GeneratorSource<MoveOnlyGenerator, NumberBatch>);
    static_assert(stoker::GeneratorSource<TwoPhaseGenerator, NumberBatch>);
    static_assert(!stoker::RandomAccessSource<MoveOnlyGenerator, NumberBatch>);
    static_assert(!stoker::GeneratorSource<OnePhase, NumberBatch>);
    static_assert(!stoker::SourceOf<NoLayout, NumberBatch>);
    static_assert(!stoker::SourceOf<FillNotConst, NumberBatch>);
    static_assert(!stoker::SourceOf<OnePhase, stoker::ImageBatch>);
    const auto make = [](Sample& sample) { return static_cast<int>(sample.index()); };
    static_assert(stoker::SourceOf<decltype(stoker::values(3, make)), int>);
    static_assert(!stoker::SourceOf<decltype(stoker::values(3, make)), NumberBatch>);
    const auto next = [](Sample&) { return std::optional<int>{}; };
    static_assert(stoker::ValueGenerator<decltype(stoker::generator_of(next)), int>);
}

template <class Source>
void expect_ten(Source source) {
    const Watchdog watchdog;
    stoker::Prefetcher<NumberBatch> feed{std::move(source), {.batch_size = 4, .workers = 2, .epochs = 1}};
    Ledger ledger;
    while (auto lease = feed.next()) {
        EXPECT_TRUE(is_right(*lease));
        ledger.push_back(ids_of(*lease));
    }
    EXPECT_EQ(ledger, sequential_ledger(10, 4));
}

TEST(SourceTest, EveryKindGivesTheSameBatches) {
    expect_ten(OnePhase{});
    expect_ten(TwoPhase{});
    expect_ten(Whole{});
    expect_ten(MoveOnlyGenerator{});
    expect_ten(TwoPhaseGenerator{});
    expect_ten(stoker::samples<NumberBatch>(
        10, number_layout(), [](Row<NumberBatch> row, Sample& sample) { write_number(row, sample.index()); }));
    expect_ten(stoker::batches<NumberBatch>(10, number_layout(), [](Rows<NumberBatch> rows, BatchContext& context) {
        for (std::size_t i = 0; i < rows.size(); ++i) {
            write_number(rows[i], context.sample(i).index());
        }
    }));
    expect_ten(stoker::generator<NumberBatch>(number_layout(),
                                              [next = std::uint64_t{0}](Row<NumberBatch> row, Sample&) mutable {
                                                  if (next == 10) {
                                                      return false;
                                                  }
                                                  write_number(row, next++);
                                                  return true;
                                              }));
}

TEST(SourceTest, ValuesComeFromCallables) {
    const Watchdog watchdog;
    stoker::Prefetcher<std::unique_ptr<std::uint64_t>> feed{
        stoker::values(7, [](Sample& sample) { return std::make_unique<std::uint64_t>(sample.index()); }),
        {.workers = 2, .epochs = 1}};
    std::uint64_t expected = 0;
    while (auto lease = feed.next()) {
        const std::unique_ptr<std::uint64_t> value = std::move(**lease);
        EXPECT_EQ(*value, expected++);
    }
    EXPECT_EQ(expected, 7U);
    stoker::Prefetcher<int> numbers{
        stoker::generator_of([n = 0](Sample&) mutable { return n < 5 ? std::optional{n++} : std::nullopt; }),
        {.workers = 2}};
    int next = 0;
    for (auto&& lease : numbers) {
        EXPECT_EQ(*lease, next++);
    }
    EXPECT_EQ(next, 5);
}

TEST(SampleTest, TellsWhereItStandsInThePlan) {
    WorkerContext worker;
    Sample sample{7, 2, 31, 99, worker};
    EXPECT_EQ(sample.index(), 7U);
    EXPECT_EQ(sample.epoch(), 2U);
    EXPECT_EQ(sample.position(), 31U);
    EXPECT_EQ(&sample.worker(), &worker);
    EXPECT_FALSE(sample.stop_token().stop_requested());
}

TEST(SampleTest, DrawsAreAFunctionOfSeedEpochAndPosition) {
    WorkerContext worker;
    const auto draw = [&](std::uint64_t index, std::uint64_t epoch, std::uint64_t position, std::uint64_t seed) {
        Sample sample{index, epoch, position, seed, worker};
        static_cast<void>(sample.random().bits());
        return sample.random().bits();
    };
    const std::uint64_t value = draw(1, 2, 3, 4);
    EXPECT_EQ(draw(1, 2, 3, 4), value);
    EXPECT_EQ(draw(9, 2, 3, 4), value);  // not of the index
    EXPECT_NE(draw(1, 3, 3, 4), value);
    EXPECT_NE(draw(1, 2, 4, 4), value);
    EXPECT_NE(draw(1, 2, 3, 5), value);
}

TEST(SampleTest, ScratchIsOnePerTypeAndKept) {
    WorkerContext worker;
    Sample first{0, 0, 0, 0, worker};
    auto& numbers = first.scratch<std::vector<int>>();
    numbers.assign(3, 5);
    first.scratch<std::string>() = "text";
    Sample second{1, 0, 1, 0, worker};
    EXPECT_EQ(&second.scratch<std::vector<int>>(), &numbers);
    EXPECT_EQ(second.scratch<std::vector<int>>(), (std::vector<int>{5, 5, 5}));
    EXPECT_EQ(second.scratch<std::string>(), "text");
    WorkerContext other;
    EXPECT_TRUE(Sample(0, 0, 0, 0, other).scratch<std::vector<int>>().empty());
}

TEST(SampleTest, WarningsReachTheSinkAndWithoutOneNobody) {
    WorkerContext worker;
    Sample{1, 0, 0, 0, worker}.warn("unheard");
    std::vector<std::pair<std::uint64_t, std::string>> heard;
    worker.sink = &heard;
    worker.warn = [](void* sink, std::uint64_t index, std::string text) {
        static_cast<decltype(heard)*>(sink)->emplace_back(index, std::move(text));
    };
    Sample{6, 0, 0, 0, worker}.warn("odd");
    ASSERT_EQ(heard.size(), 1U);
    EXPECT_EQ(heard[0], (std::pair<std::uint64_t, std::string>{6, "odd"}));
}

TEST(BatchContextTest, PermuteChecksItsOrderBeforeAnythingMoves) {
    WorkerContext worker;
    std::vector<std::uint64_t> ids{5, 6, 7};
    std::size_t calls = 0;
    BatchContext context{
        1,     2,  3,      4,
        ids,   {}, worker, [](void* target, std::span<const std::size_t>) { ++*static_cast<std::size_t*>(target); },
        &calls};
    EXPECT_EQ(context.size(), 3U);
    EXPECT_EQ(context.epoch(), 1U);
    EXPECT_EQ(context.batch(), 2U);
    EXPECT_EQ(context.position(), 3U);
    for (const std::vector<std::size_t>& wrong :
         {std::vector<std::size_t>{0, 1}, {0, 1, 1}, {0, 1, 3}, {0, 1, 2, 3}, {}}) {
        EXPECT_THROW(context.permute(wrong), stoker::OptionError);
    }
    EXPECT_EQ(calls, 0U);
    context.permute(std::vector<std::size_t>{2, 0, 1});
    EXPECT_EQ(calls, 1U);
    BatchContext filling{1, 2, 3, 4, ids, {}, worker, nullptr, nullptr};
    EXPECT_THROW(filling.permute(std::vector<std::size_t>{0, 1, 2}), stoker::OptionError);
}

TEST(BatchContextTest, BatchAndSampleDrawsAreApart) {
    WorkerContext worker;
    std::vector<std::uint64_t> ids{5, 6};
    const std::vector<std::uint64_t> positions{8, 9};
    BatchContext context{1, 2, 8, 4, ids, positions, worker, nullptr, nullptr};
    Sample first = context.sample(0);
    Sample alone{5, 1, 8, 4, worker};
    const std::uint64_t draw = first.random().bits();
    EXPECT_EQ(draw, alone.random().bits());
    EXPECT_NE(draw, context.random().bits());
    EXPECT_EQ(context.sample(1).position(), 9U);
}

/// Reverses each batch in `finish`, and notes what it saw.
struct Finishing {
    struct Seen {
        std::mutex mutex;
        std::vector<std::vector<std::uint64_t>> ids;
    };
    std::shared_ptr<Seen> seen = std::make_shared<Seen>();
    std::vector<std::uint64_t> broken;          // samples that throw
    std::optional<std::uint64_t> broken_batch;  // whose finish throws

    std::uint64_t size() const { return 10; }
    Layout<NumberBatch> layout() const { return number_layout(); }
    void fill(Row<NumberBatch> row, Sample& sample) const {
        if (std::find(broken.begin(), broken.end(), sample.index()) != broken.end()) {
            throw 1;
        }
        write_number(row, sample.index());
    }
    void finish(NumberBatch& batch, BatchContext& context) const {
        {
            const std::lock_guard lock{seen->mutex};
            seen->ids.emplace_back(context.sample_ids().begin(), context.sample_ids().end());
        }
        EXPECT_TRUE(is_right(batch, context.sample_ids()));
        if (broken_batch == context.batch()) {
            throw std::runtime_error{"finish is broken"};
        }
        std::vector<std::size_t> order(context.size());
        std::iota(order.rbegin(), order.rend(), std::size_t{0});
        context.permute(order);
        EXPECT_TRUE(is_right(batch, context.sample_ids()));
    }
};

TEST(FinishTest, PermuteMovesEveryFieldAndTheIds) {
    const Watchdog watchdog;
    for (const std::size_t workers : {0U, 2U}) {
        const Finishing source{.broken = {5}, .broken_batch = {}};
        stoker::Prefetcher<NumberBatch> feed{
            source, {.batch_size = 4, .workers = workers, .on_error = stoker::OnError::skip, .epochs = 1}};
        Ledger ledger;
        while (auto lease = feed.next()) {
            EXPECT_TRUE(is_right(*lease));
            ledger.push_back(ids_of(*lease));
        }
        EXPECT_EQ(ledger, (Ledger{{3, 2, 1, 0}, {7, 6, 4}, {9, 8}}));
        EXPECT_EQ(source.seen->ids.size(), 3U);
    }
}

TEST(FinishTest, ThrowingIsOneFailureOfTheBatchAndAnEmptyBatchIsNotFinished) {
    const Watchdog watchdog;
    for (const std::size_t workers : {0U, 2U}) {
        const Finishing source{.broken = {0, 1, 2, 3}, .broken_batch = 1};
        stoker::Prefetcher<NumberBatch> feed{
            source, {.batch_size = 4, .workers = workers, .on_error = stoker::OnError::skip, .epochs = 1}};
        auto first = feed.next();
        EXPECT_EQ(first->size(), 0U);
        first.reset();
        auto second = feed.next();
        EXPECT_EQ(second->size(), 0U);
        ASSERT_EQ(second->info().failures().size(), 1U);
        EXPECT_EQ(second->info().failures()[0].kind, stoker::ErrorKind::batch);
        EXPECT_NE(second->info().failures()[0].message.find("4, 5, 6, 7"), std::string::npos);
        second.reset();
        EXPECT_EQ(ids_of(*feed.next()), (std::vector<std::uint64_t>{9, 8}));
        EXPECT_EQ(source.seen->ids.size(), 2U);
    }
}

TEST(ItemGateTest, GivesRoomInTicketOrderAndAnItemTooLargeGoesAlone) {
    const Watchdog watchdog;
    stoker::detail::ItemGate gate{10};
    EXPECT_EQ(gate.enter(0, 6), 6U);
    const Arrivals inside;
    std::vector<std::size_t> order;
    std::mutex mutex;
    std::jthread large{[&] {
        const std::size_t counted = gate.enter(1, 100);
        {
            const std::lock_guard lock{mutex};
            order.push_back(1);
        }
        inside.arrive();
        gate.leave(counted);
    }};
    gate.leave(6);
    inside.wait_for(1);
    EXPECT_EQ(gate.enter(2, 4), 4U);
    EXPECT_EQ(gate.correct(4, 3), 3U);
    EXPECT_EQ(gate.enter(3, 7), 7U);
    gate.leave(3);
    gate.leave(7);
    EXPECT_EQ(gate.enter(4, std::nullopt), 3U);  // as much as the largest known so far
    gate.stop();
    EXPECT_EQ(gate.enter(5, 1000), 1000U);  // nobody waits after a stop
}

}  // namespace
