// SPDX-License-Identifier: MIT
/// @file
/// The options of a prefetcher.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <stoker/callback.hpp>
#include <stoker/order.hpp>
#include <stoker/state.hpp>

namespace stoker {
inline namespace v0 {

/// What happens to a sample that fails.
enum class OnError : std::uint8_t {
    fail,        ///< It throws once, in plan order; the next call goes on, and the batch comes without it.
    skip,        ///< The batch comes without it; it is counted and listed.
    substitute,  ///< Another sample, a pure function of (seed, epoch, position, attempt), takes its place; after 8
                 ///< attempts: skip.
};

/// In which order whole batches reach the consumer.
enum class Delivery : std::uint8_t {
    ordered,    ///< As planned.
    unordered,  ///< As they become ready, within an epoch; asking for state is refused.
};

/// Something worth telling that is no error of a call.
struct Event {
    enum class Kind : std::uint8_t {
        sample_warning,  ///< A source called `Sample::warn`.
        sample_failed,   ///< A sample failed; the policy says what becomes of it. Not told while the prefetcher stops.
        library,         ///< About the prefetcher itself.
    };
    Kind kind = Kind::library;
    std::uint64_t index = 0;  ///< The sample, for the first two kinds.
    std::string path;         ///< `describe(index)` of the source; may be empty.
    std::string message;
};

/// All members have working defaults; use designated initialisers, in this order.
struct PrefetcherOptions {
    std::size_t batch_size = 1;  ///< Samples per batch, 1 to 2^31 - 1. Plain values: 1.
    std::optional<std::size_t>
        workers{};  ///< Loader threads, 0 to 1024. Unset: as CPU affinity and quota allow. 0: the calling thread.
    std::size_t prefetch_batches = 2;  ///< Batches loaded ahead at most, 1 to 2^16.
    std::optional<std::size_t>
        max_bytes{};  ///< Slots plus fetched items at most, in bytes; with prefetch_batches the smaller wins.
    Order order = sequential();              ///< Also carries the seed of every random draw.
    LastBatch last_batch = LastBatch::keep;  ///< pad: every batch has batch_size rows, zeros behind the valid ones.
    std::uint64_t rank = 0;                  ///< This process among `ranks`.
    std::uint64_t ranks = 1;                 ///< Processes that share each epoch.
    Split split = Split::striped;            ///< How they share it.
    RankBatches rank_batches = RankBatches::as_they_fall;  ///< equal: the same number of batches on every rank.
    std::size_t leases = 1;                                ///< Batches held by consumers at once, 1 to 2^16.
    Delivery delivery = Delivery::ordered;
    OnError on_error = OnError::fail;
    std::optional<std::uint64_t>
        epochs{};  ///< Epochs of the plan, counted from epoch 0. Unset: endless (a generator without restart: 1).
    std::optional<State> resume{};      ///< Where to go on.
    Elastic elastic = Elastic::refuse;  ///< Whether `resume` and `seek` accept other ranks and another batch size.
    Callback<std::size_t> on_worker_start{};  ///< On each loader thread, before its first sample. May throw.
    Callback<const Event&> on_event{};        ///< From any thread, with no lock held; must not throw.
};

}  // namespace v0
}  // namespace stoker
