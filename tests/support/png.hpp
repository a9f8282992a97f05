// SPDX-License-Identifier: MIT
/// @file
/// Writes PNG files for tests: stored or run-length deflate, any colour type, extra chunks, and faults on purpose.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace testing_support {

using Bytes = std::vector<std::uint8_t>;

inline void add_be32(Bytes& bytes, std::uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) {
        bytes.push_back(static_cast<std::uint8_t>(value >> shift));
    }
}

/// CRC-32 of ISO 3309, bit by bit: for small data.
[[nodiscard]] inline std::uint32_t crc32(const std::uint8_t* data, std::size_t size) {
    std::uint32_t crc = 0xffffffff;
    for (std::size_t i = 0; i < size; ++i) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; ++bit) {
            crc = crc >> 1 ^ (0xedb88320u & (0u - (crc & 1u)));
        }
    }
    return ~crc;
}

inline void add_chunk(Bytes& png, std::string_view type, const Bytes& data) {
    add_be32(png, static_cast<std::uint32_t>(data.size()));
    const std::size_t begin = png.size();
    png.insert(png.end(), type.begin(), type.end());
    png.insert(png.end(), data.begin(), data.end());
    add_be32(png, crc32(png.data() + begin, png.size() - begin));
}

/// A zlib stream that holds `raw` as it is.
[[nodiscard]] inline Bytes zlib_stored(const Bytes& raw) {
    Bytes out{0x78, 0x01};
    std::size_t at = 0;
    do {
        const std::size_t size = raw.size() - at < 65535 ? raw.size() - at : 65535;
        out.push_back(at + size == raw.size() ? 1 : 0);
        out.push_back(static_cast<std::uint8_t>(size & 255));
        out.push_back(static_cast<std::uint8_t>(size >> 8));
        out.push_back(static_cast<std::uint8_t>(~size & 255));
        out.push_back(static_cast<std::uint8_t>(~size >> 8 & 255));
        out.insert(out.end(), raw.begin() + static_cast<std::ptrdiff_t>(at),
                   raw.begin() + static_cast<std::ptrdiff_t>(at + size));
        at += size;
    } while (at < raw.size());
    std::uint32_t a = 1;
    std::uint32_t b = 0;
    for (const std::uint8_t byte : raw) {
        a = (a + byte) % 65521;
        b = (b + a) % 65521;
    }
    add_be32(out, b << 16 | a);
    return out;
}

/// A zlib stream that inflates to `size` >= 1 zero bytes: one literal, then matches of 258 bytes at distance 1, with
/// the fixed codes of RFC 1951. About 160 times smaller than what it holds.
[[nodiscard]] inline Bytes zlib_zeros(std::uint64_t size) {
    Bytes out{0x78, 0x01};
    std::uint32_t buffer = 0;
    int used = 0;
    const auto put = [&](std::uint32_t bits, int count) {
        buffer |= bits << used;
        for (used += count; used >= 8; used -= 8) {
            out.push_back(static_cast<std::uint8_t>(buffer & 255));
            buffer >>= 8;
        }
    };
    const auto put_code = [&](std::uint32_t code, int count) {  // codes go most significant bit first
        for (int i = count - 1; i >= 0; --i) {
            put(code >> i & 1, 1);
        }
    };
    put(1, 1);
    put(1, 2);
    put_code(0x30, 8);
    std::uint64_t left = size - 1;
    for (; left >= 258; left -= 258) {
        put_code(0xc5, 8);  // length 258
        put_code(0, 5);     // distance 1
    }
    for (; left > 0; --left) {
        put_code(0x30, 8);
    }
    put_code(0, 7);
    put(0, 7);
    add_be32(out, static_cast<std::uint32_t>(size % 65521) << 16 | 1);
    return out;
}

/// What a PNG consists of; `data` is a zlib stream.
struct Png {
    std::uint32_t width = 1, height = 1;
    std::uint8_t depth = 8, colour = 2;
    Bytes data;
    std::vector<std::pair<std::string, Bytes>> chunks = {};  // between header and data
};

[[nodiscard]] inline Bytes png_file(const Png& png) {
    Bytes file{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    Bytes header;
    add_be32(header, png.width);
    add_be32(header, png.height);
    header.insert(header.end(), {png.depth, png.colour, 0, 0, 0});
    add_chunk(file, "IHDR", header);
    for (const auto& [type, data] : png.chunks) {
        add_chunk(file, type, data);
    }
    add_chunk(file, "IDAT", png.data);
    add_chunk(file, "IEND", {});
    return file;
}

/// A PNG of rows of `row_bytes` bytes each, filter 0.
[[nodiscard]] inline Bytes png_from_rows(std::uint32_t width, std::uint32_t height, std::uint8_t depth,
                                         std::uint8_t colour, const Bytes& rows,
                                         std::vector<std::pair<std::string, Bytes>> chunks = {}) {
    const std::size_t row_bytes = rows.size() / height;
    Bytes raw;
    for (std::uint32_t y = 0; y < height; ++y) {
        raw.push_back(0);
        raw.insert(raw.end(), rows.begin() + static_cast<std::ptrdiff_t>(y * row_bytes),
                   rows.begin() + static_cast<std::ptrdiff_t>((y + 1) * row_bytes));
    }
    return png_file({width, height, depth, colour, zlib_stored(raw), std::move(chunks)});
}

/// An RGB PNG of one colour.
[[nodiscard]] inline Bytes flat_png(std::uint32_t width, std::uint32_t height, std::uint8_t r, std::uint8_t g,
                                    std::uint8_t b) {
    Bytes rows;
    rows.reserve(std::size_t{width} * height * 3);
    for (std::size_t i = 0; i < std::size_t{width} * height; ++i) {
        rows.insert(rows.end(), {r, g, b});
    }
    return png_from_rows(width, height, 8, 2, rows);
}

/// Picture i of the acceptance list's ID(n): 8x8, flat (i mod 256, i div 256, 7 i mod 256).
[[nodiscard]] inline Bytes id_png(std::uint32_t i) {
    return flat_png(8, 8, static_cast<std::uint8_t>(i % 256), static_cast<std::uint8_t>(i / 256),
                    static_cast<std::uint8_t>(7 * i % 256));
}

}  // namespace testing_support
