// SPDX-License-Identifier: MIT
#include <stoker/image/geometry.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace {

using stoker::Box;
using stoker::Random;

bool is_inside(const Box& box, std::uint32_t width, std::uint32_t height) {
    return box.x >= 0 && box.y >= 0 && box.width > 0 && box.height > 0 && box.x + box.width <= width &&
           box.y + box.height <= height;
}

TEST(GeometryTest, LogarithmAndExponentialAgreeWithTheLibrary) {
    for (double x = 0.001; x < 1000; x *= 1.37) {
        EXPECT_NEAR(stoker::detail::exact_log(x), std::log(x), 4e-15) << x;
    }
    for (double x = -7; x < 7; x += 0.171) {
        EXPECT_NEAR(stoker::detail::exact_exp(x) / std::exp(x), 1, 4e-15) << x;
    }
    EXPECT_EQ(stoker::detail::exact_log(1), 0);
    EXPECT_EQ(stoker::detail::exact_exp(0), 1);
}

TEST(GeometryTest, RoundsHalvesToEven) {
    EXPECT_EQ(stoker::detail::round_to_even(0.5), 0);
    EXPECT_EQ(stoker::detail::round_to_even(1.5), 2);
    EXPECT_EQ(stoker::detail::round_to_even(2.5), 2);
    EXPECT_EQ(stoker::detail::round_to_even(2.51), 3);
}

// B067: the aspect ratio stays in its range, fallback included.
TEST(GeometryTest, RandomCropKeepsItsAspectRatio) {
    for (std::uint64_t i = 0; i < 10'000; ++i) {
        Random random{1, 0, i};
        const Box box = stoker::random_resized_crop(500, 400, {0.08, 1}, {0.75, 0.75}, random);
        ASSERT_TRUE(is_inside(box, 500, 400));
        ASSERT_LE(std::fabs(box.width - 0.75 * box.height), 1);
        ASSERT_EQ(box.x, std::floor(box.x));
        ASSERT_EQ(box.width, std::floor(box.width));
    }
}

// B068: tall and wide crops are equally likely.
TEST(GeometryTest, RandomCropDrawsTheRatioOnALogarithmicScale) {
    std::vector<double> ratios;
    int wide = 0;
    constexpr int draws = 20'000;
    for (std::uint64_t i = 0; i < draws; ++i) {
        Random random{2, 0, i};
        const Box box = stoker::random_resized_crop(1000, 1000, {0.08, 0.3}, {0.5, 2}, random);
        wide += box.width > box.height ? 1 : 0;
        ratios.push_back(box.width / box.height);
    }
    EXPECT_GT(wide, 0.47 * draws);
    EXPECT_LT(wide, 0.53 * draws);
    std::nth_element(ratios.begin(), ratios.begin() + draws / 2, ratios.end());
    EXPECT_GT(ratios[draws / 2], 0.95);
    EXPECT_LT(ratios[draws / 2], 1.05);
}

// B070: no crop fits, so the box in the middle is taken.
TEST(GeometryTest, RandomCropFallsBackToTheMiddle) {
    for (std::uint64_t i = 0; i < 1000; ++i) {
        Random random{3, 0, i};
        EXPECT_EQ(stoker::random_resized_crop(10, 1000, {0.9, 1}, {1, 1}, random), (Box{0, 495, 10, 10}));
    }
    Random random{3, 0, 0};
    EXPECT_EQ(stoker::random_resized_crop(1000, 10, {0.9, 1}, {1, 2}, random), (Box{490, 0, 20, 10}));
}

TEST(GeometryTest, RandomCropFitsAnyPicture) {
    const std::vector<std::uint32_t> sides{1, 2, 3, 7, 31, 500, 65'535};
    for (const std::uint32_t width : sides) {
        for (const std::uint32_t height : sides) {
            for (std::uint64_t i = 0; i < 50; ++i) {
                Random random{4, 0, i};
                ASSERT_TRUE(is_inside(stoker::random_resized_crop(width, height, {0.08, 1}, {0.75, 4.0 / 3}, random),
                                      width, height));
                ASSERT_TRUE(is_inside(stoker::random_resized_crop(width, height, {1e-9, 1}, {0.001, 1000}, random),
                                      width, height));
            }
        }
    }
}

TEST(GeometryTest, RandomCropIsAFunctionOfItsDraws) {
    Random first{5, 1, 7};
    Random second{5, 1, 7};
    EXPECT_EQ(stoker::random_resized_crop(640, 480, {0.08, 1}, {0.75, 4.0 / 3}, first),
              stoker::random_resized_crop(640, 480, {0.08, 1}, {0.75, 4.0 / 3}, second));
    EXPECT_EQ(first.bits(), second.bits());
}

TEST(GeometryTest, RandomCropCoversItsRange) {
    double smallest = 1;
    double largest = 0;
    for (std::uint64_t i = 0; i < 5000; ++i) {
        Random random{6, 0, i};
        const Box box = stoker::random_resized_crop(1000, 1000, {0.1, 0.5}, {0.9, 1.1}, random);
        smallest = std::min(smallest, box.width * box.height / 1e6);
        largest = std::max(largest, box.width * box.height / 1e6);
    }
    EXPECT_NEAR(smallest, 0.1, 0.005);
    EXPECT_NEAR(largest, 0.5, 0.005);
}

TEST(GeometryTest, CentreCropIsResizeThenCropAsOneBox) {
    // 500 x 375 becomes 341 x 256; the corners are (341 - 224) / 2 = 58.5, rounded to 58, and 16.
    const Box box = stoker::centre_crop(500, 375, 224, 224, 256);
    EXPECT_NEAR(box.x, 58.0 * 500 / 341, 1e-9);
    EXPECT_NEAR(box.y, 16.0 * 375 / 256, 1e-9);
    EXPECT_NEAR(box.width, 224.0 * 500 / 341, 1e-9);
    EXPECT_NEAR(box.height, 224.0 * 375 / 256, 1e-9);
    EXPECT_EQ(stoker::centre_crop(256, 256, 224, 224, 256), (Box{16, 16, 224, 224}));
    EXPECT_EQ(stoker::centre_crop(7, 9, 7, 7, 7), (Box{0, 1, 7, 7}));
    for (std::uint32_t width = 1; width < 60; ++width) {
        for (std::uint32_t height = 1; height < 60; ++height) {
            ASSERT_TRUE(is_inside(stoker::centre_crop(width, height, 13, 11, 16), width, height))
                << width << " " << height;
            ASSERT_TRUE(is_inside(stoker::centre_crop(width, height, 16, 16, 16), width, height))
                << width << " " << height;
        }
    }
}

TEST(GeometryTest, CentreFitKeepsTheShape) {
    EXPECT_EQ(stoker::centre_fit(500, 375, 224, 224), (Box{62.5, 0, 375, 375}));
    EXPECT_EQ(stoker::centre_fit(375, 500, 224, 224), (Box{0, 62.5, 375, 375}));
    EXPECT_EQ(stoker::centre_fit(40, 20, 24, 12), (Box{0, 0, 40, 20}));
    for (std::uint32_t width = 1; width < 50; ++width) {
        for (std::uint32_t height = 1; height < 50; ++height) {
            ASSERT_TRUE(is_inside(stoker::centre_fit(width, height, 7, 3), width, height));
        }
    }
}

TEST(GeometryTest, WholePictureIsAllOfIt) { EXPECT_EQ(stoker::whole_picture(3, 2), (Box{0, 0, 3, 2})); }

// B133: what cannot work is refused, with the option's name, its value and what is allowed.
TEST(GeometryTest, RangesAreChecked) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const auto message = [](auto&& call) -> std::string {
        try {
            call();
        } catch (const stoker::OptionError& error) {
            return error.what();
        }
        return "accepted";
    };
    EXPECT_EQ(message([] {
                  stoker::check_ratio({2, 1});
              }),
              "cannot use the option ratio = (2, 1): allowed is 0.001 <= low <= high <= 1000, as width / height");
    const std::string scale = message([nan] { stoker::check_scale({nan, 1}); });
    EXPECT_NE(scale.find("scale = (nan, 1)"), std::string::npos) << scale;
    EXPECT_NE(scale.find("0 < low <= high <= 1"), std::string::npos) << scale;
    EXPECT_NE(message([nan] { stoker::check_scale({0.1, nan}); }), "accepted");
    EXPECT_NE(message([] { stoker::check_scale({0, 1}); }), "accepted");
    EXPECT_NE(message([] { stoker::check_scale({0.5, 1.5}); }), "accepted");
    EXPECT_NE(message([nan] { stoker::check_ratio({1, nan}); }), "accepted");
    EXPECT_EQ(message([] { stoker::check_scale({1, 1}); }), "accepted");
    EXPECT_NE(message([] { stoker::check_geometry({{0, 0, 11, 10}, 1, 1}, 10, 10); }), "accepted");
    EXPECT_NE(message([nan] { stoker::check_geometry({{nan, 0, 5, 5}, 1, 1}, 10, 10); }), "accepted");
    EXPECT_NE(message([] { stoker::check_geometry({{0, 0, 5, 0}, 1, 1}, 10, 10); }), "accepted");
    EXPECT_NE(message([] { stoker::check_geometry({{0, 0, 5, 5}, 0, 1}, 10, 10); }), "accepted");
    EXPECT_EQ(message([] { stoker::check_geometry({{5, 5, 5, 5}, 1, 1}, 10, 10); }), "accepted");
}

}  // namespace
