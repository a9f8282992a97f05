// SPDX-License-Identifier: MIT
/// @file
/// The interface of picture decoders: from encoded bytes and a declared geometry to finished pixels; the formats known
/// by their first bytes; and the list of decoders that a program uses.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <stoker/error.hpp>
#include <stoker/image/geometry.hpp>
#include <stoker/image/resize.hpp>
#include <stoker/tensor.hpp>

namespace stoker {
inline namespace v0 {

/// A picture format, as told by the first bytes of a file; never by its name.
enum class PictureFormat : std::uint8_t {
    unknown,
    jpeg,
    png,
    bmp,
    gif,
    webp,
    tiff,
    jpeg2000,
    jpegxl,
    avif,
    heif,
    psd,
    pnm,
    qoi,
    hdr,
    exr,
    ico,
    dds
};

/// The name of `format`, for messages.
[[nodiscard]] constexpr const char* to_string(PictureFormat format) noexcept {
    switch (format) {
        case PictureFormat::jpeg: return "JPEG";
        case PictureFormat::png: return "PNG";
        case PictureFormat::bmp: return "BMP";
        case PictureFormat::gif: return "GIF";
        case PictureFormat::webp: return "WebP";
        case PictureFormat::tiff: return "TIFF";
        case PictureFormat::jpeg2000: return "JPEG 2000";
        case PictureFormat::jpegxl: return "JPEG XL";
        case PictureFormat::avif: return "AVIF";
        case PictureFormat::heif: return "HEIF";
        case PictureFormat::psd: return "PSD";
        case PictureFormat::pnm: return "PNM";
        case PictureFormat::qoi: return "QOI";
        case PictureFormat::hdr: return "Radiance HDR";
        case PictureFormat::exr: return "OpenEXR";
        case PictureFormat::ico: return "ICO";
        case PictureFormat::dds: return "DDS";
        case PictureFormat::unknown: break;
    }
    return "unknown";
}

/// Tells the format of `bytes` by their signature. Cost: a few comparisons.
[[nodiscard]] inline PictureFormat detect_format(std::span<const std::byte> bytes) noexcept {
    const auto has = [bytes](std::size_t at, const char* text, std::size_t length) {
        return bytes.size() >= at + length && std::memcmp(bytes.data() + at, text, length) == 0;
    };
    if (has(0, "\xff\xd8\xff", 3)) {
        return PictureFormat::jpeg;
    }
    if (has(0, "\x89PNG\r\n\x1a\n", 8)) {
        return PictureFormat::png;
    }
    if (has(0, "GIF87a", 6) || has(0, "GIF89a", 6)) {
        return PictureFormat::gif;
    }
    if (has(0, "RIFF", 4) && has(8, "WEBP", 4)) {
        return PictureFormat::webp;
    }
    if (has(0, "II*\0", 4) || has(0, "MM\0*", 4) || has(0, "II+\0", 4) || has(0, "MM\0+", 4)) {
        return PictureFormat::tiff;
    }
    if (has(0, "\0\0\0\x0cjP  \r\n", 10) || has(0, "\xff\x4f\xff\x51", 4)) {
        return PictureFormat::jpeg2000;
    }
    if (has(0, "\xff\x0a", 2) || has(0, "\0\0\0\x0cJXL ", 8)) {
        return PictureFormat::jpegxl;
    }
    if (has(4, "ftypavif", 8) || has(4, "ftypavis", 8)) {
        return PictureFormat::avif;
    }
    if (has(4, "ftyphei", 7) || has(4, "ftyphev", 7) || has(4, "ftypmif1", 8) || has(4, "ftypmsf1", 8)) {
        return PictureFormat::heif;
    }
    if (has(0, "8BPS", 4)) {
        return PictureFormat::psd;
    }
    if (has(0, "qoif", 4)) {
        return PictureFormat::qoi;
    }
    if (has(0, "#?RADIANCE", 10) || has(0, "#?RGBE", 6)) {
        return PictureFormat::hdr;
    }
    if (has(0, "\x76\x2f\x31\x01", 4)) {
        return PictureFormat::exr;
    }
    if (has(0, "DDS ", 4)) {
        return PictureFormat::dds;
    }
    if (has(0, "\0\0\x01\0", 4)) {
        return PictureFormat::ico;
    }
    if (has(0, "BM", 2)) {
        return PictureFormat::bmp;
    }
    if (bytes.size() >= 3 && has(0, "P", 1)) {
        const auto kind = static_cast<char>(bytes[1]);
        const auto space = static_cast<char>(bytes[2]);
        if (kind >= '1' && kind <= '7' &&
            (space == ' ' || space == '\n' || space == '\r' || space == '\t' || space == '#')) {
            return PictureFormat::pnm;
        }
    }
    return PictureFormat::unknown;
}

/// What a picture's header says.
struct PictureInfo {
    PictureFormat format = PictureFormat::unknown;
    std::uint32_t width = 0;   ///< Pixels, as stored.
    std::uint32_t height = 0;  ///< Pixels, as stored.
};

/// What a decoder refuses before it allocates for it or works on it.
struct DecodeLimits {
    /// Width times height at most. The default, 2^27, takes some 400 MB as RGB; a 19,000 x 19,000 file is refused.
    std::uint64_t max_pixels = 134'217'728;
    /// Scans of a progressive JPEG at most: each may touch the whole picture. Encoders write about 10.
    std::uint32_t max_scans = 200;
};

/// How a decode ended.
enum class DecodeStatus : std::uint8_t {
    ok,       ///< The output is written, and the decoder found nothing wrong.
    damaged,  ///< The output is written in full, but the bytes are broken: `reason` says how.
    error,    ///< There is no picture; the output's content is undefined.
};

/// The end of a decode, with its reason unless all is well.
struct [[nodiscard]] DecodeResult {
    DecodeStatus status = DecodeStatus::ok;
    ErrorKind kind = ErrorKind::damaged;  ///< Of what is wrong; for `ok` without meaning.
    std::string reason;                   ///< What is wrong, without the file's name; empty for `ok`.
    PictureInfo info;                     ///< As far as the header could be read.

    [[nodiscard]] static DecodeResult error(ErrorKind kind, std::string reason, PictureInfo info = {}) {
        return {DecodeStatus::error, kind, std::move(reason), info};
    }
};

/// Says which geometry is wanted, once the size of the picture is known: the box may depend on the size, and on draws.
/// A reference to a callable `Geometry(const PictureInfo&)`, which must outlive the call it is passed to.
class GeometryChooser {
  public:
    template <class F>
        requires(!std::same_as<std::remove_cvref_t<F>, GeometryChooser> &&
                 std::is_invocable_r_v<Geometry, F&, const PictureInfo&>)
    GeometryChooser(F&& choose) noexcept  // implicit: callers pass a lambda
        : object_{const_cast<void*>(static_cast<const void*>(std::addressof(choose)))},
          call_{[](void* object, const PictureInfo& info) -> Geometry {
              return (*static_cast<std::remove_reference_t<F>*>(object))(info);
          }} {}
    [[nodiscard]] Geometry operator()(const PictureInfo& info) const { return call_(object_, info); }

  private:
    void* object_;
    Geometry (*call_)(void*, const PictureInfo&);
};

namespace detail {

/// Memory for one decode at a time, from blocks that are kept for the next: what a C decoder gets in place of malloc.
/// Blocks are cleared, so that no picture can show through in another. Running out is an exception, never a null
/// pointer, and `end` takes back whatever the decoder left.
class DecodeHeap {
  public:
    /// The decoder asked for more than the picture can need.
    struct LimitReached {};

    DecodeHeap() = default;
    DecodeHeap(const DecodeHeap&) = delete;
    DecodeHeap& operator=(const DecodeHeap&) = delete;
    ~DecodeHeap() { release(); }

    /// Bytes that the next decode may hold at most.
    void begin(std::uint64_t limit) noexcept {
        limit_ = limit;
        calls_ = 0;
    }
    /// All blocks are free again; keeps them if they are at most `keep` bytes together.
    void end(std::size_t keep) noexcept {
        for (Block& block : blocks_) {
            block.in_use = 0;
        }
        used_ = 0;
        if (bytes_ > keep) {
            release();
        }
    }

    /// @throws std::bad_alloc, LimitReached
    [[nodiscard]] void* allocate(std::size_t size) {
        if (++calls_ == fail_at) {
            throw std::bad_alloc{};
        }
        size = size == 0 ? 1 : size;
        if (size > limit_ || used_ > limit_ - size) {
            throw LimitReached{};
        }
        blocks_.reserve(blocks_.size() + 1);  // first: nothing below moves the blocks
        Block* best = nullptr;
        Block* largest = nullptr;
        for (Block& block : blocks_) {
            if (block.in_use == 0) {
                if (block.capacity >= size && (best == nullptr || block.capacity < best->capacity)) {
                    best = &block;
                }
                if (largest == nullptr || block.capacity > largest->capacity) {
                    largest = &block;
                }
            }
        }
        if (best == nullptr) {
            if (largest != nullptr) {  // too small: replaced, so that the number of blocks stays what a decode needs
                bytes_ -= largest->capacity;
                ::operator delete(largest->memory);
                *largest = blocks_.back();
                blocks_.pop_back();
            }
            blocks_.push_back({::operator new(size), size, 0});
            bytes_ += size;
            peak_bytes_ = peak_bytes_ < bytes_ ? bytes_ : peak_bytes_;
            best = &blocks_.back();
        }
        best->in_use = size;
        used_ += size;
        std::memset(best->memory, 0, size);
        return best->memory;
    }
    [[nodiscard]] void* reallocate(void* memory, std::size_t size) {
        if (memory == nullptr) {
            return allocate(size);
        }
        void* const moved = allocate(size);
        const std::size_t before = find(memory)->in_use;
        std::memcpy(moved, memory, before < size ? before : size);
        free(memory);
        return moved;
    }
    void free(void* memory) noexcept {
        if (memory != nullptr) {
            Block* const block = find(memory);
            used_ -= block->in_use;
            block->in_use = 0;
        }
    }
    /// Bytes of all blocks, in use or kept.
    [[nodiscard]] std::size_t size_bytes() const noexcept { return bytes_; }
    /// The most that size_bytes() ever was.
    [[nodiscard]] std::size_t peak_bytes() const noexcept { return peak_bytes_; }

    /// For tests: the allocation of a decode, counted from 1, that fails; 0 for none.
    std::size_t fail_at = 0;

  private:
    struct Block {
        void* memory;
        std::size_t capacity;
        std::size_t in_use;  // bytes asked for; 0 when it is free
    };

    [[nodiscard]] Block* find(void* memory) noexcept {
        for (Block& block : blocks_) {
            if (block.memory == memory) {
                return &block;
            }
        }
        std::abort();  // the decoder frees what it never got
    }
    void release() noexcept {
        for (const Block& block : blocks_) {
            ::operator delete(block.memory);
        }
        blocks_.clear();
        bytes_ = 0;
    }

    std::vector<Block> blocks_;
    std::size_t bytes_ = 0;
    std::size_t peak_bytes_ = 0;
    std::size_t used_ = 0;
    std::uint64_t limit_ = 0;
    std::size_t calls_ = 0;
};

}  // namespace detail

/// Memory that decoders use again from picture to picture: one per thread. Between decodes it keeps at most
/// `keep_bytes`.
struct DecodeScratch {
    static constexpr std::size_t keep_bytes = std::size_t{8} << 20;  ///< Two pictures of 1.3 megapixels.

    detail::DecodeHeap heap;
    std::vector<std::byte> mended;  // a file whose header was put right
    ResizeScratch resize;

    /// Bytes of heap in use.
    [[nodiscard]] std::size_t size_bytes() const noexcept {
        return heap.size_bytes() + mended.capacity() + resize.size_bytes();
    }
    /// Gives back what a large picture left.
    void trim() noexcept {
        heap.end(keep_bytes);
        if (mended.capacity() > keep_bytes) {
            mended = {};
        }
        if (resize.size_bytes() > keep_bytes) {
            resize = {};
        }
    }
};

/// What a decoder is: cheap to copy, called through const by many threads at once, each with its own scratch.
/// `decode` reads the size, checks the limits, asks `choose` once, then writes geometry.height x geometry.width x 3
/// bytes (8-bit red, green, blue, rows from top to bottom, no padding) at `out`, whose shape the geometry must have.
/// Grey is repeated, alpha is dropped. It is a total function of the bytes: it ends, with a status, on any input, and
/// never throws because of them. What it does not know to be right is an error. What `choose` throws passes through.
template <class D>
concept PictureDecoder =
    std::copy_constructible<D> && requires(const D& decoder, std::span<const std::byte> bytes,
                                           const GeometryChooser& choose, const Tensor<std::uint8_t, 3>& out,
                                           DecodeScratch& scratch, const DecodeLimits& limits, PictureFormat format) {
        { decoder.accepts(format) } -> std::convertible_to<bool>;
        { decoder.decode(bytes, choose, out, scratch, limits) } -> std::same_as<DecodeResult>;
    };

/// The decoders that a program uses, added at run time: none is known at compile time, so that no two translation units
/// can disagree about what there is.
/// Ownership: copies share the decoders. Thread-safety: `decode` by many threads at once; `add` by one, with nobody
/// else.
class Decoders {
  public:
    Decoders() = default;

    /// Adds a decoder, to be asked before those that were added earlier.
    template <PictureDecoder D>
    Decoders& add(D decoder) {
        decoders_.insert(decoders_.begin(), std::make_shared<const Model<D>>(std::move(decoder)));
        return *this;
    }
    [[nodiscard]] bool empty() const noexcept { return decoders_.empty(); }

    /// Decodes with the first decoder that accepts the format; one that finds the picture unsupported passes it on.
    /// `choose` may be asked anew by the next one. See PictureDecoder.
    DecodeResult decode(std::span<const std::byte> bytes, const GeometryChooser& choose,
                        const Tensor<std::uint8_t, 3>& out, DecodeScratch& scratch,
                        const DecodeLimits& limits = {}) const {
        if (bytes.empty()) {
            return DecodeResult::error(ErrorKind::damaged, "the file is empty");
        }
        const PictureFormat format = detect_format(bytes);
        DecodeResult result = DecodeResult::error(
            ErrorKind::unsupported,
            format == PictureFormat::unknown
                ? std::string{"it begins like no picture format that is known, so it is unsupported or no picture"}
                : std::string{"the format "} + to_string(format) + " is unsupported by the decoders in use",
            {format, 0, 0});
        for (const auto& decoder : decoders_) {
            if (decoder->accepts(format)) {
                result = decoder->decode(bytes, choose, out, scratch, limits);
                if (result.status != DecodeStatus::error || result.kind != ErrorKind::unsupported) {
                    break;
                }
            }
        }
        return result;
    }

  private:
    class Interface {
      public:
        virtual ~Interface() = default;
        [[nodiscard]] virtual bool accepts(PictureFormat format) const = 0;
        virtual DecodeResult decode(std::span<const std::byte> bytes, const GeometryChooser& choose,
                                    const Tensor<std::uint8_t, 3>& out, DecodeScratch& scratch,
                                    const DecodeLimits& limits) const = 0;
    };
    template <class D>
    class Model final : public Interface {
      public:
        explicit Model(D decoder) : decoder_{std::move(decoder)} {}
        [[nodiscard]] bool accepts(PictureFormat format) const override { return decoder_.accepts(format); }
        DecodeResult decode(std::span<const std::byte> bytes, const GeometryChooser& choose,
                            const Tensor<std::uint8_t, 3>& out, DecodeScratch& scratch,
                            const DecodeLimits& limits) const override {
            return decoder_.decode(bytes, choose, out, scratch, limits);
        }

      private:
        D decoder_;
    };

    std::vector<std::shared_ptr<const Interface>> decoders_;
};

}  // namespace v0
}  // namespace stoker
