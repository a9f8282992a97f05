// SPDX-License-Identifier: MIT
/// @file
/// The exceptions of the library; each keeps its facts as members, so that no caller has to parse text.
///
/// Messages read: cannot (act) (object) (where): (cause); (what to do).
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace stoker {
inline namespace v0 {

/// The base of everything that the library throws on purpose.
class Error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// An option, or a combination of options, that cannot work; thrown before anything is allocated or started.
class OptionError : public Error {
  public:
    using Error::Error;
};

/// What kind of fault a sample has.
enum class ErrorKind : std::uint8_t {
    other,        ///< An exception of the source's own type; it is nested in the SampleError.
    io,           ///< The bytes could not be read: missing, no permission, too many open files, a device error.
    unsupported,  ///< A format, or a feature of one, outside the table of what decodes.
    damaged,      ///< A known format whose bytes are broken or cut short.
    too_large,    ///< More pixels or bytes than a limit allows.
    capacity,     ///< No room left in a ragged field of the batch.
    batch,        ///< The source's `finish`, or a whole-batch call, threw: the failure of a batch, not of one sample.
};

/// Names `kind` in one word or two.
[[nodiscard]] constexpr const char* to_string(ErrorKind kind) noexcept {
    switch (kind) {
        case ErrorKind::io: return "io";
        case ErrorKind::unsupported: return "unsupported";
        case ErrorKind::damaged: return "damaged";
        case ErrorKind::too_large: return "too large";
        case ErrorKind::capacity: return "capacity";
        case ErrorKind::batch: return "batch";
        case ErrorKind::other: break;
    }
    return "other";
}

/// What a reader or decoder throws about some bytes; it need not know which sample they belong to.
/// A prefetcher wraps it in a SampleError that takes over kind, path and size.
class DataError : public Error {
  public:
    /// `path` and `bytes` (the size of the encoded data) where known.
    DataError(ErrorKind kind, const std::string& message, std::string path = {},
              std::optional<std::uint64_t> bytes = std::nullopt)
        : Error{message}, kind_{kind}, path_{std::move(path)}, bytes_{bytes} {}

    [[nodiscard]] ErrorKind kind() const noexcept { return kind_; }
    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    [[nodiscard]] std::optional<std::uint64_t> bytes() const noexcept { return bytes_; }

  private:
    ErrorKind kind_;
    std::string path_;
    std::optional<std::uint64_t> bytes_;
};

/// One sample that failed, at its place in the plan. The exception that user code threw is nested in it
/// (`std::rethrow_if_nested`).
class SampleError : public Error {
  public:
    /// Where in the plan the sample stands, and what is known of its data.
    struct Facts {
        std::uint64_t index = 0;            ///< The sample's index in the source.
        std::uint64_t epoch = 0;            ///< Counted from 0.
        std::uint64_t position = 0;         ///< Global position in the epoch, over all ranks.
        std::uint64_t batch = 0;            ///< The batch's index in this rank's epoch.
        ErrorKind kind = ErrorKind::other;  ///< What kind of fault.
        std::string path;                   ///< The source's `describe(index)`, or what the reader named; may be empty.
        std::optional<std::uint64_t> bytes;  ///< Size of the encoded data, where known.
    };

    SampleError(const std::string& message, Facts facts) : Error{message}, facts_{std::move(facts)} {}

    [[nodiscard]] const Facts& facts() const noexcept { return facts_; }
    [[nodiscard]] std::uint64_t index() const noexcept { return facts_.index; }
    [[nodiscard]] std::uint64_t epoch() const noexcept { return facts_.epoch; }
    [[nodiscard]] std::uint64_t position() const noexcept { return facts_.position; }
    [[nodiscard]] std::uint64_t batch() const noexcept { return facts_.batch; }
    [[nodiscard]] ErrorKind kind() const noexcept { return facts_.kind; }
    [[nodiscard]] const std::string& path() const noexcept { return facts_.path; }
    [[nodiscard]] std::optional<std::uint64_t> bytes() const noexcept { return facts_.bytes; }

  private:
    Facts facts_;
};

/// A wait with a limit ran out; names the sample that is being waited for, where one is.
class TimeoutError : public Error {
  public:
    TimeoutError(const std::string& message, std::optional<std::uint64_t> index, std::string path)
        : Error{message}, index_{index}, path_{std::move(path)} {}

    [[nodiscard]] std::optional<std::uint64_t> index() const noexcept { return index_; }
    [[nodiscard]] const std::string& path() const noexcept { return path_; }

  private:
    std::optional<std::uint64_t> index_;
    std::string path_;
};

/// A resume state that is broken, or does not fit; names the field.
class StateError : public Error {
  public:
    StateError(const std::string& message, std::string field) : Error{message}, field_{std::move(field)} {}

    /// The field that does not fit ("seed", "batch_size", ...), or "text" where the text could not be read at all.
    [[nodiscard]] const std::string& field() const noexcept { return field_; }

  private:
    std::string field_;
};

/// A lease was used against its rules: all out and asked for another, used after it was given back, or taken in
/// another process.
class LeaseError : public Error {
  public:
    using Error::Error;
};

}  // namespace v0
}  // namespace stoker
