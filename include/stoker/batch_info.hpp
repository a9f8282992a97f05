// SPDX-License-Identifier: MIT
/// @file
/// What is known of a delivered batch beside its fields: size, place in the plan, sample ids, failures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <stoker/error.hpp>

namespace stoker {
inline namespace v0 {
namespace detail {
template <class B>
class BatchMaker;
template <class B, class D>
class Core;
}  // namespace detail

/// A sample that is not in its batch, or that another one stands in for.
struct Failure {
    std::uint64_t index = 0;  ///< In the source.
    std::uint64_t epoch = 0;
    std::uint64_t position = 0;  ///< Global position in the epoch.
    std::uint64_t batch = 0;     ///< In this rank's epoch.
    ErrorKind kind = ErrorKind::other;
    std::string path;                          ///< As far as the source or the reader named one.
    std::string message;                       ///< Of the SampleError.
    std::optional<std::uint64_t> replaced_by;  ///< The sample that took its place, under OnError::substitute.
};

/// Facts of one delivery. Ownership: the lease's; references are valid until the lease is given back.
/// Thread-safety: may be read by several threads.
class BatchInfo {
  public:
    /// Valid rows; 0 when every sample of the batch failed and was left out.
    [[nodiscard]] std::size_t size() const noexcept { return ids_.size(); }
    /// The extent of the fields' batch dimension: size(), or the full batch size under LastBatch::pad (zeros behind the
    /// valid rows).
    [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
    /// Counted from 0.
    [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }
    /// The batch's number in this rank's epoch, counted from 0; after a restore from where it was restored.
    [[nodiscard]] std::uint64_t batch() const noexcept { return batch_; }
    /// Global position (over all ranks) of the first plan entry.
    [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
    /// Source indices of the valid rows, in row order.
    [[nodiscard]] std::span<const std::uint64_t> sample_ids() const noexcept { return {ids_.data(), ids_.size()}; }
    /// Samples of this batch that failed, in plan order.
    [[nodiscard]] std::span<const Failure> failures() const noexcept { return {failures_.data(), failures_.size()}; }
    /// Bytes of the arena in use: what a copy to the device moves; 0 for plain values.
    [[nodiscard]] std::size_t used_bytes() const noexcept { return used_bytes_; }

  private:
    template <class B, class D>
    friend class detail::Core;
    template <class B>
    friend class detail::BatchMaker;

    std::size_t rows_ = 0;
    std::size_t used_bytes_ = 0;
    std::uint64_t epoch_ = 0, batch_ = 0, position_ = 0;
    std::uint64_t position_after_ = 0;
    std::vector<std::uint64_t> ids_;
    std::vector<Failure> failures_;
};

}  // namespace v0
}  // namespace stoker
