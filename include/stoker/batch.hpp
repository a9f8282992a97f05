// SPDX-License-Identifier: MIT
/// @file
/// What a batch is: a user's struct of tensor views with named fields, laid out in one aligned arena per slot; and the
/// row of it that a source writes one sample into.
#pragma once

#include <array>
#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <stoker/detail/arena.hpp>
#include <stoker/error.hpp>
#include <stoker/tensor.hpp>

namespace stoker {
inline namespace v0 {

/// The fields of a batch, as data members and their names; made by `fields`.
template <auto... Members>
struct FieldList {
    static constexpr std::size_t size = sizeof...(Members);
    std::array<std::string_view, sizeof...(Members)> names;
};

/// Names the fields of a batch once:
/// `static constexpr auto fields = stoker::fields<&B::images, &B::labels>("images", "labels");`
template <auto... Members, std::convertible_to<std::string_view>... Names>
    requires(sizeof...(Members) == sizeof...(Names) && sizeof...(Members) > 0)
[[nodiscard]] constexpr FieldList<Members...> fields(Names... names) noexcept {
    return {{std::string_view{names}...}};
}

/// Where the library looks for a batch's fields. Specialise it, with a member `fields`, for a type you do not own.
template <class B>
struct BatchTraits {};

template <class B>
    requires requires { B::fields; }
struct BatchTraits<B> {
    static constexpr auto fields = B::fields;
};

namespace detail {

template <class M>
struct FieldOf {
    static constexpr bool is_field = false;
};
template <class T, std::size_t Rank, class B>
struct FieldOf<Tensor<T, Rank> B::*> {
    static constexpr bool is_field = true;
    static constexpr bool is_ragged = false;
    static constexpr std::size_t inner_rank = Rank - 1;
    using Element = T;
    using Batch = B;
    using View = Tensor<T, Rank>;
};
template <class T, std::size_t Rank, class B>
struct FieldOf<Ragged<T, Rank> B::*> {
    static constexpr bool is_field = true;
    static constexpr bool is_ragged = true;
    static constexpr std::size_t inner_rank = Rank - 1;
    using Element = T;
    using Batch = B;
    using View = Ragged<T, Rank>;
};

template <class List>
inline constexpr bool all_fields = false;
template <auto... Members>
inline constexpr bool all_fields<FieldList<Members...>> = (FieldOf<decltype(Members)>::is_field && ...);

/// Position of `member` in the list, or the list's size.
template <auto... Members, class M>
[[nodiscard]] constexpr std::size_t field_position(const FieldList<Members...>&, M member) noexcept {
    std::size_t found = sizeof...(Members);
    std::size_t i = 0;
    const auto look = [&]<class Candidate>(Candidate candidate) {
        if constexpr (std::is_same_v<Candidate, M>) {
            if (candidate == member) {
                found = i;
            }
        }
        ++i;
    };
    (look(Members), ...);
    return found;
}

}  // namespace detail

/// A batch: a default-constructible struct whose listed fields are `Tensor`s (first dimension: the batch) or `Ragged`s.
template <class B>
concept TensorBatch = std::default_initializable<B> && std::copyable<B> && requires { BatchTraits<B>::fields; } &&
                      detail::all_fields<std::remove_cvref_t<decltype(BatchTraits<B>::fields)>>;

namespace detail {

/// Position of a field that a user names. @throws OptionError  it is not in the batch's list
template <TensorBatch B, class M>
[[nodiscard]] constexpr std::size_t listed_position(M member) {
    const std::size_t position = field_position(BatchTraits<B>::fields, member);
    if (position == BatchTraits<B>::fields.size) {
        throw OptionError{
            "cannot find the field: the member given is not in the batch's list of fields; add it to `fields`"};
    }
    return position;
}

}  // namespace detail

/// Sample shapes and capacities of a batch's fields; the element types are in the fields' own types.
/// `Layout<B>{}.shape(&B::images, {224, 224, 3}).capacity(&B::boxes, 1000, {4})`. A `Tensor<T, 1>` (one number per
/// sample) needs no entry.
template <TensorBatch B>
class Layout {
  public:
    Layout() : Layout{BatchTraits<B>::fields} {}

    /// The extents of one sample in a fixed field: those of the tensor without the batch dimension.
    template <class T, std::size_t Rank>
        requires(Rank >= 2)
    Layout& shape(Tensor<T, Rank> B::*member, const std::size_t (&extents)[Rank - 1]) {
        set(spec_of(member), extents);
        return *this;
    }
    /// A ragged field of single elements: at most `items` of them in all rows of one batch together.
    template <class T>
    Layout& capacity(Ragged<T, 1> B::*member, std::size_t items) {
        detail::FieldSpec& spec = spec_of(member);
        spec.capacity = items;
        spec.is_set = true;
        return *this;
    }
    /// A ragged field of items with inner extents: at most `items` items in all rows of one batch together.
    template <class T, std::size_t Rank>
        requires(Rank >= 2)
    Layout& capacity(Ragged<T, Rank> B::*member, std::size_t items, const std::size_t (&inner)[Rank - 1]) {
        detail::FieldSpec& spec = spec_of(member);
        set(spec, inner);
        spec.capacity = items;
        return *this;
    }

    /// For the library: one entry per field, in the order of the list.
    [[nodiscard]] std::span<const detail::FieldSpec> specs() const noexcept { return specs_; }

  private:
    using List = std::remove_cvref_t<decltype(BatchTraits<B>::fields)>;

    template <auto... Members>
    explicit Layout(const FieldList<Members...>& list) {
        std::size_t i = 0;
        const auto add = [&]<class M>(M) {
            using Field = detail::FieldOf<M>;
            detail::FieldSpec& spec = specs_[i];
            spec.name = list.names[i];
            spec.dtype = dtype_of<std::remove_const_t<typename Field::Element>>();
            spec.element_bytes = sizeof(typename Field::Element);
            spec.inner_rank = Field::inner_rank;
            spec.is_ragged = Field::is_ragged;
            spec.is_set = Field::inner_rank == 0 && !Field::is_ragged;
            static_assert(Field::inner_rank <= detail::FieldSpec::max_inner_rank, "tensors have at most 8 dimensions");
            ++i;
        };
        (add(Members), ...);
    }

    template <class M>
    [[nodiscard]] detail::FieldSpec& spec_of(M member) {
        return specs_[detail::listed_position<B>(member)];
    }
    template <std::size_t N>
    static void set(detail::FieldSpec& spec, const std::size_t (&extents)[N]) {
        for (std::size_t axis = 0; axis < N; ++axis) {
            spec.inner[axis] = extents[axis];
        }
        spec.is_set = true;
    }

    std::array<detail::FieldSpec, List::size> specs_{};
};

/// One sample's part of a ragged field, while a source fills it.
template <class T, std::size_t Rank>
class RaggedRow {
  public:
    RaggedRow(detail::RaggedStore& store, std::size_t row, const detail::FieldSpec& spec) noexcept
        : store_{&store}, row_{row}, spec_{&spec} {}

    /// Makes room for `items` items and returns them, to be written whole; what was there before is forgotten.
    /// Rows share the field's capacity and have room in row order until it is used up: which rows fail depends on the
    /// sizes alone. Thread-safe against the other rows. Not calling it leaves the row with 0 items.
    /// @throws DataError  (capacity) more items than the whole field holds. A row that finds no room beside the rows
    /// before it fails when the batch is put together.
    [[nodiscard]] Tensor<T, Rank> resize(std::size_t items) const {
        typename Tensor<T, Rank>::Shape shape{};
        shape[0] = items;
        for (std::size_t axis = 1; axis < Rank; ++axis) {
            shape[axis] = spec_->inner[axis - 1];
        }
        std::byte* const memory = store_->allocate(row_, items, spec_->name);
        return {reinterpret_cast<T*>(memory), shape};  // the store aligns every row for its element type
    }

  private:
    detail::RaggedStore* store_;
    std::size_t row_;
    const detail::FieldSpec* spec_;
};

/// The row of a batch that one sample is written into, in host memory. A view: valid during the call it was passed to.
/// A source writes every byte of its row: what it leaves out holds what an earlier batch left there.
/// Thread-safety: rows are disjoint; each is used by one thread at a time.
template <TensorBatch B>
class Row {
  public:
    Row(detail::HostArena& arena, std::size_t row) noexcept : arena_{&arena}, row_{row} {}

    /// One number per sample: a reference to it.
    template <class T>
    [[nodiscard]] T& operator[](Tensor<T, 1> B::*member) const {
        return *reinterpret_cast<T*>(arena_->row(detail::listed_position<B>(member), row_));
    }
    /// A fixed field: the sample's tensor, without the batch dimension.
    template <class T, std::size_t Rank>
        requires(Rank >= 2)
    [[nodiscard]] Tensor<T, Rank - 1> operator[](Tensor<T, Rank> B::*member) const {
        const std::size_t field = detail::listed_position<B>(member);
        typename Tensor<T, Rank - 1>::Shape shape{};
        for (std::size_t axis = 0; axis + 1 < Rank; ++axis) {
            shape[axis] = arena_->layout().fields()[field].spec.inner[axis];
        }
        return {reinterpret_cast<T*>(arena_->row(field, row_)), shape};
    }
    /// A ragged field: `row[&B::boxes].resize(n)` gives n items to write.
    template <class T, std::size_t Rank>
    [[nodiscard]] RaggedRow<T, Rank> operator[](Ragged<T, Rank> B::*member) const {
        const std::size_t field = detail::listed_position<B>(member);
        return {arena_->ragged(field), row_, arena_->layout().fields()[field].spec};
    }

  private:
    detail::HostArena* arena_;
    std::size_t row_;
};

/// All rows of a batch, for a source that fills whole batches.
template <TensorBatch B>
class Rows {
  public:
    Rows(detail::HostArena& arena, std::size_t rows) noexcept : arena_{&arena}, rows_{rows} {}
    /// Plan entries of this batch; the last one of an epoch may have fewer than the others.
    [[nodiscard]] std::size_t size() const noexcept { return rows_; }
    [[nodiscard]] Row<B> operator[](std::size_t i) const noexcept {
        assert(i < rows_);
        return {*arena_, i};
    }

  private:
    detail::HostArena* arena_;
    std::size_t rows_;
};

namespace detail {

/// The batch's fields bound at `base`, for a delivery of `rows` rows.
template <TensorBatch B, auto... Members>
[[nodiscard]] B bind_fields(const FieldList<Members...>&, const ArenaLayout& layout, std::byte* base, std::size_t rows,
                            const HostArena& host, MemorySpace space) {
    B batch{};
    std::size_t i = 0;
    const auto bind = [&]<class M>(M member) {
        using Field = FieldOf<M>;
        using T = typename Field::Element;
        const ArenaField& field = layout.fields()[i];
        std::array<std::size_t, Field::inner_rank + 1> shape{};
        for (std::size_t axis = 0; axis < Field::inner_rank; ++axis) {
            shape[axis + 1] = field.spec.inner[axis];
        }
        if constexpr (Field::is_ragged) {
            shape[0] = host.ragged(i).packed_items();
            batch.*member = typename Field::View{
                {reinterpret_cast<T*>(base + field.offset), shape, space},
                {reinterpret_cast<const std::uint64_t*>(base + field.offsets_offset), {rows + 1}, space}};
        } else {
            shape[0] = rows;
            batch.*member = typename Field::View{reinterpret_cast<T*>(base + field.offset), shape, space};
        }
        ++i;
    };
    (bind(Members), ...);
    return batch;
}

}  // namespace detail

/// The batch for classifying pictures.
struct ImageBatch {
    Tensor<std::uint8_t, 4> images;    ///< N x H x W x C, 8-bit, C = 3: red, green, blue.
    Tensor<std::int32_t, 1> labels;    ///< N class numbers; -1 where the source knows none.
    Tensor<std::uint64_t, 1> indices;  ///< N sample indices in the source.

    static constexpr auto fields =
        stoker::fields<&ImageBatch::images, &ImageBatch::labels, &ImageBatch::indices>("images", "labels", "indices");
};
static_assert(TensorBatch<ImageBatch>);

}  // namespace v0
}  // namespace stoker
