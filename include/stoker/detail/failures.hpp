// SPDX-License-Identifier: MIT
/// @file
/// From what user code threw to what the consumer catches, and the list of what failed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <stoker/batch_info.hpp>
#include <stoker/detail/text.hpp>
#include <stoker/error.hpp>
#include <stoker/options.hpp>

namespace stoker {
inline namespace v0 {
namespace detail {

/// The text of the exception being carried.
[[nodiscard]] inline std::string describe_exception(const std::exception_ptr& error) {
    try {
        std::rethrow_exception(error);
    } catch (const std::exception& e) {
        return e.what();
    } catch (...) {
        return "an exception of a type that is no std::exception";
    }
}

/// `cause`, nested in an `E` of that message and those facts.
template <class E, class... Facts>
[[nodiscard]] std::exception_ptr nest(const std::exception_ptr& cause, const std::string& message,
                                      const Facts&... facts) {
    try {
        std::rethrow_exception(cause);
    } catch (...) {
        try {
            std::throw_with_nested(E{message, facts...});
        } catch (...) {
            return std::current_exception();
        }
    }
}

/// `cause`, nested in a SampleError that says where it happened.
[[nodiscard]] inline std::exception_ptr make_sample_error(const std::exception_ptr& cause, std::uint64_t index,
                                                          std::uint64_t epoch, std::uint64_t position,
                                                          std::uint64_t batch, std::string path, OnError on_error) {
    SampleError::Facts facts{index, epoch, position, batch, ErrorKind::other, std::move(path), std::nullopt};
    std::string reason;
    try {
        std::rethrow_exception(cause);
    } catch (const DataError& e) {
        facts.kind = e.kind();
        facts.bytes = e.bytes();
        if (!e.path().empty()) {
            facts.path = e.path();
        }
        reason = e.what();
    } catch (const std::exception& e) {
        reason = e.what();
    } catch (...) {
        reason = "the source threw an exception of a type that is no std::exception";
    }
    Text text{"cannot load "};
    if (facts.path.empty()) {
        text.add("sample ").add(index);
    } else {
        text.quote(facts.path).add(" (sample ").add(index).add(")");
    }
    text.add(" for batch ").add(batch).add(" of epoch ").add(epoch).add(": ").add(reason);
    if (on_error == OnError::fail) {
        text.add("; mend or leave out the sample, or set on_error = OnError::skip");
    }
    return nest<SampleError>(cause, text.str(), facts);
}

/// `cause`, nested in a SampleError of a batch that failed as a whole; `index`: its first sample, `ids`: all of them.
[[nodiscard]] inline std::exception_ptr make_batch_error(const std::exception_ptr& cause, std::uint64_t index,
                                                         std::uint64_t epoch, std::uint64_t position,
                                                         std::uint64_t batch, std::string_view ids) {
    Text text{"cannot make batch "};
    text.add(batch).add(" of epoch ").add(epoch).add(" (samples ").add(ids).add("): ").add(describe_exception(cause));
    const SampleError::Facts facts{index, epoch, position, batch, ErrorKind::batch, {}, {}};
    return nest<SampleError>(cause, text.str(), facts);
}

/// What the list of failures says of an exception that was carried.
[[nodiscard]] inline Failure failure_of(const std::exception_ptr& error, std::optional<std::uint64_t> replaced_by) {
    Failure failure;
    try {
        std::rethrow_exception(error);
    } catch (const SampleError& e) {
        failure = {e.index(), e.epoch(), e.position(), e.batch(), e.kind(), e.path(), e.what(), replaced_by};
    } catch (const std::exception& e) {
        failure.message = e.what();
    } catch (...) {
        failure.message = "an exception of a type that is no std::exception";
    }
    return failure;
}

/// The last failures, and counts of all. Guarded by whoever owns it.
class FailureLog {
  public:
    static constexpr std::size_t kept = 1000;

    /// `lost`: rows that are missing from their batch.
    void add(const Failure& failure, std::size_t lost) {
        ++count_;
        skipped_ += lost;
        substituted_ += failure.replaced_by ? 1 : 0;
        if (failures_.size() < kept) {
            failures_.push_back(failure);
        } else {
            failures_[next_] = failure;
        }
        next_ = (next_ + 1) % kept;
    }
    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
    [[nodiscard]] std::uint64_t skipped() const noexcept { return skipped_; }
    [[nodiscard]] std::uint64_t substituted() const noexcept { return substituted_; }
    /// Oldest first.
    [[nodiscard]] std::vector<Failure> list() const {
        std::vector<Failure> list;
        const std::size_t oldest = failures_.size() < kept ? 0 : next_;
        for (std::size_t i = 0; i < failures_.size(); ++i) {
            list.push_back(failures_[(oldest + i) % failures_.size()]);
        }
        return list;
    }

  private:
    std::vector<Failure> failures_;  // a ring once it is full
    std::size_t next_ = 0;
    std::uint64_t count_ = 0, skipped_ = 0, substituted_ = 0;
};

}  // namespace detail
}  // namespace v0
}  // namespace stoker
