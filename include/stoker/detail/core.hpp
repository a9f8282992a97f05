// SPDX-License-Identifier: MIT
/// @file
/// The engine: threads, mutex and waits around the ring's state. Owned together by the prefetcher and its leases.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <source_location>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <stoker/batch_info.hpp>
#include <stoker/detail/batch_maker.hpp>
#include <stoker/detail/counters.hpp>
#include <stoker/detail/failures.hpp>
#include <stoker/detail/resolve.hpp>
#include <stoker/detail/slots.hpp>
#include <stoker/detail/source_model.hpp>
#include <stoker/detail/text.hpp>
#include <stoker/detail/worker.hpp>
#include <stoker/device.hpp>
#include <stoker/error.hpp>
#include <stoker/options.hpp>
#include <stoker/plan.hpp>
#include <stoker/report.hpp>
#include <stoker/ring.hpp>

namespace stoker {
inline namespace v0 {
namespace detail {

template <class B, class D>
class Core {
    static constexpr bool is_tensor = TensorBatch<B>;
    using Stream = typename D::Stream;
    static constexpr std::uint64_t none = ~std::uint64_t{0};
    using Record = detail::Record<B>;
    using HostSlot = detail::HostSlot<B, D>;
    using DeviceSlot = detail::DeviceSlot<B, D>;

    enum class Step : std::uint8_t { did, idle, stopped };
    enum class Begin : std::uint8_t { begun, no_slot, no_more };

  public:
    enum class Wait : std::uint8_t { forever, until, no };
    enum class Outcome : std::uint8_t { batch, not_ready, end };
    struct Taken {
        Outcome outcome = Outcome::end;
        std::size_t outlet = 0;
    };

    Core(std::unique_ptr<SourceModel<B>> source, Resolved<B> resolved, D device)
        : options_{std::move(resolved.options)},
          arena_layout_{std::move(resolved.arena)},
          plan_{resolved.plan},
          maker_{std::move(source), options_, arena_layout_, plan_, resolved.item_share},
          device_{std::move(device)},
          is_generator_{!maker_.source().size()},
          copies_{is_tensor && device_.needs_copy()},
          epochs_{resolved.epochs},
          fingerprint_{resolved.fingerprint},
          slot_bytes_{resolved.slot_bytes} {
        device_.bind_thread();
        allocate(resolved.slots);
        if (options_.resume) {
            place(*options_.resume);
        } else {
            move_plan(0, 0);
        }
        const std::size_t workers = *options_.workers;
        for (std::size_t i = 0; i < (workers == 0 ? 1 : workers); ++i) {
            workers_.push_back(std::make_unique<Worker>(i));
            Worker& worker = *workers_.back();
            worker.context.stop = stop_.get_token();
            worker.context.sink = &maker_;
            worker.context.warn = [](void* sink, std::uint64_t index, std::string text) {
                static_cast<BatchMaker<B>*>(sink)->warn(index, std::move(text));
            };
            worker.ids.reserve(options_.batch_size);
            worker.positions.reserve(options_.batch_size);
            worker.order.reserve(options_.batch_size);
        }
        try {
            start_threads(workers);
        } catch (...) {
            shut_down();
            release_memory();
            throw;
        }
    }

    Core(const Core&) = delete;
    Core& operator=(const Core&) = delete;

    ~Core() {
        shut_down();
        release_memory();
    }

    // ---- For the prefetcher ----------------------------------------------------------------------------------------

    [[nodiscard]] const PrefetcherOptions& options() const noexcept { return options_; }
    [[nodiscard]] bool is_made_here() const noexcept { return process_ == ::getpid(); }
    void check_process() const {
        if (!is_made_here()) {
            throw LeaseError{
                "cannot use the prefetcher: it was made in another process, and neither its threads nor its locks "
                "survive a fork; make a new one in this process"};
        }
    }

    /// Ends all waits and all work; may be called from any thread, more than once.
    void stop() {
        {
            const std::lock_guard lock{mutex_};
            end_all();
        }
        // Behind the end: a sample that gives up because of its stop token fails in a batch that nobody takes any more.
        stop_.request_stop();
        maker_.stop();
    }

    /// As `stop`, and joins the threads.
    void shut_down() noexcept {
        stop();
        for (std::thread& thread : threads_) {
            if (thread.joinable()) {
                thread.join();
            }
        }
    }

    /// Begins a run of `count` epochs (0: to the plan's end) at the epoch at hand. An earlier run that is unfinished
    /// ends.
    struct Run {
        std::uint64_t number = 0;           ///< 1 and up; the latest run is the one that may take batches.
        std::uint64_t first = 0, last = 0;  ///< Epochs; the last one is part of it.
    };
    [[nodiscard]] Run begin_run(std::uint64_t count) {
        check_process();
        const std::lock_guard lock{mutex_};
        if (count != 0 && is_run_open_ && take_epoch_ <= run_.last && !is_at_epoch_start()) {
            drop_epoch();
        }
        pass_ended_epochs();
        run_ = {run_.number + 1, take_epoch_,
                count == 0 || count > none - take_epoch_ ? none : take_epoch_ + (count - 1)};
        is_run_open_ = count != 0;
        return run_;
    }

    /// The run's owner is gone: what is left of its epoch is dropped.
    void end_run(std::uint64_t number) noexcept {
        if (!is_made_here()) {
            return;
        }
        const std::lock_guard lock{mutex_};
        if (number != run_.number || !is_run_open_) {
            return;
        }
        is_run_open_ = false;
        pass_ended_epochs();
        if (take_epoch_ <= run_.last && !is_stopping_ && !is_plan_over() &&
            (take_epoch_ == run_.first || !is_at_epoch_start())) {
            drop_epoch();
        }
    }

    /// Takes the batch that is due. `run`: the run it has to belong to (0: any).
    [[nodiscard]] Taken take(std::uint64_t run, Wait wait, Clock::time_point deadline) {
        check_process();
        const auto me = std::this_thread::get_id();
        std::unique_lock lock{mutex_};
        std::optional<Clock::time_point> waiting_since;
        const auto account = [&] {
            if (waiting_since) {
                consumer_waited_.add(
                    static_cast<std::uint64_t>(std::chrono::nanoseconds{Clock::now() - *waiting_since}.count()));
                waiting_since.reset();
            }
        };
        while (true) {
            pass_ended_epochs();
            if (run != 0 && (run != run_.number || take_epoch_ > run_.last)) {
                account();
                return {Outcome::end};
            }
            if (fatal_ && (is_broken_ || !is_anything_coming())) {
                account();
                const std::exception_ptr error = fatal_;
                lock.unlock();
                std::rethrow_exception(error);
            }
            if (is_stopping_ || is_plan_over()) {
                account();
                return {Outcome::end};
            }
            throw_held_copy(lock);
            const bool all_out = ring_.leases == ring_.lease_limit;
            if (all_out && wait == Wait::forever) {
                bool all_mine = true;
                for (const Holder& holder : holders_) {
                    all_mine = all_mine && holder.thread == me;
                }
                if (all_mine) {
                    account();
                    throw LeaseError{Text{"cannot take another batch: this thread holds all "}
                                         .add(ring_.lease_limit)
                                         .add(" leases there are; give one back first, or raise the option `leases`")
                                         .str()};
                }
            }
            if (!all_out) {
                if (const std::optional<std::size_t> outlet = ring_.due()) {
                    Record& record = record_of(*outlet);
                    if (record.thrown < record.errors.size()) {
                        std::exception_ptr error = std::move(record.errors[record.thrown++]);
                        account();
                        if (consumers_waiting_ != 0) {
                            ready_.notify_all();
                        }
                        lock.unlock();
                        std::rethrow_exception(error);
                    }
                    if (!is_tensor && record.info.ids_.empty()) {  // a plain value that failed: nothing to lease
                        ring_.discard(*outlet);
                        pass_batch(record);
                        wake_workers();
                        continue;
                    }
                    ring_.deliver(*outlet);
                    holders_.push_back({me, *outlet});
                    pass_batch(record);
                    if (ring_.can_begin()) {  // a batch less is held ready
                        wake_worker();
                    }
                    delivered_batches_.add(1);
                    delivered_samples_.add(record.info.size());
                    delivered_bytes_.add(record.info.used_bytes());
                    if (consumers_waiting_ != 0) {
                        ready_.notify_all();
                    }
                    account();
                    return {Outcome::batch, *outlet};
                }
            }
            if (*options_.workers == 0 && !is_driving_ && !all_out) {
                is_driving_ = true;
                lock.unlock();
                if (!waiting_since) {
                    waiting_since = Clock::now();
                }
                const Step step = drive(lock);
                is_driving_ = false;
                if (consumers_waiting_ != 0) {
                    ready_.notify_all();
                }
                if (step == Step::did && (wait != Wait::until || Clock::now() < deadline)) {
                    continue;
                }
                if (step == Step::stopped) {
                    continue;
                }
            }
            if (copies_ && !all_out) {  // the workers may all be inside user code
                if (const std::optional<RingState::CopyPair> pair = ring_.start_copy()) {
                    lock.unlock();
                    bind_this_thread();
                    Clock::time_point since = Clock::now();
                    copy(consumers_copy_, since, lock, *pair);
                    lock.lock();
                    continue;
                }
            }
            if (wait == Wait::no) {
                account();
                return {Outcome::not_ready};
            }
            if (!waiting_since) {
                waiting_since = Clock::now();
            }
            ++consumers_waiting_;
            bool in_time = true;
            if (wait == Wait::until) {
                in_time = ready_.wait_until(lock, deadline) == std::cv_status::no_timeout || Clock::now() < deadline;
            } else {
                ready_.wait(lock);
            }
            --consumers_waiting_;
            if (!in_time && !(ring_.due() && ring_.leases < ring_.lease_limit)) {
                account();
                throw_timeout(lock);
            }
        }
    }

    /// Waits until nothing more can be loaded without a consumer.
    void wait_full() {
        check_process();
        std::unique_lock lock{mutex_};
        while (!is_full() && !is_stopping_ && !fatal_) {
            if (*options_.workers == 0 && !is_driving_) {
                is_driving_ = true;
                lock.unlock();
                const Step step = drive(lock);
                is_driving_ = false;
                ready_.notify_all();
                if (step == Step::idle) {
                    return;
                }
                continue;
            }
            ++consumers_waiting_;
            ++full_waiting_;
            ready_.wait(lock);
            --full_waiting_;
            --consumers_waiting_;
        }
    }

    /// The state after what consumers took.
    [[nodiscard]] State state() const {
        check_process();
        check_ordered();
        const std::lock_guard lock{mutex_};
        return make_state(state_epoch_, state_position_);
    }

    /// Moves the plan; see Prefetcher::seek.
    void seek(const State& state) {
        check_process();
        const std::lock_guard lock{mutex_};
        const bool is_fresh = !generator_touched_;
        check_state(state, make_state(0, 0), options_.elastic);
        if (is_generator_ && !maker_.source().can_restart() && !is_fresh) {
            throw StateError{
                "cannot move the plan: the generator has been used and has no restart(epoch); restore into a "
                "prefetcher "
                "made with a fresh generator, or give it a restart",
                "source"};
        }
        ring_.cancel_before(ring_.next_begin);
        close_open();
        for (std::size_t i = 0; i < host_.size(); ++i) {  // batches whose copy could not start are cancelled too
            host_[i].copy_error = nullptr;
        }
        is_run_open_ = false;
        ++run_.number;  // earlier epochs have ended
        fatal_ = nullptr;
        is_broken_ = false;
        ended_epochs_.clear();
        place(state);
        set_barrier();
        wake_workers();
        ready_.notify_all();
    }

    /// Batches of a whole epoch of this rank; none for a generator that does not say.
    [[nodiscard]] std::optional<std::uint64_t> length() const {
        check_process();
        if (!is_generator_) {
            return plan_->epoch(0).batches();
        }
        const std::optional<std::uint64_t> samples = maker_.source().length();
        if (!samples) {
            return std::nullopt;
        }
        const bool rounds_up = options_.last_batch != LastBatch::drop && *samples % options_.batch_size != 0;
        return *samples / options_.batch_size + (rounds_up ? 1 : 0);
    }

    /// Batches that the run still gives in its epoch at hand; 0 when it has ended; none if a generator does not say.
    [[nodiscard]] std::optional<std::uint64_t> remaining(std::uint64_t run) {
        const std::optional<std::uint64_t> whole = length();
        const std::lock_guard lock{mutex_};
        pass_ended_epochs();
        if (run != run_.number || take_epoch_ > run_.last || is_plan_over()) {
            return 0;
        }
        if (!is_generator_) {
            return take_plan_.batches() - take_k_;
        }
        const std::uint64_t taken = take_k_ + take_base_ / options_.batch_size;
        return whole ? std::optional{*whole > taken ? *whole - taken : 0} : std::nullopt;
    }

    [[nodiscard]] Report report() const {
        check_process();
        Report report;
        const auto seconds = [](const Counter& counter) { return static_cast<double>(counter.get()) * 1e-9; };
        const auto add = [&](Report::Stage& stage, const StageCounter& counter) {
            stage.count += counter.count.get();
            stage.busy_seconds += seconds(counter.nanoseconds);
        };
        for (const auto& worker : workers_) {
            add(report.fetch, worker->fetch);
            add(report.fill, worker->fill);
            add(report.finish, worker->finish);
            add(report.copy, worker->copy);
            report.workers_waited_for_consumer_seconds += seconds(worker->waited_for_consumer);
            report.workers_waited_for_budget_seconds += seconds(worker->waited_for_budget);
            report.workers_waited_for_turn_seconds += seconds(worker->waited_for_turn);
        }
        add(report.copy, consumers_copy_);
        maker_.count_failures(report);
        const std::lock_guard lock{mutex_};
        report.consumer_waited_seconds = seconds(consumer_waited_);
        report.batches = delivered_batches_.get();
        report.samples = delivered_samples_.get();
        report.bytes = delivered_bytes_.get();
        report.workers = *options_.workers;
        report.slots = host_.size();
        report.device_slots = device_slots_.size();
        report.slot_bytes = slot_bytes_;
        for (const RingSlot& slot : ring_.outlets()) {
            report.batches_ready += slot.phase == SlotPhase::ready ? 1 : 0;
        }
        report.batches_leased = ring_.leases;
        report.bytes_ready = report.batches_ready * slot_bytes_;
        report.page_locked = device_.page_locked();
        return report;
    }

    /// The last 1000 failures, oldest first.
    [[nodiscard]] std::vector<Failure> failures() const {
        check_process();
        return maker_.failures();
    }

    // ---- For leases ------------------------------------------------------------------------------------------------

    [[nodiscard]] const BatchInfo& info(std::size_t outlet) const noexcept { return record_of(outlet).info; }
    [[nodiscard]] B& view(std::size_t outlet) noexcept {
        if constexpr (is_tensor) {
            return record_of(outlet).view;
        } else {
            return *host_[outlet].content->value;
        }
    }
    [[nodiscard]] State state_after(std::size_t outlet) const {
        check_ordered();
        const BatchInfo& info = record_of(outlet).info;
        return make_state(info.epoch_, info.position_after_);
    }
    /// Makes `stream` wait for the batch, and the batch's next use wait for `stream`.
    void use_on(std::size_t outlet, Stream stream) {
        if (!copies_) {
            return;
        }
        device_.bind_thread();
        DeviceSlot& slot = device_slots_[outlet];
        device_.wait(stream, *slot.copied);
        for (const Stream& known : slot.streams) {
            if (known == stream) {
                return;
            }
        }
        if (slot.streams.size() == slot.consumed.size()) {
            slot.consumed.push_back(device_.create_event());
        }
        slot.streams.push_back(stream);
    }
    void give_back(std::size_t outlet) noexcept {
        if (!is_made_here()) {
            return;
        }
        std::exception_ptr lost;
        if (copies_) {
            DeviceSlot& slot = device_slots_[outlet];
            bind_this_thread();
            for (std::size_t i = 0; i < slot.streams.size(); ++i) {
                try {
                    device_.record(slot.consumed[i], slot.streams[i]);
                } catch (...) {
                    try {  // nothing would ever tell when the kernels are done: wait for them here
                        device_.synchronize_stream(slot.streams[i]);
                    } catch (...) {
                        lost = std::current_exception();
                    }
                }
            }
            slot.used = slot.streams.size();
            slot.streams.clear();
        } else if constexpr (!is_tensor) {
            host_[outlet].content->value.reset();
        }
        const std::lock_guard lock{mutex_};
        for (Holder& holder : holders_) {
            if (holder.outlet == outlet) {
                holder = holders_.back();
                holders_.pop_back();
                break;
            }
        }
        ring_.give_back(outlet);
        if (lost && !fatal_) {
            fatal_ = lost;
            ready_.notify_all();
        }
        copy_wanted_.store(copies_, std::memory_order_relaxed);
        if (copies_ || ring_.can_begin()) {
            wake_worker();
        }
        if (consumers_waiting_ != 0) {
            ready_.notify_all();
        }
    }

  private:
    // ---- Set-up ----------------------------------------------------------------------------------------------------

    void allocate(std::size_t slots) {
        try {
            host_ = std::vector<HostSlot>(slots);
            device_slots_ = std::vector<DeviceSlot>(copies_ ? options_.leases + 1 : 0);
            ring_.host.resize(host_.size());
            ring_.device.resize(device_slots_.size());
            ring_.lease_limit = options_.leases;
            ring_.ahead_limit = options_.prefetch_batches;
            ring_.is_ordered = options_.delivery == Delivery::ordered;
            holders_.reserve(options_.leases);
            for (HostSlot& slot : host_) {
                slot.results.resize(options_.batch_size);
                slot.record.info.ids_.reserve(options_.batch_size);
                if constexpr (is_tensor) {
                    slot.memory = device_.allocate_host(slot_bytes_);
                    slot.content = std::make_unique<HostArena>(*arena_layout_, static_cast<std::byte*>(slot.memory));
                } else {
                    slot.content = std::make_unique<ValueCell<B>>();
                }
                if (copies_) {
                    slot.copied = device_.create_event();
                }
            }
            for (DeviceSlot& slot : device_slots_) {
                slot.record.info.ids_.reserve(options_.batch_size);
                slot.memory = device_.allocate_device(slot_bytes_);
                slot.copied = device_.create_event();
                slot.consumed.push_back(device_.create_event());
                slot.streams.reserve(4);
            }
        } catch (...) {
            release_memory();
            throw;
        }
    }

    void release_memory() noexcept {
        bind_this_thread();
        const auto wait_for = [this](const typename D::Event& event) {
            try {
                device_.synchronize(event);
            } catch (...) {  // a lost device reads no memory any more
            }
        };
        for (std::size_t i = 0; copies_ && i < host_.size(); ++i) {  // copies, and consumers' kernels, may be under way
            if (ring_.host[i].phase == SlotPhase::pending) {
                wait_for(*host_[i].copied);
            }
        }
        for (const DeviceSlot& slot : device_slots_) {
            for (std::size_t i = 0; i < slot.used; ++i) {
                wait_for(slot.consumed[i]);
            }
        }
        for (HostSlot& slot : host_) {
            if (slot.copied) {
                device_.destroy_event(*slot.copied);
            }
            if (slot.memory != nullptr) {
                device_.free_host(slot.memory, slot_bytes_);
            }
        }
        for (DeviceSlot& slot : device_slots_) {
            if (slot.copied) {
                device_.destroy_event(*slot.copied);
            }
            for (const auto& event : slot.consumed) {
                device_.destroy_event(event);
            }
            if (slot.memory != nullptr) {
                device_.free_device(slot.memory, slot_bytes_);
            }
        }
        host_.clear();
        device_slots_.clear();
    }

    void start_threads(std::size_t count) {
        sigset_t all;
        sigset_t before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);  // a new thread inherits the mask
        struct Restore {
            sigset_t& mask;
            ~Restore() { pthread_sigmask(SIG_SETMASK, &mask, nullptr); }
        } const restore{before};
        threads_.reserve(count);
        for (std::size_t i = 0; i < count; ++i) {
            threads_.emplace_back([this, i] { run_worker(*workers_[i]); });
        }
        if (options_.on_worker_start) {
            std::unique_lock lock{mutex_};
            ready_.wait(lock, [&] { return started_ == count; });
            if (start_error_) {
                std::rethrow_exception(start_error_);
            }
        }
    }

    // ---- The plan's two cursors (under mutex_) ---------------------------------------------------------------------

    /// Both cursors go to (epoch, position).
    void place(const State& state) {
        std::uint64_t epoch = state.epoch;
        std::uint64_t position = state.position;
        if (!is_generator_ && plan_->epoch(epoch, position).batches() == 0) {
            ++epoch;  // nothing of that epoch is left for this rank
            position = 0;
        }
        move_plan(epoch, position);
        state_epoch_ = state.epoch;
        state_position_ = state.position;
    }
    void move_plan(std::uint64_t epoch, std::uint64_t position) {
        take_epoch_ = fill_epoch_ = epoch;
        take_base_ = fill_base_ = position;
        take_k_ = fill_k_ = 0;
        state_epoch_ = epoch;
        state_position_ = position;
        if (!is_generator_) {
            take_plan_ = fill_plan_ = plan_->epoch(epoch, position);
        } else if (epoch != 0 || position != 0 || generator_touched_) {
            reposition_ = {epoch, position};
            generator_done_ = false;
        }
    }

    /// The consumer's cursor passes epochs that have no batch left.
    void pass_ended_epochs() {
        if (!is_generator_) {
            if (take_k_ >= take_plan_.batches()) {
                enter_epoch(take_epoch_ + 1);
            }
            return;
        }
        while (!ended_epochs_.empty() && ended_epochs_.front().epoch == take_epoch_ &&
               take_k_ >= ended_epochs_.front().batches) {
            if (take_k_ == 0 && take_base_ != 0 && run_.last == take_epoch_) {
                ++run_.last;  // a restored epoch of which nothing was left: the run is about the next one
            }
            ended_epochs_.erase(ended_epochs_.begin());
            enter_epoch(take_epoch_ + 1);
            state_epoch_ = take_epoch_;
            state_position_ = 0;
        }
    }
    void enter_epoch(std::uint64_t epoch) {
        take_epoch_ = epoch;
        take_base_ = 0;
        take_k_ = 0;
        if (!is_generator_) {
            take_plan_ = plan_->epoch(epoch);
        }
        if (!ring_.is_ordered) {
            set_barrier();
            copy_wanted_.store(copies_, std::memory_order_relaxed);
            wake_workers();
        }
    }
    [[nodiscard]] bool is_at_epoch_start() const noexcept { return take_k_ == 0 && take_base_ == 0; }
    /// Nothing is left for the consumer.
    [[nodiscard]] bool is_plan_over() const noexcept {
        if (epochs_ && take_epoch_ >= *epochs_) {
            return true;
        }
        return is_generator_ && generator_done_ && take_epoch_ > generator_last_epoch_;
    }
    /// The batch in `record` is taken: the consumer's cursor and the state move behind it.
    void pass_batch(const Record& record) {
        ++take_k_;
        state_epoch_ = record.info.epoch_;
        state_position_ = record.info.position_after_;
        if (!is_generator_ && state_position_ >= plan_->samples()) {
            ++state_epoch_;
            state_position_ = 0;
        }
    }

    /// What is left of the consumer's epoch is given up; the plan goes on with the next one.
    void drop_epoch() {
        const std::uint64_t target = take_epoch_ + 1;
        std::uint64_t end = ring_.next_begin;
        for (std::size_t i = 0; i < host_.size(); ++i) {
            const RingSlot& slot = ring_.host[i];
            const bool is_on_its_way = slot.phase == SlotPhase::filling || slot.phase == SlotPhase::sealing ||
                                       slot.phase == SlotPhase::filled || slot.phase == SlotPhase::copying ||
                                       slot.phase == SlotPhase::ready;
            if (is_on_its_way && !slot.is_cancelled && host_[i].epoch >= target && slot.batch < end) {
                end = slot.batch;
            }
        }
        for (std::size_t i = 0; i < device_slots_.size(); ++i) {
            const RingSlot& slot = ring_.device[i];
            if (slot.phase == SlotPhase::ready && device_slots_[i].record.info.epoch_ >= target && slot.batch < end) {
                end = slot.batch;
            }
        }
        ring_.cancel_before(end);
        if (fill_epoch_ < target) {
            close_open();
            fill_epoch_ = target;
            fill_base_ = 0;
            fill_k_ = 0;
            if (!is_generator_) {
                fill_plan_ = plan_->epoch(target);
            } else if (maker_.source().can_restart() && !(epochs_ && target >= *epochs_)) {
                reposition_ = {target, 0};
                generator_done_ = false;
            } else {
                generator_done_ = true;
                generator_last_epoch_ = target - 1;
            }
        }
        while (!ended_epochs_.empty() && ended_epochs_.front().epoch < target) {
            ended_epochs_.erase(ended_epochs_.begin());
        }
        enter_epoch(target);
        state_epoch_ = target;
        state_position_ = 0;
        wake_workers();
        ready_.notify_all();
    }

    /// Nothing is begun any more, not even the samples of a batch that was; every wait ends.
    void end_all() {
        is_stopping_ = true;
        ring_.cancel_before(ring_.next_begin);
        close_open();
        ring_.stop();
        work_.notify_all();
        ready_.notify_all();
    }
    /// No more tickets of the batch that is being handed out; it is cancelled.
    void close_open() {
        HostSlot* const slot = open_.exchange(nullptr, std::memory_order_acq_rel);
        if (slot != nullptr) {
            const std::uint32_t never = slot->tickets.close();
            end_rows_locked(*slot, never);
        }
    }
    /// `count` rows of a cancelled batch will never be worked on.
    void end_rows_locked(HostSlot& slot, std::uint32_t count) {
        if (count != 0 && slot.left.fetch_sub(count, std::memory_order_acq_rel) == count) {
            const bool seals = ring_.fill_ended(index_of(slot));
            assert(!seals && "only cancelled batches are closed");
            static_cast<void>(seals);
            maker_.forget(slot, is_stopping_);
        }
    }
    [[nodiscard]] Begin begin_batch() {
        if (fatal_) {
            return Begin::no_more;
        }
        if (!is_generator_) {
            while (fill_k_ >= fill_plan_.batches()) {
                ++fill_epoch_;
                fill_k_ = 0;
                fill_base_ = 0;
                fill_plan_ = plan_->epoch(fill_epoch_);
            }
        }
        if (epochs_ && fill_epoch_ >= *epochs_) {
            return Begin::no_more;
        }
        const std::optional<std::size_t> index = ring_.begin();
        if (!index) {
            return Begin::no_slot;
        }
        HostSlot& slot = host_[*index];
        slot.k = fill_k_++;
        slot.sequence = ring_.host[*index].batch;
        slot.plan = fill_plan_;
        slot.rows = is_generator_ ? options_.batch_size : static_cast<std::size_t>(slot.plan.batch_rows(slot.k));
        slot.units = maker_.is_whole_batch() || slot.rows == 0 ? 1 : static_cast<std::uint32_t>(slot.rows);
        slot.first_ticket = next_ticket_;
        next_ticket_ += slot.units;
        Record& record = slot.record;
        slot.epoch = fill_epoch_;
        slot.error = nullptr;
        record.errors.clear();
        record.thrown = 0;
        record.info.failures_.clear();
        record.info.ids_.clear();
        record.info.epoch_ = fill_epoch_;
        record.info.batch_ = slot.k + (is_generator_ ? fill_base_ / options_.batch_size : batches_before(fill_base_));
        record.info.position_ = is_generator_ ? fill_base_ + slot.k * options_.batch_size
                                              : (slot.rows == 0 ? plan_->samples() : slot.plan.position(slot.k, 0));
        record.info.position_after_ =
            is_generator_ ? record.info.position_ + options_.batch_size : slot.plan.position_after(slot.k + 1);
        set_barrier();
        slot.left.store(slot.units, std::memory_order_relaxed);
        if constexpr (is_tensor) {
            slot.content->clear();
        }
        slot.tickets.open(slot.units);
        open_.store(&slot, std::memory_order_release);
        if (slot.units > 1 && !is_generator_) {
            wake_workers();
        }
        return Begin::begun;
    }
    [[nodiscard]] std::uint64_t batches_before(std::uint64_t base) const noexcept {
        return base / options_.ranks / options_.batch_size;
    }

    // ---- The workers' side -----------------------------------------------------------------------------------------

    void run_worker(Worker& worker) noexcept {
        char name[16];
        std::snprintf(name, sizeof name, "stoker/%zu", worker.number);
        pthread_setname_np(pthread_self(), name);
        std::exception_ptr error;
        try {
            device_.bind_thread();
            if (options_.on_worker_start) {
                options_.on_worker_start(worker.number);
            }
        } catch (...) {
            error = std::current_exception();
        }
        std::unique_lock lock{mutex_};
        ++started_;
        if (error && !start_error_) {
            start_error_ = error;
            if (!options_.on_worker_start) {
                fatal_ = error;
                is_broken_ = true;
            }
        }
        ready_.notify_all();
        lock.unlock();
        if (error) {
            return;
        }
        worker.last = Clock::now();
        while (true) {
            const Step step = guarded_step(worker, lock);
            if (step == Step::stopped) {
                return;
            }
            if (step == Step::idle) {  // the lock is held
                const bool for_turn = is_turn_taken_;
                ++workers_waiting_;
                if (full_waiting_ != 0) {
                    ready_.notify_all();
                }
                work_.wait(lock);
                --workers_waiting_;
                lock.unlock();
                worker.account(for_turn ? worker.waited_for_turn : worker.waited_for_consumer);
            }
        }
    }

    /// A step whose own needs (memory for an error's text, say) may fail: that error goes to the consumer.
    Step guarded_step(Worker& worker, std::unique_lock<std::mutex>& lock) noexcept {
        try {
            return step(worker, lock);
        } catch (...) {
            if (!lock.owns_lock()) {
                lock.lock();
            }
            if (!fatal_) {
                fatal_ = std::current_exception();
            }
            is_broken_ = true;
            ready_.notify_all();
            lock.unlock();
            return is_stopping_now() ? Step::stopped : Step::did;
        }
    }
    [[nodiscard]] bool is_stopping_now() {
        const std::lock_guard lock{mutex_};
        return is_stopping_;
    }

    /// One piece of work on the calling thread, for 0 workers. Enters without the lock, leaves with it.
    Step drive(std::unique_lock<std::mutex>& lock) {
        Worker& worker = *workers_[0];
        std::exception_ptr error;
        if (!is_worker_started_) {
            is_worker_started_ = true;
            try {
                if (options_.on_worker_start) {
                    options_.on_worker_start(0);
                }
            } catch (...) {
                error = std::current_exception();
            }
        }
        worker.last = Clock::now();
        Step result = Step::did;
        try {
            if (copies_) {
                device_.bind_thread();
            }
            if (!error) {
                result = step(worker, lock);
            }
        } catch (...) {
            error = std::current_exception();
        }
        if (!lock.owns_lock()) {
            lock.lock();
        }
        if (error && !fatal_) {
            fatal_ = error;
            is_broken_ = true;
        }
        return result;
    }

    /// Does one piece of work. Enters without the lock; leaves with it exactly when the result is `idle`.
    Step step(Worker& worker, std::unique_lock<std::mutex>& lock) {
        if (!is_generator_ && !copy_wanted_.load(std::memory_order_relaxed)) {
            if (HostSlot* const slot = open_.load(std::memory_order_acquire)) {
                if (const std::optional<std::uint32_t> unit = slot->tickets.take()) {
                    work_unit(worker, lock, *slot, *unit);
                    return Step::did;
                }
            }
        }
        lock.lock();
        while (true) {
            if (is_stopping_) {
                lock.unlock();
                return Step::stopped;
            }
            copy_wanted_.store(false, std::memory_order_relaxed);
            if (const std::optional<RingState::CopyPair> pair = ring_.start_copy()) {
                lock.unlock();
                copy(worker.copy, worker.last, lock, *pair);
                return Step::did;
            }
            Begin begin = Begin::no_more;
            if (is_generator_) {
                if (is_turn_taken_) {
                    return Step::idle;
                }
                if (reposition_ && !fatal_) {
                    reposition(lock);
                    return Step::did;
                }
                HostSlot* slot = open_.load(std::memory_order_relaxed);
                const bool is_open = slot != nullptr && slot->tickets.has_tickets();
                if (!generator_done_ && (!fatal_ || is_open)) {  // a batch that was begun is finished
                    begin = Begin::begun;
                    std::optional<std::uint32_t> unit = slot == nullptr ? std::nullopt : slot->tickets.take();
                    if (!unit) {
                        begin = begin_batch();
                        if (begin == Begin::begun) {
                            slot = open_.load(std::memory_order_relaxed);
                            unit = slot->tickets.take();
                        }
                    }
                    if (unit) {
                        is_turn_taken_ = true;
                        generator_touched_ = true;
                        lock.unlock();
                        pull_unit(worker, lock, *slot, *unit);
                        return Step::did;
                    }
                }
            } else {
                HostSlot* const slot = open_.load(std::memory_order_relaxed);
                if (slot != nullptr) {
                    if (const std::optional<std::uint32_t> unit = slot->tickets.take()) {
                        lock.unlock();
                        work_unit(worker, lock, *slot, *unit);
                        return Step::did;
                    }
                }
                begin = begin_batch();
                if (begin == Begin::begun) {
                    continue;
                }
            }
            if (begin == Begin::no_slot) {
                if (const std::optional<std::size_t> slot = ring_.start_reap()) {
                    lock.unlock();
                    reap(worker, lock, *slot);
                    return Step::did;
                }
            }
            return Step::idle;
        }
    }

    void work_unit(Worker& worker, std::unique_lock<std::mutex>& lock, HostSlot& slot, std::uint32_t unit) {
        maker_.make(worker, slot, unit);
        end_unit(worker, lock, slot);
    }

    /// Enters with the generator's turn, and without the lock; leaves without either.
    void pull_unit(Worker& worker, std::unique_lock<std::mutex>& lock, HostSlot& slot, std::uint32_t unit) {
        bool is_ending = true;
        {
            typename BatchMaker<B>::Pull row{maker_, worker, slot, unit};
            const bool is_there = row.pull();
            lock.lock();
            is_turn_taken_ = false;
            wake_worker();
            if (!is_there) {
                is_ending = end_generator_epoch(slot, unit);
            }
            lock.unlock();
            if (is_there) {
                row.fill();
            }
        }
        if (is_ending) {
            end_unit(worker, lock, slot);
        }
    }

    /// The generator had nothing for row `unit` of the open batch (under mutex_).
    /// @return whether the row's end is still to be told
    [[nodiscard]] bool end_generator_epoch(HostSlot& slot, std::uint32_t unit) {
        const std::size_t index = index_of(slot);
        if (ring_.host[index].is_cancelled) {  // dropped or moved meanwhile: whoever did that has set the plan
            return true;
        }
        open_.store(nullptr, std::memory_order_relaxed);
        const std::uint32_t never = slot.tickets.close();
        const std::uint64_t epoch = slot.record.info.epoch_;
        const bool is_left_out = unit == 0 || options_.last_batch == LastBatch::drop;
        const std::uint64_t batches = fill_k_ - (is_left_out ? 1 : 0);
        const bool saw_samples = fill_k_ > 1 || unit != 0 || fill_base_ != 0;
        slot.rows = unit;
        slot.record.info.position_after_ = slot.record.info.position_ + unit;
        ended_epochs_.push_back({epoch, batches});
        ++fill_epoch_;
        fill_k_ = 0;
        fill_base_ = 0;
        if (maker_.source().can_restart() && saw_samples && !(epochs_ && fill_epoch_ >= *epochs_)) {
            reposition_ = {fill_epoch_, 0};
        } else {
            generator_done_ = true;
            generator_last_epoch_ = epoch;
        }
        ready_.notify_all();
        const bool is_last = slot.left.fetch_sub(never, std::memory_order_acq_rel) == never + 1;
        if (is_left_out) {
            ring_.retract(index, is_last);
            return !is_last;
        }
        return true;
    }

    /// Moves the generator to where the plan went. Enters with the lock, leaves without it.
    void reposition(std::unique_lock<std::mutex>& lock) {
        const auto [epoch, position] = *reposition_;
        reposition_.reset();
        is_turn_taken_ = true;
        const bool needs_restart = epoch != 0 || generator_touched_;
        generator_touched_ = true;
        lock.unlock();
        std::exception_ptr error;
        try {
            if (needs_restart && maker_.source().can_restart()) {
                maker_.source().restart(epoch);
            }
            if (position != 0) {
                maker_.pass_over(epoch, position, stop_.get_token());
            }
        } catch (...) {
            error = std::current_exception();
        }
        lock.lock();
        is_turn_taken_ = false;
        if (error && !reposition_) {
            fatal_ = nest<Error>(error, Text{"cannot move the generator to position "}
                                            .add(position)
                                            .add(" of epoch ")
                                            .add(epoch)
                                            .add(": ")
                                            .add(describe_exception(error))
                                            .add("; seek again, or make a new prefetcher")
                                            .str());
            ready_.notify_all();
        }
        wake_worker();
        lock.unlock();
    }

    // ---- Ends ------------------------------------------------------------------------------------------------------

    void end_unit(Worker& worker, std::unique_lock<std::mutex>& lock, HostSlot& slot) {
        if (slot.left.fetch_sub(1, std::memory_order_acq_rel) != 1) {
            return;
        }
        lock.lock();
        const bool seals = ring_.fill_ended(index_of(slot));
        if (!seals) {  // cancelled: the slot is free again
            maker_.forget(slot, is_stopping_);
            wake_worker();
            lock.unlock();
            return;
        }
        lock.unlock();
        maker_.seal(worker, slot);
        lock.lock();
        ring_.sealed(index_of(slot));
        const std::optional<RingState::CopyPair> pair = copies_ ? ring_.start_copy() : std::nullopt;
        if (consumers_waiting_ != 0) {
            ready_.notify_all();
        }
        lock.unlock();
        if (pair) {
            copy(worker.copy, worker.last, lock, *pair);
        }
    }

    /// Starts the copy of a sealed batch. The pair belongs to this thread.
    void copy(StageCounter& counter, Clock::time_point& since, std::unique_lock<std::mutex>& lock,
              RingState::CopyPair pair) {
        HostSlot& from = host_[pair.host];
        DeviceSlot& to = device_slots_[pair.device];
        std::exception_ptr error;
        bool is_under_way = false;
        try {
            const Stream stream = device_.copy_stream();
            for (std::size_t i = 0; i < to.used; ++i) {
                device_.wait(stream, to.consumed[i]);
            }
            is_under_way = true;
            device_.copy_in(to.memory, from.memory, from.record.info.used_bytes_, stream);
            device_.record(*to.copied, stream);
            device_.record(*from.copied, stream);
        } catch (...) {
            error = std::current_exception();
            if (is_under_way) {
                try {  // without an event nothing else tells when the copy lets go of the slot
                    device_.synchronize_stream(device_.copy_stream());
                } catch (...) {  // the error at hand tells of the device's state
                }
            }
        }
        if (!error) {
            to.used = 0;
            if constexpr (is_tensor) {
                maker_.bind(from, to.memory, D::is_host_readable ? MemorySpace::host : MemorySpace::device);
            }
            std::swap(to.record, from.record);
        }
        const Clock::time_point now = Clock::now();
        counter.add(now - since);
        since = now;
        lock.lock();
        if (error) {
            from.copy_error = std::move(error);  // moved, here and below: the consumer's is the last reference
            ring_.copy_failed(pair);
        } else {
            ring_.copy_enqueued(pair);
        }
        wake_worker();
        if (consumers_waiting_ != 0) {
            ready_.notify_all();
        }
        lock.unlock();
    }

    /// Waits for the end of a copy, so that its host slot can be filled again.
    void reap(Worker& worker, std::unique_lock<std::mutex>& lock, std::size_t index) {
        std::exception_ptr error;
        try {
            device_.synchronize(*host_[index].copied);
        } catch (...) {
            error = std::current_exception();
        }
        worker.account(worker.copy.nanoseconds);
        lock.lock();
        if (error) {
            ring_.reap_failed(index);
        } else {
            ring_.reaped(index);
        }
        if (error && !fatal_) {
            fatal_ = std::move(error);
            ready_.notify_all();
        }
        wake_worker();
        lock.unlock();
    }

    // ---- Errors and notices ----------------------------------------------------------------------------------------

    void check_ordered() const {
        if (options_.delivery == Delivery::unordered) {
            throw StateError{
                "cannot give a state: with Delivery::unordered no prefix of the plan has been delivered; use "
                "Delivery::ordered to resume exactly",
                "delivery"};
        }
    }

    void throw_held_copy(std::unique_lock<std::mutex>& lock) {
        for (std::size_t i = 0; copies_ && i < host_.size(); ++i) {
            const RingSlot& slot = ring_.host[i];
            if (slot.phase == SlotPhase::filled && slot.is_held &&
                (!ring_.is_ordered || slot.batch == ring_.next_deliver)) {
                const std::exception_ptr error = std::exchange(host_[i].copy_error, nullptr);
                ring_.retry_copy(i);
                wake_workers();
                if (error) {
                    lock.unlock();
                    std::rethrow_exception(error);
                }
            }
        }
    }

    [[noreturn]] void throw_timeout(std::unique_lock<std::mutex>& lock) {
        std::optional<std::uint64_t> index;
        for (const auto& worker : workers_) {
            const std::uint64_t batch = worker->busy_batch.load(std::memory_order_relaxed);
            if (batch != none && (!ring_.is_ordered || batch == ring_.next_deliver)) {
                const std::uint64_t candidate = worker->busy_index.load(std::memory_order_relaxed);
                index = index ? index : candidate;
            }
        }
        const bool all_out = ring_.leases == ring_.lease_limit;
        lock.unlock();
        if (all_out) {
            throw TimeoutError{
                "cannot take a batch in time: all leases are held; give one back, or "
                "raise the option `leases`",
                std::nullopt,
                {}};
        }
        if (!index) {
            throw TimeoutError{"cannot take a batch in time: it is not loaded yet; wait longer, or use more workers",
                               std::nullopt,
                               {}};
        }
        const std::string path = maker_.path_of(*index);
        Text text{"cannot take a batch in time: still loading sample "};
        text.add(*index);
        if (!path.empty()) {
            text.add(" (").quote(path).add(")");
        }
        throw TimeoutError{text.add("; wait longer, or look at what that sample does").str(), index, path};
    }

    // ---- Small things (under mutex_ where they touch what it guards) -----------------------------------------------

    [[nodiscard]] State make_state(std::uint64_t epoch, std::uint64_t position) const {
        if (!is_generator_ && position >= plan_->samples()) {
            ++epoch;
            position = 0;
        }
        return describe_state(options_, fingerprint_, is_generator_ ? std::nullopt : std::optional{plan_->samples()},
                              epoch, position);
    }
    /// Where it fails, the calls that follow fail too, and say so.
    void bind_this_thread() noexcept {
        try {
            device_.bind_thread();
        } catch (...) {
        }
    }
    [[nodiscard]] std::size_t index_of(const HostSlot& slot) const noexcept {
        return static_cast<std::size_t>(&slot - host_.data());
    }
    [[nodiscard]] Record& record_of(std::size_t outlet) noexcept {
        return copies_ ? device_slots_[outlet].record : host_[outlet].record;
    }
    [[nodiscard]] const Record& record_of(std::size_t outlet) const noexcept {
        return copies_ ? device_slots_[outlet].record : host_[outlet].record;
    }
    void wake_worker() noexcept {
        if (workers_waiting_ != 0) {
            work_.notify_one();
        }
    }
    void wake_workers() noexcept {
        if (workers_waiting_ != 0) {
            work_.notify_all();
        }
    }
    /// Whether a batch that was begun may still reach the consumer.
    [[nodiscard]] bool is_anything_coming() const noexcept {
        const auto is_coming = [](const RingSlot& slot) {
            return !slot.is_cancelled && slot.phase != SlotPhase::free && slot.phase != SlotPhase::leased &&
                   slot.phase != SlotPhase::pending && slot.phase != SlotPhase::reaping;
        };
        bool is_any = false;
        for (const RingSlot& slot : ring_.host) {
            is_any = is_any || is_coming(slot);
        }
        for (const RingSlot& slot : ring_.device) {
            is_any = is_any || is_coming(slot);
        }
        return is_any;
    }
    /// Unordered: no batch of a later epoch may take a device slot or be delivered before this epoch's end.
    void set_barrier() noexcept {
        if (ring_.is_ordered) {
            return;
        }
        ring_.barrier = none;
        const auto consider = [this](const RingSlot& slot, std::uint64_t epoch) {
            if (slot.phase != SlotPhase::free && slot.phase != SlotPhase::leased && slot.phase != SlotPhase::pending &&
                slot.phase != SlotPhase::reaping && !slot.is_cancelled && epoch > take_epoch_ &&
                slot.batch < ring_.barrier) {
                ring_.barrier = slot.batch;
            }
        };
        for (std::size_t i = 0; i < host_.size(); ++i) {
            consider(ring_.host[i], host_[i].epoch);
        }
    }
    [[nodiscard]] bool is_full() const noexcept {
        bool can_begin = ring_.can_begin();
        bool is_any_busy = is_turn_taken_ || reposition_.has_value();
        for (const RingSlot& slot : ring_.host) {
            can_begin = can_begin || slot.phase == SlotPhase::pending;
            is_any_busy = is_any_busy || slot.phase == SlotPhase::filling || slot.phase == SlotPhase::sealing ||
                          slot.phase == SlotPhase::copying || slot.phase == SlotPhase::reaping;
        }
        bool is_copy_due = false;
        for (const RingSlot& slot : ring_.host) {
            for (const RingSlot& target : ring_.device) {
                is_copy_due = is_copy_due ||
                              (slot.phase == SlotPhase::filled && !slot.is_held && target.phase == SlotPhase::free);
            }
        }
        const bool is_plan_filled = is_generator_
                                        ? generator_done_
                                        : epochs_ && (fill_epoch_ >= *epochs_ ||
                                                      (fill_epoch_ + 1 == *epochs_ && fill_k_ >= fill_plan_.batches()));
        return !is_any_busy && !is_copy_due && (!can_begin || is_plan_filled);
    }

    // ---- Members ---------------------------------------------------------------------------------------------------

    struct Target {
        std::uint64_t epoch, position;
    };
    struct EndedEpoch {
        std::uint64_t epoch, batches;
    };
    struct Holder {  // who leases which outlet
        std::thread::id thread;
        std::size_t outlet;
    };

    PrefetcherOptions options_;
    std::optional<ArenaLayout> arena_layout_;  // none for plain values
    std::optional<Plan> plan_;                 // none for a generator
    BatchMaker<B> maker_;
    D device_;
    const bool is_generator_, copies_;
    const std::optional<std::uint64_t> epochs_;
    const std::uint64_t fingerprint_;
    const std::size_t slot_bytes_;
    const pid_t process_ = ::getpid();

    std::stop_source stop_;
    std::vector<HostSlot> host_;            // each belongs to whom the ring says
    std::vector<DeviceSlot> device_slots_;  // likewise
    std::vector<std::unique_ptr<Worker>> workers_;

    std::atomic<HostSlot*> open_{
        nullptr};  // the batch whose tickets are handed out; publishes its preparation to workers
    std::atomic<bool> copy_wanted_{
        false};  // a hint that a copy may be started, so that workers look; publishes nothing

    // Whenever mutex_ is free: the ring's state is what its transitions allow; batches before fill_k_ of fill_epoch_
    // have been begun; batches before take_k_ of take_epoch_ have been taken, passed or dropped.
    mutable std::mutex mutex_;
    std::condition_variable work_;   // a slot may be free, a copy due, the turn free, the plan moved, or is_stopping_
    std::condition_variable ready_;  // a batch or an error may be due, a lease back, an epoch over, or is_stopping_
    RingState ring_;
    std::vector<Holder> holders_;  // of the leases that are out
    std::size_t workers_waiting_ = 0, consumers_waiting_ = 0, full_waiting_ = 0;
    bool is_stopping_ = false;
    std::exception_ptr fatal_;  // nothing is begun before a seek
    bool is_broken_ = false;    // nor can what is under way be relied upon
    std::uint64_t fill_epoch_ = 0, fill_base_ = 0, fill_k_ = 0, next_ticket_ = 0;
    EpochPlan fill_plan_;
    std::uint64_t take_epoch_ = 0, take_base_ = 0, take_k_ = 0;
    EpochPlan take_plan_;
    std::uint64_t state_epoch_ = 0, state_position_ = 0;
    Run run_;
    bool is_run_open_ = false;
    bool is_turn_taken_ = false;      // a worker is inside the generator
    bool generator_touched_ = false;  // it has been called since it was made
    bool generator_done_ = false;     // it gives no more
    std::uint64_t generator_last_epoch_ = 0;
    std::optional<Target> reposition_;                     // where the generator has to go before its next sample
    std::vector<EndedEpoch> ended_epochs_;                 // epochs that the generator ended and the consumer has not
    bool is_driving_ = false, is_worker_started_ = false;  // 0 workers: a consumer is at work; the hook has been called
    std::size_t started_ = 0;
    std::exception_ptr start_error_;
    StageCounter consumers_copy_;  // written by whoever copies, one at a time
    Counter consumer_waited_, delivered_batches_, delivered_samples_, delivered_bytes_;

    std::vector<std::thread> threads_;  // last: joined by shut_down before anything above dies
};

}  // namespace detail
}  // namespace v0
}  // namespace stoker
