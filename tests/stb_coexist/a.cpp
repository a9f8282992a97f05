// SPDX-License-Identifier: MIT
// Ours first, then the application's own stb_image, with its code.
#include <stoker/image/stb_decoder.hpp>

#define STB_IMAGE_IMPLEMENTATION
#define STBI_FAILURE_USERMSG
#include <stb/stb_image.h>

#include "coexist.hpp"

#ifndef STB_IMAGE_IMPLEMENTATION
#error "a macro of the application is gone"
#endif
#ifdef STB_IMAGE_STATIC
#error "a macro of ours is left"
#endif

namespace coexist {
int a_is_upright() { return is_upright(); }
int application_is_upright() {
    int width = 0;
    int height = 0;
    int channels = 0;
    const std::vector<std::uint8_t> file = two_halves();
    stbi_uc* const pixels =
        stbi_load_from_memory(file.data(), static_cast<int>(file.size()), &width, &height, &channels, 3);
    if (pixels == nullptr) {
        return -1;
    }
    const int upright = pixels[0] == 255;
    stbi_image_free(pixels);
    return upright;
}
void application_flips(bool flips) { stbi_set_flip_vertically_on_load(flips ? 1 : 0); }
const char* application_reason() {
    int width = 0;
    const unsigned char none[1] = {0};
    stbi_load_from_memory(none, 1, &width, &width, &width, 3);
    return stbi_failure_reason();
}
}  // namespace coexist
