// SPDX-License-Identifier: MIT
/// @file
/// The only access to a batch: a move-only lease of its slot.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <source_location>
#include <utility>

#include <stoker/batch_info.hpp>
#include <stoker/detail/core.hpp>
#include <stoker/device.hpp>
#include <stoker/error.hpp>
#include <stoker/state.hpp>

namespace stoker {
inline namespace v0 {

namespace detail {
template <class B, class D>
class Consumer;

/// In a forked child: the core's threads and locks are the parent's, so its destructor must not run here.
template <class Shared>
void let_go(Shared core) noexcept {
    static_cast<void>(new (std::nothrow) Shared{std::move(core)});  // leaked on purpose
}
}  // namespace detail

/// One batch, for as long as this object lives. The slot belongs to the lease: nothing writes to it meanwhile.
/// Ownership: move-only; views taken from it (fields, info) end with it. It may outlive its prefetcher.
/// Thread-safety: one thread at a time; it may be taken on one thread and given back on another.
template <class Batch, class Device = HostDevice>
class Lease {
  public:
    Lease(Lease&& other) noexcept : core_{std::move(other.core_)}, outlet_{other.outlet_}, where_{other.where_} {}
    Lease& operator=(Lease&& other) noexcept {
        if (this != &other) {
            release();
            core_ = std::move(other.core_);
            outlet_ = other.outlet_;
            where_ = other.where_;
        }
        return *this;
    }
    ~Lease() { release(); }

    /// The batch's fields, or the plain value, in host memory. A plain value may be moved from.
    /// @throws LeaseError  the lease was given back or moved from.
    [[nodiscard]] Batch* operator->() const
        requires(Device::is_host_readable || !TensorBatch<Batch>)
    {
        return &core().view(outlet_);
    }
    [[nodiscard]] Batch& operator*() const
        requires(Device::is_host_readable || !TensorBatch<Batch>)
    {
        return core().view(outlet_);
    }

    /// The batch's fields, for work on `stream`, on every kind of device.
    /// Stream order: `stream` waits for the batch's copy, the host does not; and the slot is used again only after what
    /// was enqueued on `stream` up to the end of the lease. May be called for several streams.
    /// @throws LeaseError  the lease was given back; and what the device throws, with the lease as it was.
    [[nodiscard]] const Batch& on(typename Device::Stream stream) const {
        core().use_on(outlet_, stream);
        return core().view(outlet_);
    }

    /// Size, place in the plan, sample ids, failures.
    [[nodiscard]] const BatchInfo& info() const { return core().info(outlet_); }
    /// Valid rows.
    [[nodiscard]] std::size_t size() const { return info().size(); }
    /// Where to resume so that the next batch is the one behind this one.
    /// @throws StateError  delivery is unordered.
    [[nodiscard]] State state() const { return core().state_after(outlet_); }
    /// The place in the program that took it.
    [[nodiscard]] const std::source_location& taken_at() const noexcept { return where_; }

    /// Gives the slot back before the end of the lease's life; the lease is empty then. Does not block. On a device:
    /// work enqueued so far on the streams given to `on` may still read the batch; on none: the caller has
    /// synchronised.
    void release() noexcept {
        if (core_) {
            core_->give_back(outlet_);
            if (!core_->is_made_here()) {
                detail::let_go(std::move(core_));
            }
            core_.reset();
        }
    }
    /// Whether there is a batch: false after `release` or a move.
    [[nodiscard]] explicit operator bool() const noexcept { return core_ != nullptr; }

  private:
    friend class detail::Consumer<Batch, Device>;

    Lease(std::shared_ptr<detail::Core<Batch, Device>> core, std::size_t outlet,
          const std::source_location& where) noexcept
        : core_{std::move(core)}, outlet_{outlet}, where_{where} {}

    [[nodiscard]] detail::Core<Batch, Device>& core() const {
        if (!core_) {
            throw LeaseError{"cannot use the lease: it was given back or moved from; take another batch"};
        }
        return *core_;
    }

    std::shared_ptr<detail::Core<Batch, Device>> core_;
    std::size_t outlet_ = 0;
    std::source_location where_;
};

}  // namespace v0
}  // namespace stoker
