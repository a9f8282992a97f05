// SPDX-License-Identifier: MIT
/// @file
/// An array on the heap whose size is given once.
#pragma once

#include <cstddef>
#include <utility>

namespace stoker {
inline namespace v0 {
namespace detail {

/// What std::unique_ptr<T[]> and a count would be, in one object, for elements that need not be movable. It is also a
/// part of why including the library is quick: it instantiates nothing of the standard library.
template <class T>
class FixedArray {
  public:
    FixedArray() = default;
    /// Elements are default-initialised: numbers and bytes hold nothing yet.
    explicit FixedArray(std::size_t size) : data_{new T[size]}, size_{size} {}
    FixedArray(FixedArray&& other) noexcept
        : data_{std::exchange(other.data_, nullptr)}, size_{std::exchange(other.size_, 0)} {}
    FixedArray& operator=(FixedArray&& other) noexcept {
        if (this != &other) {
            delete[] std::exchange(data_, std::exchange(other.data_, nullptr));
            size_ = std::exchange(other.size_, 0);
        }
        return *this;
    }
    ~FixedArray() { delete[] data_; }

    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] T* data() noexcept { return data_; }
    [[nodiscard]] const T* data() const noexcept { return data_; }
    [[nodiscard]] T& operator[](std::size_t i) noexcept { return data_[i]; }
    [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return data_[i]; }
    [[nodiscard]] T* begin() noexcept { return data_; }
    [[nodiscard]] T* end() noexcept { return data_ + size_; }
    [[nodiscard]] const T* begin() const noexcept { return data_; }
    [[nodiscard]] const T* end() const noexcept { return data_ + size_; }

  private:
    T* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace detail
}  // namespace v0
}  // namespace stoker
