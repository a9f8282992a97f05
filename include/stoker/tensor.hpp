// SPDX-License-Identifier: MIT
/// @file
/// Contiguous views with shape and element type, at host or device addresses: the fields that batches are made of.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include <stoker/error.hpp>

namespace stoker {
inline namespace v0 {

/// A 16-bit IEEE 754 number, for storage only: the library neither computes with it nor converts it.
struct float16 {
    std::uint16_t bits = 0;
    friend bool operator==(float16, float16) = default;
};

/// The upper half of a 32-bit IEEE 754 number, for storage only.
struct bfloat16 {
    std::uint16_t bits = 0;
    friend bool operator==(bfloat16, bfloat16) = default;
};

/// An element type, with DLPack's codes (DLDataTypeCode in dlpack.h), so that views can be handed over without a table.
struct DType {
    enum class Code : std::uint8_t { signed_integer = 0, unsigned_integer = 1, floating = 2, bfloat = 4, boolean = 6 };
    Code code = Code::unsigned_integer;
    std::uint8_t bits = 8;
    friend bool operator==(DType, DType) = default;
};

/// What may be an element of a tensor: arithmetic types of at most 64 bits and the two storage-only floats.
template <class T>
concept TensorElement = (std::is_arithmetic_v<T> && sizeof(T) <= 8) || std::is_same_v<T, float16> ||
                        std::is_same_v<T, bfloat16> || std::is_same_v<T, std::byte>;

/// The element type of `T` in DLPack's terms.
template <TensorElement T>
[[nodiscard]] constexpr DType dtype_of() noexcept {
    constexpr auto bits = static_cast<std::uint8_t>(8 * sizeof(T));
    if constexpr (std::is_same_v<T, bfloat16>) {
        return {DType::Code::bfloat, bits};
    } else if constexpr (std::is_same_v<T, float16> || std::is_floating_point_v<T>) {
        return {DType::Code::floating, bits};
    } else if constexpr (std::is_same_v<T, bool>) {
        return {DType::Code::boolean, bits};
    } else if constexpr (std::is_signed_v<T>) {
        return {DType::Code::signed_integer, bits};
    } else {
        return {DType::Code::unsigned_integer, bits};
    }
}

/// On which side of the bus an address lies.
enum class MemorySpace : std::uint8_t { host, device };

/// A contiguous, row-major view of `Rank` dimensions; the first is the slowest. In a batch it is the batch dimension.
/// Ownership: none; whoever leased or made the memory owns it. Copying copies the view. A const view of non-const `T`
/// still writes, like `std::span`.
/// Thread-safety: as the memory behind it.
template <class T, std::size_t Rank>
class Tensor {
    static_assert(Rank >= 1, "a tensor has one dimension or more; a scalar per sample is a Tensor<T, 1>");
    static_assert(TensorElement<std::remove_const_t<T>>,
                  "elements are arithmetic types, std::byte, float16 or bfloat16");

  public:
    using value_type = T;
    using Shape = std::array<std::size_t, Rank>;
    static constexpr std::size_t rank = Rank;

    Tensor() = default;
    Tensor(T* data, const Shape& shape, MemorySpace space = MemorySpace::host) noexcept
        : data_{data}, shape_{shape}, space_{space} {}

    /// The address of the first element; on the device it may be handed to a kernel, never read by the host.
    [[nodiscard]] T* data() const noexcept { return data_; }
    [[nodiscard]] MemorySpace space() const noexcept { return space_; }
    [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
    /// Elements along dimension `axis`, counted from 0.
    [[nodiscard]] std::size_t extent(std::size_t axis) const noexcept { return shape_[axis]; }
    /// Elements in all.
    [[nodiscard]] std::size_t size() const noexcept {
        std::size_t product = 1;
        for (const std::size_t extent : shape_) {
            product *= extent;
        }
        return product;
    }
    [[nodiscard]] std::size_t size_bytes() const noexcept { return size() * sizeof(T); }
    [[nodiscard]] bool empty() const noexcept { return size() == 0; }

    /// All elements, in order.
    /// @throws Error  the tensor lies in device memory.
    [[nodiscard]] std::span<T> host() const {
        if (space_ != MemorySpace::host) {
            throw Error{
                "cannot read a tensor in device memory from the host; copy it back first, or take its data() to a "
                "kernel"};
        }
        return {data_, size()};
    }

    /// The part at index `i` of the first dimension: an element for rank 1, else a tensor of one rank less.
    /// Host memory only for rank 1; `i` < extent(0) is the caller's duty (an assertion checks it).
    [[nodiscard]] decltype(auto) operator[](std::size_t i) const noexcept {
        assert(i < shape_[0]);
        if constexpr (Rank == 1) {
            return (data_[i]);
        } else {
            std::array<std::size_t, Rank - 1> rest{};
            std::size_t stride = 1;
            for (std::size_t axis = 1; axis < Rank; ++axis) {
                rest[axis - 1] = shape_[axis];
                stride *= shape_[axis];
            }
            return Tensor<T, Rank - 1>{data_ + i * stride, rest, space_};
        }
    }

    /// For range-for over the elements, or over the parts along the first dimension.
    class Iterator {
      public:
        Iterator(const Tensor* tensor, std::size_t i) noexcept : tensor_{tensor}, i_{i} {}
        decltype(auto) operator*() const noexcept { return (*tensor_)[i_]; }
        Iterator& operator++() noexcept {
            ++i_;
            return *this;
        }
        friend bool operator==(const Iterator& a, const Iterator& b) noexcept { return a.i_ == b.i_; }

      private:
        const Tensor* tensor_;
        std::size_t i_;
    };
    [[nodiscard]] Iterator begin() const noexcept { return {this, 0}; }
    [[nodiscard]] Iterator end() const noexcept { return {this, shape_[0]}; }

  private:
    T* data_ = nullptr;
    Shape shape_{};
    MemorySpace space_ = MemorySpace::host;
};

/// A field whose samples differ in their first extent: boxes of a picture, tokens of a text, encoded bytes.
/// Layout: the items of all rows follow each other without gaps in `values`; row i owns [offsets[i], offsets[i + 1]).
/// `Rank` counts the item dimension: `Ragged<float, 2>` with inner shape {4} holds n_i x 4 numbers for row i.
template <class T, std::size_t Rank>
class Ragged {
  public:
    using value_type = T;
    static constexpr std::size_t rank = Rank;

    Ragged() = default;
    Ragged(Tensor<T, Rank> values, Tensor<const std::uint64_t, 1> offsets) noexcept
        : values_{values}, offsets_{offsets} {}

    /// The items of all rows; extent(0) is their number in this batch.
    [[nodiscard]] const Tensor<T, Rank>& values() const noexcept { return values_; }
    /// Rows + 1 numbers, counted in items; at the same kind of address as the values.
    [[nodiscard]] const Tensor<const std::uint64_t, 1>& offsets() const noexcept { return offsets_; }
    /// Rows of this batch.
    [[nodiscard]] std::size_t rows() const noexcept { return offsets_.extent(0) == 0 ? 0 : offsets_.extent(0) - 1; }
    /// The items of row `i`, in host memory only; `i` < rows() is the caller's duty.
    [[nodiscard]] Tensor<T, Rank> operator[](std::size_t i) const noexcept {
        assert(i < rows());
        typename Tensor<T, Rank>::Shape shape = values_.shape();
        std::size_t stride = 1;
        for (std::size_t axis = 1; axis < Rank; ++axis) {
            stride *= shape[axis];
        }
        shape[0] = static_cast<std::size_t>(offsets_[i + 1] - offsets_[i]);
        return {values_.data() + static_cast<std::size_t>(offsets_[i]) * stride, shape, values_.space()};
    }

  private:
    Tensor<T, Rank> values_;
    Tensor<const std::uint64_t, 1> offsets_;
};

}  // namespace v0
}  // namespace stoker
