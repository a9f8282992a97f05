// SPDX-License-Identifier: MIT
// Prefetcher under many threads: consumers, stops, drops, seeks and destruction at any moment. Each test repeats its
// body STOKER_REPEAT times; the moments differ by a counter-based draw, not by time.
#include <gtest/gtest.h>
#include <stoker/core.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/kit.hpp"

namespace {

using namespace testing_support;
using stoker::Delivery;
using stoker::OnError;
using stoker::PrefetcherOptions;
using Feed = stoker::Prefetcher<NumberBatch>;

/// Bodies per repetition: racy windows are small.
constexpr std::size_t rounds = 20;

/// Runs `body(round, random)` repeats() * rounds times.
template <class Body>
void race(Body body) {
    const Watchdog watchdog{20 * hang_limit()};
    for (std::size_t round = 0; round < repeats() * rounds; ++round) {
        SCOPED_TRACE("round " + std::to_string(round));
        stoker::Random random{1234, 0, round};
        body(round, random);
        if (::testing::Test::HasFatalFailure()) {
            return;
        }
    }
}

PrefetcherOptions drawn_options(stoker::Random& random, std::size_t batch_size = 3) {
    return {.batch_size = batch_size,
            .workers = 1 + static_cast<std::size_t>(random.below(4)),
            .prefetch_batches = 1 + static_cast<std::size_t>(random.below(4)),
            .leases = 1 + static_cast<std::size_t>(random.below(3))};
}

TEST(PrefetcherRaceTest, ManyConsumersTakeEveryBatchOnceRaceTest) {
    race([](std::size_t round, stoker::Random& random) {
        PrefetcherOptions options = drawn_options(random);
        options.epochs = 3;
        options.delivery = round % 2 == 0 ? Delivery::ordered : Delivery::unordered;
        Feed feed{NumberSource{31}, options};
        std::mutex mutex;
        Ledger ledger;
        std::size_t wrong = 0;
        {
            std::vector<std::jthread> consumers;
            for (int c = 0; c < 3; ++c) {
                consumers.emplace_back([&] {
                    while (auto lease = feed.next()) {
                        const bool is_good = static_cast<bool>(is_right(*lease));
                        const std::lock_guard lock{mutex};
                        wrong += is_good ? 0U : 1U;
                        ledger.push_back(ids_of(*lease));
                    }
                });
            }
        }
        EXPECT_EQ(wrong, 0U);
        std::vector<std::uint64_t> expected;
        for (const std::uint64_t id : numbers_below(31)) {
            expected.insert(expected.end(), 3, id);
        }
        EXPECT_EQ(flattened_sorted(ledger), expected);
        EXPECT_EQ(feed.report().samples, 93U);
    });
}

TEST(PrefetcherRaceTest, ConsumersShareAnEpochAndAllSeeItsEndRaceTest) {
    race([](std::size_t, stoker::Random& random) {
        Feed feed{NumberSource{31}, drawn_options(random)};
        for (std::uint64_t number = 0; number < 3; ++number) {
            auto epoch = feed.epoch();
            EXPECT_EQ(epoch.number(), number);
            std::mutex mutex;
            Ledger ledger;
            {
                std::vector<std::jthread> consumers;
                for (int c = 0; c < 3; ++c) {
                    consumers.emplace_back([&] {
                        while (auto lease = epoch.next()) {
                            const std::lock_guard lock{mutex};
                            ledger.push_back(ids_of(*lease));
                        }
                        EXPECT_FALSE(epoch.next());
                    });
                }
            }
            EXPECT_EQ(flattened_sorted(ledger), numbers_below(31));
            EXPECT_EQ(epoch.remaining(), 0U);
        }
    });
}

TEST(PrefetcherRaceTest, StopEndsEveryWaitAtAnyMomentRaceTest) {
    race([](std::size_t, stoker::Random& random) {
        Feed feed{NumberSource{1000}, drawn_options(random)};
        const std::size_t moment = static_cast<std::size_t>(random.below(20));
        std::atomic<std::size_t> taken{0};
        std::vector<std::jthread> threads;
        for (int c = 0; c < 2; ++c) {
            threads.emplace_back([&] {
                while (auto lease = feed.next()) {
                    EXPECT_TRUE(is_right(*lease));
                    if (taken.fetch_add(1) == moment) {
                        feed.stop();
                    }
                }
            });
        }
        threads.emplace_back([&] { feed.wait_full(); });
        threads.clear();
        EXPECT_FALSE(feed.next());
        EXPECT_EQ(feed.try_next().status, stoker::Poll::end);
    });
}

TEST(PrefetcherRaceTest, StopFromOutsideEndsWaitingConsumersRaceTest) {
    race([](std::size_t, stoker::Random& random) {
        const SampleLatch latch{7};
        Feed feed{NumberSource{1000, latch.stoppable_hook()}, drawn_options(random)};
        std::vector<std::jthread> consumers;
        for (int c = 0; c < 2; ++c) {
            consumers.emplace_back([&] {
                try {
                    while (feed.next()) {
                    }
                } catch (const stoker::SampleError&) {  // the latched sample may have thrown before the end was seen
                }
            });
        }
        latch.wait_until_reached();
        feed.stop();
        consumers.clear();
    });
}

TEST(PrefetcherRaceTest, DroppedEpochsNeverLeakIntoTheNextRaceTest) {
    race([](std::size_t, stoker::Random& random) {
        Feed feed{NumberSource{31}, drawn_options(random)};
        for (std::uint64_t number = 0; number < 8; ++number) {
            auto epoch = feed.epoch();
            EXPECT_EQ(epoch.number(), number);
            const std::uint64_t count = random.below(12);
            for (std::uint64_t k = 0; k < count; ++k) {
                auto lease = epoch.next();
                ASSERT_TRUE(lease);
                EXPECT_TRUE(is_right(*lease));
                EXPECT_EQ(lease->info().epoch(), number);
                EXPECT_EQ(lease->info().batch(), k);
                if (k == 10) {
                    break;  // the last one
                }
            }
        }
    });
}

TEST(PrefetcherRaceTest, DroppedGeneratorEpochsNeverLeakIntoTheNextRaceTest) {
    race([](std::size_t, stoker::Random& random) {
        Feed feed{NumberGenerator{31}, drawn_options(random)};
        for (std::uint64_t number = 0; number < 8; ++number) {
            auto epoch = feed.epoch();
            EXPECT_EQ(epoch.number(), number);
            const std::uint64_t count = random.below(12);
            for (std::uint64_t k = 0; k < count; ++k) {
                auto lease = epoch.next();
                ASSERT_TRUE(lease) << "batch " << k << " of epoch " << number;
                EXPECT_TRUE(is_right(*lease));
                EXPECT_EQ(lease->info().epoch(), number);
                EXPECT_EQ(ids_of(*lease)[0], 3 * k);
            }
        }
    });
}

TEST(PrefetcherRaceTest, SeekWhileLoadingGoesOnAtTheStateRaceTest) {
    race([](std::size_t round, stoker::Random& random) {
        PrefetcherOptions options = drawn_options(random);
        options.order = stoker::shuffled(5);
        Feed reference{NumberSource{31}, {.batch_size = 3, .workers = 0, .order = stoker::shuffled(5)}};
        Ledger expected;
        std::vector<stoker::State> states{reference.state()};
        for (int k = 0; k < 30; ++k) {
            auto lease = reference.next();
            expected.push_back(ids_of(*lease));
            states.push_back(lease->state());
        }
        Feed feed{NumberSource{31}, options};
        std::optional<stoker::Lease<NumberBatch>> held;
        for (int i = 0; i < 6; ++i) {
            const std::size_t place = static_cast<std::size_t>(random.below(25));
            feed.seek(states[place]);
            EXPECT_EQ(feed.state(), states[place]);
            for (std::size_t k = 0; k < 1 + round % 4; ++k) {
                held.reset();
                held = feed.next();
                ASSERT_TRUE(held);
                EXPECT_EQ(ids_of(*held), expected[place + k]);
                EXPECT_TRUE(is_right(*held));
            }  // the last one stays leased over the seek
            EXPECT_TRUE(is_right(*held));
        }
    });
}

TEST(PrefetcherRaceTest, UnorderedSeekWhileLoadingEndsThePlanRaceTest) {
    race([](std::size_t, stoker::Random& random) {
        PrefetcherOptions options = drawn_options(random);
        options.epochs = 2;
        Feed ordered{NumberSource{12}, {.batch_size = 3, .workers = 0, .epochs = 2}};
        const stoker::State start = ordered.state();
        options.delivery = Delivery::unordered;
        Feed feed{NumberSource{12}, options};
        static_cast<void>(take(feed, static_cast<std::size_t>(random.below(8))));
        feed.seek(start);
        const Ledger ledger = take(feed, 100);
        EXPECT_EQ(ledger.size(), 8U);
        EXPECT_EQ(flattened_sorted(Ledger{ledger.begin(), ledger.begin() + 4}), numbers_below(12));
    });
}

TEST(PrefetcherRaceTest, SeekMovesAGeneratorThatIsBeingPulledRaceTest) {
    race([](std::size_t, stoker::Random& random) {
        Feed feed{NumberGenerator{31}, drawn_options(random)};
        const stoker::State start = feed.state();
        for (int i = 0; i < 5; ++i) {
            const std::size_t count = static_cast<std::size_t>(random.below(14));
            const Ledger ledger = take(feed, count);
            ASSERT_EQ(ledger.size(), count);
            for (std::size_t k = 0; k < count; ++k) {
                EXPECT_EQ(ledger[k][0], k % 11 * 3);
            }
            feed.seek(start);
        }
    });
}

// B007: a sample throws while the object dies.
TEST(PrefetcherRaceTest, DestructionWhileSamplesThrowRaceTest) {
    race([](std::size_t round, stoker::Random& random) {
        PrefetcherOptions options = drawn_options(random);
        options.on_error = round % 3 == 0 ? OnError::fail : round % 3 == 1 ? OnError::skip : OnError::substitute;
        const Arrivals begun;
        std::optional<Feed> feed{std::in_place,
                                 NumberSource{1000,
                                              [begun](stoker::Sample& sample) {
                                                  begun.arrive();
                                                  if (sample.index() % 3 == 0) {
                                                      throw std::runtime_error{"broken"};
                                                  }
                                                  if (sample.index() % 3 == 1) {
                                                      throw 7;
                                                  }
                                              }},
                                 options};
        begun.wait_for(1 + static_cast<std::size_t>(random.below(3)));
        for (std::uint64_t i = random.below(4); i > 0; --i) {
            try {
                static_cast<void>(feed->next());
            } catch (const stoker::SampleError&) {
            }
        }
        feed.reset();
    });
    expect_no_library_threads();
}

TEST(PrefetcherRaceTest, DestructionAtAnyMomentJoinsAndKeepsLeasesRaceTest) {
    race([](std::size_t round, stoker::Random& random) {
        std::optional<stoker::Lease<NumberBatch>> lease;
        const std::uint64_t count = random.below(6);
        if (round % 2 == 0) {
            Feed feed{NumberSource{100}, drawn_options(random)};
            for (std::uint64_t k = 0; k < count; ++k) {
                lease.reset();
                lease = feed.next();
            }
        } else {
            Feed feed{NumberGenerator{100}, drawn_options(random)};
            for (std::uint64_t k = 0; k < count; ++k) {
                lease.reset();
                lease = feed.next();
            }
        }
        if (lease) {
            EXPECT_TRUE(is_right(*lease));
        }
    });
    expect_no_library_threads();
}

TEST(PrefetcherRaceTest, ReportAndStateAreReadableWhileEverythingRunsRaceTest) {
    race([](std::size_t, stoker::Random& random) {
        PrefetcherOptions options = drawn_options(random);
        options.epochs = 4;
        options.on_error = OnError::skip;
        Feed feed{NumberSource{61, throw_on({5, 17}, std::runtime_error{"broken"})}, options};
        std::atomic<bool> is_over{false};
        std::vector<std::jthread> readers;
        for (int r = 0; r < 2; ++r) {
            readers.emplace_back([&] {
                std::uint64_t last = 0;
                while (!is_over.load()) {
                    const stoker::Report report = feed.report();
                    EXPECT_GE(report.batches, last);
                    last = report.batches;
                    EXPECT_LE(report.batches_ready + report.batches_leased, report.slots);
                    const stoker::State state = feed.state();
                    EXPECT_LE(state.position, 61U);
                    EXPECT_LE(feed.failures().size(), 8U);
                    static_cast<void>(feed.length());
                }
            });
        }
        {
            std::vector<std::jthread> consumers;
            for (int c = 0; c < 2; ++c) {
                consumers.emplace_back([&] {
                    while (auto lease = feed.next()) {
                        EXPECT_TRUE(is_right(*lease));
                    }
                });
            }
        }
        is_over.store(true);
        readers.clear();
        const stoker::Report report = feed.report();
        EXPECT_EQ(report.batches, 84U);
        EXPECT_EQ(report.samples, 4U * 59U);
        EXPECT_EQ(report.skipped, 8U);
    });
}

TEST(PrefetcherRaceTest, MovesLeaveThreadsLeasesAndEpochsAloneRaceTest) {
    race([](std::size_t, stoker::Random& random) {
        Feed first{NumberSource{31}, drawn_options(random)};
        auto lease = first.next();
        Feed second{std::move(first)};
        EXPECT_TRUE(is_right(*lease));
        auto epoch = second.epoch();  // what is left of the epoch
        lease.reset();
        auto next = epoch.next();
        EXPECT_EQ(ids_of(*next)[0], 3U);
        Feed third{NumberSource{31}, drawn_options(random)};
        third = std::move(second);
        auto moved = std::move(epoch);
        next.reset();
        EXPECT_EQ(ids_of(*moved.next())[0], 6U);
        EXPECT_EQ(ids_of(*third.next())[0], 9U);
    });
}

TEST(PrefetcherRaceTest, TimeoutsLoseNothingRaceTest) {
    race([](std::size_t, stoker::Random& random) {
        PrefetcherOptions options = drawn_options(random);
        options.epochs = 1;
        Feed feed{NumberSource{31, slow(2000)}, options};
        Ledger ledger;
        while (true) {
            try {
                auto lease = feed.next_for(std::chrono::microseconds{static_cast<std::int64_t>(random.below(50))});
                if (!lease) {
                    break;
                }
                ledger.push_back(ids_of(*lease));
            } catch (const stoker::TimeoutError&) {
            }
        }
        EXPECT_EQ(ledger, sequential_ledger(31, 3));
    });
}

TEST(PrefetcherRaceTest, CallingThreadsShareTheWorkRaceTest) {
    race([](std::size_t, stoker::Random& random) {
        PrefetcherOptions options = drawn_options(random);
        options.workers = 0;
        options.epochs = 2;
        options.leases = 3;
        Feed feed{NumberSource{31}, options};
        std::mutex mutex;
        Ledger ledger;
        {
            std::vector<std::jthread> consumers;
            for (int c = 0; c < 3; ++c) {
                consumers.emplace_back([&] {
                    while (auto lease = feed.next()) {
                        EXPECT_TRUE(is_right(*lease));
                        const std::lock_guard lock{mutex};
                        ledger.push_back(ids_of(*lease));
                    }
                });
            }
        }
        EXPECT_EQ(ledger.size(), 22U);
    });
}

TEST(PrefetcherRaceTest, PlainValuesThatFailAreLeftOutRaceTest) {
    race([](std::size_t round, stoker::Random& random) {
        const std::size_t workers = 1 + static_cast<std::size_t>(random.below(4));
        stoker::Prefetcher<std::string> feed{stoker::values(40,
                                                            [](stoker::Sample& sample) {
                                                                if (sample.index() % 4 == 1) {
                                                                    throw 1;
                                                                }
                                                                return std::to_string(sample.index());
                                                            }),
                                             {.workers = workers,
                                              .prefetch_batches = 1 + round % 5,
                                              .on_error = round % 2 == 0 ? OnError::fail : OnError::skip,
                                              .epochs = 1}};
        std::vector<std::string> values;
        std::size_t errors = 0;
        while (true) {
            try {
                auto lease = feed.next();
                if (!lease) {
                    break;
                }
                values.push_back(std::move(**lease));
            } catch (const stoker::SampleError&) {
                ++errors;
            }
        }
        EXPECT_EQ(values.size(), 30U);
        EXPECT_TRUE(std::is_sorted(values.begin(), values.end(), [](const std::string& a, const std::string& b) {
            return std::stoi(a) < std::stoi(b);
        }));
        EXPECT_EQ(errors, round % 2 == 0 ? 10U : 0U);
    });
}

TEST(PrefetcherRaceTest, EpochsDroppedBySeveralThreadsNeverHangRaceTest) {
    race([](std::size_t, stoker::Random& random) {
        Feed feed{NumberSource{31}, drawn_options(random)};
        auto epoch = feed.epoch();
        std::jthread consumer{[&] {
            while (auto lease = epoch.next()) {  // ends when the other thread begins the next epoch
                EXPECT_TRUE(is_right(*lease));
                EXPECT_EQ(lease->info().epoch(), 0U);
            }
        }};
        auto second = feed.epoch();
        auto third = feed.epoch();
        consumer.join();
        auto lease = third.next();
        ASSERT_TRUE(lease);
        EXPECT_FALSE(second.next());
    });
}

}  // namespace
