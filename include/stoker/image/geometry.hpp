// SPDX-License-Identifier: MIT
/// @file
/// Where in a picture an output comes from: boxes, how they are drawn, and the output's size; no pixels here.
///
/// Coordinates: x to the right, y down, in pixels of the stored picture; pixel (i, j) covers [i, i + 1) x [j, j + 1),
/// so its centre is at i + 0.5. Every function here is pure but for the draws it takes from the `Random` it is given,
/// and gives the same numbers on every compiler and C library: its arithmetic uses only operations that IEEE 754 rounds
/// exactly, none of which a compiler may contract.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include <stoker/error.hpp>
#include <stoker/random.hpp>

namespace stoker {
inline namespace v0 {

/// How pixels are combined when a box is brought to its output size.
enum class Filter : std::uint8_t {
    triangle,  ///< Linear interpolation whose support widens when shrinking: antialiased, as Pillow's BILINEAR.
    bilinear,  ///< The four nearest pixels, also when shrinking: fast, and aliases.
    nearest,   ///< The pixel that holds the sample's centre.
};

/// Which pixels near the edge of a box may contribute to its output.
enum class Border : std::uint8_t {
    box,      ///< Only those that the box touches: crop first, then resize.
    picture,  ///< Those just outside the box too, where there are any: resize first, then crop.
};

/// A part of a picture, in pixels; not always on pixel borders.
struct Box {
    double x = 0;       ///< Left edge.
    double y = 0;       ///< Top edge.
    double width = 0;   ///< More than 0.
    double height = 0;  ///< More than 0.
    friend bool operator==(const Box&, const Box&) = default;
};

/// What a decoder is asked to deliver: `box`, resampled to `width` x `height`, mirrored left to right if `flip`.
/// Declared at once, not done step by step, so that a decoder may leave out what is outside the box, and shrink while
/// it decodes.
struct Geometry {
    Box box;
    std::uint32_t height = 0;  ///< Of the output, in pixels; 1 or more.
    std::uint32_t width = 0;   ///< Of the output, in pixels; 1 or more.
    bool flip = false;         ///< Mirror the output left to right.
    Filter filter = Filter::triangle;
    Border border = Border::box;
};

namespace detail {

/// `value`, as a number that the optimiser knows nothing about: what was computed before is not fused with what
/// follows.
[[nodiscard]] inline double rounded(double value) noexcept {
    asm("" : "+m"(value));
    return value;
}
/// a * b, rounded once, never part of a fused multiply-add.
[[nodiscard]] inline double product(double a, double b) noexcept { return rounded(a * b); }
/// a / b, rounded once, never turned into a multiplication with 1 / b.
[[nodiscard]] inline double quotient(double a, double b) noexcept { return rounded(rounded(a) / rounded(b)); }
[[nodiscard]] inline double sum(double a, double b) noexcept { return rounded(a + b); }

/// Natural logarithm of a finite `x` > 0, within about 1e-15 relative; the same on every machine.
/// Method: x = m * 2^e with m in [sqrt(1/2), sqrt(2)); ln m = 2 artanh((m - 1) / (m + 1)) by its power series.
[[nodiscard]] inline double exact_log(double x) noexcept {
    int exponent = 0;
    double mantissa = std::frexp(x, &exponent);
    if (mantissa < 0.70710678118654752) {
        mantissa = mantissa + mantissa;
        --exponent;
    }
    const double s = quotient(mantissa - 1, mantissa + 1);
    const double square = product(s, s);
    double series = 0;
    for (int k = 25; k >= 1; k -= 2) {
        series = sum(product(series, square), quotient(1, k));
    }
    return sum(product(2, product(s, series)), product(exponent, 0.69314718055994530942));
}

/// e to the power of `x`, |x| <= 700, within about 1e-15 relative; the same on every machine.
/// Method: x = k ln 2 + r, |r| <= ln 2 / 2; the power series of e^r.
[[nodiscard]] inline double exact_exp(double x) noexcept {
    const double k = std::floor(sum(product(x, 1.4426950408889634074), 0.5));
    const double r = sum(x, -product(k, 0.69314718055994530942));
    double series = 1;
    for (int n = 18; n >= 1; --n) {
        series = sum(1, quotient(product(series, r), n));
    }
    return std::ldexp(series, static_cast<int>(k));
}

/// Nearest integer, halves to even, as Python's `round`, which torchvision uses.
[[nodiscard]] inline std::int64_t round_to_even(double x) noexcept {
    const double down = std::floor(x);
    const double rest = x - down;
    const auto integer = static_cast<std::int64_t>(down);
    if (rest > 0.5 || (rest == 0.5 && integer % 2 != 0)) {
        return integer + 1;
    }
    return integer;
}

/// Shortest usual text of a number in a message.
[[nodiscard]] inline std::string number_text(double value) {
    std::string text = std::to_string(value);
    if (text.find('.') != std::string::npos) {
        while (text.back() == '0') {
            text.pop_back();
        }
        if (text.back() == '.') {
            text.pop_back();
        }
    }
    return text;
}

[[noreturn]] inline void throw_option(const std::string& name, const std::string& value, const std::string& allowed) {
    throw OptionError{"cannot use the option " + name + " = " + value + ": allowed is " + allowed};
}

}  // namespace detail

/// A closed interval of numbers.
struct Range {
    double low = 0;
    double high = 0;
    friend bool operator==(const Range&, const Range&) = default;
};

/// Checks the area range of a random resized crop. @throws OptionError  not 0 < low <= high <= 1.
inline void check_scale(Range scale) {
    if (!(scale.low > 0 && scale.low <= scale.high && scale.high <= 1)) {
        detail::throw_option("scale",
                             "(" + detail::number_text(scale.low) + ", " + detail::number_text(scale.high) + ")",
                             "0 < low <= high <= 1, as shares of the picture's area");
    }
}

/// Checks the aspect ratio range of a random resized crop. @throws OptionError  not 0.001 <= low <= high <= 1000.
inline void check_ratio(Range ratio) {
    if (!(ratio.low >= 0.001 && ratio.low <= ratio.high && ratio.high <= 1000)) {
        detail::throw_option("ratio",
                             "(" + detail::number_text(ratio.low) + ", " + detail::number_text(ratio.high) + ")",
                             "0.001 <= low <= high <= 1000, as width / height");
    }
}

/// All of a picture of `width` x `height` pixels.
[[nodiscard]] inline Box whole_picture(std::uint32_t width, std::uint32_t height) noexcept {
    return {0, 0, static_cast<double>(width), static_cast<double>(height)};
}

/// The box in the middle that a crop of `crop_width` x `crop_height` shows after the picture was resized until its
/// shorter side has `shortest` pixels: torchvision's Resize(shortest), then CenterCrop, as one box of the stored
/// picture. As there, the longer side becomes floor(shortest * longer / shorter), and the crop's corner is rounded half
/// to even. Use it with Border::picture. All arguments are 1 or more, `shortest` not less than either side of the crop.
[[nodiscard]] inline Box centre_crop(std::uint32_t width, std::uint32_t height, std::uint32_t crop_width,
                                     std::uint32_t crop_height, std::uint32_t shortest) noexcept {
    std::uint64_t resized_width = shortest;
    std::uint64_t resized_height = shortest;
    if (width <= height) {
        resized_height = std::uint64_t{shortest} * height / width;
    } else {
        resized_width = std::uint64_t{shortest} * width / height;
    }
    const auto corner = [](std::uint64_t resized, std::uint32_t crop) {
        const std::uint64_t twice = resized > crop ? resized - crop : 0;  // two times the exact corner
        const std::uint64_t half = twice / 2;
        return half + (twice % 2 != 0 && half % 2 != 0 ? 1 : 0);
    };
    const auto scaled = [](std::uint64_t pixels, std::uint32_t stored, std::uint64_t resized) {
        return detail::quotient(detail::product(static_cast<double>(pixels), stored), static_cast<double>(resized));
    };
    Box box{scaled(corner(resized_width, crop_width), width, resized_width),
            scaled(corner(resized_height, crop_height), height, resized_height),
            scaled(crop_width, width, resized_width), scaled(crop_height, height, resized_height)};
    // Rounding must not push an edge outside.
    if (box.x + box.width > width) {
        box.width = width - box.x;
    }
    if (box.y + box.height > height) {
        box.height = height - box.y;
    }
    return box;
}

/// The largest box in the middle that has the shape of `out_width` x `out_height`: nothing is stretched.
[[nodiscard]] inline Box centre_fit(std::uint32_t width, std::uint32_t height, std::uint32_t out_width,
                                    std::uint32_t out_height) noexcept {
    const std::uint64_t left = std::uint64_t{width} * out_height;
    const std::uint64_t right = std::uint64_t{height} * out_width;
    double box_width = width;
    double box_height = height;
    if (left > right) {
        box_width = detail::quotient(static_cast<double>(right), out_height);
    } else if (left < right) {
        box_height = detail::quotient(static_cast<double>(left), out_width);
    }
    return {(width - box_width) / 2, (height - box_height) / 2, box_width, box_height};
}

/// A crop of random area and shape, on whole pixels: the Inception crop (Szegedy et al., "Going deeper with
/// convolutions", 2015), by the formula of torchvision's RandomResizedCrop. Up to 10 attempts: area share uniform in
/// `scale`, logarithm of width / height uniform in that of `ratio`, both sides rounded; the first that fits goes to a
/// uniform position. Else the largest box in the middle whose ratio is the picture's own, clamped to `ratio`. Draws: 2
/// per attempt, and 2 for the position. `scale` and `ratio` have passed check_scale and check_ratio.
[[nodiscard]] inline Box random_resized_crop(std::uint32_t width, std::uint32_t height, Range scale, Range ratio,
                                             Random& random) {
    const double area = detail::product(width, height);
    const double log_low = detail::exact_log(ratio.low);
    const double log_high = detail::exact_log(ratio.high);
    const auto between = [&random](double low, double high) {
        return detail::sum(low, detail::product(high - low, random.uniform()));
    };
    for (int attempt = 0; attempt < 10; ++attempt) {
        const double target = detail::product(area, between(scale.low, scale.high));
        const double aspect = detail::exact_exp(between(log_low, log_high));
        const std::int64_t w = detail::round_to_even(std::sqrt(detail::product(target, aspect)));
        const std::int64_t h = detail::round_to_even(std::sqrt(detail::quotient(target, aspect)));
        if (w >= 1 && w <= std::int64_t{width} && h >= 1 && h <= std::int64_t{height}) {
            const std::uint64_t y = random.below(static_cast<std::uint64_t>(height - h + 1));
            const std::uint64_t x = random.below(static_cast<std::uint64_t>(width - w + 1));
            return {static_cast<double>(x), static_cast<double>(y), static_cast<double>(w), static_cast<double>(h)};
        }
    }
    std::int64_t w = width;
    std::int64_t h = height;
    const double own = detail::quotient(width, height);
    if (own < ratio.low) {
        h = detail::round_to_even(detail::quotient(width, ratio.low));
    } else if (own > ratio.high) {
        w = detail::round_to_even(detail::product(height, ratio.high));
    }
    w = w < 1 ? 1 : w > std::int64_t{width} ? std::int64_t{width} : w;
    h = h < 1 ? 1 : h > std::int64_t{height} ? std::int64_t{height} : h;
    return {static_cast<double>((width - w) / 2), static_cast<double>((height - h) / 2), static_cast<double>(w),
            static_cast<double>(h)};
}

/// Checks that `geometry` makes sense for a picture of `width` x `height` pixels.
/// @throws OptionError  an empty output, or a box that is empty, not a number or not inside the picture.
inline void check_geometry(const Geometry& geometry, std::uint32_t width, std::uint32_t height) {
    if (geometry.width == 0 || geometry.height == 0) {
        throw OptionError{"cannot resize a picture to " + std::to_string(geometry.width) + " x " +
                          std::to_string(geometry.height) + " pixels: both sides must be 1 or more"};
    }
    const Box& box = geometry.box;
    constexpr double slack = 1e-6;  // pixels; what rounding may add
    if (!(box.x >= 0 && box.y >= 0 && box.width > 0 && box.height > 0 && box.x + box.width <= width + slack &&
          box.y + box.height <= height + slack)) {
        throw OptionError{"cannot crop the box at (" + detail::number_text(box.x) + ", " + detail::number_text(box.y) +
                          ") of " + detail::number_text(box.width) + " x " + detail::number_text(box.height) +
                          " pixels from a picture of " + std::to_string(width) + " x " + std::to_string(height) +
                          " pixels: the box must be inside the picture and not empty"};
    }
}

}  // namespace v0
}  // namespace stoker
