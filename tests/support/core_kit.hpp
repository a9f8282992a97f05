// SPDX-License-Identifier: MIT
/// @file
/// What the tests of the prefetcher share beside the kit: ready-made prefetchers, compiled once (core_kit.cpp), and
/// records of what a run delivered, byte for byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <limits>
#include <string>
#include <vector>

#include "support/kit.hpp"

// Compiled once for all test files.
extern template class stoker::detail::Core<testing_support::NumberBatch, stoker::HostDevice>;
extern template class stoker::detail::Core<stoker::ImageBatch, stoker::HostDevice>;

namespace testing_support {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool has_thread_sanitizer = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool has_thread_sanitizer = true;
#else
inline constexpr bool has_thread_sanitizer = false;
#endif
#else
inline constexpr bool has_thread_sanitizer = false;
#endif
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool has_address_sanitizer = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool has_address_sanitizer = true;
#else
inline constexpr bool has_address_sanitizer = false;
#endif
#else
inline constexpr bool has_address_sanitizer = false;
#endif

// ---- Numbers --------------------------------------------------------------------------------------------------------

using NumberFeed = stoker::Prefetcher<NumberBatch>;
using NumberLease = stoker::Lease<NumberBatch>;

/// A prefetcher over a NumberSource.
[[nodiscard]] NumberFeed number_feed(std::uint64_t size, stoker::PrefetcherOptions options = {}, const Hook& hook = {});
/// A prefetcher over a NumberGenerator.
[[nodiscard]] NumberFeed number_generator_feed(std::uint64_t size, stoker::PrefetcherOptions options = {},
                                               const Hook& hook = {});

/// Which samples fail, as a function of the index alone.
using Fails = std::function<bool(std::uint64_t index)>;

/// Every byte of a row comes from the sample's own draws, the number of its items too; samples of which `fails` says so
/// throw a DataError that names "draw/<index>.bin" of 7 bytes, after they have written half of their row.
[[nodiscard]] NumberFeed draw_feed(std::uint64_t size, stoker::PrefetcherOptions options = {}, const Fails& fails = {});
/// As above, and `finish` reorders the batch's rows by the batch's own draws and adds another one to each number; it
/// throws for batches of which `finish_fails` says so, as a function of their number.
[[nodiscard]] NumberFeed finished_draw_feed(std::uint64_t size, stoker::PrefetcherOptions options = {},
                                            const Fails& fails = {}, const Fails& finish_fails = {});

/// One batch, or one error, that a consumer got.
struct Delivered {
    std::string error;
    std::uint64_t epoch = 0, batch = 0, position = 0;
    std::vector<std::uint64_t> ids;
    std::vector<std::uint64_t> failed;
    std::size_t rows = 0;
    std::string bytes;  // of every field, padding included
    stoker::State state;

    friend bool operator==(const Delivered&, const Delivered&) = default;
    friend void PrintTo(const Delivered& one, std::ostream* out);
};
[[nodiscard]] Delivered record(const NumberLease& lease, bool has_state = true);

using History = std::vector<Delivered>;
/// Takes up to `batches` batches and every error on the way; goes on behind errors.
[[nodiscard]] History record_run(NumberFeed& feed, std::size_t batches = std::numeric_limits<std::size_t>::max());
/// As above, of a range that was begun.
[[nodiscard]] History record_epoch(stoker::Epoch<NumberBatch>& epoch);

// ---- ID(n) of acceptance.md -----------------------------------------------------------------------------------------

using ColourFeed = stoker::Prefetcher<stoker::ImageBatch>;
using ColourLease = stoker::Lease<stoker::ImageBatch>;

/// ID(n) without the files: 8x8 pixels of the colour (i mod 256, i div 256, 7 * i mod 256), label i.
[[nodiscard]] ColourFeed colour_feed(std::uint64_t size, stoker::PrefetcherOptions options = {}, const Hook& hook = {});
/// The identities read back from the pixels of the valid rows; fails the test where pixels, labels, indices and sample
/// ids disagree.
[[nodiscard]] std::vector<std::uint64_t> identities(const ColourLease& lease);
/// As `collect`, by the pixels.
[[nodiscard]] Ledger collect_identities(stoker::Epoch<stoker::ImageBatch>& epoch);
[[nodiscard]] inline Ledger collect_identities(stoker::Epoch<stoker::ImageBatch>&& epoch) {
    return collect_identities(epoch);
}
/// As `take`, by the pixels.
[[nodiscard]] Ledger take_identities(ColourFeed& feed, std::size_t batches);

/// The sizes of a ledger's batches.
[[nodiscard]] std::vector<std::size_t> sizes_of(const Ledger& ledger);
/// All ids, in the order of delivery.
[[nodiscard]] std::vector<std::uint64_t> flattened(const Ledger& ledger);

/// The message of the `E` that `action` throws; fails the test and returns an empty text without one.
template <class E, class Action>
[[nodiscard]] std::string message_of(Action&& action) {
    try {
        action();
    } catch (const E& error) {
        return error.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return {};
}
/// Whether `text` holds each of `words`.
[[nodiscard]] ::testing::AssertionResult has_words(const std::string& text, const std::vector<std::string>& words);

/// Expects `count` threads of the library. Threads name themselves when they start and the kernel may list a joined one
/// a moment longer, so this looks until it fits.
void expect_library_threads(std::size_t count);

/// Runs `body` in a child process. @return its exit status; 128 + the signal that ended it; -1 when it hung
[[nodiscard]] int in_child(const std::function<int()>& body);

}  // namespace testing_support
