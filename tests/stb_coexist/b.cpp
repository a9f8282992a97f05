// SPDX-License-Identifier: MIT
// The application's stb_image first, declarations only, with macros of its own that would change ours; then ours.
#define STBI_NO_PNG
#define STBI_NO_THREAD_LOCALS
#define STBI_MAX_DIMENSIONS 4
#define STBI_ASSERT(x) this would not compile
#define FAST_BITS nonsense
#include <stb/stb_image.h>

#include <stoker/image/stb_decoder.hpp>

#include "coexist.hpp"

#if !defined(STBI_NO_PNG) || STBI_MAX_DIMENSIONS != 4 || !defined(FAST_BITS) || !defined(STBI_INCLUDE_STB_IMAGE_H)
#error "a macro of the application is gone"
#endif

namespace coexist {
int b_is_upright() { return is_upright(); }
}  // namespace coexist
