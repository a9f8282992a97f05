// SPDX-License-Identifier: MIT
/// @file
/// What a prefetcher can load from: random-access sources, whole-batch callables, generators and makers of plain
/// values; and the one context argument that user code gets.
///
/// A source is taken by value. Which functions it has decides what it is.
///
/// Random access, called by many threads at once:
/// - `size()`, `layout()`, `fill(Row<B>, Sample&) const`;
/// - the same in two phases: `Item fetch(Sample&) const`, `fill(Row<B>, Item&, Sample&) const`;
/// - whole batches: `size()`, `layout()`, `fill_batch(Rows<B>, BatchContext&) const`;
/// - plain values, for `Prefetcher<T>`: `size()`, `T make(Sample&) const`.
///
/// Generators, called by one thread at a time:
/// - `layout()`, `bool next(Row<B>, Sample&)`: false is the end, with the row untouched;
/// - `layout()`, `std::optional<Item> fetch(Sample&)`, and `fill(Row<B>, Item&, Sample&) const`, which runs
/// concurrently;
/// - plain values: `std::optional<T> next(Sample&)`.
///
/// Optional members of any source:
/// - `std::string describe(std::uint64_t index) const`: a path or name, for errors;
/// - `std::uint64_t fingerprint() const`: the data's identity, kept in the resume state;
/// - `void finish(B&, BatchContext&) const`: once per batch that is not empty, before the copy;
/// - `std::size_t item_bytes(std::uint64_t index) const`: an item's size before it is fetched, for the byte budget.
///
/// Optional members of a generator: `void restart(std::uint64_t epoch)`, `void skip(std::uint64_t samples)`,
/// `std::uint64_t length() const` (samples of one epoch).
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <stoker/batch.hpp>
#include <stoker/detail/text.hpp>
#include <stoker/random.hpp>

namespace stoker {
inline namespace v0 {

/// One object of each type asked for, made on first use and kept: a worker's reusable memory.
/// Thread-safety: one thread at a time; each worker has its own.
class Scratch {
  public:
    /// The worker's `T`, default-constructed on first use; it lives as long as the worker.
    template <std::default_initializable T>
    [[nodiscard]] T& get() {
        for (const Entry& entry : entries_) {
            if (entry.type == &type_tag<T>) {
                return *static_cast<T*>(entry.object.get());
            }
        }
        entries_.push_back({&type_tag<T>, {new T{}, [](void* object) { delete static_cast<T*>(object); }}});
        return *static_cast<T*>(entries_.back().object.get());
    }

  private:
    template <class T>
    static constexpr char type_tag = 0;
    struct Entry {
        const char* type;
        std::unique_ptr<void, void (*)(void*)> object;
    };
    std::vector<Entry> entries_;
};

/// What a worker offers to the user code that it calls. Part of the library's own side of `Sample`; a test of a source
/// may make one itself.
struct WorkerContext {
    Scratch scratch;
    std::stop_token stop;
    void (*warn)(void* sink, std::uint64_t index, std::string text) = nullptr;
    void* sink = nullptr;
};

/// The one argument that says which sample is being made, and what there is to make it with. Valid during the call.
class Sample {
  public:
    Sample(std::uint64_t index, std::uint64_t epoch, std::uint64_t position, std::uint64_t seed,
           WorkerContext& worker) noexcept
        : index_{index}, epoch_{epoch}, position_{position}, random_{seed, epoch, position}, worker_{&worker} {}

    /// Which sample of the source; for a generator the position.
    [[nodiscard]] std::uint64_t index() const noexcept { return index_; }
    /// Counted from 0.
    [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }
    /// Global position in the epoch, over all ranks.
    [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
    /// The sample's own generator: its draws are a function of (seed, epoch, position, draw number) alone.
    [[nodiscard]] Random& random() noexcept { return random_; }
    /// Requested when the prefetcher stops: long work should look at it now and then, and return or throw.
    [[nodiscard]] const std::stop_token& stop_token() const noexcept { return worker_->stop; }
    /// The worker's `T`, made on first use and reused for every sample of this worker. Cost: a short linear search.
    template <std::default_initializable T>
    [[nodiscard]] T& scratch() {
        return worker_->scratch.get<T>();
    }
    /// Hands a warning about this sample to the `on_event` option.
    void warn(std::string text) {
        if (worker_->warn != nullptr) {
            worker_->warn(worker_->sink, index_, std::move(text));
        }
    }
    [[nodiscard]] WorkerContext& worker() noexcept { return *worker_; }

  private:
    std::uint64_t index_, epoch_, position_;
    Random random_;
    WorkerContext* worker_;
};

/// What `finish` and `fill_batch` get to know of their batch. Valid during the call.
class BatchContext {
  public:
    BatchContext(std::uint64_t epoch, std::uint64_t batch, std::uint64_t position, std::uint64_t seed,
                 std::span<std::uint64_t> sample_ids, std::span<const std::uint64_t> positions, WorkerContext& worker,
                 void (*permute_rows)(void*, std::span<const std::size_t>), void* permute_target) noexcept
        : epoch_{epoch},
          batch_{batch},
          position_{position},
          seed_{seed},
          sample_ids_{sample_ids},
          positions_{positions},
          random_{seed, epoch, position, RandomStream::batch},
          worker_{&worker},
          permute_{permute_rows},
          permute_target_{permute_target} {}

    /// Rows: for `finish` those that survived, for `fill_batch` the plan's entries.
    [[nodiscard]] std::size_t size() const noexcept { return sample_ids_.size(); }
    [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }
    /// The batch's number in this rank's epoch.
    [[nodiscard]] std::uint64_t batch() const noexcept { return batch_; }
    /// Global position of the batch's first plan entry.
    [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
    /// Source indices of the rows, in row order.
    [[nodiscard]] std::span<const std::uint64_t> sample_ids() const noexcept { return sample_ids_; }
    /// The batch's own generator: a function of (seed, epoch, position(), draw number), apart from every sample's.
    [[nodiscard]] Random& random() noexcept { return random_; }
    [[nodiscard]] const std::stop_token& stop_token() const noexcept { return worker_->stop; }
    template <std::default_initializable T>
    [[nodiscard]] T& scratch() {
        return worker_->scratch.get<T>();
    }
    /// For `fill_batch`: the context of row `i`'s sample, with its own generator.
    [[nodiscard]] Sample sample(std::size_t i) const noexcept {
        return {sample_ids_[i], epoch_, positions_[i], seed_, *worker_};
    }
    /// For `finish`: row i becomes what row order[i] was, in every field and in sample_ids().
    /// @throws OptionError  `order` is no permutation of 0 .. size() - 1; nothing has moved then.
    void permute(std::span<const std::size_t> order) {
        std::string seen(size(), '-');
        bool valid = permute_ != nullptr && order.size() == size();
        for (std::size_t i = 0; valid && i < order.size(); ++i) {
            valid = order[i] < size() && seen[order[i]] == '-';
            if (valid) {
                seen[order[i]] = 'x';
            }
        }
        if (!valid) {
            throw OptionError{detail::Text{"cannot reorder the batch: the order given is no permutation of its "}
                                  .add(size())
                                  .add(" rows (and only finish() may reorder)")
                                  .str()};
        }
        permute_(permute_target_, order);
    }

  private:
    std::uint64_t epoch_, batch_, position_, seed_;
    std::span<std::uint64_t> sample_ids_;
    std::span<const std::uint64_t> positions_;
    Random random_;
    WorkerContext* worker_;
    void (*permute_)(void*, std::span<const std::size_t>);
    void* permute_target_;
};

namespace detail {

template <class S>
concept HasSize = requires(const S& source) {
    { source.size() } -> std::convertible_to<std::uint64_t>;
};
template <class S, class B>
concept HasLayout = requires(const S& source) {
    { source.layout() } -> std::convertible_to<Layout<B>>;
};
template <class S>
concept HasFetch = requires(S& source, Sample& sample) { source.fetch(sample); };
template <class S>
concept HasConstFetch = requires(const S& source, Sample& sample) { source.fetch(sample); };
template <class S>
using ItemOf = std::remove_cvref_t<decltype(std::declval<S&>().fetch(std::declval<Sample&>()))>;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

}  // namespace detail

/// "Fill this row with sample i": called through const, by many threads at once.
template <class S, class B>
concept RandomAccessSource =
    TensorBatch<B> && std::copy_constructible<S> && detail::HasSize<S> && detail::HasLayout<S, B> &&
    (requires(const S& source, Row<B> row, Sample& sample) { source.fill(row, sample); } ||
     (detail::HasConstFetch<S> && requires(const S& source, Row<B> row, detail::ItemOf<const S>& item, Sample& sample) {
         source.fill(row, item, sample);
     }));

/// "Fill this batch": called through const, by many threads at once, one batch each.
template <class S, class B>
concept WholeBatchSource =
    TensorBatch<B> && std::copy_constructible<S> && detail::HasSize<S> && detail::HasLayout<S, B> &&
    requires(const S& source, Rows<B> rows, BatchContext& context) { source.fill_batch(rows, context); };

/// "Give the next sample": called by one thread at a time, in order.
template <class S, class B>
concept GeneratorSource =
    TensorBatch<B> && std::move_constructible<S> && !detail::HasSize<S> && detail::HasLayout<S, B> &&
    (requires(S& source, Row<B> row, Sample& sample) {
        { source.next(row, sample) } -> std::same_as<bool>;
    } || (detail::HasFetch<S> && detail::is_optional<detail::ItemOf<S>> &&
          requires(const S& source, Row<B> row, typename detail::ItemOf<S>::value_type& item, Sample& sample) {
              source.fill(row, item, sample);
          }));

/// "Make value i": called through const, by many threads at once.
template <class S, class T>
concept ValueSource = std::copy_constructible<S> && detail::HasSize<S> && requires(const S& source, Sample& sample) {
    { source.make(sample) } -> std::convertible_to<T>;
};

/// "Make the next value": called by one thread at a time, in order.
template <class S, class T>
concept ValueGenerator = std::move_constructible<S> && !detail::HasSize<S> && requires(S& source, Sample& sample) {
    { source.next(sample) } -> std::convertible_to<std::optional<T>>;
};

/// What `Prefetcher<B>` can load from; the table at the top of this file says what each kind needs.
template <class S, class B>
concept SourceOf = (TensorBatch<B> && (RandomAccessSource<S, B> || WholeBatchSource<S, B> || GeneratorSource<S, B>)) ||
                   (!TensorBatch<B> && (ValueSource<S, B> || ValueGenerator<S, B>));

// ---- Sources from callables -------------------------------------------------------------------------------------

/// A random-access source made of a size, a layout and a callable `fill(Row<B>, Sample&)`; see `samples`.
template <TensorBatch B, class Fill>
class CallableSamples {
  public:
    CallableSamples(std::uint64_t count, Layout<B> shapes, Fill callable)
        : size_{count}, layout_{shapes}, fill_{std::move(callable)} {}
    [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
    [[nodiscard]] Layout<B> layout() const { return layout_; }
    void fill(Row<B> row, Sample& sample) const { fill_(row, sample); }

  private:
    std::uint64_t size_;
    Layout<B> layout_;
    Fill fill_;
};

/// `samples<B>(n, layout, [](Row<B> row, Sample& sample) {...})`: the callable is called by many threads at once.
template <TensorBatch B, class Fill>
    requires std::invocable<const Fill&, Row<B>, Sample&>
[[nodiscard]] CallableSamples<B, Fill> samples(std::uint64_t size, Layout<B> layout, Fill fill) {
    return {size, layout, std::move(fill)};
}

/// A whole-batch source made of a callable; see `batches`.
template <TensorBatch B, class Fill>
class CallableBatches {
  public:
    CallableBatches(std::uint64_t count, Layout<B> shapes, Fill callable)
        : size_{count}, layout_{shapes}, fill_{std::move(callable)} {}
    [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
    [[nodiscard]] Layout<B> layout() const { return layout_; }
    void fill_batch(Rows<B> rows, BatchContext& context) const { fill_(rows, context); }

  private:
    std::uint64_t size_;
    Layout<B> layout_;
    Fill fill_;
};

/// `batches<B>(n, layout, [](Rows<B> rows, BatchContext& context) {...})`: one call fills one batch.
template <TensorBatch B, class Fill>
    requires std::invocable<const Fill&, Rows<B>, BatchContext&>
[[nodiscard]] CallableBatches<B, Fill> batches(std::uint64_t size, Layout<B> layout, Fill fill) {
    return {size, layout, std::move(fill)};
}

/// A generator made of a callable `bool next(Row<B>, Sample&)`; see `generator`.
template <TensorBatch B, class Next>
class CallableGenerator {
  public:
    CallableGenerator(Layout<B> shapes, Next callable) : layout_{shapes}, next_{std::move(callable)} {}
    [[nodiscard]] Layout<B> layout() const { return layout_; }
    [[nodiscard]] bool next(Row<B> row, Sample& sample) { return next_(row, sample); }

  private:
    Layout<B> layout_;
    Next next_;
};

/// `generator<B>(layout, [](Row<B> row, Sample& sample) -> bool {...})`: called by one thread at a time; one epoch.
template <TensorBatch B, class Next>
    requires std::is_invocable_r_v<bool, Next&, Row<B>, Sample&>
[[nodiscard]] CallableGenerator<B, Next> generator(Layout<B> layout, Next next) {
    return {layout, std::move(next)};
}

/// Plain values from a callable; see `values`.
template <class Make>
class CallableValues {
  public:
    CallableValues(std::uint64_t count, Make callable) : size_{count}, make_{std::move(callable)} {}
    [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
    [[nodiscard]] auto make(Sample& sample) const { return make_(sample); }

  private:
    std::uint64_t size_;
    Make make_;
};

/// `values(n, [](Sample& sample) { return load_mesh(sample.index()); })`: the callable is called by many threads at
/// once.
template <std::invocable<Sample&> Make>
[[nodiscard]] CallableValues<Make> values(std::uint64_t size, Make make) {
    return {size, std::move(make)};
}

/// A generator of plain values from a callable; see `generator_of`.
template <class Next>
class CallableValueGenerator {
  public:
    explicit CallableValueGenerator(Next callable) : next_{std::move(callable)} {}
    [[nodiscard]] auto next(Sample& sample) { return next_(sample); }

  private:
    Next next_;
};

/// `generator_of([](Sample&) -> std::optional<Mesh> {...})`: called by one thread at a time; one epoch.
template <std::invocable<Sample&> Next>
[[nodiscard]] CallableValueGenerator<Next> generator_of(Next next) {
    return CallableValueGenerator<Next>{std::move(next)};
}

}  // namespace v0
}  // namespace stoker
