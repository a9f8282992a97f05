// SPDX-License-Identifier: MIT
/// @file
/// Prefetcher: loads the next batches in the background while the current one is used. Start reading here.
///
/// Terms: a *source* makes samples; the *order* and the other options make a *plan*, a pure function that says which
/// sample stands in which row of which batch; *workers* fill the plan's entries in turn, straight into the *slots* of a
/// ring; the consumer takes batches as *leases*, in plan order.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>
#include <vector>

#include <stoker/detail/core.hpp>
#include <stoker/device.hpp>
#include <stoker/lease.hpp>
#include <stoker/options.hpp>
#include <stoker/report.hpp>
#include <stoker/source.hpp>

namespace stoker {
inline namespace v0 {

/// What `try_next` found.
enum class Poll : std::uint8_t {
    ready,      ///< A batch; it is in the lease.
    not_ready,  ///< None yet, or all leases are out.
    end,        ///< None any more.
};

/// Result of `try_next`.
template <class Batch, class Device = HostDevice>
struct Polled {
    Poll status = Poll::end;
    std::optional<Lease<Batch, Device>> lease;  ///< Set exactly when status is ready.
    [[nodiscard]] explicit operator bool() const noexcept { return status == Poll::ready; }
};

namespace detail {

/// What taking batches looks like, for a prefetcher and for an epoch of it alike.
template <class B, class D>
class Consumer {
  public:
    using CorePtr = std::shared_ptr<Core<B, D>>;
    using Outcome = typename Core<B, D>::Outcome;
    using Wait = typename Core<B, D>::Wait;

    [[nodiscard]] static std::optional<Lease<B, D>> next(const CorePtr& core, std::uint64_t run,
                                                         const std::source_location& where) {
        const auto taken = core->take(run, Wait::forever, {});
        return taken.outcome == Outcome::batch ? std::optional{Lease<B, D>{core, taken.outlet, where}} : std::nullopt;
    }
    [[nodiscard]] static Polled<B, D> try_next(const CorePtr& core, std::uint64_t run,
                                               const std::source_location& where) {
        const auto taken = core->take(run, Wait::no, {});
        switch (taken.outcome) {
            case Outcome::batch: return {Poll::ready, Lease<B, D>{core, taken.outlet, where}};
            case Outcome::not_ready: return {Poll::not_ready, std::nullopt};
            case Outcome::end: break;
        }
        return {Poll::end, std::nullopt};
    }
    [[nodiscard]] static std::optional<Lease<B, D>> next_for(const CorePtr& core, std::uint64_t run,
                                                             std::chrono::nanoseconds timeout,
                                                             const std::source_location& where) {
        const Clock::time_point now = Clock::now();
        const bool is_endless = timeout > (Clock::time_point::max)() - now;
        const auto taken = core->take(run, Wait::until, is_endless ? (Clock::time_point::max)() : now + timeout);
        return taken.outcome == Outcome::batch ? std::optional{Lease<B, D>{core, taken.outlet, where}} : std::nullopt;
    }
};

/// Takes batches for range-for. Owns the lease at hand; `++` gives it back before it takes the next one.
template <class B, class D>
class BatchIterator {
  public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = Lease<B, D>;
    using difference_type = std::ptrdiff_t;

    BatchIterator(std::shared_ptr<Core<B, D>> core, std::uint64_t run, const std::source_location& where)
        : core_{std::move(core)}, run_{run}, where_{where} {
        lease_ = Consumer<B, D>::next(core_, run_, where_);
    }
    BatchIterator(BatchIterator&&) noexcept = default;
    BatchIterator& operator=(BatchIterator&&) noexcept = default;

    [[nodiscard]] Lease<B, D>& operator*() const noexcept { return *lease_; }
    [[nodiscard]] Lease<B, D>* operator->() const noexcept { return &*lease_; }
    BatchIterator& operator++() {
        lease_.reset();
        lease_ = Consumer<B, D>::next(core_, run_, where_);
        return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const BatchIterator& i, std::default_sentinel_t) noexcept { return !i.lease_; }

  private:
    std::shared_ptr<Core<B, D>> core_;
    std::uint64_t run_;
    std::source_location where_;
    mutable std::optional<Lease<B, D>> lease_;
};

}  // namespace detail

/// One epoch of a prefetcher, or several: a range of leases, made by `Prefetcher::epoch()`.
/// Its end is sticky: asked again it says end again. After an exception, iterating on (or `next()`) continues behind
/// the failed sample. Destroying it early drops what is left of the epoch at hand. Ownership: move-only; keeps the
/// engine alive, but ends when its prefetcher dies. Thread-safety: several consumer threads may share one, each calling
/// `next()`, `try_next()` or `next_for()`.
template <class Batch, class Device = HostDevice>
class Epoch {
  public:
    Epoch(Epoch&& other) noexcept : core_{std::move(other.core_)}, run_{other.run_} {}
    Epoch& operator=(Epoch&& other) noexcept {
        if (this != &other) {
            close();
            core_ = std::move(other.core_);
            run_ = other.run_;
        }
        return *this;
    }
    ~Epoch() { close(); }

    /// Takes the first batch not taken yet. @throws SampleError and what else `next()` throws
    [[nodiscard]] detail::BatchIterator<Batch, Device> begin(
        std::source_location where = std::source_location::current()) {
        return {core_, run_.number, where};
    }
    [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

    /// As Prefetcher::next, within this epoch.
    [[nodiscard]] std::optional<Lease<Batch, Device>> next(
        std::source_location where = std::source_location::current()) {
        return detail::Consumer<Batch, Device>::next(core_, run_.number, where);
    }
    /// As Prefetcher::try_next, within this epoch.
    [[nodiscard]] Polled<Batch, Device> try_next(std::source_location where = std::source_location::current()) {
        return detail::Consumer<Batch, Device>::try_next(core_, run_.number, where);
    }
    /// As Prefetcher::next_for, within this epoch.
    [[nodiscard]] std::optional<Lease<Batch, Device>> next_for(
        std::chrono::nanoseconds timeout, std::source_location where = std::source_location::current()) {
        return detail::Consumer<Batch, Device>::next_for(core_, run_.number, timeout, where);
    }
    /// Batches left in the epoch at hand; none for a generator that does not know its length.
    [[nodiscard]] std::optional<std::uint64_t> remaining() const { return core_->remaining(run_.number); }
    /// The (first) epoch's number in the plan, counted from 0.
    [[nodiscard]] std::uint64_t number() const noexcept { return run_.first; }

  private:
    template <class, class>
    friend class Prefetcher;
    using CoreType = detail::Core<Batch, Device>;

    Epoch(std::shared_ptr<CoreType> core, typename CoreType::Run run) noexcept : core_{std::move(core)}, run_{run} {}
    void close() noexcept {
        if (core_) {
            core_->end_run(run_.number);
            if (!core_->is_made_here()) {
                detail::let_go(std::move(core_));
            }
            core_.reset();
        }
    }

    std::shared_ptr<CoreType> core_;
    typename CoreType::Run run_;
};

/// Loads batches ahead on background threads.
///
/// Order: batches come in plan order (unless Delivery::unordered), the same bytes for any number of workers and any
/// depth. Memory: all slots are allocated here and never after; `planned_bytes` tells before. Threads: named stoker/0,
/// stoker/1, ...; they block all signals and live as long as this object. 0 workers: everything runs on the calling
/// thread. Ownership: movable (moved-from objects may only be destroyed or assigned to), not copyable. The destructor
/// stops and joins from any state; it waits for calls of the source that are under way, whose stop token is requested.
/// Leases that are still held stay readable. Thread-safety: `next` and its kin, `stop`, `state`, `report`, `failures`
/// from any thread; construction, moves, destruction and `seek` apart from everything else. Processes: after a fork the
/// child may not use it (LeaseError); destroying it there is safe.
template <class Batch, class Device = HostDevice>
class Prefetcher {
    static_assert(DeviceModel<Device>, "Device has to model stoker::DeviceModel; see stoker/device.hpp");
    using CoreType = detail::Core<Batch, Device>;

  public:
    /// Starts loading at once.
    /// @throws OptionError  naming every option that cannot work, before any thread starts.
    /// @throws StateError   options.resume does not fit.
    /// Also what the source's `size`, `layout`, `fingerprint`, the device's allocations and `on_worker_start` throw.
    template <class Source>
        requires(!std::same_as<Source, Prefetcher>) && SourceOf<Source, Batch>
    explicit Prefetcher(Source source, PrefetcherOptions options = {}, Device device = {}) {
        auto model = std::make_unique<detail::SourceModelFor<Source, Batch>>(std::move(source));
        auto resolved = detail::resolve<Batch>(*model, std::move(options), device.needs_copy());
        core_ = std::make_shared<CoreType>(std::move(model), std::move(resolved), std::move(device));
    }
    Prefetcher(Prefetcher&&) noexcept = default;
    Prefetcher& operator=(Prefetcher&& other) noexcept {
        if (this != &other) {
            close();
            core_ = std::move(other.core_);
        }
        return *this;
    }
    ~Prefetcher() { close(); }

    /// Memory that a prefetcher of these would allocate for its slots. Allocates nothing.
    /// @throws OptionError  as the constructor.
    template <class Source>
        requires SourceOf<Source, Batch>
    [[nodiscard]] static PlannedBytes planned_bytes(Source source, PrefetcherOptions options = {},
                                                    const Device& device = {}) {
        const detail::SourceModelFor<Source, Batch> model{std::move(source)};
        return detail::resolve<Batch>(model, std::move(options), device.needs_copy()).planned;
    }

    /// Takes the next batch, across epochs; waits for it. Nothing: the plan has ended, or `stop` was called.
    /// @throws SampleError  under OnError::fail, once for each failed sample, at its place; the next call goes on.
    /// @throws LeaseError   this thread holds all leases that there are.
    [[nodiscard]] std::optional<Lease<Batch, Device>> next(
        std::source_location where = std::source_location::current()) {
        return detail::Consumer<Batch, Device>::next(core_, 0, where);
    }
    /// As `next`, but never waits for other threads. With 0 workers it does the work.
    [[nodiscard]] Polled<Batch, Device> try_next(std::source_location where = std::source_location::current()) {
        return detail::Consumer<Batch, Device>::try_next(core_, 0, where);
    }
    /// As `next`, but waits `timeout` at most. With 0 workers the limit is looked at between samples.
    /// @throws TimeoutError  naming the sample that is being waited for; nothing is lost.
    [[nodiscard]] std::optional<Lease<Batch, Device>> next_for(
        std::chrono::nanoseconds timeout, std::source_location where = std::source_location::current()) {
        return detail::Consumer<Batch, Device>::next_for(core_, 0, timeout, where);
    }

    /// The next epoch, or what is left of the one that was restored or begun with `next()`. What an earlier Epoch
    /// object left over is dropped. `for (auto&& batch : feed.epoch())`
    [[nodiscard]] Epoch<Batch, Device> epoch() & { return {core_, core_->begin_run(1)}; }
    /// The next `count` epochs as one range; 1 or more.
    [[nodiscard]] Epoch<Batch, Device> epochs(std::uint64_t count) & {
        if (count == 0) {
            throw OptionError{"cannot make a range of epochs: count is 0, but it has to be 1 or more"};
        }
        return {core_, core_->begin_run(count)};
    }
    Epoch<Batch, Device> epoch() && = delete;
    Epoch<Batch, Device> epochs(std::uint64_t count) && = delete;
    /// For range-for over everything to the plan's end, which may be never: `for (auto&& batch : feed)`. Leaving the
    /// loop drops nothing but the batch at hand.
    [[nodiscard]] detail::BatchIterator<Batch, Device> begin(
        std::source_location where = std::source_location::current()) & {
        return {core_, 0, where};
    }
    [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

    /// Batches of one whole epoch on this rank, exact; none for a generator without `length()`. Samples that fail later
    /// do not change it: their batch comes with fewer rows (plain values: does not come).
    [[nodiscard]] std::optional<std::uint64_t> length() const { return core_->length(); }

    /// Where a new prefetcher has to resume to go on behind what consumers took. Batches that are loaded but not taken
    /// count as not yet delivered.
    /// @throws StateError  delivery is unordered.
    [[nodiscard]] State state() const { return core_->state(); }
    /// Goes on at `state`; what was loaded ahead is dropped, earlier Epoch objects end, leases stay. An error of the
    /// plan (a failed restart, say) is forgotten.
    /// @throws StateError  it does not fit these options and this source; names the field, and nothing has changed.
    void seek(const State& state) { core_->seek(state); }

    /// Ends every wait and all loading, for good; consumers see the end. May be called from any thread, more than once.
    void stop() {
        core_->check_process();
        core_->stop();
    }
    /// Waits until the ring is full, or the plan's end or an error is reached.
    void wait_full() { core_->wait_full(); }

    /// Counters since construction. Cost: a few hundred nanoseconds; may be called at any time.
    [[nodiscard]] Report report() const { return core_->report(); }
    /// The last 1000 failures, oldest first; `report().failures` counts all of them.
    [[nodiscard]] std::vector<Failure> failures() const { return core_->failures(); }
    /// The options in use: what was unset is chosen, what the byte budget lowered is lower.
    [[nodiscard]] const PrefetcherOptions& options() const noexcept { return core_->options(); }

  private:
    void close() noexcept {
        if (!core_) {
            return;
        }
        if (core_->is_made_here()) {
            core_->shut_down();
        } else {
            detail::let_go(std::move(core_));
        }
        core_.reset();
    }

    std::shared_ptr<CoreType> core_;
};

}  // namespace v0
}  // namespace stoker
