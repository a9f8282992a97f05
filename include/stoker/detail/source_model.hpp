// SPDX-License-Identifier: MIT
/// @file
/// Every kind of source behind one face, so that the engine is written once.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <stoker/source.hpp>

namespace stoker {
inline namespace v0 {
namespace detail {

/// Where a plain value is made.
template <class T>
struct ValueCell {
    std::optional<T> value;
};

/// What a host slot holds: the arena of a tensor batch, or one value.
template <class B>
struct ContentOf {
    using type = ValueCell<B>;
};
template <TensorBatch B>
struct ContentOf<B> {
    using type = HostArena;
};
template <class B>
using Content = typename ContentOf<B>::type;

template <class B>
struct LayoutOf {
    struct type {};  // a plain value has none
};
template <TensorBatch B>
struct LayoutOf<B> {
    using type = Layout<B>;
};

/// Gives fetched items their room in the byte budget, in ticket order; an item that is too large for it goes alone.
/// Nobody who was let in ever waits here again, so whoever is inside comes out.
class ItemGate {
  public:
    explicit ItemGate(std::size_t share) : share_{share} {}

    /// Waits for room for `known` bytes, or for as many as the largest item so far. @return the bytes it counts
    std::size_t enter(std::uint64_t ticket, std::optional<std::size_t> known) {
        std::unique_lock lock{mutex_};
        waiting_.push_back(ticket);
        std::size_t need = 0;
        changed_.wait(lock, [&] {
            need = known.value_or(largest_);
            if (is_stopped_) {
                return true;
            }
            for (const std::uint64_t other : waiting_) {
                if (other < ticket) {
                    return false;
                }
            }
            return used_ == 0 || (used_ <= share_ && need <= share_ - used_);
        });
        for (std::uint64_t& other : waiting_) {
            if (other == ticket) {
                other = waiting_.back();
                waiting_.pop_back();
                break;
            }
        }
        used_ += need;
        changed_.notify_all();
        return need;
    }
    /// The item turned out to have `actual` bytes. @return the bytes it counts from now on
    std::size_t correct(std::size_t counted, std::size_t actual) {
        const std::lock_guard lock{mutex_};
        used_ = used_ - counted + actual;
        largest_ = actual > largest_ ? actual : largest_;
        changed_.notify_all();
        return actual;
    }
    void leave(std::size_t counted) {
        const std::lock_guard lock{mutex_};
        used_ -= counted;
        changed_.notify_all();
    }
    void stop() {
        const std::lock_guard lock{mutex_};
        is_stopped_ = true;
        changed_.notify_all();
    }

  private:
    const std::size_t share_;
    // Whenever mutex_ is free: used_ is the sum of what those inside count.
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::uint64_t> waiting_;  // tickets
    std::size_t used_ = 0, largest_ = 0;  // bytes
    bool is_stopped_ = false;
};

/// The engine's side of one sample's two phases: times them and asks for room.
class FetchHook {
  public:
    virtual void before_fetch(std::optional<std::size_t> known_bytes) = 0;
    virtual void after_fetch(std::optional<std::size_t> bytes) = 0;

  protected:
    ~FetchHook() = default;
};

template <class B>
class SourceModel {
  public:
    virtual ~SourceModel() = default;
    [[nodiscard]] virtual std::optional<std::uint64_t> size() const = 0;    // none: a generator
    [[nodiscard]] virtual std::optional<std::uint64_t> length() const = 0;  // a generator's samples per epoch
    [[nodiscard]] virtual typename LayoutOf<B>::type layout() const = 0;
    [[nodiscard]] virtual bool is_whole_batch() const = 0;
    [[nodiscard]] virtual bool has_fetch() const = 0;
    [[nodiscard]] virtual bool has_finish() const = 0;
    [[nodiscard]] virtual bool can_restart() const = 0;
    [[nodiscard]] virtual bool can_skip() const = 0;
    [[nodiscard]] virtual std::string describe(std::uint64_t index) const = 0;
    [[nodiscard]] virtual std::uint64_t fingerprint() const = 0;
    virtual void load(Content<B>& content, std::size_t row, Sample& sample, FetchHook& hook) const = 0;
    virtual void load_batch(Content<B>& content, std::size_t rows, BatchContext& context) const = 0;
    [[nodiscard]] virtual bool pull(Content<B>& content, std::size_t row, Sample& sample, FetchHook& hook) = 0;
    virtual void fill_pulled(Content<B>& content, std::size_t row, Sample& sample) const = 0;
    virtual void restart(std::uint64_t epoch) = 0;
    virtual void skip(std::uint64_t samples) = 0;
    virtual void finish(B& batch, BatchContext& context) const = 0;
};

/// Bytes that an item holds beyond itself, where it shows them.
template <class Item>
[[nodiscard]] std::optional<std::size_t> bytes_of(const Item& item) {
    if constexpr (requires {
                      { item.size_bytes() } -> std::convertible_to<std::size_t>;
                  }) {
        return item.size_bytes();
    } else if constexpr (requires {
                             item.data();
                             { item.size() } -> std::convertible_to<std::size_t>;
                         }) {
        return item.size() * sizeof(*item.data());
    } else {
        return std::nullopt;
    }
}

template <class S, class B>
    requires SourceOf<S, B>
class SourceModelFor final : public SourceModel<B> {
    static constexpr bool is_tensor = TensorBatch<B>;
    static constexpr bool is_generator = !HasSize<S>;
    static constexpr bool is_batch = WholeBatchSource<S, B>;
    static constexpr bool is_two_phase = is_tensor && HasFetch<S>;

  public:
    explicit SourceModelFor(S source) : source_{std::move(source)} {}

    [[nodiscard]] std::optional<std::uint64_t> size() const override {
        if constexpr (is_generator) {
            return std::nullopt;
        } else {
            return static_cast<std::uint64_t>(source_.size());
        }
    }
    [[nodiscard]] std::optional<std::uint64_t> length() const override {
        if constexpr (requires {
                          { source_.length() } -> std::convertible_to<std::uint64_t>;
                      }) {
            return static_cast<std::uint64_t>(source_.length());
        } else {
            return std::nullopt;
        }
    }
    [[nodiscard]] typename LayoutOf<B>::type layout() const override {
        if constexpr (is_tensor) {
            return source_.layout();
        } else {
            return {};
        }
    }
    [[nodiscard]] bool is_whole_batch() const override { return is_batch; }
    [[nodiscard]] bool has_fetch() const override { return is_two_phase; }
    [[nodiscard]] bool has_finish() const override {
        return requires(const S& source, B& batch, BatchContext& context) { source.finish(batch, context); };
    }
    [[nodiscard]] bool can_restart() const override {
        return requires(S& source) { source.restart(std::uint64_t{}); };
    }
    [[nodiscard]] bool can_skip() const override {
        return requires(S& source) { source.skip(std::uint64_t{}); };
    }
    [[nodiscard]] std::string describe(std::uint64_t index) const override {
        if constexpr (requires {
                          { source_.describe(index) } -> std::convertible_to<std::string>;
                      }) {
            return source_.describe(index);
        } else {
            static_cast<void>(index);
            return {};
        }
    }
    [[nodiscard]] std::uint64_t fingerprint() const override {
        if constexpr (requires {
                          { source_.fingerprint() } -> std::convertible_to<std::uint64_t>;
                      }) {
            return source_.fingerprint();
        } else {
            return 0;
        }
    }

    void load([[maybe_unused]] Content<B>& content, [[maybe_unused]] std::size_t row, [[maybe_unused]] Sample& sample,
              [[maybe_unused]] FetchHook& hook) const override {
        if constexpr (is_generator || is_batch) {
            // never called: these go through pull or load_batch
        } else if constexpr (!is_tensor) {
            content.value.emplace(source_.make(sample));
        } else if constexpr (is_two_phase) {
            std::optional<std::size_t> known;
            if constexpr (requires {
                              { source_.item_bytes(sample.index()) } -> std::convertible_to<std::size_t>;
                          }) {
                known = source_.item_bytes(sample.index());
            }
            hook.before_fetch(known);
            auto item = source_.fetch(sample);
            hook.after_fetch(bytes_of(item));
            source_.fill(Row<B>{content, row}, item, sample);
        } else {
            source_.fill(Row<B>{content, row}, sample);
        }
    }
    void load_batch([[maybe_unused]] Content<B>& content, [[maybe_unused]] std::size_t rows,
                    [[maybe_unused]] BatchContext& context) const override {
        if constexpr (is_batch) {
            source_.fill_batch(Rows<B>{content, rows}, context);
        }
    }
    [[nodiscard]] bool pull([[maybe_unused]] Content<B>& content, [[maybe_unused]] std::size_t row,
                            [[maybe_unused]] Sample& sample, [[maybe_unused]] FetchHook& hook) override {
        if constexpr (!is_generator) {
            return false;
        } else if constexpr (!is_tensor) {
            std::optional<B> value = source_.next(sample);
            content.value = std::move(value);
            return content.value.has_value();
        } else if constexpr (is_two_phase) {
            hook.before_fetch(std::nullopt);
            ItemOf<S>& item = sample.template scratch<ItemOf<S>>();
            item.reset();
            auto next = source_.fetch(sample);
            if (!next) {
                hook.after_fetch(std::nullopt);
                return false;
            }
            item.emplace(std::move(*next));
            hook.after_fetch(bytes_of(*item));
            return true;
        } else {
            return source_.next(Row<B>{content, row}, sample);
        }
    }
    void fill_pulled([[maybe_unused]] Content<B>& content, [[maybe_unused]] std::size_t row,
                     [[maybe_unused]] Sample& sample) const override {
        if constexpr (is_generator && is_two_phase) {
            ItemOf<S>& item = sample.template scratch<ItemOf<S>>();
            struct Reset {  // the item goes, whatever fill does
                ItemOf<S>& item;
                ~Reset() { item.reset(); }
            } const reset{item};
            source_.fill(Row<B>{content, row}, *item, sample);
        }
    }
    void restart([[maybe_unused]] std::uint64_t epoch) override {
        if constexpr (requires(S& source) { source.restart(epoch); }) {
            source_.restart(epoch);
        }
    }
    void skip([[maybe_unused]] std::uint64_t samples) override {
        if constexpr (requires(S& source) { source.skip(samples); }) {
            source_.skip(samples);
        }
    }
    void finish([[maybe_unused]] B& batch, [[maybe_unused]] BatchContext& context) const override {
        if constexpr (requires { source_.finish(batch, context); }) {
            source_.finish(batch, context);
        }
    }

  private:
    S source_;
};

}  // namespace detail
}  // namespace v0
}  // namespace stoker
