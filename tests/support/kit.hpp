// SPDX-License-Identifier: MIT
/// @file
/// The test kit: gates instead of sleeps, sources whose every sample can be held, made to throw or counted, ledgers of
/// what was delivered, and what the process looks like (threads, heap).
///
/// One test file of an executable may define STOKER_TEST_COUNTS_ALLOCATIONS before including this; heap numbers are
/// then exact, under sanitizers too. Without it they come from mallinfo2, which sanitizers do not fill in.
#pragma once

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <optional>
#include <source_location>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <stoker/core.hpp>

namespace testing_support {

// ---- Limits ---------------------------------------------------------------------------------------------------------

/// A number from the environment, or `otherwise`.
[[nodiscard]] inline std::size_t environment_number(const char* name, std::size_t otherwise) {
    const char* const text = std::getenv(name);
    return text == nullptr || *text == '\0' ? otherwise : static_cast<std::size_t>(std::strtoull(text, nullptr, 10));
}

/// How often a racy test runs its body: STOKER_REPEAT, else 3.
[[nodiscard]] inline std::size_t repeats() { return environment_number("STOKER_REPEAT", 3); }

/// How long a wait of a test may last before the test counts as hung: STOKER_HANG_SECONDS, else 20 s. Never part of
/// what a test measures.
[[nodiscard]] inline std::chrono::seconds hang_limit() {
    return std::chrono::seconds{environment_number("STOKER_HANG_SECONDS", 20)};
}

/// What a wait of the kit throws when it hangs.
class Hang : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// Fails the test and throws; for waits that hang.
[[noreturn]] inline void fail_as_hung(const std::string& what, const std::source_location& where) {
    const std::string text = std::string{where.file_name()} + ":" + std::to_string(where.line()) + ": hung: " + what;
    ADD_FAILURE() << text;
    throw Hang{text};
}

/// Ends the process with a message when it lives too long: the only cure for a library call that never returns. A limit
/// of three times `hang_limit()`, so that the kit's own waits report first.
class Watchdog {
  public:
    explicit Watchdog(std::chrono::seconds limit = 3 * hang_limit(),
                      std::source_location where = std::source_location::current())
        : thread_{[this, limit, where](const std::stop_token& stop) {
              std::unique_lock lock{mutex_};
              if (!over_.wait_for(lock, stop, limit, [] { return false; }) && !stop.stop_requested()) {
                  std::fprintf(stderr, "%s:%u: watchdog: the test hangs (limit %lld s)\n", where.file_name(),
                               static_cast<unsigned>(where.line()), static_cast<long long>(limit.count()));
                  std::abort();
              }
          }} {}
    Watchdog(const Watchdog&) = delete;
    Watchdog& operator=(const Watchdog&) = delete;

  private:
    std::mutex mutex_;
    std::condition_variable_any over_;
    std::jthread thread_;
};

// ---- Gates ----------------------------------------------------------------------------------------------------------

/// Closed until opened; a copy is the same gate, so that it outlives the test that made it.
class Gate {
  public:
    void open() const {
        const std::lock_guard lock{state_->mutex};
        state_->is_open = true;
        state_->changed.notify_all();
    }
    [[nodiscard]] bool is_open() const {
        const std::lock_guard lock{state_->mutex};
        return state_->is_open;
    }
    /// Waits until it is open; fails the test and throws `Hang` when that takes too long.
    void wait(std::source_location where = std::source_location::current()) const {
        std::unique_lock lock{state_->mutex};
        if (!state_->changed.wait_for(lock, hang_limit(), [&] { return state_->is_open; })) {
            lock.unlock();
            fail_as_hung("a gate was not opened", where);
        }
    }
    /// As above, but also ends when stop is requested. @return whether it is open
    [[nodiscard]] bool wait(const std::stop_token& stop,
                            std::source_location where = std::source_location::current()) const {
        std::unique_lock lock{state_->mutex};
        const bool is_open = state_->changed.wait_for(lock, stop, hang_limit(), [&] { return state_->is_open; });
        if (!is_open && !stop.stop_requested()) {
            lock.unlock();
            fail_as_hung("a gate was neither opened nor stopped", where);
        }
        return is_open;
    }

  private:
    struct State {
        std::mutex mutex;
        std::condition_variable_any changed;
        bool is_open = false;
    };
    std::shared_ptr<State> state_ = std::make_shared<State>();
};

/// Counts arrivals; a copy is the same counter.
class Arrivals {
  public:
    void arrive() const {
        const std::lock_guard lock{state_->mutex};
        ++state_->count;
        state_->changed.notify_all();
    }
    [[nodiscard]] std::size_t count() const {
        const std::lock_guard lock{state_->mutex};
        return state_->count;
    }
    /// Waits for the n-th arrival; fails the test and throws `Hang` when that takes too long.
    void wait_for(std::size_t n, std::source_location where = std::source_location::current()) const {
        std::unique_lock lock{state_->mutex};
        if (!state_->changed.wait_for(lock, hang_limit(), [&] { return state_->count >= n; })) {
            const std::size_t count = state_->count;
            lock.unlock();
            fail_as_hung("waited for " + std::to_string(n) + " arrivals, saw " + std::to_string(count), where);
        }
    }

  private:
    struct State {
        std::mutex mutex;
        std::condition_variable_any changed;
        std::size_t count = 0;
    };
    std::shared_ptr<State> state_ = std::make_shared<State>();
};

// ---- Hooks: what happens when a sample is made
// -------------------------------------------------------------------------

/// Called with each sample before its row is written; may block, throw or count. By many threads at once.
using Hook = std::function<void(stoker::Sample&)>;

/// Each of them in turn.
[[nodiscard]] inline Hook all_of(std::vector<Hook> hooks) {
    return [hooks = std::move(hooks)](stoker::Sample& sample) {
        for (const Hook& hook : hooks) {
            hook(sample);
        }
    };
}

/// Holds one sample: `reached` tells when a worker is inside it, `open` lets it go on. A copy is the same latch.
/// Whether it holds every time or only the first (of an epoch after epoch run): every time, until opened.
class SampleLatch {
  public:
    explicit SampleLatch(std::uint64_t index) : index_{index} {}
    void open() const { gate_.open(); }
    /// Waits until a worker has begun the sample.
    void wait_until_reached(std::source_location where = std::source_location::current()) const {
        reached_.wait_for(1, where);
    }
    [[nodiscard]] bool is_reached() const { return reached_.count() != 0; }

    /// Blocks whoever makes the sample until opened, whatever the stop token says.
    [[nodiscard]] Hook hook() const {
        return [latch = *this](stoker::Sample& sample) {
            if (sample.index() == latch.index_) {
                latch.reached_.arrive();
                latch.gate_.wait();
            }
        };
    }
    /// Blocks until opened or stopped; throws std::runtime_error when stopped.
    [[nodiscard]] Hook stoppable_hook() const {
        return [latch = *this](stoker::Sample& sample) {
            if (sample.index() == latch.index_) {
                latch.reached_.arrive();
                if (!latch.gate_.wait(sample.stop_token())) {
                    throw std::runtime_error{"stopped while loading"};
                }
            }
        };
    }

  private:
    std::uint64_t index_;
    Gate gate_;
    Arrivals reached_;
};

/// Throws `exception` (of any type) for each of the samples `indices`.
template <class E>
[[nodiscard]] Hook throw_on(std::vector<std::uint64_t> indices, E exception) {
    return [indices = std::move(indices), exception = std::move(exception)](stoker::Sample& sample) {
        if (std::find(indices.begin(), indices.end(), sample.index()) != indices.end()) {
            throw E{exception};
        }
    };
}

/// How often each sample was begun. A copy is the same counter.
class SampleCounter {
  public:
    [[nodiscard]] Hook hook() const {
        return [state = state_](stoker::Sample& sample) {
            const std::lock_guard lock{state->mutex};
            ++state->counts[sample.index()];
            ++state->total;
            state->changed.notify_all();
        };
    }
    [[nodiscard]] std::size_t total() const {
        const std::lock_guard lock{state_->mutex};
        return state_->total;
    }
    [[nodiscard]] std::size_t of(std::uint64_t index) const {
        const std::lock_guard lock{state_->mutex};
        const auto found = state_->counts.find(index);
        return found == state_->counts.end() ? 0 : found->second;
    }
    /// Waits until `n` samples were begun in all.
    void wait_for(std::size_t n, std::source_location where = std::source_location::current()) const {
        std::unique_lock lock{state_->mutex};
        if (!state_->changed.wait_for(lock, hang_limit(), [&] { return state_->total >= n; })) {
            const std::size_t total = state_->total;
            lock.unlock();
            fail_as_hung("waited for " + std::to_string(n) + " samples, saw " + std::to_string(total), where);
        }
    }

  private:
    struct State {
        std::mutex mutex;
        std::condition_variable_any changed;
        std::map<std::uint64_t, std::size_t> counts;
        std::size_t total = 0;
    };
    std::shared_ptr<State> state_ = std::make_shared<State>();
};

/// Runs `steps` rounds of arithmetic per sample: slow without sleeping.
[[nodiscard]] inline Hook slow(std::size_t steps) {
    return [steps](stoker::Sample& sample) {
        std::uint64_t value = sample.index() + 1;
        for (std::size_t i = 0; i < steps; ++i) {
            value = value * 6364136223846793005U + 1442695040888963407U;
        }
        static std::atomic<std::uint64_t> sink{0};  // keeps the loop from being removed; publishes nothing
        sink.store(value, std::memory_order_relaxed);
    };
}

// ---- Batches and sources
// -----------------------------------------------------------------------------------------------

/// A batch whose whole content is a function of the sample numbers, so that a mix-up shows.
struct NumberBatch {
    stoker::Tensor<std::uint64_t, 1> ids;
    stoker::Tensor<std::uint32_t, 2> numbers;  // N x 8
    stoker::Ragged<std::uint32_t, 1> items;    // sample i has i % 4 of them

    static constexpr auto fields =
        stoker::fields<&NumberBatch::ids, &NumberBatch::numbers, &NumberBatch::items>("ids", "numbers", "items");
};
static_assert(stoker::TensorBatch<NumberBatch>);

inline constexpr std::size_t number_width = 8;
[[nodiscard]] inline std::uint32_t number_of(std::uint64_t id, std::size_t column) {
    return static_cast<std::uint32_t>(id * 1000 + column);
}
[[nodiscard]] inline std::size_t item_count_of(std::uint64_t id) { return static_cast<std::size_t>(id % 4); }
[[nodiscard]] inline std::uint32_t item_of(std::uint64_t id, std::size_t i) {
    return static_cast<std::uint32_t>(id * 77 + i + 5);
}
[[nodiscard]] inline stoker::Layout<NumberBatch> number_layout(std::size_t capacity = 4096) {
    return stoker::Layout<NumberBatch>{}
        .shape(&NumberBatch::numbers, {number_width})
        .capacity(&NumberBatch::items, capacity);
}
/// Writes sample `id`, every byte of it.
inline void write_number(stoker::Row<NumberBatch> row, std::uint64_t id) {
    row[&NumberBatch::ids] = id;
    const auto numbers = row[&NumberBatch::numbers];
    for (std::size_t i = 0; i < number_width; ++i) {
        numbers[i] = number_of(id, i);
    }
    const auto items = row[&NumberBatch::items].resize(item_count_of(id));
    for (std::size_t i = 0; i < item_count_of(id); ++i) {
        items[i] = item_of(id, i);
    }
}
/// Whether the valid rows hold, in every byte, what `write_number` wrote for `ids` (those that the lease names).
[[nodiscard]] inline ::testing::AssertionResult is_right(const NumberBatch& batch, std::span<const std::uint64_t> ids) {
    if (batch.ids.extent(0) < ids.size() || batch.items.rows() < ids.size()) {
        return ::testing::AssertionFailure() << "fewer rows than sample ids";
    }
    for (std::size_t row = 0; row < ids.size(); ++row) {
        const std::uint64_t id = ids[row];
        if (batch.ids[row] != id) {
            return ::testing::AssertionFailure() << "row " << row << " holds " << batch.ids[row] << ", not " << id;
        }
        for (std::size_t i = 0; i < number_width; ++i) {
            if (batch.numbers[row][i] != number_of(id, i)) {
                return ::testing::AssertionFailure() << "row " << row << " (sample " << id << "), number " << i;
            }
        }
        if (batch.items[row].size() != item_count_of(id)) {
            return ::testing::AssertionFailure()
                   << "row " << row << " (sample " << id << ") has " << batch.items[row].size() << " items";
        }
        for (std::size_t i = 0; i < item_count_of(id); ++i) {
            if (batch.items[row][i] != item_of(id, i)) {
                return ::testing::AssertionFailure() << "row " << row << " (sample " << id << "), item " << i;
            }
        }
    }
    return ::testing::AssertionSuccess();
}
/// As above, for a lease whose batch the host can read.
template <class AnyLease>
[[nodiscard]] ::testing::AssertionResult is_right(const AnyLease& lease) {
    return is_right(*lease, lease.info().sample_ids());
}

/// `size` samples of NumberBatch; `hook` is called with each before its row is written.
class NumberSource {
  public:
    explicit NumberSource(std::uint64_t size, Hook hook = {}) : size_{size}, hook_{std::move(hook)} {}
    [[nodiscard]] std::uint64_t size() const { return size_; }
    [[nodiscard]] stoker::Layout<NumberBatch> layout() const { return number_layout(); }
    void fill(stoker::Row<NumberBatch> row, stoker::Sample& sample) const {
        if (hook_) {
            hook_(sample);
        }
        write_number(row, sample.index());
    }
    [[nodiscard]] std::string describe(std::uint64_t index) const { return "number/" + std::to_string(index); }

  private:
    std::uint64_t size_;
    Hook hook_;
};

/// The same samples from a generator: epochs of `size` samples, restartable and move-only.
class NumberGenerator {
  public:
    explicit NumberGenerator(std::uint64_t size, Hook hook = {}) : size_{size}, hook_{std::move(hook)} {}
    NumberGenerator(NumberGenerator&&) = default;
    NumberGenerator& operator=(NumberGenerator&&) = default;
    [[nodiscard]] stoker::Layout<NumberBatch> layout() const { return number_layout(); }
    [[nodiscard]] bool next(stoker::Row<NumberBatch> row, stoker::Sample& sample) {
        if (next_ == size_) {
            return false;
        }
        const std::uint64_t id = next_++;
        if (hook_) {
            hook_(sample);
        }
        write_number(row, id);
        return true;
    }
    void restart(std::uint64_t) { next_ = 0; }

  private:
    std::uint64_t size_;
    std::uint64_t next_ = 0;
    Hook hook_;
};

// ---- Ledgers
// -----------------------------------------------------------------------------------------------------------

/// Sample ids, batch by batch, in the order of delivery.
using Ledger = std::vector<std::vector<std::uint64_t>>;

/// What a sequential plan over `size` samples delivers in one epoch.
[[nodiscard]] inline Ledger sequential_ledger(std::uint64_t size, std::size_t batch_size) {
    Ledger ledger;
    for (std::uint64_t first = 0; first < size; first += batch_size) {
        std::vector<std::uint64_t> ids(static_cast<std::size_t>(std::min<std::uint64_t>(batch_size, size - first)));
        std::iota(ids.begin(), ids.end(), first);
        ledger.push_back(std::move(ids));
    }
    return ledger;
}

/// All ids, sorted.
[[nodiscard]] inline std::vector<std::uint64_t> flattened_sorted(const Ledger& ledger) {
    std::vector<std::uint64_t> ids;
    for (const auto& batch : ledger) {
        ids.insert(ids.end(), batch.begin(), batch.end());
    }
    std::sort(ids.begin(), ids.end());
    return ids;
}

/// 0 .. n - 1.
[[nodiscard]] inline std::vector<std::uint64_t> numbers_below(std::uint64_t n) {
    std::vector<std::uint64_t> ids(static_cast<std::size_t>(n));
    std::iota(ids.begin(), ids.end(), std::uint64_t{0});
    return ids;
}

template <class AnyLease>
[[nodiscard]] std::vector<std::uint64_t> ids_of(const AnyLease& lease) {
    const auto ids = lease.info().sample_ids();
    return {ids.begin(), ids.end()};
}

/// Iterates a range of leases (an epoch) to its end; a failed sample ends the test's expectation, not the process.
template <class Range>
[[nodiscard]] Ledger collect(Range&& range) {
    Ledger ledger;
    for (auto&& lease : range) {
        ledger.push_back(ids_of(lease));
    }
    return ledger;
}

/// Takes up to `batches` batches with `next()` of a prefetcher or an epoch.
template <class Feed>
[[nodiscard]] Ledger take(Feed& feed, std::size_t batches) {
    Ledger ledger;
    while (ledger.size() < batches) {
        auto lease = feed.next();
        if (!lease) {
            break;
        }
        ledger.push_back(ids_of(*lease));
    }
    return ledger;
}

/// What came: batches, and the samples that threw, each with the number of batches that came before it.
struct Account {
    struct Thrown {
        std::size_t before_batch;
        stoker::SampleError::Facts facts;
        std::string message;
    };
    Ledger ledger;
    std::vector<Thrown> thrown;

    [[nodiscard]] std::vector<std::uint64_t> failed_ids() const {
        std::vector<std::uint64_t> ids;
        for (const Thrown& one : thrown) {
            ids.push_back(one.facts.index);
        }
        return ids;
    }
};

/// Takes everything up to the end, going on behind failed samples. At most `limit` calls.
template <class Feed>
[[nodiscard]] Account collect_through_errors(Feed& feed, std::size_t limit = 100000) {
    Account account;
    for (std::size_t i = 0; i < limit; ++i) {
        try {
            auto lease = feed.next();
            if (!lease) {
                return account;
            }
            account.ledger.push_back(ids_of(*lease));
        } catch (const stoker::SampleError& error) {
            account.thrown.push_back({account.ledger.size(), error.facts(), error.what()});
        }
    }
    ADD_FAILURE() << "no end after " << limit << " calls";
    return account;
}

// ---- The process
// ---------------------------------------------------------------------------------------------------------

/// The names of all threads of this process.
[[nodiscard]] inline std::vector<std::string> thread_names() {
    std::vector<std::string> names;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator{"/proc/self/task", ignored}) {
        std::ifstream file{entry.path() / "comm"};
        if (std::string name; std::getline(file, name)) {
            names.push_back(std::move(name));
        }
    }
    std::sort(names.begin(), names.end());
    return names;
}

/// The names of the library's threads that exist right now. A thread that was joined may be listed a moment longer by
/// the kernel; `expect_no_library_threads` waits for that.
[[nodiscard]] inline std::vector<std::string> library_threads() {
    std::vector<std::string> names = thread_names();
    std::erase_if(names, [](const std::string& name) { return !name.starts_with("stoker/"); });
    return names;
}

/// Expects that no library thread is left.
inline void expect_no_library_threads() {
    const auto deadline = std::chrono::steady_clock::now() + hang_limit();
    while (!library_threads().empty() && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::yield();
    }
    EXPECT_TRUE(library_threads().empty());
}

namespace detail {
// Statistics of the replaced operator new; they publish nothing.
inline std::atomic<bool> counts_allocations{false};
inline std::atomic<std::size_t> live_bytes{0};
inline std::atomic<std::size_t> allocations{0};
}  // namespace detail

/// Bytes allocated and not freed.
[[nodiscard]] inline std::size_t live_heap_bytes() {
    if (detail::counts_allocations.load(std::memory_order_relaxed)) {
        return detail::live_bytes.load(std::memory_order_relaxed);
    }
    const auto info = ::mallinfo2();
    return info.uordblks + info.hblkhd;
}
/// Calls of operator new so far, by all threads; 0 in an executable that does not count.
[[nodiscard]] inline std::size_t allocations() { return detail::allocations.load(std::memory_order_relaxed); }
/// Whether this executable counts allocations.
[[nodiscard]] inline bool counts_allocations() { return detail::counts_allocations.load(std::memory_order_relaxed); }

}  // namespace testing_support

#ifdef STOKER_TEST_COUNTS_ALLOCATIONS
namespace testing_support::detail {
[[nodiscard]] inline void* counted_allocate(std::size_t bytes, std::size_t alignment) {
    counts_allocations.store(true, std::memory_order_relaxed);
    void* const memory = alignment == 0 ? std::malloc(bytes == 0 ? 1 : bytes)
                                        : std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
    if (memory == nullptr) {
        throw std::bad_alloc{};
    }
    live_bytes.fetch_add(::malloc_usable_size(memory), std::memory_order_relaxed);
    allocations.fetch_add(1, std::memory_order_relaxed);
    return memory;
}
inline void counted_free(void* memory) noexcept {
    if (memory != nullptr) {
        live_bytes.fetch_sub(::malloc_usable_size(memory), std::memory_order_relaxed);
        std::free(memory);
    }
}
}  // namespace testing_support::detail

void* operator new(std::size_t bytes) { return testing_support::detail::counted_allocate(bytes, 0); }
void* operator new[](std::size_t bytes) { return testing_support::detail::counted_allocate(bytes, 0); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
    return testing_support::detail::counted_allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
    return testing_support::detail::counted_allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { testing_support::detail::counted_free(memory); }
void operator delete[](void* memory) noexcept { testing_support::detail::counted_free(memory); }
void operator delete(void* memory, std::size_t) noexcept { testing_support::detail::counted_free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { testing_support::detail::counted_free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { testing_support::detail::counted_free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { testing_support::detail::counted_free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    testing_support::detail::counted_free(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
    testing_support::detail::counted_free(memory);
}
#endif
