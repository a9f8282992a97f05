// SPDX-License-Identifier: MIT
/// @file
/// The Device concept, where batches end up, and its model for training on the CPU.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>

namespace stoker {
inline namespace v0 {

/// What a prefetcher asks of the place where its batches are used. A model is a movable handle; the calls below are
/// made by the prefetcher's threads and by its consumers, never two at once on one stream, but at once on different
/// ones. Errors are exceptions, but for the `noexcept` ones. A model that needs no copy gets no call beyond the host
/// allocations. The concept may grow until 1.0.
template <class D>
concept DeviceModel = std::movable<D> && std::copyable<typename D::Stream> &&
                      std::equality_comparable<typename D::Stream> && std::copyable<typename D::Event> &&
                      requires(D& device, const D& constant, void* to, const void* from, std::size_t bytes,
                               typename D::Stream stream, typename D::Event event) {
                          {
                              D::is_host_readable
                          } -> std::convertible_to<bool>;  // batches may be read through `lease->`
                          { constant.name() } -> std::convertible_to<std::string_view>;
                          {
                              constant.needs_copy()
                          } -> std::same_as<bool>;  // false: batches are used where they were filled
                          {
                              constant.page_locked()
                          } -> std::same_as<bool>;   // whether host memory was page-locked so far
                          { device.bind_thread() };  // before other calls of a thread; often, so cheap when repeated
                          { device.allocate_host(bytes) } -> std::same_as<void*>;  // aligned to 256 bytes or more
                          { device.free_host(to, bytes) } noexcept;
                          { device.allocate_device(bytes) } -> std::same_as<void*>;
                          { device.free_device(to, bytes) } noexcept;
                          { device.copy_stream() } -> std::same_as<typename D::Stream>;
                          { device.create_event() } -> std::same_as<typename D::Event>;
                          { device.destroy_event(event) } noexcept;
                          { device.copy_in(to, from, bytes, stream) };   // host to device, in stream order
                          { device.copy_out(to, from, bytes, stream) };  // device to host, in stream order
                          { device.record(event, stream) };
                          { device.wait(stream, event) };  // the stream waits, not the host; at once if never recorded
                          { device.synchronize(event) };   // the host waits
                          { device.synchronize_stream(stream) };
                          { device.is_done(event) } -> std::same_as<bool>;
                      };

/// Batches are used in the memory they were filled in; nothing is copied, streams and events are nothing.
/// Thread-safety: all calls at once.
class HostDevice {
  public:
    struct Stream {
        friend bool operator==(Stream, Stream) = default;
    };
    struct Event {};
    static constexpr bool is_host_readable = true;

    [[nodiscard]] std::string_view name() const noexcept { return "host"; }
    [[nodiscard]] bool needs_copy() const noexcept { return false; }
    [[nodiscard]] bool page_locked() const noexcept { return false; }
    void bind_thread() noexcept {}
    /// @throws std::bad_alloc
    [[nodiscard]] void* allocate_host(std::size_t bytes) { return ::operator new(bytes, alignment); }
    void free_host(void* memory, std::size_t) noexcept { ::operator delete(memory, alignment); }
    [[nodiscard]] void* allocate_device(std::size_t bytes) { return allocate_host(bytes); }
    void free_device(void* memory, std::size_t bytes) noexcept { free_host(memory, bytes); }
    [[nodiscard]] Stream copy_stream() noexcept { return {}; }
    [[nodiscard]] Event create_event() noexcept { return {}; }
    void destroy_event(Event) noexcept {}
    void copy_in(void* to, const void* from, std::size_t bytes, Stream) noexcept { std::memcpy(to, from, bytes); }
    void copy_out(void* to, const void* from, std::size_t bytes, Stream) noexcept { std::memcpy(to, from, bytes); }
    void record(Event, Stream) noexcept {}
    void wait(Stream, Event) noexcept {}
    void synchronize(Event) noexcept {}
    void synchronize_stream(Stream) noexcept {}
    [[nodiscard]] bool is_done(Event) noexcept { return true; }

  private:
    static constexpr std::align_val_t alignment{256};
};

}  // namespace v0
}  // namespace stoker
