// SPDX-License-Identifier: MIT
/// @file
/// The ring: every transition by itself, and every interleaving of all of them on small rings.
///
/// The exploration drives RingState and TicketCounter's pure functions as detail/core.hpp does: steps under the core's
/// mutex are atomic, lock-free ones (reading the open slot, looking at its counter, taking a ticket, ending a row) are
/// steps of their own. Who wakes whom is not part of it: a step that is possible is taken.
#include <gtest/gtest.h>
#include <stoker/ring.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

namespace {

using stoker::RingSlot;
using stoker::RingState;
using stoker::SlotPhase;
using stoker::TicketCounter;

RingState host_ring(std::size_t slots, std::size_t leases = 1) {
    RingState ring;
    ring.host.resize(slots);
    ring.lease_limit = leases;
    return ring;
}
RingState copying_ring(std::size_t host, std::size_t device, std::size_t leases = 1) {
    RingState ring = host_ring(host, leases);
    ring.device.resize(device);
    return ring;
}
/// Begins a batch and brings it to where its copy or its consumer is next. @return its slot
std::size_t fill(RingState& ring) {
    const std::optional<std::size_t> slot = ring.begin();
    EXPECT_TRUE(slot.has_value());
    EXPECT_TRUE(ring.fill_ended(*slot));
    ring.sealed(*slot);
    return *slot;
}

// ---- Transitions

TEST(RingTest, BeginTakesFreeSlotsAndNumbersBatches) {
    RingState ring = host_ring(2);
    EXPECT_EQ(ring.begin(), 0U);
    EXPECT_EQ(ring.begin(), 1U);
    EXPECT_EQ(ring.begin(), std::nullopt);
    EXPECT_EQ(ring.host[0], (RingSlot{SlotPhase::filling, false, false, 0}));
    EXPECT_EQ(ring.host[1], (RingSlot{SlotPhase::filling, false, false, 1}));
    EXPECT_EQ(ring.next_begin, 2U);
}

TEST(RingTest, BeginStopsAtTheAheadLimitUntilABatchIsLeased) {
    RingState ring = host_ring(3);
    ring.ahead_limit = 1;
    const std::size_t slot = fill(ring);
    EXPECT_EQ(ring.begin(), std::nullopt);
    ring.deliver(slot);
    EXPECT_EQ(ring.begin(), 1U);
    EXPECT_EQ(ring.begin(), std::nullopt);
}

TEST(RingTest, BeginRefusesAfterStop) {
    RingState ring = host_ring(2);
    ring.stop();
    EXPECT_EQ(ring.begin(), std::nullopt);
    EXPECT_EQ(ring.next_begin, 0U);
}

TEST(RingTest, RetractGivesTheNumberBackAndFreesAnIdleSlot) {
    RingState ring = host_ring(2);
    const std::size_t slot = *ring.begin();
    ring.retract(slot, true);
    EXPECT_EQ(ring.host[slot], RingSlot{});
    EXPECT_EQ(ring.next_begin, 0U);
    EXPECT_EQ(ring.host[*ring.begin()].batch, 0U);
}

TEST(RingTest, RetractOfABusySlotFreesItWhenItsRowsEnd) {
    RingState ring = host_ring(2);
    const std::size_t slot = *ring.begin();
    ring.retract(slot, false);
    EXPECT_TRUE(ring.host[slot].is_cancelled);
    EXPECT_EQ(ring.host[*ring.begin()].batch, 0U);  // the number serves the next batch meanwhile
    EXPECT_FALSE(ring.fill_ended(slot));
    EXPECT_EQ(ring.host[slot], RingSlot{});
}

TEST(RingTest, SealedBatchIsReadyWithoutCopiesAndFilledWithThem) {
    RingState host = host_ring(1);
    EXPECT_EQ(host.host[fill(host)].phase, SlotPhase::ready);
    RingState copying = copying_ring(1, 2);
    EXPECT_EQ(copying.host[fill(copying)].phase, SlotPhase::filled);
}

TEST(RingTest, CancelledBatchIsFreedAtItsNextTransition) {
    RingState ring = host_ring(2);
    const std::size_t filling = *ring.begin();
    const std::size_t sealing = *ring.begin();
    EXPECT_TRUE(ring.fill_ended(sealing));
    ring.cancel_before(ring.next_begin);
    EXPECT_FALSE(ring.fill_ended(filling));
    EXPECT_EQ(ring.host[filling], RingSlot{});
    ring.sealed(sealing);
    EXPECT_EQ(ring.host[sealing], RingSlot{});
}

TEST(RingTest, CancelFreesReadyBatchesAtOnceAndLeavesLeasedOnes) {
    RingState ring = host_ring(3);
    const std::size_t leased = fill(ring);
    ring.deliver(leased);
    const std::size_t ready = fill(ring);
    const std::size_t later = fill(ring);
    ring.cancel_before(2);
    EXPECT_EQ(ring.host[leased].phase, SlotPhase::leased);
    EXPECT_EQ(ring.host[ready], RingSlot{});
    EXPECT_EQ(ring.host[later].phase, SlotPhase::ready);
    EXPECT_EQ(ring.next_deliver, 2U);
    EXPECT_EQ(ring.due(), later);
}

TEST(RingTest, CancelNeverMovesTheCursorsBack) {
    RingState ring = host_ring(2);
    ring.deliver(fill(ring));
    ring.cancel_before(0);
    EXPECT_EQ(ring.next_deliver, 1U);
}

TEST(RingTest, OrderedDeliveryWaitsForTheBatchThatIsDue) {
    RingState ring = host_ring(3);
    const std::size_t first = *ring.begin();
    const std::size_t second = fill(ring);
    EXPECT_EQ(ring.due(), std::nullopt);
    EXPECT_TRUE(ring.fill_ended(first));
    EXPECT_EQ(ring.due(), std::nullopt);
    ring.sealed(first);
    EXPECT_EQ(ring.due(), first);
    ring.deliver(first);
    EXPECT_EQ(ring.leases, 1U);
    EXPECT_EQ(ring.due(), second);
}

TEST(RingTest, UnorderedDeliveryTakesWhatIsReadyBelowTheBarrier) {
    RingState ring = host_ring(3);
    ring.is_ordered = false;
    static_cast<void>(ring.begin());
    const std::size_t second = fill(ring);
    const std::size_t third = fill(ring);
    ring.barrier = 2;
    EXPECT_EQ(ring.due(), second);
    ring.discard(second);
    EXPECT_EQ(ring.due(), std::nullopt);
    ring.barrier = 3;
    EXPECT_EQ(ring.due(), third);
}

TEST(RingTest, DiscardPassesOverTheBatch) {
    RingState ring = host_ring(2);
    ring.discard(fill(ring));
    EXPECT_EQ(ring.leases, 0U);
    EXPECT_EQ(ring.next_deliver, 1U);
    EXPECT_EQ(ring.host[0], RingSlot{});
}

TEST(RingTest, GiveBackFreesTheSlot) {
    RingState ring = host_ring(1);
    const std::size_t slot = fill(ring);
    ring.deliver(slot);
    EXPECT_EQ(ring.begin(), std::nullopt);
    ring.give_back(slot);
    EXPECT_EQ(ring.leases, 0U);
    EXPECT_EQ(ring.begin(), slot);
}

TEST(RingTest, CopiesStartOneAtATimeAndInOrder) {
    RingState ring = copying_ring(3, 2);
    const std::size_t first = *ring.begin();
    const std::size_t second = fill(ring);
    EXPECT_FALSE(ring.start_copy().has_value());  // the first is not filled
    EXPECT_TRUE(ring.fill_ended(first));
    ring.sealed(first);
    const auto pair = ring.start_copy();
    ASSERT_TRUE(pair.has_value());
    EXPECT_EQ(pair->host, first);
    EXPECT_EQ(ring.device[pair->device], (RingSlot{SlotPhase::copying, false, false, 0}));
    EXPECT_FALSE(ring.start_copy().has_value());
    ring.copy_enqueued(*pair);
    EXPECT_EQ(ring.host[first].phase, SlotPhase::pending);
    EXPECT_EQ(ring.due(), pair->device);
    const auto next = ring.start_copy();
    ASSERT_TRUE(next.has_value());
    EXPECT_EQ(next->host, second);
}

TEST(RingTest, CopyNeedsAFreeDeviceSlotAndNoStop) {
    RingState ring = copying_ring(2, 1);
    fill(ring);
    const auto pair = ring.start_copy();
    ring.copy_enqueued(*pair);
    fill(ring);
    EXPECT_FALSE(ring.start_copy().has_value());
    ring.deliver(pair->device);
    EXPECT_FALSE(ring.start_copy().has_value());
    ring.give_back(pair->device);
    RingState stopped = ring;
    stopped.stop();
    EXPECT_FALSE(stopped.start_copy().has_value());
    EXPECT_TRUE(ring.start_copy().has_value());
}

TEST(RingTest, HostSlotIsFreeOnlyWhenItsCopyWasReaped) {
    RingState ring = copying_ring(1, 2);
    const std::size_t slot = fill(ring);
    ring.copy_enqueued(*ring.start_copy());
    EXPECT_EQ(ring.begin(), std::nullopt);
    EXPECT_EQ(ring.start_reap(), slot);
    EXPECT_EQ(ring.start_reap(), std::nullopt);
    EXPECT_EQ(ring.begin(), std::nullopt);
    ring.reaped(slot);
    EXPECT_EQ(ring.begin(), slot);
}

TEST(RingTest, ReapTakesTheOldestCopyFirst) {
    RingState ring = copying_ring(2, 2);
    fill(ring);
    fill(ring);
    ring.copy_enqueued(*ring.start_copy());
    ring.copy_enqueued(*ring.start_copy());
    const std::optional<std::size_t> first = ring.start_reap();
    ASSERT_TRUE(first.has_value());
    EXPECT_EQ(ring.host[*first].batch, 0U);
}

TEST(RingTest, CancelDuringTheCopyFreesTheDeviceSlotAndKeepsTheHostSlotPending) {
    RingState ring = copying_ring(2, 2);
    fill(ring);
    const auto pair = ring.start_copy();
    ring.cancel_before(ring.next_begin);
    EXPECT_TRUE(ring.device[pair->device].is_cancelled);
    ring.copy_enqueued(*pair);
    EXPECT_EQ(ring.device[pair->device], RingSlot{});
    EXPECT_EQ(ring.host[pair->host].phase, SlotPhase::pending);
    EXPECT_EQ(ring.due(), std::nullopt);
    fill(ring);
    EXPECT_TRUE(ring.start_copy().has_value());  // the next batch's number is in turn
}

TEST(RingTest, FailedCopyIsHeldUntilRetried) {
    RingState ring = copying_ring(2, 2);
    const std::size_t slot = fill(ring);
    const auto pair = ring.start_copy();
    ring.copy_failed(*pair);
    EXPECT_EQ(ring.host[slot], (RingSlot{SlotPhase::filled, false, true, 0}));
    EXPECT_EQ(ring.device[pair->device], RingSlot{});
    EXPECT_FALSE(ring.start_copy().has_value());
    fill(ring);
    EXPECT_FALSE(ring.start_copy().has_value());  // nothing overtakes it
    ring.retry_copy(slot);
    const auto again = ring.start_copy();
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(again->host, slot);
}

TEST(RingTest, FailedCopyOfACancelledBatchFreesBothSlots) {
    RingState ring = copying_ring(1, 2);
    fill(ring);
    const auto pair = ring.start_copy();
    ring.cancel_before(ring.next_begin);
    ring.copy_failed(*pair);
    EXPECT_EQ(ring.host[pair->host], RingSlot{});
    EXPECT_EQ(ring.device[pair->device], RingSlot{});
}

TEST(RingTest, OutletsAreTheDeviceSlotsWhereThereAreAny) {
    RingState host = host_ring(2);
    EXPECT_FALSE(host.has_copies());
    EXPECT_EQ(&host.outlets(), &host.host);
    RingState copying = copying_ring(2, 2);
    EXPECT_TRUE(copying.has_copies());
    EXPECT_EQ(&copying.outlets(), &copying.device);
}

// ---- Tickets

TEST(TicketCounterTest, HandsOutEachTicketOnceInOrder) {
    TicketCounter counter;
    EXPECT_EQ(counter.take(), std::nullopt);
    counter.open(3);
    EXPECT_EQ(counter.take(), 0U);
    EXPECT_EQ(counter.take(), 1U);
    EXPECT_EQ(counter.take(), 2U);
    EXPECT_EQ(counter.take(), std::nullopt);
    EXPECT_EQ(counter.close(), 0U);
}

TEST(TicketCounterTest, CloseTellsWhatIsNeverHandedOut) {
    TicketCounter counter;
    counter.open(5);
    EXPECT_EQ(counter.take(), 0U);
    EXPECT_EQ(counter.close(), 4U);
    EXPECT_EQ(counter.take(), std::nullopt);
    EXPECT_EQ(counter.close(), 0U);
    counter.open(1);
    EXPECT_EQ(counter.take(), 0U);
}

TEST(TicketCounterTest, WordsHoldLimitAndNextNumber) {
    constexpr std::uint64_t word = TicketCounter::open_word(2);
    static_assert(TicketCounter::ticket_of(word) == 0U);
    static_assert(TicketCounter::left_of(word) == 2);
    static_assert(TicketCounter::ticket_of(word + 1) == 1U);
    static_assert(TicketCounter::ticket_of(word + 2) == std::nullopt);
    static_assert(TicketCounter::left_of(word + 3) == 0);
    static_assert(TicketCounter::ticket_of(0) == std::nullopt);
    static_assert(TicketCounter::ticket_of(1) == std::nullopt);  // a late thread's step on a closed counter
    static_assert(TicketCounter::left_of(TicketCounter::open_word(0x7fffffff)) == 0x7fffffff);
}

TEST(TicketCounterTest, ThreadsShareTheTicketsWithoutLossOrDoubleRaceTest) {
    for (int round = 0; round < 50; ++round) {
        TicketCounter counter;
        constexpr std::uint32_t units = 200;
        std::vector<std::atomic<int>> taken(units);
        std::atomic<std::uint32_t> never{0};
        counter.open(units);
        {
            std::vector<std::jthread> threads;
            for (int t = 0; t < 3; ++t) {
                threads.emplace_back([&] {
                    while (const std::optional<std::uint32_t> ticket = counter.take()) {
                        taken[*ticket].fetch_add(1);
                    }
                });
            }
            threads.emplace_back([&] { never += counter.close(); });
        }
        std::uint32_t count = 0;
        for (const auto& times : taken) {
            ASSERT_LE(times.load(), 1);
            count += static_cast<std::uint32_t>(times.load());
        }
        ASSERT_EQ(count + never, units);
    }
}

// ---- Every interleaving

/// What the model does wrong on purpose.
enum class Fault : std::uint8_t {
    none,
    host_slot_freed_before_its_copy_ends,
    leased_slot_is_begun,
    leased_device_slot_is_copied_to,
    copies_out_of_order,
    delivers_what_is_ready_first,
    cancel_is_forgotten,
    given_back_slot_stays_leased,
    lease_is_not_counted,
    ticket_ignores_its_limit,
    cancelled_tickets_stay_open,
    last_row_is_not_told,
};

struct Scenario {
    std::size_t host = 2, device = 0, leases = 1, ahead = ~std::size_t{0};
    bool is_ordered = true;
    std::uint8_t batches = 4;  // of the whole plan
    std::uint8_t border = 2;   // batches of the first epoch
    std::uint8_t units = 2;    // tickets per batch
    std::uint8_t seeks = 1, drops = 1, stops = 1, copy_failures = 0, discards = 0, retracts = 0;  // at most
    Fault fault = Fault::none;
};

constexpr std::uint8_t nothing = 0xff;
constexpr std::size_t most_slots = 3;
constexpr std::size_t most_batches = 6;

enum class Outcome : std::uint8_t { planned, begun, delivered, cancelled };

struct WorkerModel {
    enum class At : std::uint8_t { idle, saw_open, saw_tickets, working, ended_last, sealing, copying, reaping };
    At at = At::idle;
    std::uint8_t slot = nothing;
    std::uint8_t device = nothing;
    std::uint8_t serial = nothing;  // the batch it works on: fixed when the work was taken
    friend auto operator<=>(const WorkerModel&, const WorkerModel&) = default;
};
struct ConsumerModel {
    std::uint8_t outlet = nothing;
    std::uint8_t serial = nothing;
    friend auto operator<=>(const ConsumerModel&, const ConsumerModel&) = default;
};
struct HostModel {
    std::uint64_t word = 0;         // of its TicketCounter
    std::uint8_t left = 0;          // rows not ended
    std::uint8_t serial = nothing;  // batches are told apart by the plan's numbers, whatever the ring calls them
    std::uint8_t given = 0;         // a bit for each ticket handed out
};
struct CopyModel {
    std::uint8_t host, device, serial;
};

struct Model {
    RingState ring;
    std::array<HostModel, most_slots> host;
    std::array<std::uint8_t, most_slots> device{nothing, nothing, nothing};  // serial of the batch in it
    std::array<CopyModel, most_slots + 1> copies{};                          // under way, oldest first
    std::uint8_t copy_count = 0;
    std::uint8_t open = nothing;
    std::array<WorkerModel, 2> workers;
    std::array<ConsumerModel, 2> consumers;
    std::array<Outcome, most_batches> outcome{};
    std::uint8_t next_serial = 0;
    std::uint8_t take_epoch = 0;
    std::uint8_t last_delivered = nothing;
    std::uint8_t seeks = 0, drops = 0, stops = 0, copy_failures = 0, discards = 0, retracts = 0;
};

class Explorer {
  public:
    explicit Explorer(const Scenario& setup) : setup_{setup} {}

    struct Result {
        std::size_t states = 0;
        std::size_t ends = 0;
        std::string error;  // the first thing found wrong
    };

    Result run() {
        Model start;
        start.ring.host.resize(setup_.host);
        start.ring.device.resize(setup_.device);
        start.ring.lease_limit = setup_.leases;
        start.ring.ahead_limit = setup_.ahead;
        start.ring.is_ordered = setup_.is_ordered;
        start.seeks = setup_.seeks;
        start.drops = setup_.drops;
        start.stops = setup_.stops;
        start.copy_failures = setup_.copy_failures;
        start.discards = setup_.discards;
        start.retracts = setup_.retracts;
        add(std::move(start));
        while (!stack_.empty() && error_.empty()) {
            const Model model = std::move(stack_.back());
            stack_.pop_back();
            const std::size_t before = successors_;
            expand(model);
            if (successors_ == before) {  // whatever an interruption would still change
                ++ends_;
                check_end(model);
            }
            interrupt(model);
        }
        return {seen_.size(), ends_, error_};
    }

  private:
    [[nodiscard]] bool has_copies() const { return setup_.device != 0; }
    [[nodiscard]] std::uint8_t epoch_of(std::uint8_t serial) const { return serial >= setup_.border ? 1 : 0; }
    [[nodiscard]] bool is(Fault fault) const { return setup_.fault == fault; }

    void fail(const std::string& what) {
        if (error_.empty()) {
            error_ = what;
        }
    }
    void require(bool holds, const char* what) {
        if (!holds) {
            fail(what);
        }
    }

    // ---- The store: states are told apart by 128 bits of a hash of all they hold ----

    struct Key {
        std::uint64_t high = 0, low = 0;
        friend bool operator==(const Key&, const Key&) = default;

        [[nodiscard]] static Key of(const std::array<std::uint8_t, 128>& bytes) {
            Key key{0x9e3779b97f4a7c15U, 0xc2b2ae3d27d4eb4fU};
            for (std::size_t i = 0; i < bytes.size(); i += 8) {
                std::uint64_t word = 0;
                std::memcpy(&word, bytes.data() + i, 8);
                key.high = mixed(key.high ^ word);
                key.low = mixed(key.low + word * 0xff51afd7ed558ccdU);
            }
            return key;
        }
        [[nodiscard]] static std::uint64_t mixed(std::uint64_t x) {
            x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
            x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
            return x ^ (x >> 31);
        }
    };
    struct KeyHash {
        [[nodiscard]] std::size_t operator()(const Key& key) const noexcept { return key.low; }
    };

    void add(Model model) {
        ++successors_;
        check(model);
        std::sort(model.workers.begin(), model.workers.end());
        std::sort(model.consumers.begin(), model.consumers.end());
        if (seen_.insert(key(model)).second) {
            stack_.push_back(std::move(model));
        }
    }
    [[nodiscard]] static Key key(const Model& m) {
        std::array<std::uint8_t, 128> bytes{};
        std::size_t size = 0;
        const auto put = [&](auto value) { bytes[size++] = static_cast<std::uint8_t>(value); };
        const auto put_slot = [&](const RingSlot& slot) {
            put(static_cast<unsigned>(slot.phase) | (slot.is_cancelled ? 32U : 0U) | (slot.is_held ? 64U : 0U));
            put(slot.batch);
        };
        for (std::size_t i = 0; i < m.ring.host.size(); ++i) {
            put_slot(m.ring.host[i]);
            put(m.host[i].word);
            put(m.host[i].word >> 32);
            put(m.host[i].left);
            put(m.host[i].serial);
            put(m.host[i].given);
        }
        for (std::size_t i = 0; i < m.ring.device.size(); ++i) {
            put_slot(m.ring.device[i]);
            put(m.device[i]);
        }
        put(m.ring.next_begin);
        put(m.ring.next_copy);
        put(m.ring.next_deliver);
        put(m.ring.leases);
        put((m.ring.is_copying ? 1U : 0U) | (m.ring.is_stopped ? 2U : 0U));
        put(m.ring.barrier);
        put(m.copy_count);
        for (std::size_t i = 0; i < m.copy_count; ++i) {
            put(m.copies[i].host);
            put(m.copies[i].device);
            put(m.copies[i].serial);
        }
        put(m.open);
        for (const WorkerModel& w : m.workers) {
            put(w.at);
            put(w.slot);
            put(w.device);
            put(w.serial);
        }
        for (const ConsumerModel& c : m.consumers) {
            put(c.outlet);
            put(c.serial);
        }
        for (const Outcome o : m.outcome) {
            put(o);
        }
        put(m.next_serial);
        put(m.take_epoch);
        put(m.last_delivered);
        put(m.seeks | (m.drops << 2) | (m.stops << 4));
        put(m.copy_failures | (m.discards << 2) | (m.retracts << 4));
        return Key::of(bytes);
    }

    // ---- What has to hold in every state ----

    void check(const Model& m) {
        std::size_t held = 0;
        for (const ConsumerModel& c : m.consumers) {
            if (c.outlet == nothing) {
                continue;
            }
            ++held;
            require(m.ring.outlets()[c.outlet].phase == SlotPhase::leased, "a leased slot is not in phase leased");
            if (has_copies()) {
                require(m.device[c.outlet] == c.serial, "a leased device slot was given to another batch");
                std::size_t own = 0;  // what lies before the batch's own copy was cancelled and does no harm
                while (own < m.copy_count && !(m.copies[own].device == c.outlet && m.copies[own].serial == c.serial)) {
                    ++own;
                }
                for (std::size_t i = own == m.copy_count ? 0 : own + 1; i < m.copy_count; ++i) {
                    require(m.copies[i].device != c.outlet, "a later copy goes to a leased device slot");
                }
            } else {
                require(m.host[c.outlet].serial == c.serial, "a leased slot was given to another batch");
            }
        }
        require(m.consumers[0].outlet == nothing || m.consumers[0].outlet != m.consumers[1].outlet,
                "two consumers hold one slot");
        require(m.ring.leases == held, "the count of leases is wrong");
        require(held <= setup_.leases, "more leases are out than allowed");
        for (const WorkerModel& w : m.workers) {
            if (w.at == WorkerModel::At::working || w.at == WorkerModel::At::sealing) {
                require(m.host[w.slot].serial == w.serial, "a worker writes to a slot that belongs to another batch");
                for (const ConsumerModel& c : m.consumers) {
                    require(has_copies() || c.outlet != w.slot, "a worker writes to a leased slot");
                }
                for (std::size_t i = 0; i < m.copy_count; ++i) {
                    require(m.copies[i].host != w.slot, "a worker writes to a slot whose copy is pending");
                }
            }
        }
    }

    void check_end(const Model& m) {
        for (const WorkerModel& w : m.workers) {
            require(w.at == WorkerModel::At::idle, "deadlock: a worker is stuck");
        }
        for (const ConsumerModel& c : m.consumers) {
            require(c.outlet == nothing, "deadlock: a lease is stuck");
        }
        require(m.copy_count == 0, "deadlock: a copy is stuck");
        for (std::size_t i = 0; i < setup_.batches && !m.ring.is_stopped; ++i) {
            require(m.outcome[i] == Outcome::delivered || m.outcome[i] == Outcome::cancelled,
                    "deadlock: a batch is neither delivered nor cancelled");
        }
        for (const std::vector<RingSlot>* const slots : {&m.ring.host, &m.ring.device}) {
            for (const RingSlot& slot : *slots) {
                require(m.ring.is_stopped || slot.phase == SlotPhase::free || slot.phase == SlotPhase::pending,
                        "a slot never became free");
            }
        }
    }

    // ---- Steps ----

    void expand(const Model& m) {
        for (std::size_t w = 0; w < m.workers.size(); ++w) {
            if (w == 1 && m.workers[0] == m.workers[1]) {
                continue;
            }
            expand_worker(m, w);
        }
        for (std::size_t c = 0; c < m.consumers.size(); ++c) {
            if (c == 1 && m.consumers[0] == m.consumers[1]) {
                continue;
            }
            expand_consumer(m, c);
        }
        if (m.copy_count != 0) {  // the device ends its oldest copy
            Model n = m;
            const CopyModel copy = n.copies[0];
            require(n.host[copy.host].serial == copy.serial, "a host slot was refilled before its copy ended");
            std::move(n.copies.begin() + 1, n.copies.begin() + n.copy_count, n.copies.begin());
            n.copies[--n.copy_count] = {};
            add(std::move(n));
        }
    }

    /// Stop, seek and drop: at any point.
    void interrupt(const Model& m) {
        if (m.stops != 0) {
            Model n = m;
            --n.stops;
            n.ring.stop();
            add(std::move(n));
        }
        if (m.seeks != 0 &&
            !m.ring.is_stopped) {  // everything that is not taken is cancelled; the plan goes on behind it
            Model n = m;
            --n.seeks;
            cancel(n, n.ring.next_begin);
            n.take_epoch = std::max(n.take_epoch, epoch_of(n.next_serial));
            set_barrier(n);
            add(std::move(n));
        }
        if (m.drops != 0 && m.take_epoch == 0 && !m.ring.is_stopped) {  // the first epoch is given up
            Model n = m;
            --n.drops;
            std::uint64_t end = n.ring.next_begin;
            for (std::size_t i = 0; i < n.ring.host.size(); ++i) {
                const RingSlot& slot = n.ring.host[i];
                const bool is_on_its_way = slot.phase == SlotPhase::filling || slot.phase == SlotPhase::sealing ||
                                           slot.phase == SlotPhase::filled || slot.phase == SlotPhase::copying ||
                                           slot.phase == SlotPhase::ready;
                if (is_on_its_way && !slot.is_cancelled && epoch_of(n.host[i].serial) == 1) {
                    end = std::min(end, slot.batch);
                }
            }
            for (std::size_t i = 0; i < n.ring.device.size(); ++i) {
                if (n.ring.device[i].phase == SlotPhase::ready && epoch_of(n.device[i]) == 1) {
                    end = std::min(end, n.ring.device[i].batch);
                }
            }
            if (n.next_serial <= setup_.border) {
                cancel(n, end);
                for (; n.next_serial < setup_.border; ++n.next_serial) {
                    n.outcome[n.next_serial] = Outcome::cancelled;
                }
            } else {
                n.ring.cancel_before(end);
            }
            for (std::uint8_t i = 0; i < setup_.border; ++i) {
                if (n.outcome[i] == Outcome::begun) {
                    n.outcome[i] = Outcome::cancelled;
                }
            }
            n.take_epoch = 1;
            set_barrier(n);
            add(std::move(n));
        }
    }

    /// The core's cancel_before and close_open, in one critical section.
    void cancel(Model& m, std::uint64_t end) {
        for (std::size_t i = 0; i < setup_.batches; ++i) {
            m.outcome[i] = m.outcome[i] == Outcome::begun ? Outcome::cancelled : m.outcome[i];
        }
        m.ring.cancel_before(end);
        if (m.open != nothing) {
            const std::uint8_t slot = std::exchange(m.open, nothing);
            if (is(Fault::cancelled_tickets_stay_open)) {
                return;
            }
            const std::uint32_t never = TicketCounter::left_of(std::exchange(m.host[slot].word, 0));
            end_rows(m, slot, static_cast<std::uint8_t>(never));
        }
    }
    void end_rows(Model& m, std::uint8_t slot, std::uint8_t count) {
        if (count == 0) {
            return;
        }
        require(m.host[slot].left >= count, "more rows ended than there are");
        m.host[slot].left = static_cast<std::uint8_t>(m.host[slot].left - count);
        if (m.host[slot].left == 0 && !is(Fault::last_row_is_not_told)) {
            require(!m.ring.fill_ended(slot), "a closed batch was not cancelled");
        }
    }
    void set_barrier(Model& m) const {
        if (m.ring.is_ordered) {
            return;
        }
        m.ring.barrier = ~std::uint64_t{0};
        for (std::size_t i = 0; i < m.ring.host.size(); ++i) {
            const RingSlot& slot = m.ring.host[i];
            if (slot.phase != SlotPhase::free && slot.phase != SlotPhase::leased && slot.phase != SlotPhase::pending &&
                slot.phase != SlotPhase::reaping && !slot.is_cancelled && epoch_of(m.host[i].serial) > m.take_epoch) {
                m.ring.barrier = std::min(m.ring.barrier, slot.batch);
            }
        }
    }

    void expand_worker(const Model& m, std::size_t w) {
        using At = WorkerModel::At;
        const WorkerModel worker = m.workers[w];
        const auto with = [&](Model n, WorkerModel next) {
            n.workers[w] = next;
            add(std::move(n));
        };
        switch (worker.at) {
            case At::idle: expand_idle_worker(m, w); break;
            case At::saw_open:  // the relaxed look at the counter
                with(m, TicketCounter::left_of(m.host[worker.slot].word) == 0
                            ? WorkerModel{}
                            : WorkerModel{At::saw_tickets, worker.slot});
                break;
            case At::saw_tickets: {  // the fetch_add
                Model n = m;
                take_ticket(n, w, worker.slot);
                add(std::move(n));
                break;
            }
            case At::working: {
                Model n = m;
                HostModel& slot = n.host[worker.slot];
                require(slot.left != 0, "more rows ended than there are");
                --slot.left;
                n.workers[w] =
                    slot.left != 0 ? WorkerModel{} : WorkerModel{At::ended_last, worker.slot, nothing, worker.serial};
                add(std::move(n));
                if (m.retracts != 0 && worker.slot == m.open && !m.ring.host[worker.slot].is_cancelled &&
                    m.ring.host[worker.slot].batch + 1 == m.ring.next_begin) {
                    retract(m, w);
                }
                break;
            }
            case At::ended_last: {
                Model n = m;
                if (is(Fault::cancel_is_forgotten)) {
                    n.ring.host[worker.slot].is_cancelled = false;
                }
                n.workers[w] = n.ring.fill_ended(worker.slot)
                                   ? WorkerModel{At::sealing, worker.slot, nothing, worker.serial}
                                   : WorkerModel{};
                add(std::move(n));
                break;
            }
            case At::sealing: {
                Model n = m;
                n.ring.sealed(worker.slot);
                n.workers[w] = {};
                add(std::move(n));
                break;
            }
            case At::copying: {
                const RingState::CopyPair pair{worker.slot, worker.device};
                Model n = m;
                n.copies[n.copy_count++] = {worker.slot, worker.device, worker.serial};
                n.ring.copy_enqueued(pair);
                n.workers[w] = {};
                if (is(Fault::host_slot_freed_before_its_copy_ends)) {
                    n.ring.host[worker.slot] = {};
                }
                add(std::move(n));
                if (m.copy_failures != 0) {
                    Model f = m;
                    --f.copy_failures;
                    f.ring.copy_failed(pair);
                    f.workers[w] = {};
                    add(std::move(f));
                }
                break;
            }
            case At::reaping: {
                for (std::size_t i = 0; i < m.copy_count; ++i) {
                    if (m.copies[i].host == worker.slot) {
                        return;  // still waits
                    }
                }
                Model n = m;
                n.ring.reaped(worker.slot);
                n.workers[w] = {};
                add(std::move(n));
                break;
            }
        }
    }

    void take_ticket(Model& n, std::size_t w, std::uint8_t index) {
        HostModel& slot = n.host[index];
        std::optional<std::uint32_t> ticket = TicketCounter::ticket_of(slot.word);
        if (is(Fault::ticket_ignores_its_limit)) {
            ticket = static_cast<std::uint32_t>(slot.word);
        }
        ++slot.word;
        n.workers[w] = {};
        if (!ticket) {
            return;
        }
        require(*ticket < setup_.units && (slot.given >> *ticket & 1U) == 0,
                "a ticket was handed out twice, or never existed");
        require(n.ring.host[index].phase == SlotPhase::filling, "a ticket of a batch that is not being filled");
        slot.given = static_cast<std::uint8_t>(slot.given | 1U << *ticket);
        n.workers[w] = {WorkerModel::At::working, index, nothing, slot.serial};
    }

    /// The generator has ended in the worker's row: the batch is left out, and its number goes to the next one.
    void retract(const Model& m, std::size_t w) {
        Model n = m;
        --n.retracts;
        const WorkerModel worker = n.workers[w];
        HostModel& slot = n.host[worker.slot];
        n.open = nothing;
        const auto never = static_cast<std::uint8_t>(TicketCounter::left_of(std::exchange(slot.word, 0)));
        const bool is_last = slot.left == never + 1;
        slot.left = static_cast<std::uint8_t>(slot.left - never);
        n.outcome[worker.serial] = Outcome::cancelled;
        n.ring.retract(worker.slot, is_last);
        if (is_last) {
            slot.left = 0;
            n.workers[w] = {};
        }
        pass_epoch(n);
        add(std::move(n));
    }

    /// A worker's step under the mutex, in the core's order: copy, open batch, next batch, reap.
    void expand_idle_worker(const Model& m, std::size_t w) {
        if (m.ring.is_stopped) {
            return;
        }
        if (m.open != nothing && TicketCounter::left_of(m.host[m.open].word) != 0) {  // the way without the mutex
            Model n = m;
            n.workers[w] = {WorkerModel::At::saw_open, m.open, nothing, nothing};
            add(std::move(n));
        }
        Model n = m;
        if (const auto pair = start_copy(n)) {
            const auto host = static_cast<std::uint8_t>(pair->host);
            const auto device = static_cast<std::uint8_t>(pair->device);
            n.device[device] = n.host[host].serial;
            n.workers[w] = {WorkerModel::At::copying, host, device, n.host[host].serial};
            add(std::move(n));
            return;
        }
        if (m.open != nothing && TicketCounter::left_of(m.host[m.open].word) != 0) {
            n = m;
            take_ticket(n, w, m.open);
            add(std::move(n));
            return;
        }
        if (m.next_serial == setup_.batches) {
            return;  // the plan's end
        }
        n = m;
        std::optional<std::size_t> begun = n.ring.begin();
        if (!begun && is(Fault::leased_slot_is_begun)) {
            for (std::size_t i = 0; i < n.ring.host.size() && !begun; ++i) {
                if (n.ring.host[i].phase == SlotPhase::leased) {
                    n.ring.host[i] = {SlotPhase::filling, false, false, n.ring.next_begin++};
                    begun = i;
                }
            }
        }
        if (begun) {
            const auto index = static_cast<std::uint8_t>(*begun);
            for (const WorkerModel& other : n.workers) {
                require(other.slot != index || other.at == WorkerModel::At::saw_open ||
                            other.at == WorkerModel::At::saw_tickets,
                        "a slot was begun that a worker still has");
            }
            n.host[index] = {TicketCounter::open_word(setup_.units), setup_.units, n.next_serial, 0};
            n.outcome[n.next_serial++] = Outcome::begun;
            n.open = index;
            set_barrier(n);
            add(std::move(n));
            return;
        }
        n = m;
        if (const std::optional<std::size_t> slot = n.ring.start_reap()) {
            n.workers[w] = {WorkerModel::At::reaping, static_cast<std::uint8_t>(*slot), nothing, nothing};
            add(std::move(n));
        }
    }

    [[nodiscard]] std::optional<RingState::CopyPair> start_copy(Model& n) const {
        if (!has_copies()) {
            return std::nullopt;
        }
        if (is(Fault::copies_out_of_order) && !n.ring.is_copying) {
            for (std::size_t h = n.ring.host.size(); h-- > 0;) {
                for (std::size_t d = 0; d < n.ring.device.size(); ++d) {
                    if (n.ring.host[h].phase == SlotPhase::filled && n.ring.device[d].phase == SlotPhase::free) {
                        n.ring.is_copying = true;
                        n.ring.host[h].phase = SlotPhase::copying;
                        n.ring.device[d] = {SlotPhase::copying, false, false, n.ring.host[h].batch};
                        return RingState::CopyPair{h, d};
                    }
                }
            }
            return std::nullopt;
        }
        if (is(Fault::leased_device_slot_is_copied_to)) {
            for (RingSlot& slot : n.ring.device) {
                slot = slot.phase == SlotPhase::leased ? RingSlot{} : slot;
            }
        }
        return n.ring.start_copy();
    }

    void expand_consumer(const Model& m, std::size_t c) {
        if (m.consumers[c].outlet != nothing) {
            Model n = m;
            const std::uint8_t outlet = n.consumers[c].outlet;
            n.consumers[c] = {};
            if (is(Fault::given_back_slot_stays_leased)) {
                --n.ring.leases;
            } else {
                n.ring.give_back(outlet);
            }
            add(std::move(n));
            return;
        }
        if (m.ring.is_stopped) {
            return;
        }
        for (std::size_t i = 0; i < m.ring.host.size(); ++i) {  // the consumer is told of a copy that failed
            if (m.ring.host[i].phase == SlotPhase::filled && m.ring.host[i].is_held &&
                (!m.ring.is_ordered || m.ring.host[i].batch == m.ring.next_deliver)) {
                Model n = m;
                n.ring.retry_copy(i);
                add(std::move(n));
                return;
            }
        }
        if (m.ring.leases == m.ring.lease_limit) {
            return;
        }
        std::optional<std::size_t> due = m.ring.due();
        if (is(Fault::delivers_what_is_ready_first)) {
            for (std::size_t i = 0; i < m.ring.outlets().size() && !due; ++i) {
                due = m.ring.outlets()[i].phase == SlotPhase::ready ? std::optional{i} : std::nullopt;
            }
        }
        if (!due) {
            return;
        }
        const auto outlet = static_cast<std::uint8_t>(*due);
        const std::uint8_t serial = has_copies() ? m.device[outlet] : m.host[outlet].serial;
        Model n = m;
        end_batch(n, serial);
        n.ring.deliver(outlet);
        if (is(Fault::lease_is_not_counted)) {
            --n.ring.leases;
        }
        n.consumers[c] = {outlet, serial};
        add(std::move(n));
        if (m.discards != 0) {
            Model d = m;
            --d.discards;
            end_batch(d, serial);
            d.ring.discard(outlet);
            add(std::move(d));
        }
    }

    /// The batch reaches the consumer, or is passed over where it would have.
    void end_batch(Model& n, std::uint8_t serial) {
        require(n.outcome[serial] != Outcome::cancelled, "a cancelled batch was delivered");
        require(n.outcome[serial] == Outcome::begun, "a batch was delivered twice");
        require(epoch_of(serial) == n.take_epoch, "a batch was delivered outside its epoch");
        if (n.ring.is_ordered) {
            for (std::uint8_t i = 0; i < serial; ++i) {
                require(n.outcome[i] == Outcome::delivered || n.outcome[i] == Outcome::cancelled,
                        "a batch was delivered out of order");
            }
        }
        n.outcome[serial] = Outcome::delivered;
        n.last_delivered = serial;
        pass_epoch(n);
    }
    void pass_epoch(Model& n) const {
        bool is_over = n.take_epoch == 0;
        for (std::uint8_t i = 0; i < setup_.border; ++i) {
            is_over = is_over && (n.outcome[i] == Outcome::delivered || n.outcome[i] == Outcome::cancelled);
        }
        if (is_over) {
            n.take_epoch = 1;
            set_barrier(n);
        }
    }

    Scenario setup_;
    std::unordered_set<Key, KeyHash> seen_;
    std::vector<Model> stack_;  // seen, not expanded yet
    std::size_t successors_ = 0;
    std::size_t ends_ = 0;
    std::string error_;
};

std::string name_of(const Scenario& s) {
    return std::to_string(s.host) + " host, " + std::to_string(s.device) + " device slots, " +
           std::to_string(s.leases) + " leases, " + (s.is_ordered ? "ordered" : "unordered") + ", " +
           std::to_string(s.batches) + " batches of " + std::to_string(s.units);
}

/// The scenario with a seek, with a dropped epoch, and with a stop, at any point: one of them at a time.
void for_each_interruption(Scenario scenario, std::vector<Scenario>& scenarios) {
    for (int which = 0; which < 3; ++which) {
        scenario.seeks = which == 0 ? 1 : 0;
        scenario.drops = which == 1 ? 1 : 0;
        scenario.stops = which == 2 ? 1 : 0;
        scenarios.push_back(scenario);
    }
}

std::size_t explore(const std::vector<Scenario>& setups) {
    std::size_t states = 0;
    for (const Scenario& setup : setups) {
        const Explorer::Result result = Explorer{setup}.run();
        EXPECT_EQ(result.error, "") << name_of(setup);
        EXPECT_GT(result.ends, 0U) << name_of(setup);
        states += result.states;
    }
    std::printf("  %zu rings, %zu states\n", setups.size(), states);
    return states;
}

// The exploration runs on one thread: a sanitizer, which makes it fifty times slower, gets a shorter plan.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool is_sanitized = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
constexpr bool is_sanitized = true;
#else
constexpr bool is_sanitized = false;
#endif
#else
constexpr bool is_sanitized = false;
#endif

/// STOKER_DEEP=1: a batch more than usual, for when there is time.
std::uint8_t plan_of(unsigned batches) {
    const bool is_deep = std::getenv("STOKER_DEEP") != nullptr;
    return static_cast<std::uint8_t>(batches + (is_deep ? 1U : 0U) - (is_sanitized && !is_deep ? 1U : 0U));
}

TEST(RingExplorationTest, EveryInterleavingWithoutCopiesIsSafeAndEnds) {
    std::vector<Scenario> all;
    for (const bool is_ordered : {true, false}) {
        all.push_back({.host = 1, .is_ordered = is_ordered, .batches = plan_of(3), .discards = 1, .retracts = 1});
        all.push_back(
            {.host = 2, .ahead = 1, .is_ordered = is_ordered, .batches = plan_of(3), .discards = 1, .retracts = 1});
        all.push_back({.host = 2, .leases = 2, .is_ordered = is_ordered, .batches = plan_of(3)});
        for_each_interruption({.host = 3, .ahead = 2, .is_ordered = is_ordered, .batches = plan_of(4)}, all);
        for_each_interruption({.host = 3, .leases = 2, .ahead = 1, .is_ordered = is_ordered, .batches = plan_of(4)},
                              all);
        for_each_interruption({.host = 3, .leases = 2, .is_ordered = is_ordered, .batches = plan_of(4), .units = 1},
                              all);
    }
    RecordProperty("states", std::to_string(explore(all)));
}

TEST(RingExplorationTest, EveryInterleavingWithPendingCopiesIsSafeAndEnds) {
    std::vector<Scenario> all;
    for (const bool is_ordered : {true, false}) {
        all.push_back({.host = 1, .device = 2, .is_ordered = is_ordered, .batches = plan_of(3), .copy_failures = 1});
        all.push_back({.host = 2,
                       .device = 2,
                       .is_ordered = is_ordered,
                       .batches = plan_of(is_ordered ? 3 : 2),
                       .border = 1,
                       .units = 1});
        for_each_interruption({.host = 2, .device = 2, .is_ordered = is_ordered, .batches = plan_of(3)}, all);
        for_each_interruption(
            {.host = 2, .device = 2, .is_ordered = is_ordered, .batches = plan_of(3), .units = 1, .copy_failures = 1},
            all);
        for_each_interruption(
            {.host = 2, .device = 3, .leases = 2, .is_ordered = is_ordered, .batches = plan_of(3), .units = 1}, all);
        for_each_interruption({.host = 3, .device = 2, .is_ordered = is_ordered, .batches = plan_of(3), .units = 1},
                              all);
        all.push_back({.host = 3,
                       .device = 2,
                       .is_ordered = is_ordered,
                       .batches = plan_of(4),
                       .units = 1,
                       .seeks = 0,
                       .drops = 0});
    }
    RecordProperty("states", std::to_string(explore(all)));
}

/// A setup in which the fault has room to do harm, and words of the complaint.
struct Planted {
    Fault fault;
    Scenario setup;
    const char* complaint;
};

TEST(RingExplorationTest, EveryPlantedFaultIsCaught) {
    const std::vector<Planted> all{
        {Fault::host_slot_freed_before_its_copy_ends, {.host = 2, .device = 2, .batches = 3}, "copy"},
        {Fault::leased_slot_is_begun, {.host = 2, .batches = 3}, "leased slot"},
        {Fault::leased_device_slot_is_copied_to, {.host = 2, .device = 2, .batches = 3}, "leased"},
        {Fault::copies_out_of_order,
         {.host = 3, .device = 2, .batches = 4, .units = 1, .seeks = 0, .drops = 0, .stops = 0},
         "deadlock"},
        {Fault::delivers_what_is_ready_first, {.host = 2, .batches = 3}, "out"},
        {Fault::cancel_is_forgotten, {.host = 2, .batches = 3}, ""},
        {Fault::given_back_slot_stays_leased,
         {.host = 2, .batches = 3, .seeks = 0, .drops = 0, .stops = 0},
         "deadlock"},
        {Fault::lease_is_not_counted, {.host = 2, .batches = 3}, "leases"},
        {Fault::ticket_ignores_its_limit, {.host = 2, .batches = 3}, "ticket"},
        {Fault::cancelled_tickets_stay_open, {.host = 2, .batches = 3}, ""},
        {Fault::last_row_is_not_told, {.host = 1, .batches = 3, .stops = 0}, ""},
    };
    for (Planted planted : all) {
        if (!is_sanitized) {
            ASSERT_EQ(Explorer{planted.setup}.run().error, "") << "the setup is sound without the fault";
        }
        planted.setup.fault = planted.fault;
        const Explorer::Result result = Explorer{planted.setup}.run();
        EXPECT_NE(result.error, "") << "fault " << static_cast<int>(planted.fault);
        EXPECT_NE(result.error.find(planted.complaint), std::string::npos)
            << "fault " << static_cast<int>(planted.fault) << ": " << result.error;
        std::printf("  fault %d: %s (after %zu states)\n", static_cast<int>(planted.fault), result.error.c_str(),
                    result.states);
    }
}

}  // namespace
