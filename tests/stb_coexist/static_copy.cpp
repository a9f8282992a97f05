// SPDX-License-Identifier: MIT
// A static copy of the application's in one translation unit with ours, its code before ours.
#include <cassert>
#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#pragma GCC diagnostic ignored "-Wunused-function"
#include <stb/stb_image.h>

#include <stoker/image/stb_decoder.hpp>

#include "coexist.hpp"

namespace coexist {
int static_copy_is_upright() {
    stbi_set_flip_vertically_on_load(1);
    return is_upright();
}
}  // namespace coexist
