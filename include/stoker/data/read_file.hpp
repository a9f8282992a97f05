// SPDX-License-Identifier: MIT
/// @file
/// Reads a whole file into memory that is used again.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cctype>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include <stoker/error.hpp>

namespace stoker {
inline namespace v0 {

/// Bytes that grow when they must and are not cleared. Move-only; a moved-from buffer is empty.
class ByteBuffer {
  public:
    ByteBuffer() = default;
    ByteBuffer(ByteBuffer&& other) noexcept
        : bytes_{std::move(other.bytes_)},
          size_{std::exchange(other.size_, 0)},
          capacity_{std::exchange(other.capacity_, 0)} {}
    ByteBuffer& operator=(ByteBuffer&& other) noexcept {
        bytes_ = std::move(other.bytes_);
        size_ = std::exchange(other.size_, 0);
        capacity_ = std::exchange(other.capacity_, 0);
        return *this;
    }

    [[nodiscard]] std::byte* data() noexcept { return bytes_.get(); }
    [[nodiscard]] const std::byte* data() const noexcept { return bytes_.get(); }
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
    [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {bytes_.get(), size_}; }

    /// Makes the size `size`. Content: kept where the capacity suffices, else undefined.
    /// @throws std::bad_alloc  the buffer is then empty.
    void resize(std::size_t size) {
        if (size > capacity_) {
            release();
            // A power of two, so that a recycled buffer soon has its final size.
            const std::size_t rounded = std::bit_ceil(size < 4096 ? std::size_t{4096} : size);
            bytes_ = std::make_unique_for_overwrite<std::byte[]>(rounded);
            capacity_ = rounded;
        }
        size_ = size;
    }
    /// Gives the memory back.
    void release() noexcept {
        bytes_.reset();
        size_ = 0;
        capacity_ = 0;
    }

  private:
    std::unique_ptr<std::byte[]> bytes_;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
};

namespace detail {

/// The system's words for `error`, in lower case: "no such file or directory", "too many open files".
[[nodiscard]] inline std::string error_text(int error) {
    std::string text = std::generic_category().message(error);
    if (text.size() > 1 && std::islower(static_cast<unsigned char>(text[1])) != 0) {
        text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
    }
    return text;
}

[[nodiscard]] inline DataError read_error(const std::string& path, const std::string& cause, const std::string& advice,
                                          std::optional<std::uint64_t> bytes = std::nullopt) {
    return DataError{ErrorKind::io, "cannot read \"" + path + "\": " + cause + (advice.empty() ? "" : "; " + advice),
                     path, bytes};
}

/// A file descriptor that is closed when it goes.
class Descriptor {
  public:
    explicit Descriptor(int number) noexcept : number_{number} {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() {
        if (number_ >= 0) {
            static_cast<void>(::close(number_));
        }
    }
    [[nodiscard]] int number() const noexcept { return number_; }

  private:
    int number_;
};

/// `read_file`, with a call to `after_size` between the size query and the read: where a test changes the file.
template <class AfterSize>
void read_file_hooked(const std::string& path, ByteBuffer& buffer, std::uint64_t max_bytes, AfterSize after_size) {
    if (path.find('\0') != std::string::npos) {
        throw DataError{ErrorKind::io, "cannot read a file whose path holds a zero byte: \"" + path + "\"", path};
    }
    // O_NONBLOCK: a named pipe without a writer must not hold us up. It changes nothing for regular files.
    int number = -1;
    do {
        number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    } while (number < 0 && errno == EINTR);
    if (number < 0) {
        const int error = errno;
        throw read_error(path, error_text(error),
                         error == EMFILE || error == ENFILE ? "close files, or raise the limit (ulimit -n)"
                         : error == ENOENT                  ? "was it removed after it was listed?"
                                                            : "");
    }
    const Descriptor descriptor{number};
    struct stat status {};
    if (::fstat(number, &status) != 0) {
        throw read_error(path, error_text(errno), "");
    }
    if (!S_ISREG(status.st_mode)) {
        throw read_error(path, S_ISDIR(status.st_mode) ? "it is a directory" : "it is not a regular file", "");
    }
    const auto size = static_cast<std::uint64_t>(status.st_size);
    if (size > max_bytes) {
        throw DataError{ErrorKind::too_large,
                        "cannot read \"" + path + "\": it has " + std::to_string(size) + " bytes, the limit is " +
                            std::to_string(max_bytes) + "; raise max_file_bytes if that is meant",
                        path, size};
    }
    after_size();
    // One byte more than there should be: tells a file that grew without another system call.
    buffer.resize(static_cast<std::size_t>(size) + 1);
    std::size_t have = 0;
    while (have < size + 1) {
        const ::ssize_t got = ::pread(number, buffer.data() + have, static_cast<std::size_t>(size) + 1 - have,
                                      static_cast<::off_t>(have));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            const int error = errno;
            buffer.resize(0);
            throw read_error(path, error_text(error), "", size);
        }
        have += static_cast<std::size_t>(got);
        if (got == 0 || have == size) {
            break;
        }
    }
    if (have != size) {
        buffer.resize(0);
        throw read_error(path,
                         "the file changed while reading: it had " + std::to_string(size) +
                             " bytes when it was opened, then " +
                             (have < size ? "only " + std::to_string(have) : std::string{"more"}),
                         "do not write to files that are being read", size);
    }
    buffer.resize(have);
}

}  // namespace detail

/// Reads all of the regular file `path` (bytes, as the system gives them) into `buffer`, whose memory is used again.
/// Blocks as long as the file system does; a named pipe or device never holds it up.
/// Thread-safety: any number of calls at once, each with its own buffer. Cost: open, fstat, one pread, close.
/// The file may be written to or truncated meanwhile: that is an error, or the bytes of one consistent read; never a
/// signal, since nothing is mapped.
/// @throws DataError  (io) with the path and the system's words: missing, no permission, too many open files, not a
///                    regular file, changed while reading; (too_large) more than `max_bytes`, before anything is
///                    allocated. The buffer's content is then undefined.
inline void read_file(const std::string& path, ByteBuffer& buffer, std::uint64_t max_bytes = std::uint64_t{1} << 30) {
    detail::read_file_hooked(path, buffer, max_bytes, [] {});
}

}  // namespace v0
}  // namespace stoker
