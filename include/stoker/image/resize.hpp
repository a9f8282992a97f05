// SPDX-License-Identifier: MIT
/// @file
/// Brings a box of an 8-bit picture to its output size, straight into the place where the output belongs.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <stoker/image/geometry.hpp>

namespace stoker {
inline namespace v0 {

/// An 8-bit picture of interleaved red, green, blue that somebody else owns: rows from top to bottom, without padding
/// unless `stride` says so.
struct PictureView {
    const std::uint8_t* pixels = nullptr;
    std::uint32_t width = 0;   ///< In pixels.
    std::uint32_t height = 0;  ///< In pixels.
    std::size_t stride = 0;    ///< Bytes from one row to the next; 3 * width or more.
};

namespace detail {

/// For each output position along one axis: which inputs count, and how much. Weights of one position sum to 2^22.
struct AxisWeights {
    static constexpr int bits = 22;  // 2^22 * 255 stays below 2^31
    struct Span {
        std::uint32_t first = 0;  // input position
        std::uint32_t count = 0;  // 1 or more
        std::size_t weights = 0;  // where in `weights`
    };
    std::vector<Span> spans;
    std::vector<std::int32_t> weights;
    std::vector<double> shares;
    std::uint32_t largest = 0;  // the largest count

    /// Output i of `out` looks at start + (i + 0.5) * length / out; only inputs in [first, last) exist.
    void compute(double start, double length, std::uint32_t out, std::uint32_t first, std::uint32_t last, Filter filter,
                 bool mirrored) {
        spans.resize(out);
        weights.clear();
        largest = 1;
        const double step = quotient(length, out);
        const double reach = filter == Filter::triangle && step > 1 ? step : 1;  // inputs from the centre to weight 0
        for (std::uint32_t i = 0; i < out; ++i) {
            const double centre = sum(start, product(i + 0.5, step));
            Span& span = spans[mirrored ? out - 1 - i : i];
            span.weights = weights.size();
            if (filter == Filter::nearest) {
                span.first = clamp(std::floor(centre), first, last - 1);
                span.count = 1;
                weights.push_back(std::int32_t{1} << bits);
                continue;
            }
            const std::uint32_t from = clamp(std::floor(centre - reach + 0.5), first, last - 1);
            const std::uint32_t to = clamp(std::floor(centre + reach + 0.5), from + 1, last);
            span.first = from;
            span.count = to - from;
            largest = span.count > largest ? span.count : largest;
            shares.resize(span.count);
            double total = 0;
            for (std::uint32_t k = 0; k < span.count; ++k) {
                const double distance = std::fabs(from + k + 0.5 - centre);
                const double share = 1 - quotient(distance, reach);
                shares[k] = share > 0 ? share : 0;
                total = sum(total, shares[k]);
            }
            // Rounding the running sum, not each weight, makes the weights sum to 2^22 exactly: what is flat stays
            // flat.
            double running = 0;
            std::int32_t before = 0;
            for (std::uint32_t k = 0; k < span.count; ++k) {
                running = sum(running, shares[k]);
                const auto now = k + 1 == span.count
                                     ? std::int32_t{1} << bits
                                     : static_cast<std::int32_t>(std::floor(
                                           sum(product(quotient(running, total), std::int32_t{1} << bits), 0.5)));
                weights.push_back(now - before);
                before = now;
            }
        }
    }

  private:
    [[nodiscard]] static std::uint32_t clamp(double value, std::uint32_t low, std::uint32_t high) noexcept {
        return value <= low ? low : value >= high ? high : static_cast<std::uint32_t>(value);
    }
};

/// One output row of the horizontal pass: `source` is the row's first byte; RGB.
inline void resize_row(const std::uint8_t* source, const AxisWeights& axis, std::uint8_t* target) noexcept {
    constexpr std::int32_t half = std::int32_t{1} << (AxisWeights::bits - 1);
    for (const AxisWeights::Span& span : axis.spans) {
        const std::uint8_t* pixel = source + std::size_t{span.first} * 3;
        const std::int32_t* weight = axis.weights.data() + span.weights;
        std::int32_t red = half;
        std::int32_t green = half;
        std::int32_t blue = half;
        for (std::uint32_t k = 0; k < span.count; ++k, pixel += 3) {
            red += weight[k] * pixel[0];
            green += weight[k] * pixel[1];
            blue += weight[k] * pixel[2];
        }
        target[0] = static_cast<std::uint8_t>(red >> AxisWeights::bits);
        target[1] = static_cast<std::uint8_t>(green >> AxisWeights::bits);
        target[2] = static_cast<std::uint8_t>(blue >> AxisWeights::bits);
        target += 3;
    }
}

}  // namespace detail

/// Memory of `resize` that is kept for the next call. One thread at a time.
struct ResizeScratch {
    detail::AxisWeights columns, rows;
    std::vector<std::uint8_t> ring;  // the latest rows of the horizontal pass
    std::vector<std::int32_t> sums;  // one output row of the vertical pass

    /// Bytes of heap in use.
    [[nodiscard]] std::size_t size_bytes() const noexcept {
        const auto axis = [](const detail::AxisWeights& weights) {
            return weights.spans.capacity() * sizeof(detail::AxisWeights::Span) +
                   weights.weights.capacity() * sizeof(std::int32_t) + weights.shares.capacity() * sizeof(double);
        };
        return axis(columns) + axis(rows) + ring.capacity() + sums.capacity() * sizeof(std::int32_t);
    }
};

/// Resamples `geometry.box` of `source` into `target`: geometry.height x geometry.width x 3 bytes without padding,
/// which may not overlap the source. Filters: sample centres are half a pixel in (the output's pixel i looks at box.x +
/// (i + 0.5) * box.width / width). Filter::triangle is what Pillow calls BILINEAR and torchvision `antialias=True`:
/// columns first, then rows, 8 bits in between, weights of 22 bits. Flat areas stay exactly as they are; a mirrored
/// output is exactly the mirror image. Integer arithmetic on the pixels: the same bytes from every compiler and
/// machine. Thread-safety: reads `source` only; one call at a time per scratch. Cost: two passes, each about (filter
/// taps) x 3 multiplications per pixel it writes; each source row that counts is read once. Memory: filter height rows
/// of the output's width, and the weights.
/// @throws OptionError  the box is not inside the picture, or the output is empty; nothing was written then.
inline void resize(const PictureView& source, const Geometry& geometry, std::uint8_t* target, ResizeScratch& scratch) {
    check_geometry(geometry, source.width, source.height);
    const Box& box = geometry.box;
    const auto limits = [&geometry](double start, double length, std::uint32_t size, std::uint32_t& first,
                                    std::uint32_t& last) {
        first = 0;
        last = size;
        if (geometry.border == Border::box) {
            const double low = std::floor(start);
            const double high = std::ceil(start + length);
            first = low <= 0 ? 0 : low >= size - 1 ? size - 1 : static_cast<std::uint32_t>(low);
            last = high >= size ? size : high <= first ? first + 1 : static_cast<std::uint32_t>(high);
        }
    };
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    limits(box.x, box.width, source.width, first, last);
    scratch.columns.compute(box.x, box.width, geometry.width, first, last, geometry.filter, geometry.flip);
    limits(box.y, box.height, source.height, first, last);
    scratch.rows.compute(box.y, box.height, geometry.height, first, last, geometry.filter, false);

    const std::size_t row_bytes = std::size_t{geometry.width} * 3;
    const std::uint32_t ring_rows = scratch.rows.largest;
    scratch.ring.resize(row_bytes * ring_rows);
    scratch.sums.resize(row_bytes);
    std::uint32_t done = 0;  // source rows below this one that are needed went through the horizontal pass
    for (std::uint32_t y = 0; y < geometry.height; ++y) {
        const detail::AxisWeights::Span span = scratch.rows.spans[y];
        for (std::uint32_t row = done > span.first ? done : span.first; row < span.first + span.count; ++row) {
            detail::resize_row(source.pixels + std::size_t{row} * source.stride, scratch.columns,
                               scratch.ring.data() + row_bytes * (row % ring_rows));
        }
        done = done > span.first + span.count ? done : span.first + span.count;
        const std::int32_t* weight = scratch.rows.weights.data() + span.weights;
        std::uint8_t* const out = target + row_bytes * y;
        std::int32_t* const sums = scratch.sums.data();
        for (std::size_t i = 0; i < row_bytes; ++i) {
            sums[i] = std::int32_t{1} << (detail::AxisWeights::bits - 1);
        }
        for (std::uint32_t k = 0; k < span.count; ++k) {
            const std::uint8_t* const row = scratch.ring.data() + row_bytes * ((span.first + k) % ring_rows);
            const std::int32_t share = weight[k];
            for (std::size_t i = 0; i < row_bytes; ++i) {
                sums[i] += share * row[i];
            }
        }
        for (std::size_t i = 0; i < row_bytes; ++i) {
            out[i] = static_cast<std::uint8_t>(sums[i] >> detail::AxisWeights::bits);
        }
    }
}

}  // namespace v0
}  // namespace stoker
