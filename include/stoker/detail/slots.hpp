// SPDX-License-Identifier: MIT
/// @file
/// The slots of the ring: their memory and what is known of the batch in it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include <stoker/batch_info.hpp>
#include <stoker/detail/source_model.hpp>
#include <stoker/plan.hpp>
#include <stoker/ring.hpp>

namespace stoker {
inline namespace v0 {
namespace detail {

inline constexpr std::size_t cache_line = 64;  // what two workers write often lies this far apart

/// What travels with a batch from its host slot to its device slot.
template <class B>
struct Record {
    BatchInfo info;
    std::conditional_t<TensorBatch<B>, B, char> view{};  // bound where the consumer uses it
    std::vector<std::exception_ptr> errors;              // to be thrown before the batch is delivered, in order
    std::size_t thrown = 0;
};

/// What became of one row; written by the worker that has it.
struct alignas(cache_line) RowResult {
    std::uint64_t id = 0, position = 0;
    std::exception_ptr error;           // the row stays empty
    std::exception_ptr replaced_error;  // another sample stands in; for the list
};

/// A batch being made, in the memory of one host slot.
template <class B>
struct BatchInMaking {
    alignas(cache_line) TicketCounter tickets;
    alignas(cache_line) std::atomic<std::uint32_t> left{0};  // rows not ended; whoever ends the last one sees all rows
    alignas(cache_line) std::uint32_t units = 0;             // tickets of this batch: its rows, or 1 for a whole batch
    std::size_t rows = 0;                                    // plan entries
    EpochPlan plan;
    std::uint64_t k = 0;             // the batch's number from the plan's base
    std::uint64_t sequence = 0;      // the ring's number of the batch
    std::uint64_t first_ticket = 0;  // counted over all batches
    std::uint64_t epoch = 0;
    std::vector<RowResult> results;
    Record<B> record;
    std::exception_ptr error;  // the whole batch failed
    void* memory = nullptr;
    std::unique_ptr<Content<B>> content;
};

/// A slot in host memory. The ring says whose it is.
template <class B, class D>
struct HostSlot : BatchInMaking<B> {
    std::exception_ptr copy_error;  // the batch's copy could not be enqueued
    std::optional<typename D::Event> copied;
};

/// A slot in device memory, and the batch in it.
template <class B, class D>
struct DeviceSlot {
    Record<B> record;
    void* memory = nullptr;
    std::optional<typename D::Event> copied;
    std::vector<typename D::Event> consumed;  // one per stream that used the batch; the first `used` are recorded
    std::size_t used = 0;
    std::vector<typename D::Stream> streams;  // of the lease that is out
};

}  // namespace detail
}  // namespace v0
}  // namespace stoker
