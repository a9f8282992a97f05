// SPDX-License-Identifier: MIT
/// @file
/// A device of memory and queues: copies, waits and event records lie in streams and end when the test says so. It
/// checks what a real device would punish now and then, every time: host memory written under a pending copy, device
/// memory overwritten or freed while a stream may use it, unordered access, use after destruction.
///
/// Order is checked with vector clocks, not by luck: an access is wrong when nothing (a stream's order, an event waited
/// for, a host wait) puts it behind the accesses that it conflicts with, even if it happens to run later.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <source_location>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <stoker/device.hpp>

#include "kit.hpp"

namespace testing_support {

/// The calls of a device, for its log and for faults on demand.
enum class Call : std::uint8_t {
    bind_thread,
    allocate_host,
    free_host,
    allocate_device,
    free_device,
    copy_stream,
    create_event,
    destroy_event,
    copy_in,
    copy_out,
    record,
    wait,
    synchronize,
    synchronize_stream,
    is_done,
    count_,
};

[[nodiscard]] inline const char* to_string(Call call) {
    constexpr std::array<const char*, static_cast<std::size_t>(Call::count_)> names{
        "bind_thread",  "allocate_host",      "free_host", "allocate_device", "free_device", "copy_stream",
        "create_event", "destroy_event",      "copy_in",   "copy_out",        "record",      "wait",
        "synchronize",  "synchronize_stream", "is_done"};
    return names[static_cast<std::size_t>(call)];
}
inline void PrintTo(Call call, std::ostream* out) { *out << to_string(call); }

/// What a call throws when it was told to fail.
class FakeDeviceError : public std::runtime_error {
  public:
    explicit FakeDeviceError(Call call)
        : std::runtime_error{std::string{"the fake device failed in "} + to_string(call)}, call_{call} {}
    [[nodiscard]] Call call() const noexcept { return call_; }

  private:
    Call call_;
};

/// When work (copies and kernels) ends. Waits and records end by themselves once they are at the front of their stream
/// and what they wait for is done.
enum class Completion : std::uint8_t {
    at_once,    ///< As soon as its stream's order allows, inside the call that enqueues it.
    when_told,  ///< One at a time, by `finish_next`, `finish_all` or a FakeDeviceRunner.
};

/// A model of stoker::DeviceModel. Copies of it are the same device. Thread-safe.
class FakeDevice {
  public:
    struct Stream {
        std::uint32_t id = 0;
        friend bool operator==(Stream, Stream) = default;
    };
    struct Event {
        std::uint32_t id = 0;
    };
    struct Entry {
        Call call{};
        std::uint32_t stream = 0;
        std::uint32_t event = 0;
        const void* to = nullptr;
        const void* from = nullptr;
        std::size_t bytes = 0;
        std::thread::id thread{};
    };
    static constexpr bool is_host_readable = true;
    static constexpr std::size_t alignment = 256;
    static constexpr std::byte fresh{0xdd};  // what device memory holds before it is written

    FakeDevice() : FakeDevice{Completion::at_once} {}
    explicit FakeDevice(Completion completion) : state_{std::make_shared<State>()} {
        state_->completion = completion;
        state_->streams.emplace_back();
    }

    // ---- The model
    // ----------------------------------------------------------------------------------------------------

    [[nodiscard]] std::string_view name() const noexcept { return "fake"; }
    [[nodiscard]] bool needs_copy() const noexcept { return true; }
    [[nodiscard]] bool page_locked() const noexcept { return true; }
    void bind_thread() {
        const std::lock_guard lock{state_->mutex};
        state_->begin({Call::bind_thread});
        state_->bound.insert(std::this_thread::get_id());
    }
    [[nodiscard]] void* allocate_host(std::size_t bytes) { return state_->allocate(Call::allocate_host, bytes); }
    void free_host(void* memory, std::size_t bytes) noexcept { state_->free(Call::free_host, memory, bytes); }
    [[nodiscard]] void* allocate_device(std::size_t bytes) { return state_->allocate(Call::allocate_device, bytes); }
    void free_device(void* memory, std::size_t bytes) noexcept { state_->free(Call::free_device, memory, bytes); }
    [[nodiscard]] Stream copy_stream() {
        const std::lock_guard lock{state_->mutex};
        state_->begin({Call::copy_stream});
        return {0};
    }
    [[nodiscard]] Event create_event() {
        const std::lock_guard lock{state_->mutex};
        state_->begin({Call::create_event});
        state_->events.push_back({});
        ++state_->live_events;
        return {static_cast<std::uint32_t>(state_->events.size() - 1)};
    }
    void destroy_event(Event event) noexcept {
        const std::lock_guard lock{state_->mutex};
        state_->log.push_back(entry({Call::destroy_event, 0, event.id}));
        EventState& e = state_->events[event.id];
        if (!e.is_alive) {
            state_->violate("event " + std::to_string(event.id) + " is destroyed twice");
            return;
        }
        if (e.pending != 0) {
            state_->violate("event " + std::to_string(event.id) + " is destroyed while a stream still uses it");
        }
        e.is_alive = false;
        --state_->live_events;
    }
    void copy_in(void* to, const void* from, std::size_t bytes, Stream stream) {
        enqueue_copy(Call::copy_in, to, from, bytes, stream);
    }
    void copy_out(void* to, const void* from, std::size_t bytes, Stream stream) {
        enqueue_copy(Call::copy_out, to, from, bytes, stream);
    }
    void record(Event event, Stream stream) {
        const StreamCall call{*state_, stream};
        const std::lock_guard lock{state_->mutex};
        state_->begin({Call::record, stream.id, event.id});
        EventState& e = state_->alive(event.id, "recorded");
        StreamState& s = state_->streams[stream.id];
        state_->advance(stream.id);
        e.clock = s.clock;
        ++e.recorded;
        ++e.pending;
        Op op;
        op.kind = Op::Kind::record;
        op.event = event.id;
        op.generation = e.recorded;
        state_->push(stream.id, std::move(op));
    }
    void wait(Stream stream, Event event) {
        const StreamCall call{*state_, stream};
        const std::lock_guard lock{state_->mutex};
        state_->begin({Call::wait, stream.id, event.id});
        EventState& e = state_->alive(event.id, "waited for");
        if (e.recorded == 0) {
            return;
        }
        state_->advance(stream.id);
        merge(state_->streams[stream.id].clock, e.clock);
        ++e.pending;
        Op op;
        op.kind = Op::Kind::wait;
        op.event = event.id;
        op.generation = e.recorded;
        state_->push(stream.id, std::move(op));
    }
    void synchronize(Event event) {
        std::unique_lock lock{state_->mutex};
        state_->begin({Call::synchronize, 0, event.id});
        EventState& e = state_->alive(event.id, "synchronised with");
        const std::uint64_t generation = e.recorded;
        const Clock clock = e.clock;
        ++state_->host_waits;
        state_->changed.notify_all();
        state_->wait_until(lock, "synchronize", [&] { return state_->events[event.id].done >= generation; });
        --state_->host_waits;
        merge(state_->host_clock, clock);
    }
    void synchronize_stream(Stream stream) {
        std::unique_lock lock{state_->mutex};
        state_->begin({Call::synchronize_stream, stream.id});
        const std::uint64_t enqueued = state_->streams[stream.id].enqueued;
        const Clock clock = state_->streams[stream.id].clock;
        ++state_->host_waits;
        state_->changed.notify_all();
        state_->wait_until(lock, "synchronize_stream", [&] { return state_->streams[stream.id].executed >= enqueued; });
        --state_->host_waits;
        merge(state_->host_clock, clock);
    }
    [[nodiscard]] bool is_done(Event event) {
        const std::lock_guard lock{state_->mutex};
        state_->begin({Call::is_done, 0, event.id});
        EventState& e = state_->alive(event.id, "asked for");
        const bool is_done = e.done >= e.recorded;
        if (is_done) {
            merge(state_->host_clock, e.clock);
        }
        return is_done;
    }

    // ---- What a consumer does
    // ------------------------------------------------------------------------------------------

    /// Another stream than that of the copies.
    [[nodiscard]] Stream new_stream() {
        const std::lock_guard lock{state_->mutex};
        state_->streams.emplace_back();
        return {static_cast<std::uint32_t>(state_->streams.size() - 1)};
    }
    /// Enqueues work that reads `bytes` of device memory; `body` runs when it does.
    void kernel(Stream stream, const void* memory, std::size_t bytes, std::function<void()> body = {}) {
        const StreamCall call{*state_, stream};
        const std::lock_guard lock{state_->mutex};
        state_->advance(stream.id);
        state_->access(stream.id, memory, bytes, false, "a kernel reads");
        Op op;
        op.kind = Op::Kind::kernel;
        op.to = const_cast<void*>(memory);
        op.bytes = bytes;
        op.body = std::move(body);
        state_->push(stream.id, std::move(op));
    }

    // ---- What a test does
    // -------------------------------------------------------------------------------------------------

    void set_completion(Completion completion) const {
        const std::lock_guard lock{state_->mutex};
        state_->completion = completion;
        state_->pump();
        state_->changed.notify_all();
    }
    /// Ends the oldest work that its stream's order allows to run. @return whether there was any
    bool finish_next() const {
        const std::lock_guard lock{state_->mutex};
        return state_->finish_one(std::nullopt);
    }
    /// The same for one stream.
    bool finish_next(Stream stream) const {
        const std::lock_guard lock{state_->mutex};
        return state_->finish_one(stream.id);
    }
    /// Ends all work that can end.
    void finish_all() const {
        const std::lock_guard lock{state_->mutex};
        while (state_->finish_one(std::nullopt)) {
        }
    }
    /// The n-th call of this kind from now on (1: the next) throws, and enqueues nothing. `times` calls in a row fail.
    void fail(Call call, std::size_t n = 1, std::size_t times = 1) const {
        const std::lock_guard lock{state_->mutex};
        const auto i = static_cast<std::size_t>(call);
        state_->fail_first[i] = state_->calls[i] + n;
        state_->fail_last[i] = state_->calls[i] + n + times - 1;
    }

    [[nodiscard]] std::vector<Entry> log() const {
        const std::lock_guard lock{state_->mutex};
        return state_->log;
    }
    /// The log's entries of these kinds, in order.
    [[nodiscard]] std::vector<Entry> log_of(std::set<Call> kinds) const {
        std::vector<Entry> entries = log();
        std::erase_if(entries, [&](const Entry& e) { return kinds.count(e.call) == 0; });
        return entries;
    }
    /// Calls of this kind so far, failed ones included.
    [[nodiscard]] std::size_t calls(Call call) const {
        const std::lock_guard lock{state_->mutex};
        return state_->calls[static_cast<std::size_t>(call)];
    }
    /// Waits until there were `n` calls of this kind; fails the test when that takes too long.
    void wait_for_calls(Call call, std::size_t n, std::source_location where = std::source_location::current()) const {
        std::unique_lock lock{state_->mutex};
        if (!state_->changed.wait_for(lock, hang_limit(),
                                      [&] { return state_->calls[static_cast<std::size_t>(call)] >= n; })) {
            const std::size_t seen = state_->calls[static_cast<std::size_t>(call)];
            lock.unlock();
            fail_as_hung(
                "waited for " + std::to_string(n) + " calls of " + to_string(call) + ", saw " + std::to_string(seen),
                where);
        }
    }
    /// Waits until `n` threads of the host are inside synchronize or synchronize_stream.
    void wait_for_host_waits(std::size_t n, std::source_location where = std::source_location::current()) const {
        std::unique_lock lock{state_->mutex};
        if (!state_->changed.wait_for(lock, hang_limit(), [&] { return state_->host_waits >= n; })) {
            lock.unlock();
            fail_as_hung("no thread waits for the device", where);
        }
    }
    /// Copies and kernels that have not ended.
    [[nodiscard]] std::size_t pending_work() const {
        const std::lock_guard lock{state_->mutex};
        std::size_t count = 0;
        for (const StreamState& stream : state_->streams) {
            for (const Op& op : stream.queue) {
                count += op.is_work() ? 1 : 0;
            }
        }
        return count;
    }
    /// Every broken rule so far, in words.
    [[nodiscard]] std::vector<std::string> violations() const {
        const std::lock_guard lock{state_->mutex};
        return state_->violations;
    }
    /// Device calls of threads that had not called bind_thread.
    [[nodiscard]] std::vector<Call> unbound_calls() const {
        const std::lock_guard lock{state_->mutex};
        return state_->unbound;
    }
    [[nodiscard]] std::size_t live_allocations() const {
        const std::lock_guard lock{state_->mutex};
        return state_->memory.size();
    }
    [[nodiscard]] std::size_t live_events() const {
        const std::lock_guard lock{state_->mutex};
        return state_->live_events;
    }
    /// Expects that no rule was broken and, with `is_over`, that everything was given back.
    void expect_clean(bool is_over = true, std::source_location where = std::source_location::current()) const {
        const ::testing::ScopedTrace trace{where.file_name(), static_cast<int>(where.line()), "expect_clean"};
        EXPECT_EQ(violations(), std::vector<std::string>{});
        if (is_over) {
            EXPECT_EQ(live_allocations(), 0U);
            EXPECT_EQ(live_events(), 0U);
        }
    }

  private:
    /// How far each stream has come, from someone's point of view.
    using Clock = std::vector<std::uint64_t>;
    static void merge(Clock& into, const Clock& from) {
        if (into.size() < from.size()) {
            into.resize(from.size());
        }
        for (std::size_t i = 0; i < from.size(); ++i) {
            into[i] = std::max(into[i], from[i]);
        }
    }
    [[nodiscard]] static bool covers(const Clock& clock, std::uint32_t stream, std::uint64_t number) {
        return stream < clock.size() && clock[stream] >= number;
    }
    [[nodiscard]] static Entry entry(Entry e) {
        e.thread = std::this_thread::get_id();
        return e;
    }

    struct Op {
        enum class Kind : std::uint8_t { copy, kernel, record, wait };
        Kind kind = Kind::copy;
        std::uint64_t order = 0;  // over all streams
        void* to = nullptr;
        const void* from = nullptr;
        std::size_t bytes = 0;
        std::uint64_t checksum = 0;  // of the source when it was enqueued
        std::uint32_t event = 0;
        std::uint64_t generation = 0;
        std::function<void()> body;
        [[nodiscard]] bool is_work() const { return kind == Kind::copy || kind == Kind::kernel; }
    };
    struct StreamState {
        std::deque<Op> queue;
        std::uint64_t enqueued = 0, executed = 0;
        Clock clock;  // behind everything enqueued so far
        bool is_in_call = false;
    };
    struct EventState {
        bool is_alive = true;
        std::uint64_t recorded = 0, done = 0;
        std::size_t pending = 0;  // records and waits in streams
        Clock clock;              // of the last record
    };
    struct Access {
        std::uint32_t stream;
        std::uint64_t number;
        const std::byte* begin;
        const std::byte* end;
        bool is_write;
    };
    struct Memory {
        std::size_t bytes;
        Call by;
    };

    struct State {
        std::mutex mutex;
        std::condition_variable changed;
        Completion completion = Completion::at_once;
        std::deque<StreamState> streams;
        std::deque<EventState> events;
        std::map<std::byte*, Memory> memory;
        std::vector<Access> accesses;  // that a later one may conflict with
        Clock host_clock;
        std::vector<Entry> log;
        std::array<std::size_t, static_cast<std::size_t>(Call::count_)> calls{}, fail_first{}, fail_last{};
        std::vector<std::string> violations;
        std::vector<Call> unbound;
        std::set<std::thread::id> bound;
        std::size_t live_events = 0;
        std::size_t host_waits = 0;
        std::uint64_t next_order = 0;

        ~State() {
            for (const auto& [address, block] : memory) {
                ::operator delete(address, std::align_val_t{alignment});
            }
        }

        void violate(std::string text) { violations.push_back(std::move(text)); }

        void begin(Entry e) {
            const auto i = static_cast<std::size_t>(e.call);
            const std::size_t number = ++calls[i];
            log.push_back(entry(e));
            if (e.call != Call::bind_thread && bound.count(std::this_thread::get_id()) == 0) {
                unbound.push_back(e.call);
            }
            changed.notify_all();
            if (fail_first[i] != 0 && number >= fail_first[i] && number <= fail_last[i]) {
                throw FakeDeviceError{e.call};
            }
        }
        [[nodiscard]] EventState& alive(std::uint32_t id, const char* what) {
            if (!events[id].is_alive) {
                violate("event " + std::to_string(id) + " is " + what + " after its destruction");
            }
            return events[id];
        }
        template <class Predicate>
        void wait_until(std::unique_lock<std::mutex>& lock, const char* what, Predicate predicate) {
            if (!changed.wait_for(lock, hang_limit(), predicate)) {
                lock.unlock();
                fail_as_hung(std::string{what} + " of the fake device: nobody finishes the work",
                             std::source_location::current());
            }
        }

        [[nodiscard]] void* allocate(Call call, std::size_t bytes) {
            const std::lock_guard lock{mutex};
            begin({call, 0, 0, nullptr, nullptr, bytes});
            auto* const address = static_cast<std::byte*>(::operator new(bytes, std::align_val_t{alignment}));
            std::memset(address, std::to_integer<int>(fresh), bytes);
            memory.emplace(address, Memory{bytes, call});
            log.back().to = address;
            return address;
        }
        void free(Call call, void* address, std::size_t bytes) noexcept {
            const std::lock_guard lock{mutex};
            log.push_back(entry({call, 0, 0, address, nullptr, bytes}));
            ++calls[static_cast<std::size_t>(call)];
            changed.notify_all();
            const auto found = memory.find(static_cast<std::byte*>(address));
            if (found == memory.end()) {
                violate(std::string{to_string(call)} + " of memory that is not allocated");
                return;
            }
            const Call wanted = call == Call::free_host ? Call::allocate_host : Call::allocate_device;
            if (found->second.bytes != bytes || found->second.by != wanted) {
                violate(std::string{to_string(call)} + " with another size or kind than the allocation");
            }
            const std::byte* const begin = found->first;
            const std::byte* const end = begin + found->second.bytes;
            bool is_pending = false;
            for (StreamState& stream : streams) {
                std::erase_if(stream.queue, [&](const Op& op) {
                    const auto touches = [&](const void* p) {
                        return p != nullptr &&
                               static_cast<const std::byte*>(p)<end&& static_cast<const std::byte*>(p) + op.bytes>
                                   begin;
                    };
                    const bool is_in_flight = op.is_work() && (touches(op.to) || touches(op.from));
                    stream.executed += is_in_flight ? 1 : 0;
                    is_pending = is_pending || is_in_flight;
                    return is_in_flight;
                });
            }
            if (is_pending) {
                violate(std::string{to_string(call)} + " while work on that memory is in flight");
            }
            bool is_ordered = true;
            std::erase_if(accesses, [&](const Access& a) {
                const bool overlaps = a.begin < end && a.end > begin;
                is_ordered = is_ordered && (!overlaps || covers(host_clock, a.stream, a.number));
                return overlaps;
            });
            if (!is_pending && !is_ordered) {
                violate(std::string{to_string(call)} + " without waiting for the last work on that memory");
            }
            ::operator delete(address, std::align_val_t{alignment});
            memory.erase(found);
        }

        /// The stream's next operation gets its number; it lies behind whatever the host has seen.
        void advance(std::uint32_t stream) {
            StreamState& s = streams[stream];
            if (s.clock.size() <= stream) {
                s.clock.resize(stream + 1);
            }
            merge(s.clock, host_clock);
            s.clock[stream] = s.enqueued + 1;
        }
        void access(std::uint32_t stream, const void* address, std::size_t bytes, bool is_write, const char* what) {
            const auto* const begin = static_cast<const std::byte*>(address);
            const std::byte* const end = begin + bytes;
            const auto above = memory.upper_bound(const_cast<std::byte*>(begin));
            const bool is_inside =
                above != memory.begin() && std::prev(above)->first + std::prev(above)->second.bytes >= end;
            if (!is_inside) {
                violate(std::string{what} + " memory that is not allocated");
                return;
            }
            const Clock& clock = streams[stream].clock;
            for (const Access& other : accesses) {
                const bool conflicts = other.begin < end && other.end > begin && (is_write || other.is_write);
                if (conflicts && !covers(clock, other.stream, other.number)) {
                    violate(std::string{what} + " memory that " +
                            (other.is_write ? "a copy on stream " : "work on stream ") + std::to_string(other.stream) +
                            " may still " + (other.is_write ? "write" : "read"));
                }
            }
            if (is_write) {
                std::erase_if(accesses, [&](const Access& a) { return a.begin >= begin && a.end <= end; });
            } else {
                std::erase_if(accesses, [&](const Access& a) {
                    return !a.is_write && a.stream == stream && a.begin >= begin && a.end <= end;
                });
            }
            accesses.push_back({stream, streams[stream].enqueued + 1, begin, end, is_write});
        }
        void push(std::uint32_t stream, Op op) {
            op.order = next_order++;
            ++streams[stream].enqueued;
            streams[stream].queue.push_back(std::move(op));
            pump();
            changed.notify_all();
        }

        [[nodiscard]] static std::uint64_t checksum(const void* data, std::size_t bytes) {
            std::uint64_t hash = 14695981039346656037U;
            const auto* const p = static_cast<const unsigned char*>(data);
            for (std::size_t i = 0; i < bytes; ++i) {
                hash = (hash ^ p[i]) * 1099511628211U;
            }
            return hash;
        }
        void execute(StreamState& stream) {
            const Op op = std::move(stream.queue.front());
            stream.queue.pop_front();
            ++stream.executed;
            switch (op.kind) {
                case Op::Kind::copy:
                    if (checksum(op.from, op.bytes) != op.checksum) {
                        violate("the source of a copy was written while the copy was pending");
                    }
                    std::memcpy(op.to, op.from, op.bytes);
                    break;
                case Op::Kind::kernel:
                    if (op.body) {
                        op.body();
                    }
                    break;
                case Op::Kind::record:
                    events[op.event].done = std::max(events[op.event].done, op.generation);
                    --events[op.event].pending;
                    break;
                case Op::Kind::wait: --events[op.event].pending; break;
            }
        }
        [[nodiscard]] bool can_run(const StreamState& stream) const {
            if (stream.queue.empty()) {
                return false;
            }
            const Op& op = stream.queue.front();
            return op.kind != Op::Kind::wait || events[op.event].done >= op.generation;
        }
        /// Runs whatever runs by itself.
        void pump() {
            for (bool has_moved = true; has_moved;) {
                has_moved = false;
                for (StreamState& stream : streams) {
                    while (can_run(stream) && (completion == Completion::at_once || !stream.queue.front().is_work())) {
                        execute(stream);
                        has_moved = true;
                    }
                }
            }
        }
        bool finish_one(std::optional<std::uint32_t> only) {
            pump();
            StreamState* oldest = nullptr;
            for (std::uint32_t i = 0; i < streams.size(); ++i) {
                StreamState& stream = streams[i];
                if ((!only || *only == i) && can_run(stream) &&
                    (oldest == nullptr || stream.queue.front().order < oldest->queue.front().order)) {
                    oldest = &stream;
                }
            }
            if (oldest == nullptr) {
                return false;
            }
            execute(*oldest);
            pump();
            changed.notify_all();
            return true;
        }
    };

    /// Notes a second call on a stream that is inside one.
    class StreamCall {
      public:
        StreamCall(State& state, Stream stream) : state_{&state}, stream_{stream} {
            const std::lock_guard lock{state_->mutex};
            StreamState& s = state_->streams[stream_.id];
            if (s.is_in_call) {
                state_->violate("two calls at once on stream " + std::to_string(stream_.id));
            }
            s.is_in_call = true;
        }
        StreamCall(const StreamCall&) = delete;
        StreamCall& operator=(const StreamCall&) = delete;
        ~StreamCall() {
            const std::lock_guard lock{state_->mutex};
            state_->streams[stream_.id].is_in_call = false;
        }

      private:
        State* state_;
        Stream stream_;
    };

    void enqueue_copy(Call kind, void* to, const void* from, std::size_t bytes, Stream stream) {
        const StreamCall call{*state_, stream};
        const std::lock_guard lock{state_->mutex};
        state_->begin({kind, stream.id, 0, to, from, bytes});
        state_->advance(stream.id);
        if (kind == Call::copy_in) {
            state_->access(stream.id, from, bytes, false, "a copy reads");
            state_->access(stream.id, to, bytes, true, "a copy writes");
        }
        Op op;
        op.kind = Op::Kind::copy;
        op.to = to;
        op.from = from;
        op.bytes = bytes;
        op.checksum = State::checksum(from, bytes);
        state_->push(stream.id, std::move(op));
    }

    std::shared_ptr<State> state_;
};
static_assert(stoker::DeviceModel<FakeDevice>);

/// Ends work in the background, one piece at a time, for as long as it lives.
class FakeDeviceRunner {
  public:
    explicit FakeDeviceRunner(const FakeDevice& device)
        : thread_{[device](const std::stop_token& stop) {
              while (!stop.stop_requested()) {
                  if (!device.finish_next()) {
                      std::this_thread::yield();
                  }
              }
          }} {}

  private:
    std::jthread thread_;
};

}  // namespace testing_support
