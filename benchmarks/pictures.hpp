// SPDX-License-Identifier: MIT
/// @file
/// Real JPEG files for the benchmarks: a folder that is given, or small ones, rendered into a temporary folder.
#pragma once

#include <stdlib.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <stoker/data/path_list.hpp>
#include <stoker/image/decode.hpp>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#define STB_IMAGE_WRITE_STATIC
#define STBI_WRITE_NO_STDIO
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <stb/stb_image_write.h>
#pragma GCC diagnostic pop

namespace benchmarks {

/// The files of a list, again and again, so that an epoch is as long as a measurement.
class RepeatedFiles {
  public:
    RepeatedFiles(stoker::PathList files, std::uint64_t size) : files_{std::move(files)}, size_{size} {}
    [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
    [[nodiscard]] const std::string& path(std::uint64_t i) const noexcept { return files_.path(i % files_.size()); }
    [[nodiscard]] std::int32_t label(std::uint64_t i) const noexcept { return files_.label(i % files_.size()); }

  private:
    stoker::PathList files_;
    std::uint64_t size_;
};
using PictureSource = stoker::DecodedFiles<RepeatedFiles>;

/// A set of JPEG files. The rendered ones are gone at its end.
class Pictures {
  public:
    static constexpr std::size_t rendered = 64;
    static constexpr int width = 160, height = 120;

    /// `folder`: all JPEG files below it; empty: renders some.
    explicit Pictures(const std::string& folder) : paths_{folder.empty() ? render() : list(folder)} {}
    Pictures(const Pictures&) = delete;
    Pictures& operator=(const Pictures&) = delete;
    ~Pictures() {
        std::error_code ignored;
        if (!temporary_.empty()) {
            std::filesystem::remove_all(temporary_, ignored);
        }
    }

    [[nodiscard]] bool are_rendered() const noexcept { return !temporary_.empty(); }
    /// Pictures per batch so that a batch takes some milliseconds to load.
    [[nodiscard]] std::size_t batch_size() const noexcept { return are_rendered() ? 16 : 4; }
    [[nodiscard]] std::size_t files() const noexcept { return paths_.size(); }

    /// Reads, decodes, crops and resizes `size` pictures per epoch, to 64 x 64 pixels.
    [[nodiscard]] PictureSource source(std::uint64_t size) const {
        return stoker::decode(RepeatedFiles{stoker::PathList{paths_}, size},
                              {.height = 64, .width = 64, .crop = stoker::Crop::random_resized, .flip = 0.5});
    }

  private:
    [[nodiscard]] static std::vector<std::string> list(const std::string& folder) {
        std::vector<std::string> paths;
        for (const auto& entry : std::filesystem::recursive_directory_iterator{folder}) {
            std::string ending = entry.path().extension().string();
            for (char& letter : ending) {
                letter = static_cast<char>(letter | 0x20);
            }
            if (entry.is_regular_file() && (ending == ".jpg" || ending == ".jpeg")) {
                paths.push_back(entry.path().string());
            }
        }
        if (paths.empty()) {
            throw std::runtime_error{"there is no JPEG file below " + folder};
        }
        std::sort(paths.begin(), paths.end());
        return paths;
    }

    [[nodiscard]] std::vector<std::string> render() {
        temporary_ = (std::filesystem::temp_directory_path() / "stoker-benchmark-XXXXXX").string();
        if (::mkdtemp(temporary_.data()) == nullptr) {
            throw std::runtime_error{"cannot make the folder " + temporary_};
        }
        std::vector<std::string> paths;
        std::vector<std::uint8_t> pixels(std::size_t{width} * height * 3);
        for (std::size_t n = 0; n < rendered; ++n) {
            stoker::Random random{1, 0, n};
            const double fx = random.uniform(0.02, 0.2), fy = random.uniform(0.02, 0.2),
                         phase = random.uniform(0, 6.28);
            std::size_t at = 0;
            for (int y = 0; y < height; ++y) {
                for (int x = 0; x < width; ++x) {
                    for (int c = 0; c < 3; ++c) {
                        const double wave = std::sin(fx * x + phase + c) * std::cos(fy * y - phase);
                        pixels[at++] = static_cast<std::uint8_t>(128.0 + 100.0 * wave + random.uniform(-20, 20));
                    }
                }
            }
            paths.push_back(temporary_ + "/" + std::to_string(n) + ".jpg");
            std::ofstream file{paths.back(), std::ios::binary};
            const auto write = [](void* to, void* data, int size) {
                static_cast<std::ofstream*>(to)->write(static_cast<const char*>(data), size);
            };
            if (stbi_write_jpg_to_func(write, &file, width, height, 3, pixels.data(), 85) == 0 || !file.flush()) {
                throw std::runtime_error{"cannot write " + paths.back()};
            }
        }
        return paths;
    }

    std::string temporary_;  // before paths_, which sets it
    std::vector<std::string> paths_;
};

/// The folder that the environment names, or empty.
[[nodiscard]] inline std::string data_folder() {
    const char* const folder = std::getenv("STOKER_BENCH_DATA");
    return folder == nullptr ? std::string{} : std::string{folder};
}

}  // namespace benchmarks
