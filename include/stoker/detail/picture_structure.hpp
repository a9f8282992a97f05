// SPDX-License-Identifier: MIT
/// @file
/// Walks the structure of a JPEG, PNG or BMP file, without decoding it: size, features outside what decodes, files that
/// end early, and whatever a trusting decoder would stumble over. Each walk is a total function of the bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <stoker/image/decoder.hpp>

namespace stoker {
inline namespace v0 {
namespace detail {

/// Reads numbers of either byte order; what lies behind the end is 0.
class ByteReader {
  public:
    explicit ByteReader(std::span<const std::byte> bytes) noexcept : bytes_{bytes} {}
    [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }
    [[nodiscard]] std::uint32_t u8(std::size_t at) const noexcept {
        return at < bytes_.size() ? std::to_integer<std::uint32_t>(bytes_[at]) : 0;
    }
    [[nodiscard]] std::uint32_t u16be(std::size_t at) const noexcept { return u8(at) << 8 | u8(at + 1); }
    [[nodiscard]] std::uint32_t u32be(std::size_t at) const noexcept { return u16be(at) << 16 | u16be(at + 2); }
    [[nodiscard]] std::uint32_t u16le(std::size_t at) const noexcept { return u8(at) | u8(at + 1) << 8; }
    [[nodiscard]] std::uint32_t u32le(std::size_t at) const noexcept { return u16le(at) | u16le(at + 2) << 16; }
    /// Where the next byte of this value is, at `at` or behind; size() if there is none.
    [[nodiscard]] std::size_t find(std::uint8_t value, std::size_t at) const noexcept {
        if (at >= bytes_.size()) {
            return bytes_.size();
        }
        const void* const found = std::memchr(bytes_.data() + at, value, bytes_.size() - at);
        return found == nullptr ? bytes_.size()
                                : static_cast<std::size_t>(static_cast<const std::byte*>(found) - bytes_.data());
    }
    [[nodiscard]] std::span<const std::byte> part(std::size_t at, std::size_t length) const noexcept {
        return bytes_.subspan(at, length);
    }

  private:
    std::span<const std::byte> bytes_;
};

/// What a walk found out. `result` is ok, or the error that the picture is.
struct PictureStructure {
    DecodeResult result;
    std::uint64_t memory = 0;    // bytes that decoding may hold at most
    bool needs_mending = false;  // `mend_...` must make a copy that the decoder reads right

    void fail(ErrorKind kind, std::string reason) {
        result.status = DecodeStatus::error;
        result.kind = kind;
        result.reason = std::move(reason);
    }
    [[nodiscard]] bool is_ok() const noexcept { return result.status == DecodeStatus::ok; }
};

[[nodiscard]] inline std::string size_text(std::uint64_t width, std::uint64_t height) {
    return std::to_string(width) + "x" + std::to_string(height);
}

/// Takes the size over. @return false, with the reason, if it is against a limit
inline bool take_size(PictureStructure& structure, std::uint64_t width, std::uint64_t height,
                      const DecodeLimits& limits) {
    constexpr std::uint64_t most = (std::numeric_limits<std::uint32_t>::max)();
    structure.result.info.width = static_cast<std::uint32_t>(width < most ? width : most);
    structure.result.info.height = static_cast<std::uint32_t>(height < most ? height : most);
    if (width == 0 || height == 0) {
        structure.fail(ErrorKind::damaged, "the header says " + size_text(width, height) + " pixels");
        return false;
    }
    if (height > limits.max_pixels / width) {
        structure.fail(ErrorKind::too_large,
                       "the picture has " + size_text(width, height) +
                           " pixels, more than max_pixels = " + std::to_string(limits.max_pixels) + " allows");
        return false;
    }
    return true;
}

// ---- JPEG (ITU-T T.81) -------------------------------------------------------------------------------------------

class JpegWalk {
  public:
    JpegWalk(std::span<const std::byte> bytes, const DecodeLimits& limits) : in_{bytes}, limits_{limits} {}

    [[nodiscard]] PictureStructure walk() {
        structure_.result.info.format = PictureFormat::jpeg;
        std::size_t at = 2;  // behind the start-of-image marker
        while (structure_.is_ok()) {
            at = in_.find(0xff, at);
            while (in_.u8(at) == 0xff) {
                ++at;
            }
            if (at >= in_.size()) {
                fail(ErrorKind::damaged, "the file ends before the end-of-image marker: it was cut short");
                break;
            }
            const std::uint32_t marker = in_.u8(at++);
            if (marker == 0xd9) {
                finish();
                break;
            }
            if (marker == 0 || marker == 1 || (marker >= 0xd0 && marker <= 0xd8)) {
                continue;  // no segment; the decoder says what it thinks of it
            }
            const std::size_t length = in_.u16be(at);
            if (length < 2 || at + length > in_.size()) {
                fail(ErrorKind::damaged, length < 2 ? "a segment has an impossible length"
                                                    : "the file ends inside a segment: it was cut short");
                break;
            }
            at = segment(marker, at + 2, at + length);
        }
        return std::move(structure_);
    }

  private:
    struct Component {
        std::uint32_t id, h, v, table;
        bool has_scan;
    };

    void fail(ErrorKind kind, std::string reason) { structure_.fail(kind, std::move(reason)); }

    /// The segment's content is [at, end). @return where to go on
    std::size_t segment(std::uint32_t marker, std::size_t at, std::size_t end) {
        switch (marker) {
            case 0xc4: tables(at, end); break;
            case 0xdb: quantisation(at, end); break;
            case 0xdd: interval_ = in_.u16be(at); break;
            case 0xda: return scan(at, end);
            case 0xdc:
                fail(ErrorKind::unsupported, "a height that comes after the first scan (DNL marker) is unsupported");
                break;
            case 0xe0:
                if (end - at >= 5 && in_.u32be(at) == 0x4a464946) {
                    has_jfif_ = true;
                }
                break;
            case 0xee:
                if (end - at >= 12 && in_.u32be(at) == 0x41646f62 && in_.u16be(at + 4) == 0x6500) {
                    adobe_transform_ = static_cast<int>(in_.u8(at + 11));
                }
                break;
            default:
                if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc8 && marker != 0xcc) {
                    frame(marker, at, end);
                }
        }
        return end;
    }

    void frame(std::uint32_t marker, std::size_t at, std::size_t end) {
        static constexpr std::array<const char*, 16> names{"",
                                                           "",
                                                           "",
                                                           "lossless",
                                                           "",
                                                           "differential sequential",
                                                           "differential progressive",
                                                           "differential lossless",
                                                           "",
                                                           "arithmetic sequential",
                                                           "arithmetic progressive",
                                                           "arithmetic lossless",
                                                           "",
                                                           "differential arithmetic sequential",
                                                           "differential arithmetic progressive",
                                                           "differential arithmetic lossless"};
        if (components_count_ != 0) {
            fail(ErrorKind::damaged, "there are two frame headers");
            return;
        }
        const std::uint32_t precision = in_.u8(at);
        const std::uint32_t count = in_.u8(at + 5);
        if (end - at < 6 || count == 0 || end - at != 6 + std::size_t{count} * 3) {
            fail(ErrorKind::damaged, "the frame header has a wrong length");
            return;
        }
        const std::uint32_t height = in_.u16be(at + 1);
        const std::uint32_t width = in_.u16be(at + 3);
        if (marker > 0xc2) {
            structure_.result.info.width = width;
            structure_.result.info.height = height;
            fail(ErrorKind::unsupported,
                 std::string{"the coding process ("} + names[marker - 0xc0] + " JPEG) is unsupported");
            return;
        }
        if (precision != 8) {
            fail(precision == 12 ? ErrorKind::unsupported : ErrorKind::damaged,
                 "a precision of " + std::to_string(precision) + " bits is unsupported: only 8-bit JPEG is");
            return;
        }
        if (height == 0 && width != 0) {
            fail(ErrorKind::unsupported, "a height that comes after the first scan (DNL marker) is unsupported");
            return;
        }
        if (!take_size(structure_, width, height, limits_)) {
            return;
        }
        if (count != 1 && count != 3 && count != 4) {
            fail(ErrorKind::unsupported, std::to_string(count) + " components are unsupported: only 1, 3 and 4 are");
            return;
        }
        is_progressive_ = marker == 0xc2;
        for (std::uint32_t i = 0; i < count; ++i) {
            Component& component = components_[i];
            component = {in_.u8(at + 6 + i * 3), in_.u8(at + 7 + i * 3) >> 4, in_.u8(at + 7 + i * 3) & 15,
                         in_.u8(at + 8 + i * 3), false};
            if (component.h == 0 || component.h > 4 || component.v == 0 || component.v > 4 || component.table > 3) {
                fail(ErrorKind::damaged, "the frame header has an impossible sampling factor or table number");
                return;
            }
            h_max_ = component.h > h_max_ ? component.h : h_max_;
            v_max_ = component.v > v_max_ ? component.v : v_max_;
            for (std::uint32_t k = 0; k < i; ++k) {
                if (components_[k].id == component.id) {
                    fail(ErrorKind::unsupported, "components that share a number are unsupported");
                    return;
                }
            }
        }
        mcus_x_ = ceil_div(width, 8 * h_max_);
        mcus_y_ = ceil_div(height, 8 * v_max_);
        std::uint64_t planes = 0;
        for (std::uint32_t i = 0; i < count; ++i) {
            if (h_max_ % components_[i].h != 0 || v_max_ % components_[i].v != 0) {
                fail(ErrorKind::unsupported,
                     "its subsampling (sampling factors that do not divide the largest one) is unsupported");
                return;
            }
            planes += std::uint64_t{mcus_x_} * components_[i].h * 8 * mcus_y_ * components_[i].v * 8;
        }
        components_count_ = count;
        // Planes, coefficients of a progressive picture, the RGB picture, lines, and room for tables.
        structure_.memory = planes * (is_progressive_ ? 3 : 1) + std::uint64_t{width} * height * 3 +
                            std::uint64_t{width} * 8 + (std::uint64_t{1} << 18);
    }

    void tables(std::size_t at, std::size_t end) {
        while (at < end) {
            const std::uint32_t kind = in_.u8(at) >> 4;
            const std::uint32_t number = in_.u8(at) & 15;
            std::size_t values = 0;
            for (std::size_t i = 1; i <= 16; ++i) {
                values += in_.u8(at + i);
            }
            if (end - at < 17 || kind > 1 || number > 3 || values > 256 || end - at < 17 + values) {
                fail(ErrorKind::damaged, "a Huffman table is malformed");
                return;
            }
            (kind == 0 ? dc_tables_ : ac_tables_) |= 1u << number;
            at += 17 + values;
        }
    }

    void quantisation(std::size_t at, std::size_t end) {
        while (at < end) {
            const std::size_t size = in_.u8(at) >> 4 == 0 ? 65 : 129;
            if (in_.u8(at) >> 4 > 1 || (in_.u8(at) & 15) > 3 || end - at < size) {
                fail(ErrorKind::damaged, "a quantisation table is malformed");
                return;
            }
            quantisation_tables_ |= 1u << (in_.u8(at) & 15);
            at += size;
        }
    }

    std::size_t scan(std::size_t at, std::size_t end) {
        const std::uint32_t count = in_.u8(at);
        if (components_count_ == 0 || count == 0 || count > components_count_ ||
            end - at != 4 + std::size_t{count} * 2) {
            fail(ErrorKind::damaged,
                 components_count_ == 0 ? "a scan comes before the frame header" : "a scan header is malformed");
            return end;
        }
        if (++scans_ > limits_.max_scans) {
            fail(ErrorKind::too_large,
                 "there are too many scans: more than max_scans = " + std::to_string(limits_.max_scans) + " allows");
            return end;
        }
        const std::uint32_t first = in_.u8(at + 1 + count * 2);
        const bool refines = in_.u8(at + 3 + count * 2) >> 4 != 0;
        const bool needs_dc = first == 0 && !refines;
        const bool needs_ac = is_progressive_ ? first != 0 : true;
        if (is_progressive_ && first != 0 && count != 1) {
            fail(ErrorKind::damaged, "a progressive scan is malformed");
            return end;
        }
        const Component* only = nullptr;
        std::uint32_t seen = 0;
        for (std::uint32_t i = 0; i < count; ++i) {
            std::uint32_t which = 0;
            while (which < components_count_ && components_[which].id != in_.u8(at + 1 + i * 2)) {
                ++which;
            }
            const std::uint32_t table = in_.u8(at + 2 + i * 2);
            if (which == components_count_ || (seen >> which & 1) != 0) {
                fail(ErrorKind::damaged, "a scan names a component that does not exist, or names one twice");
                return end;
            }
            seen |= 1u << which;
            if ((needs_dc && (table >> 4 > 3 || (dc_tables_ >> (table >> 4) & 1) == 0)) ||
                (needs_ac && ((table & 15) > 3 || (ac_tables_ >> (table & 15) & 1) == 0))) {
                fail(ErrorKind::damaged, "a scan uses a Huffman table that is not in the file");
                return end;
            }
            if ((quantisation_tables_ >> components_[which].table & 1) == 0) {
                fail(ErrorKind::damaged, "a component uses a quantisation table that is not in the file");
                return end;
            }
            if (first == 0) {
                components_[which].has_scan = true;
            }
            only = &components_[which];
        }
        std::uint64_t mcus = std::uint64_t{mcus_x_} * mcus_y_;
        if (count == 1) {
            mcus = std::uint64_t{ceil_div(ceil_div(structure_.result.info.width * only->h, h_max_), 8)} *
                   ceil_div(ceil_div(structure_.result.info.height * only->v, v_max_), 8);
        }
        return entropy_data(end, mcus);
    }

    /// Passes over the coded data and counts its restart markers. @return where the marker behind it begins
    std::size_t entropy_data(std::size_t at, std::uint64_t mcus) {
        std::uint64_t restarts = 0;
        bool in_sequence = true;
        for (;;) {
            at = in_.find(0xff, at);
            const std::uint32_t next = in_.u8(at + 1);
            if (at + 1 >= in_.size()) {
                break;
            }
            if (next >= 0xd0 && next <= 0xd7) {
                in_sequence = in_sequence && next - 0xd0 == restarts % 8;
                ++restarts;
                at += 2;
            } else if (next == 0) {
                at += 2;
            } else if (next == 0xff) {
                at += 1;
            } else {
                break;
            }
        }
        if (at + 1 >= in_.size()) {
            return at;  // cut short: the caller says so
        }
        const std::uint64_t expected = interval_ == 0 ? 0 : (mcus + interval_ - 1) / interval_ - 1;
        const bool has_one_behind = interval_ != 0 && mcus % interval_ == 0 && restarts == expected + 1;
        if (!in_sequence || (restarts != expected && !has_one_behind)) {
            fail(ErrorKind::damaged, "a scan has " + std::to_string(restarts) + " restart markers" +
                                         (in_sequence ? "" : ", not in sequence,") + " where " +
                                         std::to_string(expected) + " belong: part of the picture is lost");
        }
        return at;
    }

    void finish() {
        if (components_count_ == 0) {
            fail(ErrorKind::damaged, "there is no frame header");
            return;
        }
        for (std::uint32_t i = 0; i < components_count_; ++i) {
            if (!components_[i].has_scan) {
                fail(ErrorKind::damaged, "component " + std::to_string(i + 1) + " of " +
                                             std::to_string(components_count_) + " has no scan");
                return;
            }
        }
        if (components_count_ == 4 && adobe_transform_ != 0 && adobe_transform_ != 2) {
            fail(ErrorKind::unsupported,
                 "four components without an Adobe marker that names their colours are unsupported");
        }
        if (components_count_ == 3 && adobe_transform_ == 2 && !has_jfif_) {
            fail(ErrorKind::damaged, "the Adobe marker says YCCK, but there are three components");
        }
    }

    [[nodiscard]] static constexpr std::uint32_t ceil_div(std::uint32_t a, std::uint32_t b) noexcept {
        return (a + b - 1) / b;
    }

    ByteReader in_;
    const DecodeLimits& limits_;
    PictureStructure structure_;
    std::array<Component, 4> components_{};
    std::uint32_t components_count_ = 0, h_max_ = 1, v_max_ = 1, mcus_x_ = 0, mcus_y_ = 0;
    std::uint32_t dc_tables_ = 0, ac_tables_ = 0, quantisation_tables_ = 0, interval_ = 0, scans_ = 0;
    int adobe_transform_ = -1;
    bool has_jfif_ = false, is_progressive_ = false;
};

// ---- PNG (ISO/IEC 15948) -----------------------------------------------------------------------------------------

/// Where the chunks of interest are; `walk_png` has checked that they are there.
struct PngStructure : PictureStructure {
    std::size_t palette_at = 0;  // of the palette's chunk
    std::size_t palette_colours = 0;
    std::size_t palette_room = 0;  // colours that pixels can name
};

[[nodiscard]] inline PngStructure walk_png(std::span<const std::byte> bytes, const DecodeLimits& limits) {
    constexpr std::uint32_t ihdr = 0x49484452, plte = 0x504c5445, idat = 0x49444154, iend = 0x49454e44,
                            cgbi = 0x43674249;
    const ByteReader in{bytes};
    PngStructure png;
    png.result.info.format = PictureFormat::png;
    std::uint64_t data = 0;
    std::uint32_t colour = 0;
    bool is_first = true;
    for (std::size_t at = 8;;) {
        const std::size_t length = in.u32be(at);
        const std::uint32_t type = in.u32be(at + 4);
        if (in.size() - at < 12 || length > in.size() - at - 12) {
            // Say the size, where there is one: the first chunk may be whole.
            png.fail(ErrorKind::damaged, "the file ends inside a chunk, or before the IEND chunk: it was cut short");
            return png;
        }
        if (is_first && type == cgbi) {
            png.fail(ErrorKind::unsupported, "Apple's variant of PNG (CgBI chunk) is unsupported");
            return png;
        }
        if (is_first != (type == ihdr) || (is_first && length != 13)) {
            png.fail(ErrorKind::damaged, is_first ? "the first chunk is not a header" : "there are two headers");
            return png;
        }
        if (is_first) {
            const std::uint32_t width = in.u32be(at + 8);
            const std::uint32_t height = in.u32be(at + 12);
            const std::uint32_t depth = in.u8(at + 16);
            colour = in.u8(at + 17);
            const bool is_low = depth == 1 || depth == 2 || depth == 4;
            const bool is_valid = colour == 0 ? is_low || depth == 8 || depth == 16
                                  : colour == 3
                                      ? is_low || depth == 8
                                      : (colour == 2 || colour == 4 || colour == 6) && (depth == 8 || depth == 16);
            if (!is_valid) {
                png.fail(ErrorKind::damaged, "colour type " + std::to_string(colour) + " with a bit depth of " +
                                                 std::to_string(depth) + " does not exist");
                return png;
            }
            if (!take_size(png, width, height, limits)) {
                return png;
            }
            const std::uint64_t channels = colour == 2 ? 3 : colour == 4 ? 2 : colour == 6 ? 4 : 1;
            const std::uint64_t pixels = std::uint64_t{width} * height;
            const std::uint64_t packed = channels * height * ((std::uint64_t{width} * depth + 7) / 8) + height;
            // Inflated data (grown by doubling while the old half is still there), pixels as stored with room for an
            // alpha channel, converted to three channels, to 8 bits; and room for tables.
            png.memory = 4 * packed + pixels * ((channels + 1) * (depth > 8 ? 2 : 1) + (depth > 8 ? 6 : 0) + 3) +
                         (std::uint64_t{1} << 20);
            png.palette_room = colour == 3 ? std::size_t{1} << depth : 0;
        } else if (type == plte) {
            if (length > 768 || length % 3 != 0 || length == 0 || png.palette_at != 0 || data != 0) {
                png.fail(ErrorKind::damaged, "the palette is malformed, or not where it belongs");
                return png;
            }
            png.palette_at = at;
            png.palette_colours = length / 3;
        } else if (type == idat) {
            data += length;
        } else if (type == iend) {
            break;
        } else if ((type & 0x20000000) == 0) {
            png.fail(ErrorKind::damaged, "a chunk that must be understood is not known");
            return png;
        }
        is_first = false;
        at += 12 + length;
    }
    if (data == 0) {
        png.fail(ErrorKind::damaged, "there are no pixel data (IDAT chunk)");
        return png;
    }
    if (colour == 3 && png.palette_at == 0) {
        png.fail(ErrorKind::damaged, "there is no palette");
        return png;
    }
    png.memory += 4 * data + 8192;
    png.needs_mending = png.palette_colours < png.palette_room;
    return png;
}

/// A copy whose palette is as long as pixels can name: colours behind its end are black, not whatever is in memory.
inline void mend_png(std::span<const std::byte> bytes, const PngStructure& png, std::vector<std::byte>& copy) {
    const std::size_t end = png.palette_at + 8 + png.palette_colours * 3;
    const std::size_t wanted = png.palette_room * 3;
    copy.clear();
    copy.insert(copy.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(end));
    copy[png.palette_at + 2] = static_cast<std::byte>(wanted >> 8);
    copy[png.palette_at + 3] = static_cast<std::byte>(wanted & 255);
    copy.insert(copy.end(), wanted - png.palette_colours * 3, std::byte{0});
    copy.insert(copy.end(), bytes.begin() + static_cast<std::ptrdiff_t>(end), bytes.end());
}

// ---- BMP (Microsoft's documentation of BITMAPFILEHEADER and BITMAPINFOHEADER) ------------------------------------

struct BmpStructure : PictureStructure {
    std::size_t header = 0;   // bytes, without the 14 of the file header
    std::size_t pixels = 0;   // where they begin
    std::size_t row = 0;      // bytes
    std::size_t bits = 0;     // per pixel
    std::size_t colours = 0;  // in the palette
    bool has_masks = false;
};

/// Walks a BMP; with a palette that is too short also its pixels.
[[nodiscard]] inline BmpStructure walk_bmp(std::span<const std::byte> bytes, const DecodeLimits& limits) {
    const ByteReader in{bytes};
    BmpStructure bmp;
    bmp.result.info.format = PictureFormat::bmp;
    bmp.pixels = in.u32le(10);
    bmp.header = in.u32le(14);
    if (in.size() < 26 || in.size() < 14 + bmp.header) {
        bmp.fail(ErrorKind::damaged, "the file ends inside its header");
        return bmp;
    }
    const std::size_t header = bmp.header;
    if (header != 12 && header != 40 && header != 52 && header != 56 && header != 64 && header != 108 &&
        header != 124) {
        bmp.fail(ErrorKind::unsupported, "a header of " + std::to_string(header) + " bytes is unsupported");
        return bmp;
    }
    const bool is_old = header == 12;
    const auto width = is_old ? static_cast<std::int64_t>(in.u16le(18)) : static_cast<std::int32_t>(in.u32le(18));
    const auto stored_height =
        is_old ? static_cast<std::int64_t>(in.u16le(20)) : static_cast<std::int32_t>(in.u32le(22));
    const std::int64_t height = stored_height < 0 ? -stored_height : stored_height;
    if (width < 0) {
        bmp.fail(ErrorKind::damaged, "the header says a width of " + std::to_string(width));
        return bmp;
    }
    if (!take_size(bmp, static_cast<std::uint64_t>(width), static_cast<std::uint64_t>(height), limits)) {
        return bmp;
    }
    bmp.bits = in.u16le(is_old ? 24 : 28);
    const std::uint32_t compression = is_old ? 0 : in.u32le(30);
    if (compression != 0 && compression != 3) {
        bmp.fail(ErrorKind::unsupported,
                 compression == 1 || compression == 2 || (header == 64 && compression == 4)
                     ? std::string{"run-length encoding is unsupported in a BMP"}
                     : "compression method " + std::to_string(compression) + " is unsupported in a BMP");
        return bmp;
    }
    bmp.has_masks = compression == 3;
    if (bmp.bits != 1 && bmp.bits != 4 && bmp.bits != 8 && bmp.bits != 16 && bmp.bits != 24 && bmp.bits != 32) {
        bmp.fail(bmp.bits == 2 || bmp.bits == 64 ? ErrorKind::unsupported : ErrorKind::damaged,
                 std::to_string(bmp.bits) + " bits per pixel are unsupported in a BMP");
        return bmp;
    }
    if ((bmp.has_masks && ((bmp.bits != 16 && bmp.bits != 32) || header == 64)) ||
        (is_old && (bmp.bits == 16 || bmp.bits == 32))) {
        bmp.fail(ErrorKind::unsupported,
                 "this combination of header, bit masks and bits per pixel is unsupported in a BMP");
        return bmp;
    }
    const auto w = static_cast<std::uint64_t>(width);
    const auto h = static_cast<std::uint64_t>(height);
    bmp.row = static_cast<std::size_t>((w * bmp.bits + 31) / 32 * 4);
    const std::uint64_t last_row = (w * bmp.bits + 7) / 8;
    const std::size_t masks_end = bmp.has_masks && header == 40 ? 66 : 14 + header;
    if (bmp.pixels < masks_end || bmp.pixels > in.size() || in.size() - bmp.pixels < (h - 1) * bmp.row + last_row) {
        bmp.fail(ErrorKind::damaged, bmp.pixels < masks_end ? "the pixels begin inside the header"
                                                            : "the file ends before its last row: it was cut short");
        return bmp;
    }
    bmp.memory = w * h * 3 + (std::uint64_t{1} << 16);
    if (bmp.bits < 16) {
        const std::size_t entry = is_old ? 3 : 4;
        const std::size_t most = std::size_t{1} << bmp.bits;
        const std::size_t used = is_old ? 0 : in.u32le(46);
        bmp.colours = (bmp.pixels - 14 - header) / entry;
        bmp.colours = used != 0 && used < bmp.colours ? used : bmp.colours;
        bmp.colours = most < bmp.colours ? most : bmp.colours;
        if (bmp.colours == 0) {
            bmp.fail(ErrorKind::damaged, "there is no palette");
            return bmp;
        }
        bmp.needs_mending = bmp.colours != most || bmp.pixels != 14 + header + most * entry || header != 40;
        for (std::uint64_t y = 0; bmp.colours < most && y < h; ++y) {
            for (std::uint64_t x = 0; x < w; ++x) {
                const std::size_t bit = static_cast<std::size_t>(x) * bmp.bits;
                const std::uint32_t packed = in.u8(bmp.pixels + static_cast<std::size_t>(y) * bmp.row + bit / 8);
                const std::uint32_t index = (packed >> (8 - bmp.bits - bit % 8)) & static_cast<std::uint32_t>(most - 1);
                if (index >= bmp.colours) {
                    bmp.fail(ErrorKind::damaged, "a pixel has colour " + std::to_string(index) + " of a palette of " +
                                                     std::to_string(bmp.colours));
                    return bmp;
                }
            }
        }
    } else {
        bmp.needs_mending = bmp.pixels != masks_end || (header != 12 && header != 40 && header != 108 && header != 124);
    }
    return bmp;
}

/// A copy in the one form that stb_image reads right: known header, whole palette, pixels straight behind.
inline void mend_bmp(std::span<const std::byte> bytes, const BmpStructure& bmp, std::vector<std::byte>& copy) {
    const bool is_old = bmp.header == 12;
    const bool is_kept = is_old || bmp.header == 108 || bmp.header == 124;
    const std::size_t header = is_kept ? bmp.header : 40;
    const std::size_t entry = is_old ? 3 : 4;
    const std::size_t masks =
        bmp.has_masks && !is_kept ? 12 : 0;  // at 54, whether they belong to the header or follow it
    const auto add = [&bytes, &copy](std::size_t at, std::size_t length) {
        copy.insert(copy.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at),
                    bytes.begin() + static_cast<std::ptrdiff_t>(at + length));
    };
    copy.clear();
    add(0, 14 + header + masks);
    if (bmp.bits < 16) {
        const std::size_t begin = 14 + bmp.header;
        add(begin, bmp.colours * entry);
        copy.insert(copy.end(), ((std::size_t{1} << bmp.bits) - bmp.colours) * entry, std::byte{0});
        if (is_old) {
            copy.insert(copy.end(), 12, std::byte{0});  // stb_image counts the palette as four colours shorter
        }
    }
    const auto put = [&copy](std::size_t at, std::size_t value) {
        for (std::size_t i = 0; i < 4; ++i) {
            copy[at + i] = static_cast<std::byte>(value >> (8 * i) & 255);
        }
    };
    put(10, copy.size());
    put(14, header);
    add(bmp.pixels, bytes.size() - bmp.pixels);
}

}  // namespace detail
}  // namespace v0
}  // namespace stoker
