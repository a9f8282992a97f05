// SPDX-License-Identifier: MIT
// The only file with stb_image_write, which comes from the package libstb-dev.
#include "jpeg.hpp"

#include <stdexcept>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#define STB_IMAGE_WRITE_STATIC
#define STBI_WRITE_NO_STDIO
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <stb/stb_image_write.h>

namespace testing_support {

std::vector<std::uint8_t> jpeg_file(int width, int height, int channels, const std::vector<std::uint8_t>& pixels,
                                    int quality) {
    std::vector<std::uint8_t> file;
    const auto add = [](void* context, void* data, int size) {
        auto& target = *static_cast<std::vector<std::uint8_t>*>(context);
        const auto* const bytes = static_cast<const std::uint8_t*>(data);
        target.insert(target.end(), bytes, bytes + size);
    };
    if (stbi_write_jpg_to_func(add, &file, width, height, channels, pixels.data(), quality) == 0) {
        throw std::runtime_error{"cannot write a JPEG"};
    }
    return file;
}

}  // namespace testing_support
#pragma GCC diagnostic pop
