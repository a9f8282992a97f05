// SPDX-License-Identifier: MIT
#include <stoker/image/resize.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

namespace {

using stoker::Border;
using stoker::Box;
using stoker::Filter;
using stoker::Geometry;
using Pixels = std::vector<std::uint8_t>;

struct Picture {
    std::uint32_t width, height;
    Pixels pixels;
    Picture(std::uint32_t w, std::uint32_t h) : width{w}, height{h}, pixels(std::size_t{w} * h * 3) {}
    std::uint8_t& at(std::uint32_t x, std::uint32_t y, std::uint32_t c) {
        return pixels[(std::size_t{y} * width + x) * 3 + c];
    }
    void set(std::uint32_t x, std::uint32_t y, std::uint8_t value) {
        for (std::uint32_t c = 0; c < 3; ++c) {
            at(x, y, c) = value;
        }
    }
    [[nodiscard]] stoker::PictureView view() const { return {pixels.data(), width, height, std::size_t{width} * 3}; }
    [[nodiscard]] Box all() const { return stoker::whole_picture(width, height); }
};

Picture noise(std::uint32_t width, std::uint32_t height) {
    Picture picture{width, height};
    stoker::Random random{9, width, height};
    for (std::uint8_t& value : picture.pixels) {
        value = static_cast<std::uint8_t>(random.below(256));
    }
    return picture;
}

Picture resized(const Picture& picture, const Geometry& geometry) {
    Picture out{geometry.width, geometry.height};
    stoker::ResizeScratch scratch;
    stoker::resize(picture.view(), geometry, out.pixels.data(), scratch);
    return out;
}

// B071 (a): shrinking filters out what the output cannot show.
TEST(ResizeTest, ShrinkingIsAntialiasedByDefault) {
    Picture board{64, 64};
    for (std::uint32_t y = 0; y < 64; ++y) {
        for (std::uint32_t x = 0; x < 64; ++x) {
            board.set(x, y, (x + y) % 2 == 0 ? 0 : 255);
        }
    }
    const Picture out = resized(board, {board.all(), 16, 16});
    for (const std::uint8_t value : out.pixels) {
        EXPECT_NEAR(value, 127.5, 8);
    }
}

// B071 (b): pixel centres are half a pixel in.
TEST(ResizeTest, EnlargingUsesHalfPixelCentres) {
    Picture two{2, 1};
    two.set(1, 0, 255);
    for (const Filter filter : {Filter::triangle, Filter::bilinear}) {
        Picture out = resized(two, {two.all(), 1, 4, false, filter});
        EXPECT_NEAR(out.at(0, 0, 0), 0, 1);
        EXPECT_NEAR(out.at(1, 0, 1), 64, 1);
        EXPECT_NEAR(out.at(2, 0, 2), 191, 1);
        EXPECT_NEAR(out.at(3, 0, 0), 255, 1);
    }
}

// B072: width is width.
TEST(ResizeTest, ResizesAlongTheRightAxes) {
    Picture half{40, 20};
    for (std::uint32_t y = 0; y < 20; ++y) {
        for (std::uint32_t x = 20; x < 40; ++x) {
            half.set(x, y, 255);
        }
    }
    Picture out = resized(half, {half.all(), 12, 24});
    ASSERT_EQ(out.pixels.size(), 12u * 24 * 3);
    for (std::uint32_t y = 0; y < 12; ++y) {
        for (std::uint32_t x = 0; x < 24; ++x) {
            if (x <= 10) {
                EXPECT_EQ(out.at(x, y, 0), 0) << x;
            } else if (x >= 13) {
                EXPECT_EQ(out.at(x, y, 0), 255) << x;
            }
        }
    }
}

TEST(ResizeTest, FlatPicturesStayExactlyAsTheyAre) {
    for (const auto& [width, height] :
         {std::pair{1u, 1u}, {2u, 3u}, {17u, 5u}, {3000u, 2u}, {1u, 2500u}, {640u, 480u}}) {
        Picture flat{width, height};
        for (std::size_t i = 0; i < flat.pixels.size(); ++i) {
            flat.pixels[i] = static_cast<std::uint8_t>(i % 3 == 0 ? 255 : i % 3 == 1 ? 1 : 77);
        }
        for (const auto& [out_width, out_height] : {std::pair{1u, 1u}, {3u, 7u}, {224u, 32u}}) {
            for (const Filter filter : {Filter::triangle, Filter::bilinear, Filter::nearest}) {
                const Picture out = resized(flat, {flat.all(), out_height, out_width, false, filter});
                for (std::size_t i = 0; i < out.pixels.size(); ++i) {
                    ASSERT_EQ(out.pixels[i], i % 3 == 0 ? 255 : i % 3 == 1 ? 1 : 77);
                }
            }
        }
    }
}

TEST(ResizeTest, TheSameSizeIsACopy) {
    const Picture picture = noise(33, 17);
    for (const Filter filter : {Filter::triangle, Filter::bilinear, Filter::nearest}) {
        EXPECT_EQ(resized(picture, {picture.all(), 17, 33, false, filter}).pixels, picture.pixels);
    }
}

TEST(ResizeTest, AFlipIsTheExactMirrorImage) {
    const Picture picture = noise(61, 43);
    for (const auto& [width, height] : {std::pair{20u, 10u}, {61u, 43u}, {100u, 90u}, {1u, 1u}}) {
        for (const Filter filter : {Filter::triangle, Filter::bilinear, Filter::nearest}) {
            Picture straight = resized(picture, {{3.5, 2, 50.25, 40}, height, width, false, filter});
            Picture mirrored = resized(picture, {{3.5, 2, 50.25, 40}, height, width, true, filter});
            for (std::uint32_t y = 0; y < height; ++y) {
                for (std::uint32_t x = 0; x < width; ++x) {
                    for (std::uint32_t c = 0; c < 3; ++c) {
                        ASSERT_EQ(straight.at(x, y, c), mirrored.at(width - 1 - x, y, c));
                    }
                }
            }
        }
    }
}

TEST(ResizeTest, NearestTakesThePixelUnderTheCentre) {
    Picture row{4, 1};
    for (std::uint32_t x = 0; x < 4; ++x) {
        row.set(x, 0, static_cast<std::uint8_t>(10 * x));
    }
    Picture out = resized(row, {row.all(), 1, 2, false, Filter::nearest});
    EXPECT_EQ(out.at(0, 0, 0), 10);
    EXPECT_EQ(out.at(1, 0, 0), 30);
    out = resized(row, {row.all(), 3, 8, false, Filter::nearest});
    EXPECT_EQ(out.at(3, 2, 0), 10);
    EXPECT_EQ(out.at(4, 2, 0), 20);
}

/// The definition, in floating point and one pass: what the two passes in integers must stay close to.
double defined(Picture& picture, const Geometry& geometry, std::uint32_t out_x, std::uint32_t out_y,
               std::uint32_t channel) {
    const auto axis = [&geometry](double start, double length, std::uint32_t out, std::uint32_t i, std::uint32_t size) {
        std::vector<double> weights(size, 0);
        const double step = length / out;
        const double reach = geometry.filter == Filter::triangle ? std::max(step, 1.0) : 1;
        const double centre = start + (i + 0.5) * step;
        const double first = geometry.border == Border::box ? std::floor(start) : 0;
        const double last = geometry.border == Border::box ? std::ceil(start + length) : size;
        double total = 0;
        for (std::uint32_t k = 0; k < size; ++k) {
            if (k >= first && k < last) {
                weights[k] = std::max(0.0, 1 - std::fabs(k + 0.5 - centre) / reach);
                total += weights[k];
            }
        }
        for (double& weight : weights) {
            weight /= total;
        }
        return weights;
    };
    const std::vector<double> columns = axis(geometry.box.x, geometry.box.width, geometry.width, out_x, picture.width);
    const std::vector<double> rows = axis(geometry.box.y, geometry.box.height, geometry.height, out_y, picture.height);
    double value = 0;
    for (std::uint32_t y = 0; y < picture.height; ++y) {
        for (std::uint32_t x = 0; x < picture.width; ++x) {
            value += rows[y] * columns[x] * picture.at(x, y, channel);
        }
    }
    return value;
}

TEST(ResizeTest, AgreesWithTheDefinition) {
    Picture picture = noise(37, 29);
    for (const Geometry& geometry :
         {Geometry{{0, 0, 37, 29}, 9, 8}, Geometry{{5, 7, 20, 13}, 40, 45}, Geometry{{2.25, 3.5, 17.5, 21.125}, 7, 30},
          Geometry{{2.25, 3.5, 17.5, 21.125}, 7, 30, false, Filter::triangle, Border::picture},
          Geometry{{5, 7, 20, 13}, 5, 5, false, Filter::triangle, Border::picture},
          Geometry{{0, 0, 37, 29}, 5, 6, false, Filter::bilinear}, Geometry{{36.5, 28.5, 0.25, 0.5}, 3, 3}}) {
        Picture out = resized(picture, geometry);
        for (std::uint32_t y = 0; y < geometry.height; ++y) {
            for (std::uint32_t x = 0; x < geometry.width; ++x) {
                ASSERT_NEAR(out.at(x, y, 1), defined(picture, geometry, x, y, 1), 1.01) << x << " " << y;
            }
        }
    }
}

TEST(ResizeTest, PixelsOutsideTheBoxDoNotCountUnlessAskedFor) {
    Picture picture{30, 30};
    for (std::uint32_t y = 0; y < 30; ++y) {
        for (std::uint32_t x = 0; x < 30; ++x) {
            picture.set(x, y, x >= 10 && x < 20 && y >= 10 && y < 20 ? 100 : 255);
        }
    }
    const Picture own = resized(picture, {{10, 10, 10, 10}, 5, 5});
    EXPECT_TRUE(std::all_of(own.pixels.begin(), own.pixels.end(), [](std::uint8_t value) { return value == 100; }));
    Picture wide = resized(picture, {{10, 10, 10, 10}, 5, 5, false, Filter::triangle, Border::picture});
    EXPECT_GT(wide.at(0, 2, 0), 100);
    EXPECT_EQ(wide.at(2, 2, 0), 100);
}

TEST(ResizeTest, RowsMayHaveAStride) {
    const Picture picture = noise(20, 10);
    Pixels padded(10 * 100, 255);
    for (std::size_t y = 0; y < 10; ++y) {
        std::copy_n(picture.pixels.begin() + static_cast<std::ptrdiff_t>(y * 60), 60,
                    padded.begin() + static_cast<std::ptrdiff_t>(y * 100));
    }
    Pixels out(7 * 6 * 3);
    stoker::ResizeScratch scratch;
    stoker::resize({padded.data(), 20, 10, 100}, {picture.all(), 6, 7}, out.data(), scratch);
    EXPECT_EQ(out, resized(picture, {picture.all(), 6, 7}).pixels);
}

TEST(ResizeTest, AScratchCanBeUsedForAnything) {
    stoker::ResizeScratch scratch;
    const Picture large = noise(300, 200);
    const Picture small = noise(3, 2);
    for (int round = 0; round < 2; ++round) {
        for (const Picture* const picture : {&large, &small}) {
            for (const std::uint32_t side : {1u, 50u, 9u}) {
                Pixels out(std::size_t{side} * side * 3);
                stoker::resize(picture->view(), {picture->all(), side, side}, out.data(), scratch);
                ASSERT_EQ(out, resized(*picture, {picture->all(), side, side}).pixels);
            }
        }
    }
    EXPECT_LT(scratch.size_bytes(), 200'000u);
}

TEST(ResizeTest, GivesTheSameBytesEverywhere) {
    const Picture picture = noise(101, 67);
    const Picture out = resized(picture, {{1.5, 2.25, 90.5, 60}, 23, 31, true});
    std::uint64_t hash = 0xcbf29ce484222325ull;
    for (const std::uint8_t value : out.pixels) {
        hash = (hash ^ value) * 0x100000001b3ull;
    }
    EXPECT_EQ(hash,
              1439589246387868515ull);  // from g++ 12 -O0, equal with -O3 -march=native -ffast-math and with clang 16
}

TEST(ResizeTest, ABoxOutsideThePictureIsRefused) {
    const Picture picture = noise(4, 4);
    Pixels out(3, 9);
    stoker::ResizeScratch scratch;
    EXPECT_THROW(stoker::resize(picture.view(), {{1, 0, 4, 4}, 1, 1}, out.data(), scratch), stoker::OptionError);
    EXPECT_EQ(out, Pixels(3, 9));
}

}  // namespace
