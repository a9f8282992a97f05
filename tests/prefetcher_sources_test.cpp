// SPDX-License-Identifier: MIT
// Prefetcher over every kind of source: whole batches, finish(), generators, plain values, and items under a byte
// budget.
#include <set>

#include <stoker/prefetcher.hpp>

#include "support/core_kit.hpp"

namespace {

using namespace testing_support;
using stoker::LastBatch;
using stoker::OnError;
using stoker::OptionError;
using stoker::PrefetcherOptions;
using stoker::Row;
using stoker::Sample;
using stoker::StateError;

// ---- Whole batches --------------------------------------------------------------------------------------------------

using FillBatch = std::function<void(stoker::Rows<NumberBatch>, stoker::BatchContext&)>;

[[nodiscard]] NumberFeed batch_feed(std::uint64_t size, PrefetcherOptions options, FillBatch fill) {
    return NumberFeed{stoker::batches<NumberBatch>(size, number_layout(), std::move(fill)), std::move(options)};
}
void write_batch(stoker::Rows<NumberBatch> rows, const stoker::BatchContext& context) {
    ASSERT_EQ(rows.size(), context.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
        EXPECT_EQ(context.sample(i).index(), context.sample_ids()[i]);
        EXPECT_EQ(context.sample(i).position(), context.position() + i);
        write_number(rows[i], context.sample_ids()[i]);
    }
}

TEST(WholeBatchTest, OneCallFillsOneBatch) {
    for (const std::size_t workers : {0U, 1U, 3U}) {
        std::atomic<std::size_t> calls{0};  // publishes nothing
        auto feed = batch_feed(10, {.batch_size = 4, .workers = workers, .epochs = 2}, [&](auto rows, auto& context) {
            ++calls;
            write_batch(rows, context);
        });
        auto epoch = feed.epoch();
        for (auto&& batch : epoch) {
            EXPECT_TRUE(is_right(batch));
        }
        EXPECT_EQ(collect(feed.epoch()), sequential_ledger(10, 4));
        EXPECT_EQ(calls, 6U);
    }
}

TEST(WholeBatchTest, AFailureIsOneOfTheBatchWithAllItsIds) {
    for (const OnError policy : {OnError::fail, OnError::skip}) {
        auto feed = batch_feed(6, {.batch_size = 2, .workers = 1, .on_error = policy, .epochs = 1},
                               [](auto rows, auto& context) {
                                   if (context.batch() == 1) {
                                       throw std::runtime_error{"lost"};
                                   }
                                   write_batch(rows, context);
                               });
        const Account account = collect_through_errors(feed);
        EXPECT_EQ(account.ledger, (Ledger{{0, 1}, {}, {4, 5}}));
        EXPECT_EQ(account.thrown.size(), policy == OnError::fail ? 1U : 0U);
        ASSERT_EQ(feed.failures().size(), 1U);
        EXPECT_EQ(feed.failures()[0].kind, stoker::ErrorKind::batch);
        EXPECT_TRUE(has_words(feed.failures()[0].message, {"2, 3", "lost"}));
        EXPECT_EQ(feed.report().skipped, policy == OnError::fail ? 0U : 2U);
    }
    EXPECT_THROW(static_cast<void>(batch_feed(6, {.on_error = OnError::substitute}, write_batch)), OptionError);
}

// ---- finish() -------------------------------------------------------------------------------------------------------

using Finish = std::function<void(NumberBatch&, stoker::BatchContext&)>;

class FinishedSource {
  public:
    FinishedSource(std::uint64_t size, Finish finish, Hook hook = {})
        : samples_{size, std::move(hook)}, finish_{std::move(finish)} {}
    [[nodiscard]] std::uint64_t size() const { return samples_.size(); }
    [[nodiscard]] stoker::Layout<NumberBatch> layout() const { return samples_.layout(); }
    void fill(Row<NumberBatch> row, Sample& sample) const { samples_.fill(row, sample); }
    void finish(NumberBatch& batch, stoker::BatchContext& context) const { finish_(batch, context); }

  private:
    NumberSource samples_;
    Finish finish_;
};

TEST(FinishTest, SeesTheSurvivorsOnceAndMayReorderThem) {
    for (const std::size_t workers : {0U, 2U}) {
        std::atomic<std::size_t> calls{0};  // publishes nothing
        const auto reverse = [&](NumberBatch& batch, stoker::BatchContext& context) {
            ++calls;
            EXPECT_EQ(batch.ids.extent(0), context.size());
            EXPECT_TRUE(is_right(batch, context.sample_ids()));
            std::vector<std::size_t> order(context.size());
            std::iota(order.rbegin(), order.rend(), std::size_t{0});
            context.permute(order);
            EXPECT_TRUE(is_right(batch, context.sample_ids())) << "every field and the ids move together";
        };
        NumberFeed feed{FinishedSource{9, reverse, throw_on({1, 8}, std::runtime_error{"broken"})},
                        {.batch_size = 4, .workers = workers, .on_error = OnError::skip, .epochs = 1}};
        Ledger ledger;
        for (auto&& batch : feed) {
            EXPECT_TRUE(is_right(batch));
            ledger.push_back(ids_of(batch));
        }
        EXPECT_EQ(ledger, (Ledger{{3, 2, 0}, {7, 6, 5, 4}, {}}));
        EXPECT_EQ(calls, 2U) << "not called for an empty batch";
    }
}

TEST(FinishTest, RefusesAnOrderThatIsNoPermutation) {
    const auto wrong = [](NumberBatch&, stoker::BatchContext& context) {
        for (const std::vector<std::size_t>& order : {std::vector<std::size_t>{0, 0}, {0, 2}, {0}, {0, 1, 2}}) {
            EXPECT_THROW(context.permute(order), OptionError);
        }
    };
    NumberFeed feed{FinishedSource{2, wrong}, {.batch_size = 2, .workers = 1, .epochs = 1}};
    const auto batch = feed.next();
    EXPECT_EQ(ids_of(*batch), (std::vector<std::uint64_t>{0, 1}));
    EXPECT_TRUE(is_right(*batch));
}

TEST(FinishTest, AThrowIsOneFailureOfTheBatch) {
    for (const OnError policy : {OnError::fail, OnError::skip, OnError::substitute}) {
        const auto throwing = [](NumberBatch&, stoker::BatchContext& context) {
            if (context.batch() == 1) {
                throw std::runtime_error{"no statistics"};
            }
        };
        NumberFeed feed{FinishedSource{6, throwing}, {.batch_size = 2, .workers = 1, .on_error = policy, .epochs = 1}};
        const Account account = collect_through_errors(feed);
        EXPECT_EQ(account.ledger, (Ledger{{0, 1}, {}, {4, 5}}));
        ASSERT_EQ(account.thrown.size(), policy == OnError::fail ? 1U : 0U);
        if (policy == OnError::fail) {
            EXPECT_EQ(account.thrown[0].before_batch, 1U);
            EXPECT_EQ(account.thrown[0].facts.kind, stoker::ErrorKind::batch);
            EXPECT_TRUE(has_words(account.thrown[0].message, {"batch 1", "2, 3", "no statistics"}));
        }
    }
}

// ---- Generators -----------------------------------------------------------------------------------------------------

/// A generator with everything that is optional; `state` tells the test what was called.
struct GeneratorLog {
    std::vector<std::uint64_t> restarts, skips;
    std::vector<std::uint64_t> given;
    std::atomic<int> inside{0};  // publishes nothing
};
class FullGenerator {
  public:
    FullGenerator(std::uint64_t size, std::shared_ptr<GeneratorLog> log, Hook hook = {})
        : size_{size}, log_{std::move(log)}, hook_{std::move(hook)} {}
    FullGenerator(FullGenerator&&) = default;
    [[nodiscard]] stoker::Layout<NumberBatch> layout() const { return number_layout(); }
    [[nodiscard]] std::uint64_t length() const { return size_; }
    [[nodiscard]] bool next(Row<NumberBatch> row, Sample& sample) {
        EXPECT_EQ(log_->inside++, 0) << "two threads inside a generator";
        struct Leave {
            std::atomic<int>& inside;
            ~Leave() { --inside; }
        } const leave{log_->inside};
        if (next_ == size_) {
            return false;
        }
        const std::uint64_t id = next_++;
        EXPECT_EQ(sample.index(), id);
        EXPECT_EQ(sample.position(), id);
        if (hook_) {
            hook_(sample);
        }
        log_->given.push_back(id);
        write_number(row, id);
        return true;
    }
    void restart(std::uint64_t epoch) {
        log_->restarts.push_back(epoch);
        next_ = 0;
    }
    void skip(std::uint64_t samples) {
        log_->skips.push_back(samples);
        next_ += samples;
    }
    [[nodiscard]] std::string describe(std::uint64_t index) const { return "tape/" + std::to_string(index); }

  private:
    std::uint64_t size_;
    std::uint64_t next_ = 0;
    std::shared_ptr<GeneratorLog> log_;
    Hook hook_;
};

using Next = std::function<bool(Row<NumberBatch>, Sample&)>;
[[nodiscard]] NumberFeed one_shot(std::uint64_t size, PrefetcherOptions options, Hook hook = {}) {
    auto next = [size, i = std::uint64_t{0}, hook = std::move(hook)](Row<NumberBatch> row, Sample& sample) mutable {
        if (i == size) {
            return false;
        }
        const std::uint64_t id = i++;
        if (hook) {
            hook(sample);
        }
        write_number(row, id);
        return true;
    };
    return NumberFeed{stoker::generator<NumberBatch>(number_layout(), Next{std::move(next)}), std::move(options)};
}

TEST(GeneratorTest, GivesOneEpochWithoutRestart) {
    for (const std::size_t workers : {0U, 1U, 3U}) {
        auto feed = one_shot(10, {.batch_size = 4, .workers = workers});
        EXPECT_EQ(feed.length(), std::nullopt);
        auto epoch = feed.epoch();
        EXPECT_EQ(epoch.remaining(), std::nullopt);
        Ledger ledger;
        for (auto&& batch : epoch) {
            EXPECT_TRUE(is_right(batch));
            ledger.push_back(ids_of(batch));
        }
        EXPECT_EQ(ledger, sequential_ledger(10, 4));
        EXPECT_EQ(epoch.remaining(), 0U);
        EXPECT_FALSE(epoch.next());
        EXPECT_FALSE(feed.next());
        EXPECT_FALSE(feed.epoch().next());
    }
}

TEST(GeneratorTest, RestartsForEveryEpochAndKnowsItsLength) {
    for (const std::size_t workers : {0U, 1U, 3U}) {
        const auto log = std::make_shared<GeneratorLog>();
        {
            NumberFeed feed{FullGenerator{10, log}, {.batch_size = 4, .workers = workers, .epochs = 3}};
            EXPECT_EQ(feed.length(), 3U);
            for (std::uint64_t number = 0; number < 3; ++number) {
                auto epoch = feed.epoch();
                EXPECT_EQ(epoch.number(), number);
                EXPECT_EQ(epoch.remaining(), 3U);
                EXPECT_EQ(collect(epoch), sequential_ledger(10, 4));
                EXPECT_EQ(epoch.remaining(), 0U);
            }
            EXPECT_FALSE(feed.next());
        }
        EXPECT_EQ(log->restarts, (std::vector<std::uint64_t>{1, 2}));
        EXPECT_EQ(log->given.size(), 30U);
    }
}

TEST(GeneratorTest, LastBatchRules) {
    for (const std::size_t workers : {0U, 2U}) {
        for (const LastBatch rule : {LastBatch::keep, LastBatch::drop, LastBatch::pad}) {
            auto feed =
                number_generator_feed(10, {.batch_size = 4, .workers = workers, .last_batch = rule, .epochs = 2});
            for (std::uint64_t number = 0; number < 2; ++number) {
                Ledger ledger;
                for (auto&& batch : feed.epoch()) {
                    EXPECT_TRUE(is_right(batch));
                    EXPECT_EQ(batch.info().rows(), rule == LastBatch::pad ? 4U : batch.size());
                    EXPECT_EQ(batch.info().epoch(), number);
                    ledger.push_back(ids_of(batch));
                }
                Ledger expected = sequential_ledger(10, 4);
                if (rule == LastBatch::drop) {
                    expected.pop_back();
                }
                EXPECT_EQ(ledger, expected);
            }
            EXPECT_FALSE(feed.next());
        }
    }
}

TEST(GeneratorTest, EndsExactlyAtABatchBorderWithoutAnEmptyBatch) {
    for (const std::size_t workers : {0U, 2U}) {
        auto feed = number_generator_feed(8, {.batch_size = 4, .workers = workers, .epochs = 2});
        EXPECT_EQ(collect(feed.epoch()), sequential_ledger(8, 4));
        EXPECT_EQ(collect(feed.epoch()), sequential_ledger(8, 4));
        EXPECT_FALSE(feed.next());
    }
}

TEST(GeneratorTest, AnEmptyOneEndsAtOnce) {
    for (const std::size_t workers : {0U, 2U}) {
        auto once = one_shot(0, {.batch_size = 4, .workers = workers});
        EXPECT_FALSE(once.epoch().next());
        EXPECT_FALSE(once.next());
        auto again = number_generator_feed(0, {.batch_size = 4, .workers = workers});  // endless, but for this
        EXPECT_FALSE(again.epoch().next());
        EXPECT_FALSE(again.next());
    }
}

TEST(GeneratorTest, AFailedSampleThrowsInOrderAndTheGeneratorGoesOn) {
    for (const std::size_t workers : {0U, 1U, 3U}) {
        auto feed = one_shot(10, {.batch_size = 4, .workers = workers}, throw_on({5}, std::runtime_error{"torn"}));
        const Account account = collect_through_errors(feed);
        EXPECT_EQ(account.ledger, (Ledger{{0, 1, 2, 3}, {4, 6, 7}, {8, 9}}));
        ASSERT_EQ(account.thrown.size(), 1U);
        EXPECT_EQ(account.thrown[0].before_batch, 1U);
        EXPECT_EQ(account.thrown[0].facts.index, 5U);
    }
}

TEST(GeneratorTest, DroppedEpochsBeginAnew) {
    for (const std::size_t workers : {0U, 2U}) {
        auto feed = number_generator_feed(10, {.batch_size = 2, .workers = workers});
        for (std::uint64_t number = 0; number < 4; ++number) {
            auto epoch = feed.epoch();
            EXPECT_EQ(epoch.number(), number);
            EXPECT_EQ(take(epoch, 2), (Ledger{{0, 1}, {2, 3}}));
        }
        EXPECT_EQ(feed.next()->info().epoch(), 4U);
        auto once = one_shot(10, {.batch_size = 2, .workers = workers});
        static_cast<void>(take(*std::make_unique<stoker::Epoch<NumberBatch>>(once.epoch()), 2));
        EXPECT_FALSE(once.next()) << "its only epoch was dropped";
    }
}

TEST(GeneratorTest, ResumesWithSkip) {
    for (const std::size_t workers : {0U, 2U}) {
        const auto log = std::make_shared<GeneratorLog>();
        stoker::State state;
        {
            NumberFeed feed{FullGenerator{10, log}, {.batch_size = 2, .workers = workers}};
            static_cast<void>(take(feed, 5 + 2));
            state = feed.state();
        }
        EXPECT_EQ(state.epoch, 1U);
        EXPECT_EQ(state.position, 4U);
        log->restarts.clear();
        log->given.clear();
        NumberFeed feed{FullGenerator{10, log}, {.batch_size = 2, .workers = workers, .epochs = 3, .resume = state}};
        auto epoch = feed.epoch();
        EXPECT_EQ(epoch.number(), 1U);
        EXPECT_EQ(epoch.remaining(), 3U);
        const auto first = epoch.next();
        EXPECT_EQ(first->info().batch(), 2U);
        EXPECT_EQ(first->info().position(), 4U);
        EXPECT_EQ(ids_of(*first), (std::vector<std::uint64_t>{4, 5}));
        EXPECT_TRUE(is_right(*first));
        EXPECT_EQ(log->skips, (std::vector<std::uint64_t>{4}));
        EXPECT_EQ(log->restarts.front(), 1U);
    }
}

TEST(GeneratorTest, ResumesWithoutSkipByPassingOver) {
    for (const std::size_t workers : {0U, 2U}) {
        for (const bool restarts : {false, true}) {
            const auto make = [&](std::optional<stoker::State> resume) {
                const PrefetcherOptions options{
                    .batch_size = 3, .workers = workers, .on_error = OnError::skip, .epochs = 1, .resume = resume};
                const Hook hook = throw_on({1, 4}, std::runtime_error{"torn"});
                return restarts ? number_generator_feed(11, options, hook) : one_shot(11, options, hook);
            };
            auto whole = make({});
            const Ledger expected = collect(whole);
            auto first = make({});
            Ledger got = take(first, 2);
            auto second = make(stoker::State::parse(first.state().to_string()));
            const Ledger rest = collect(second);
            got.insert(got.end(), rest.begin(), rest.end());
            EXPECT_EQ(got, expected);
        }
    }
}

TEST(GeneratorTest, SeekRestartsWhereThatIsPossible) {
    for (const std::size_t workers : {0U, 2U}) {
        const auto log = std::make_shared<GeneratorLog>();
        NumberFeed feed{FullGenerator{10, log}, {.batch_size = 2, .workers = workers}};
        const stoker::State start = feed.state();
        EXPECT_EQ(take(feed, 3).back(), (std::vector<std::uint64_t>{4, 5}));
        const stoker::State middle = feed.state();
        feed.seek(start);
        EXPECT_EQ(take(feed, 1), (Ledger{{0, 1}}));
        feed.seek(middle);
        EXPECT_EQ(take(feed, 1), (Ledger{{6, 7}}));
        auto once = one_shot(10, {.batch_size = 2, .workers = workers});
        ASSERT_TRUE(once.next());
        EXPECT_TRUE(has_words(message_of<StateError>([&] { once.seek(start); }), {"restart"}));
        EXPECT_EQ(ids_of(*once.next()), (std::vector<std::uint64_t>{2, 3})) << "nothing has changed";
    }
}

TEST(GeneratorTest, ARestartThatThrowsIsToldAndSeekMendsIt) {
    class Fragile {
      public:
        explicit Fragile(std::shared_ptr<std::atomic<bool>> breaks) : breaks_{std::move(breaks)} {}
        [[nodiscard]] stoker::Layout<NumberBatch> layout() const { return number_layout(); }
        [[nodiscard]] bool next(Row<NumberBatch> row, Sample&) {
            if (next_ == 4) {
                return false;
            }
            write_number(row, next_++);
            return true;
        }
        void restart(std::uint64_t) {
            if (*breaks_) {
                throw std::runtime_error{"the tape is stuck"};
            }
            next_ = 0;
        }

      private:
        std::uint64_t next_ = 0;
        std::shared_ptr<std::atomic<bool>> breaks_;
    };
    for (const std::size_t workers : {0U, 2U}) {
        const auto breaks = std::make_shared<std::atomic<bool>>(true);
        NumberFeed feed{Fragile{breaks}, {.batch_size = 2, .workers = workers}};
        const stoker::State start = feed.state();
        EXPECT_EQ(collect(feed.epoch()), sequential_ledger(4, 2)) << "what came before the failure is delivered";
        for (int i = 0; i < 2; ++i) {
            EXPECT_TRUE(has_words(message_of<stoker::Error>([&] { static_cast<void>(feed.next()); }),
                                  {"generator", "epoch 1", "the tape is stuck"}));
        }
        *breaks = false;
        feed.seek(start);
        EXPECT_EQ(collect(feed.epoch()), sequential_ledger(4, 2));
        EXPECT_EQ(collect(feed.epoch()), sequential_ledger(4, 2));
    }
}

TEST(GeneratorTest, OrdersAndPoliciesThatNeedAnIndexAreRefused) {
    const auto text_of = [](PrefetcherOptions options) {
        return message_of<OptionError>([&] { static_cast<void>(number_generator_feed(10, options)); });
    };
    EXPECT_TRUE(has_words(text_of({.order = stoker::shuffled(1)}), {"order"}));
    EXPECT_TRUE(has_words(text_of({.order = stoker::sequential().subset({1})}), {"order"}));
    EXPECT_TRUE(has_words(text_of({.ranks = 2}), {"ranks is 2"}));
    EXPECT_TRUE(has_words(text_of({.on_error = OnError::substitute}), {"on_error is substitute"}));
    EXPECT_TRUE(has_words(message_of<OptionError>([] { static_cast<void>(one_shot(3, {.epochs = 2})); }),
                          {"epochs is 2", "restart"}));
}

/// Two phases: fetch in turn, fill side by side.
class TwoPhaseGenerator {
  public:
    struct Item {
        std::uint64_t id = 0;
        std::vector<std::byte> bytes;
        [[nodiscard]] std::size_t size_bytes() const { return bytes.size(); }
    };
    TwoPhaseGenerator(std::uint64_t size, Hook fetch, Hook fill)
        : size_{size}, fetch_{std::move(fetch)}, fill_{std::move(fill)} {}
    [[nodiscard]] stoker::Layout<NumberBatch> layout() const { return number_layout(); }
    [[nodiscard]] std::optional<Item> fetch(Sample& sample) {
        if (next_ == size_) {
            return std::nullopt;
        }
        Item item{next_++, std::vector<std::byte>(100)};
        if (fetch_) {
            fetch_(sample);
        }
        return item;
    }
    void fill(Row<NumberBatch> row, Item& item, Sample& sample) const {
        EXPECT_EQ(item.id, sample.index());
        if (fill_) {
            fill_(sample);
        }
        write_number(row, item.id);
    }
    void restart(std::uint64_t) { next_ = 0; }

  private:
    std::uint64_t size_;
    std::uint64_t next_ = 0;
    Hook fetch_, fill_;
};

TEST(GeneratorTest, TwoPhasesFetchInTurnAndFillSideBySide) {
    // The first sample's fill waits for the third's: only side by side can they end.
    const Arrivals filling;
    const auto together = [&](Sample& sample) {
        if (sample.epoch() == 0 && sample.index() < 3) {
            filling.arrive();
            filling.wait_for(3);
        }
    };
    NumberFeed feed{TwoPhaseGenerator{10, {}, together}, {.batch_size = 4, .workers = 3}};
    EXPECT_EQ(collect(feed.epoch()), sequential_ledger(10, 4));
    EXPECT_EQ(collect(feed.epoch()), sequential_ledger(10, 4));
    EXPECT_GE(feed.report().fetch.count, 20U);
}

TEST(GeneratorTest, TwoPhasesFailAtTheirPlaceInEitherPhase) {
    for (const std::size_t workers : {0U, 1U, 3U}) {
        NumberFeed feed{TwoPhaseGenerator{10, throw_on({2}, std::runtime_error{"not fetched"}),
                                          throw_on({7}, std::runtime_error{"not filled"})},
                        {.batch_size = 4, .workers = workers, .max_bytes = std::size_t{1} << 20, .epochs = 2}};
        const Account account = collect_through_errors(feed);
        EXPECT_EQ(account.ledger, (Ledger{{0, 1, 3}, {4, 5, 6}, {8, 9}, {0, 1, 3}, {4, 5, 6}, {8, 9}}));
        EXPECT_EQ(account.failed_ids(), (std::vector<std::uint64_t>{2, 7, 2, 7}));
        EXPECT_TRUE(has_words(account.thrown[0].message, {"not fetched"}));
        EXPECT_TRUE(has_words(account.thrown[1].message, {"not filled"}));
    }
}

// ---- Plain values ---------------------------------------------------------------------------------------------------

struct Value {
    std::unique_ptr<std::uint64_t> number;  // makes it move-only
    std::shared_ptr<int> tracker;
};
using ValueFeed = stoker::Prefetcher<Value>;
using Make = std::function<Value(Sample&)>;

[[nodiscard]] Value value_of(std::uint64_t number) { return {std::make_unique<std::uint64_t>(number), nullptr}; }

[[nodiscard]] ValueFeed value_feed(std::uint64_t size, PrefetcherOptions options, Make make = {}) {
    if (!make) {
        make = [](Sample& sample) { return value_of(sample.index() * sample.index()); };
    }
    return ValueFeed{stoker::values(size, std::move(make)), std::move(options)};
}

TEST(ValuesTest, MayBeMovedOut) {
    for (const std::size_t workers : {0U, 1U, 3U}) {
        auto feed = value_feed(5, {.workers = workers});
        EXPECT_EQ(feed.length(), 5U);
        std::vector<Value> all;
        for (auto&& value : feed.epoch()) {
            EXPECT_EQ(value.size(), 1U);
            EXPECT_EQ(value.info().used_bytes(), 0U);
            EXPECT_EQ(*value->number, value.info().sample_ids()[0] * value.info().sample_ids()[0]);
            all.push_back(std::move(*value));
        }
        ASSERT_EQ(all.size(), 5U);
        EXPECT_EQ(*all[4].number, 16U);
        EXPECT_EQ(*(*feed.next())->number, 0U);
    }
}

TEST(ValuesTest, AFailedOneDoesNotCome) {
    for (const std::size_t workers : {0U, 2U}) {
        for (const OnError policy : {OnError::fail, OnError::skip, OnError::substitute}) {
            const auto make = [](Sample& sample) {
                if (sample.index() % 2 == 1) {
                    throw std::runtime_error{"odd"};
                }
                return value_of(sample.index());
            };
            auto feed = value_feed(6, {.workers = workers, .on_error = policy, .epochs = 1}, make);
            const Account account = collect_through_errors(feed);
            EXPECT_EQ(account.thrown.size(), policy == OnError::fail ? 3U : 0U);
            EXPECT_EQ(feed.report().failures, 3U);
            if (policy == OnError::substitute) {
                EXPECT_EQ(account.ledger.size(), 3 + feed.report().substituted);
            } else {
                EXPECT_EQ(account.ledger, (Ledger{{0}, {2}, {4}}));
            }
            EXPECT_EQ(feed.length(), 6U);
            EXPECT_EQ(feed.state().epoch, 1U);
        }
    }
}

TEST(ValuesTest, AreFreedWithTheirLease) {
    const auto tracked = std::make_shared<int>(1);
    auto feed = value_feed(100, {.workers = 1, .prefetch_batches = 3}, [tracked](Sample&) {
        Value value;
        value.tracker = tracked;
        return value;
    });
    feed.wait_full();
    const long full = tracked.use_count();
    auto lease = feed.next();
    feed.wait_full();
    EXPECT_EQ(tracked.use_count(), full + 1);
    lease.reset();
    EXPECT_EQ(tracked.use_count(), full);
}

TEST(ValuesTest, FromAGenerator) {
    for (const std::size_t workers : {0U, 2U}) {
        std::uint64_t i = 0;
        std::function<std::optional<Value>(Sample&)> next = [&i](Sample&) -> std::optional<Value> {
            return i == 5 ? std::nullopt : std::optional{value_of(i++)};
        };
        ValueFeed feed{stoker::generator_of(std::move(next)), {.workers = workers}};
        std::vector<std::uint64_t> got;
        while (const auto value = feed.next()) {
            got.push_back(*(*value)->number);
        }
        EXPECT_EQ(got, numbers_below(5));
        EXPECT_FALSE(feed.next());
    }
}

TEST(ValuesTest, ComeOneAtATime) {
    EXPECT_TRUE(has_words(message_of<OptionError>([] { static_cast<void>(value_feed(5, {.batch_size = 2})); }),
                          {"batch_size is 2", "1"}));
}

TEST(ValuesTest, ResumeWhereTheyWere) {
    auto feed = value_feed(7, {.workers = 2, .order = stoker::shuffled(4)});
    static_cast<void>(take(feed, 9));
    auto again = value_feed(7, {.workers = 0, .order = stoker::shuffled(4), .resume = feed.state()});
    EXPECT_EQ(take(again, 8), take(feed, 8));
}

// ---- The byte budget ------------------------------------------------------------------------------------------------

/// Items of the sizes given; the hooks see the phases.
class ItemSource {
  public:
    ItemSource(std::vector<std::size_t> sizes, Hook fetched, Hook filled)
        : sizes_{std::move(sizes)}, fetched_{std::move(fetched)}, filled_{std::move(filled)} {}
    [[nodiscard]] std::uint64_t size() const { return sizes_.size(); }
    [[nodiscard]] stoker::Layout<NumberBatch> layout() const { return number_layout(64); }
    [[nodiscard]] std::vector<char> fetch(Sample& sample) const {
        fetched_(sample);
        return std::vector<char>(sizes_[static_cast<std::size_t>(sample.index())]);
    }
    [[nodiscard]] std::size_t item_bytes(std::uint64_t index) const { return sizes_[static_cast<std::size_t>(index)]; }
    void fill(Row<NumberBatch> row, std::vector<char>& item, Sample& sample) const {
        EXPECT_EQ(item.size(), sizes_[static_cast<std::size_t>(sample.index())]);
        filled_(sample);
        write_number(row, sample.index());
    }

  private:
    std::vector<std::size_t> sizes_;
    Hook fetched_, filled_;
};

TEST(BudgetTest, ItemsInFlightStayWithinTheirShare) {
    constexpr std::size_t share = 1000;
    const std::vector<std::size_t> sizes{400, 500, 300, 900, 100, 5000, 100, 200, 1000, 1001, 10, 10, 10, 700, 600, 1};
    std::mutex mutex;
    std::size_t in_flight = 0, items = 0;
    const auto size_of = [&](const Sample& sample) { return sizes[static_cast<std::size_t>(sample.index())]; };
    const auto fetched = [&](Sample& sample) {
        const std::lock_guard lock{mutex};
        in_flight += size_of(sample);
        ++items;
        EXPECT_TRUE(in_flight <= share || items == 1) << in_flight << " bytes in " << items << " items";
    };
    const auto filled = [&](Sample& sample) {
        const std::lock_guard lock{mutex};
        in_flight -= size_of(sample);
        --items;
    };
    const ItemSource source{sizes, fetched, filled};
    const std::size_t slots = NumberFeed::planned_bytes(source, {.batch_size = 4, .prefetch_batches = 1}).total();
    for (const std::size_t workers : {0U, 1U, 4U}) {
        NumberFeed feed{source,
                        {.batch_size = 4, .workers = workers, .prefetch_batches = 1, .max_bytes = slots + share}};
        for (int epoch = 0; epoch < 3; ++epoch) {
            EXPECT_EQ(collect(feed.epoch()), sequential_ledger(sizes.size(), 4));
        }
    }
}

TEST(BudgetTest, AnItemTooLargeIsFetchedAloneAndNothingDeadlocks) {
    const auto nothing = [](Sample&) {};
    const ItemSource source{std::vector<std::size_t>(32, 1000), nothing, nothing};
    const std::size_t slots = NumberFeed::planned_bytes(source, {.batch_size = 4, .prefetch_batches = 3}).total();
    NumberFeed feed{source, {.batch_size = 4, .workers = 4, .prefetch_batches = 3, .max_bytes = slots}};
    EXPECT_EQ(feed.options().prefetch_batches, 3U);
    EXPECT_EQ(collect(feed.epoch()), sequential_ledger(32, 4)) << "a share of 0 bytes: one item at a time";
}

TEST(BudgetTest, FailedItemsGiveTheirRoomBack) {
    const ItemSource source{std::vector<std::size_t>(32, 1000), throw_on({3, 9}, std::runtime_error{"torn"}),
                            throw_on({4, 20}, std::runtime_error{"broken"})};
    const std::size_t slots = NumberFeed::planned_bytes(source, {.batch_size = 4, .prefetch_batches = 2}).total();
    NumberFeed feed{source,
                    {.batch_size = 4,
                     .workers = 4,
                     .prefetch_batches = 2,
                     .max_bytes = slots + 1000,
                     .on_error = OnError::skip,
                     .epochs = 2}};
    EXPECT_EQ(flattened_sorted(collect(feed)).size(), 56U);
}

TEST(ItemGateTest, LetsTicketsInByNumber) {
    stoker::detail::ItemGate gate{100};
    EXPECT_EQ(gate.enter(0, 100), 100U);
    std::mutex mutex;
    std::vector<std::uint64_t> order;
    const auto enter = [&](std::uint64_t ticket) {
        const std::size_t counted = gate.enter(ticket, 100);
        {
            const std::lock_guard lock{mutex};
            order.push_back(ticket);
        }
        gate.leave(counted);
    };
    {
        // Both wait, or one comes later than the other leaves: the order is that of the numbers in any case, as far as
        // they wait at the same time; ticket 5 holds until ticket 1 is through.
        std::jthread one{[&] { enter(1); }};
        gate.leave(100);
        one.join();
        std::jthread five{[&] { enter(5); }};
    }
    EXPECT_EQ(order, (std::vector<std::uint64_t>{1, 5}));
}

TEST(ItemGateTest, CountsByTheLargestSoFarWhereTheSizeIsUnknown) {
    stoker::detail::ItemGate gate{100};
    EXPECT_EQ(gate.enter(0, std::nullopt), 0U);
    EXPECT_EQ(gate.correct(0, 60), 60U);
    const Arrivals inside;
    std::jthread second{[&] {
        EXPECT_EQ(gate.enter(1, std::nullopt), 60U);
        inside.arrive();
        gate.leave(60);
    }};
    EXPECT_EQ(inside.count(), 0U) << "60 + 60 is more than 100";
    gate.leave(60);
    inside.wait_for(1);
}

TEST(ItemGateTest, StopLetsEverybodyThrough) {
    stoker::detail::ItemGate gate{10};
    static_cast<void>(gate.enter(0, 10));
    std::jthread waiting{[&] { gate.leave(gate.enter(1, 10)); }};
    gate.stop();
    waiting.join();
    gate.leave(10);
}

}  // namespace
