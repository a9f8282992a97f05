// Renders a small data set of real picture files, so that a new user sees the trainer work at once.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <stoker/random.hpp>

namespace pictures {

constexpr std::array<const char*, 5> classes{"board", "columns", "disc", "ring", "rows"};

/// 1 inside the shape, 0 outside, at (x, y) in [-1, 1]^2.
inline bool is_inside(std::size_t shape, double x, double y, double period) {
    const double radius = std::sqrt(x * x + y * y);
    const auto stripe = [period](double v) { return std::fmod(v + 4.0, 2.0 * period) < period; };
    switch (shape) {
        case 0: return stripe(x) != stripe(y);
        case 1: return stripe(x);
        case 2: return radius < 0.6;
        case 3: return radius < 0.75 && radius > 0.45;
        default: return stripe(y);
    }
}

/// Writes rgb8 pixels as a PNG or, where `path` ends in .jpg, a JPEG file; see pictures.cpp.
bool write(const std::filesystem::path& path, const std::vector<std::uint8_t>& rgb, int edge);

/// Renders `per_class` pictures of every class into a folder below `out` that no other set of pictures uses, unless
/// they are there already. @return that folder
inline std::filesystem::path render(const std::filesystem::path& out, std::uint64_t per_class, std::uint64_t seed) {
    const std::filesystem::path complete =
        out / ("rendered-" + std::to_string(per_class) + "-seed-" + std::to_string(seed));
    if (std::filesystem::exists(complete)) {
        std::printf("the rendered pictures in %s are used again\n", complete.c_str());
        return complete;
    }
    const std::filesystem::path folder = complete.string() + ".part";  // it gets its name when it is complete
    std::printf("rendering %zu x %llu pictures into %s\n", classes.size(), static_cast<unsigned long long>(per_class),
                complete.c_str());
    std::fflush(stdout);
    std::filesystem::remove_all(folder);
    constexpr int edge = 64;
    for (std::size_t shape = 0; shape < classes.size(); ++shape) {
        std::filesystem::create_directories(folder / classes[shape]);
        for (std::uint64_t n = 0; n < per_class; ++n) {
            stoker::Random random{seed, shape, n};
            std::array<double, 3> ink{}, paper{};
            for (int c = 0; c < 3; ++c) {
                ink[static_cast<std::size_t>(c)] = random.uniform(0, 110);
                paper[static_cast<std::size_t>(c)] = random.uniform(145, 255);
            }
            if (random.chance(0.5)) {
                std::swap(ink, paper);
            }
            const double shift_x = random.uniform(-0.2, 0.2), shift_y = random.uniform(-0.2, 0.2);
            const double zoom = random.uniform(0.85, 1.2), period = random.uniform(0.2, 0.35);
            std::vector<std::uint8_t> rgb;
            for (int y = 0; y < edge; ++y) {
                for (int x = 0; x < edge; ++x) {
                    const bool is_ink = is_inside(shape, zoom * (2.0 * x / edge - 1.0) + shift_x,
                                                  zoom * (2.0 * y / edge - 1.0) + shift_y, period);
                    for (std::size_t c = 0; c < 3; ++c) {
                        const double value = (is_ink ? ink[c] : paper[c]) + random.uniform(-25, 25);
                        rgb.push_back(static_cast<std::uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value));
                    }
                }
            }
            char name[32];
            std::snprintf(name, sizeof name, "%05llu.%s", static_cast<unsigned long long>(n),
                          n % 2 == 0 ? "jpg" : "png");
            if (!write(folder / classes[shape] / name, rgb, edge)) {
                throw std::runtime_error{"cannot write \"" + (folder / classes[shape] / name).string() + "\""};
            }
        }
    }
    std::filesystem::rename(folder, complete);
    return complete;
}

}  // namespace pictures
