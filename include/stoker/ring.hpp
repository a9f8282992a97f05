// SPDX-License-Identifier: MIT
/// @file
/// Who owns which slot: the ring's states and their only transitions, as functions on a small value. Threads, mutexes
/// and waits stand around it (detail/core.hpp); nothing else decides about a slot.
///
/// Without a device copy a batch goes through one slot:
///     free -> filling -> sealing -> ready -> leased -> free
/// With one it goes through a host slot and then a device slot, and the host slot is free again when its copy is done:
///     host:   free -> filling -> sealing -> filled -> copying -> pending -> reaping -> free
///     device: free -> copying -> ready -> leased -> free
/// A cancelled batch (its epoch was dropped, or the plan was moved) goes to free at its next transition.
#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace stoker {
inline namespace v0 {

enum class SlotPhase : std::uint8_t {
    free,
    filling,  ///< Tickets of its batch are being handed out and worked on.
    sealing,  ///< All rows are done; one worker puts the batch in its final form.
    filled,   ///< Waits for a device slot.
    copying,  ///< A worker is enqueueing its copy (host and device slot alike).
    pending,  ///< Its copy is enqueued, and may still read it.
    reaping,  ///< A worker waits for the end of its copy.
    ready,    ///< Waits for a consumer.
    leased,   ///< Belongs to a consumer.
};

struct RingSlot {
    SlotPhase phase = SlotPhase::free;
    bool is_cancelled = false;
    bool is_held = false;     ///< filled, but its copy failed and the consumer has not been told yet
    std::uint64_t batch = 0;  ///< Sequence number of its batch, over all epochs.
    friend bool operator==(const RingSlot&, const RingSlot&) = default;
};

/// The state of all slots. A value: it can be copied, compared and explored. No transition allocates or blocks.
struct RingState {
    std::vector<RingSlot> host;
    std::vector<RingSlot> device;  ///< Empty: no copies; batches are leased from the host slots.
    std::size_t lease_limit = 1;
    std::size_t ahead_limit = ~std::size_t{0};  ///< Host slots that hold batches not yet leased, at most.
    bool is_ordered = true;
    std::uint64_t barrier =
        ~std::uint64_t{0};  ///< Unordered: batches from this one on belong to a later epoch and wait.

    std::uint64_t next_begin = 0;    ///< The batch that is begun next.
    std::uint64_t next_copy = 0;     ///< Ordered: the batch that is copied next.
    std::uint64_t next_deliver = 0;  ///< Ordered: the batch that is delivered next.
    std::size_t leases = 0;          ///< Leases that are out.
    bool is_copying = false;         ///< One copy is enqueued at a time, so that copies keep their order.
    bool is_stopped = false;

    friend bool operator==(const RingState&, const RingState&) = default;

    struct CopyPair {
        std::size_t host, device;
    };

    [[nodiscard]] bool has_copies() const noexcept { return !device.empty(); }
    /// The slots that consumers lease from.
    [[nodiscard]] std::vector<RingSlot>& outlets() noexcept { return has_copies() ? device : host; }
    [[nodiscard]] const std::vector<RingSlot>& outlets() const noexcept { return has_copies() ? device : host; }

    /// Whether there is a free host slot for the next batch.
    [[nodiscard]] bool can_begin() const noexcept {
        std::size_t ahead = 0;
        std::size_t free = 0;
        for (const RingSlot& slot : host) {
            ahead += slot.phase != SlotPhase::free && slot.phase != SlotPhase::leased ? 1 : 0;
            free += slot.phase == SlotPhase::free ? 1 : 0;
        }
        return !is_stopped && free != 0 && ahead < ahead_limit;
    }

    /// Takes a free host slot for the next batch.
    [[nodiscard]] std::optional<std::size_t> begin() noexcept {
        const std::optional<std::size_t> slot = can_begin() ? find(host, SlotPhase::free) : std::nullopt;
        if (slot) {
            host[*slot] = {SlotPhase::filling, false, false, next_begin++};
        }
        return slot;
    }

    /// The batch that was begun last turned out to have no rows to deliver: its number goes to the next one. The slot
    /// is freed at once, or, when rows of it are still being worked on, at its next transition.
    void retract(std::size_t slot, bool is_idle) noexcept {
        assert(host[slot].phase == SlotPhase::filling && host[slot].batch + 1 == next_begin);
        --next_begin;
        if (is_idle) {
            host[slot] = {};
        } else {
            host[slot].is_cancelled = true;
        }
    }

    /// The last row of the batch has ended. @return whether the caller has to seal it; else the slot is free.
    [[nodiscard]] bool fill_ended(std::size_t slot) noexcept {
        assert(host[slot].phase == SlotPhase::filling);
        if (host[slot].is_cancelled) {
            host[slot] = {};
            return false;
        }
        host[slot].phase = SlotPhase::sealing;
        return true;
    }

    /// The batch is in its final form.
    void sealed(std::size_t slot) noexcept {
        assert(host[slot].phase == SlotPhase::sealing);
        if (host[slot].is_cancelled) {
            host[slot] = {};
        } else {
            host[slot].phase = has_copies() ? SlotPhase::filled : SlotPhase::ready;
        }
    }

    /// Pairs the host slot whose copy is due with a free device slot.
    [[nodiscard]] std::optional<CopyPair> start_copy() noexcept {
        if (is_copying || is_stopped) {
            return std::nullopt;
        }
        const std::optional<std::size_t> from = find_lowest(host, SlotPhase::filled);
        const std::optional<std::size_t> to = find(device, SlotPhase::free);
        if (!from || !to || host[*from].is_held || !is_in_turn(host[*from], next_copy)) {
            return std::nullopt;
        }
        is_copying = true;
        host[*from].phase = SlotPhase::copying;
        device[*to] = {SlotPhase::copying, false, false, host[*from].batch};
        return CopyPair{*from, *to};
    }

    /// The copy and the event behind it are enqueued: the batch may be leased, the host slot waits for the event.
    void copy_enqueued(CopyPair pair) noexcept {
        assert(is_copying && host[pair.host].phase == SlotPhase::copying);
        is_copying = false;
        const bool is_cancelled = device[pair.device].is_cancelled;
        host[pair.host].phase = SlotPhase::pending;
        if (is_cancelled) {
            device[pair.device] = {};
        } else {
            device[pair.device].phase = SlotPhase::ready;
            next_copy = device[pair.device].batch + 1 > next_copy ? device[pair.device].batch + 1 : next_copy;
        }
    }

    /// The copy could not be enqueued, and nothing of it is under way: the batch is held until `retry_copy`.
    void copy_failed(CopyPair pair) noexcept {
        assert(is_copying && host[pair.host].phase == SlotPhase::copying);
        is_copying = false;
        if (device[pair.device].is_cancelled) {
            host[pair.host] = {};
        } else {
            host[pair.host].phase = SlotPhase::filled;
            host[pair.host].is_held = true;
        }
        device[pair.device] = {};
    }
    void retry_copy(std::size_t slot) noexcept { host[slot].is_held = false; }

    /// Chooses the oldest host slot whose copy may be under way; the caller waits for the copy's event.
    [[nodiscard]] std::optional<std::size_t> start_reap() noexcept {
        const std::optional<std::size_t> slot = find_lowest(host, SlotPhase::pending);
        if (slot) {
            host[*slot].phase = SlotPhase::reaping;
        }
        return slot;
    }
    /// Nobody knows whether the copy has ended: the slot stays as it was.
    void reap_failed(std::size_t slot) noexcept {
        assert(host[slot].phase == SlotPhase::reaping);
        host[slot].phase = SlotPhase::pending;
    }
    void reaped(std::size_t slot) noexcept {
        assert(host[slot].phase == SlotPhase::reaping);
        host[slot] = {};
    }

    /// The outlet whose batch is due, if it is ready; nothing changes.
    [[nodiscard]] std::optional<std::size_t> due() const noexcept {
        const std::optional<std::size_t> slot = find_lowest(outlets(), SlotPhase::ready);
        if (!slot || !is_in_turn(outlets()[*slot], next_deliver)) {
            return std::nullopt;
        }
        return slot;
    }
    /// Leases the outlet that `due` named.
    void deliver(std::size_t slot) noexcept {
        assert(outlets()[slot].phase == SlotPhase::ready && leases < lease_limit);
        outlets()[slot].phase = SlotPhase::leased;
        ++leases;
        if (is_ordered) {
            ++next_deliver;
        }
    }
    /// Passes over the due outlet without a lease: there is nothing in it that anybody could use.
    void discard(std::size_t slot) noexcept {
        assert(outlets()[slot].phase == SlotPhase::ready);
        outlets()[slot] = {};
        if (is_ordered) {
            ++next_deliver;
        }
    }
    void give_back(std::size_t slot) noexcept {
        assert(outlets()[slot].phase == SlotPhase::leased && leases > 0);
        outlets()[slot] = {};
        --leases;
    }

    /// Cancels every batch before number `end` that is not leased.
    void cancel_before(std::uint64_t end) noexcept {
        cancel(host, end);
        cancel(device, end);
        next_copy = end > next_copy ? end : next_copy;
        next_deliver = end > next_deliver ? end : next_deliver;
    }

    void stop() noexcept { is_stopped = true; }

  private:
    [[nodiscard]] bool is_in_turn(const RingSlot& slot, std::uint64_t next) const noexcept {
        return is_ordered ? slot.batch == next : slot.batch < barrier;
    }
    [[nodiscard]] static std::optional<std::size_t> find(const std::vector<RingSlot>& slots, SlotPhase phase) noexcept {
        for (std::size_t i = 0; i < slots.size(); ++i) {
            if (slots[i].phase == phase) {
                return i;
            }
        }
        return std::nullopt;
    }
    [[nodiscard]] static std::optional<std::size_t> find_lowest(const std::vector<RingSlot>& slots,
                                                                SlotPhase phase) noexcept {
        std::optional<std::size_t> lowest;
        for (std::size_t i = 0; i < slots.size(); ++i) {
            if (slots[i].phase == phase && (!lowest || slots[i].batch < slots[*lowest].batch)) {
                lowest = i;
            }
        }
        return lowest;
    }
    static void cancel(std::vector<RingSlot>& slots, std::uint64_t end) noexcept {
        for (RingSlot& slot : slots) {
            if (slot.batch >= end) {
                continue;
            }
            switch (slot.phase) {
                case SlotPhase::ready:
                case SlotPhase::filled: slot = {}; break;
                case SlotPhase::filling:
                case SlotPhase::sealing:
                case SlotPhase::copying: slot.is_cancelled = true; break;
                case SlotPhase::free:
                case SlotPhase::pending:
                case SlotPhase::reaping:
                case SlotPhase::leased: break;
            }
        }
    }
};

/// The tickets of one batch: numbers 0 .. units - 1, each handed out once, without a lock.
/// One word holds both the limit and the next number, so that a thread that comes late, when the slot already serves
/// another batch or none, gets a right ticket of that batch or none.
class TicketCounter {
  public:
    /// The word's two halves, as pure functions, for tests that explore interleavings.
    [[nodiscard]] static constexpr std::uint64_t open_word(std::uint32_t units) noexcept {
        return std::uint64_t{units} << 32;
    }
    [[nodiscard]] static constexpr std::optional<std::uint32_t> ticket_of(std::uint64_t word) noexcept {
        const auto next = static_cast<std::uint32_t>(word);
        return next < static_cast<std::uint32_t>(word >> 32) ? std::optional{next} : std::nullopt;
    }
    /// Tickets not handed out yet.
    [[nodiscard]] static constexpr std::uint32_t left_of(std::uint64_t word) noexcept {
        const auto next = static_cast<std::uint32_t>(word);
        const auto limit = static_cast<std::uint32_t>(word >> 32);
        return next < limit ? limit - next : 0;
    }

    /// Publishes the batch that the slot was prepared for to the threads whose `take` succeeds.
    void open(std::uint32_t units) noexcept { word_.store(open_word(units), std::memory_order_release); }
    /// A ticket, in order, or none: all are handed out, or the counter is closed.
    [[nodiscard]] std::optional<std::uint32_t> take() noexcept {
        if (left_of(word_.load(std::memory_order_relaxed)) == 0) {
            return std::nullopt;  // keeps the number from running on while threads find nothing
        }
        return ticket_of(word_.fetch_add(1, std::memory_order_acq_rel));
    }
    /// Whether there is a ticket to take, at this moment.
    [[nodiscard]] bool has_tickets() const noexcept { return left_of(word_.load(std::memory_order_relaxed)) != 0; }
    /// Hands out no more. @return how many tickets are thereby never handed out
    std::uint32_t close() noexcept { return left_of(word_.exchange(0, std::memory_order_acq_rel)); }

  private:
    std::atomic<std::uint64_t> word_{0};  // publishes the slot's batch (plan, rows) to the threads that take tickets
};

}  // namespace v0
}  // namespace stoker
