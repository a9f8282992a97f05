// stb_image_write, in a translation unit of its own.
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wshadow"
#endif
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#include <stb/stb_image_write.h>
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#include "pictures.hpp"

bool pictures::write(const std::filesystem::path& path, const std::vector<std::uint8_t>& rgb, int edge) {
    return path.extension() == ".jpg" ? stbi_write_jpg(path.c_str(), edge, edge, 3, rgb.data(), 90) != 0
                                      : stbi_write_png(path.c_str(), edge, edge, 3, rgb.data(), 3 * edge) != 0;
}
