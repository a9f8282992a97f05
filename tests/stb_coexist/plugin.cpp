// SPDX-License-Identifier: MIT
// A shared object with the decoder inside, and with a copy of stb_image of its own that flips everything: built twice,
// opened late.
#define STB_IMAGE_IMPLEMENTATION
#include <stb/stb_image.h>

#include "coexist.hpp"

extern "C" [[gnu::visibility("default")]] int plugin_is_upright() {
    stbi_set_flip_vertically_on_load(1);
    return coexist::is_upright();
}
