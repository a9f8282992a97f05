// SPDX-License-Identifier: MIT
/// @file
/// stb_image, closed in: nothing of an application's own copy, of its macros or of its flags reaches this one, or the
/// other way round. The only file that includes stb_image.h.
///
/// How: the headers that stb_image includes come first, outside our namespace. Every macro that it defines or tests is
/// saved, undefined and restored afterwards. Its public functions are extern "C", and so would meet the application's
/// even as static members of a namespace: each gets a name of ours. Its own state (failure text, flags) is static, per
/// translation unit: therefore one function here does all that touches it.
#pragma once

#if !__has_include(<stb/stb_image.h>)
#error \
    "stoker's pictures need <stb/stb_image.h>: install the package libstb-dev (Debian, Ubuntu), or include <stoker/core.hpp>"
#endif

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#include <cstddef>
#include <cstdint>
#include <span>

#include <stoker/image/decoder.hpp>

namespace stoker {
inline namespace v0 {
namespace detail {

/// Thrown in place of a failed assertion inside stb_image.
struct StbAssertion {};

/// What one call of stb_image says.
struct StbPicture {
    const std::uint8_t* pixels = nullptr;  // RGB, without padding, in the heap until its `end`; null on failure
    std::uint32_t width = 0;
    std::uint32_t height = 0;
    const char* reason = nullptr;  // static text; on failure
};

/// The heap of the decode that this thread is in.
[[gnu::visibility("hidden")]] inline constinit thread_local DecodeHeap* stb_heap = nullptr;

[[gnu::visibility("hidden")]] inline void* stb_allocate(std::size_t size) { return stb_heap->allocate(size); }
[[gnu::visibility("hidden")]] inline void* stb_reallocate(void* memory, std::size_t size) {
    return stb_heap->reallocate(memory, size);
}
[[gnu::visibility("hidden")]] inline void stb_free(void* memory) noexcept { stb_heap->free(memory); }
[[gnu::visibility("hidden"), noreturn]] inline void stb_assertion() { throw StbAssertion{}; }

}  // namespace detail
}  // namespace v0
}  // namespace stoker

// ---- Every macro of stb_image.h, saved -----------------------------------------------------------------------------
#pragma push_macro("FAST_BITS")
#undef FAST_BITS
#pragma push_macro("STBIDEF")
#undef STBIDEF
#pragma push_macro("STBI_ASSERT")
#undef STBI_ASSERT
#pragma push_macro("STBI_BUFFER_SIZE")
#undef STBI_BUFFER_SIZE
#pragma push_macro("STBI_EXTERN")
#undef STBI_EXTERN
#pragma push_macro("STBI_FAILURE_USERMSG")
#undef STBI_FAILURE_USERMSG
#pragma push_macro("STBI_FREE")
#undef STBI_FREE
#pragma push_macro("STBI_HAS_LROTL")
#undef STBI_HAS_LROTL
#pragma push_macro("STBI_INCLUDE_STB_IMAGE_H")
#undef STBI_INCLUDE_STB_IMAGE_H
#pragma push_macro("STBI_MALLOC")
#undef STBI_MALLOC
#pragma push_macro("STBI_MAX_DIMENSIONS")
#undef STBI_MAX_DIMENSIONS
#pragma push_macro("STBI_MINGW_ENABLE_SSE2")
#undef STBI_MINGW_ENABLE_SSE2
#pragma push_macro("STBI_NEON")
#undef STBI_NEON
#pragma push_macro("STBI_NOTUSED")
#undef STBI_NOTUSED
#pragma push_macro("STBI_NO_BMP")
#undef STBI_NO_BMP
#pragma push_macro("STBI_NO_FAILURE_STRINGS")
#undef STBI_NO_FAILURE_STRINGS
#pragma push_macro("STBI_NO_GIF")
#undef STBI_NO_GIF
#pragma push_macro("STBI_NO_HDR")
#undef STBI_NO_HDR
#pragma push_macro("STBI_NO_JPEG")
#undef STBI_NO_JPEG
#pragma push_macro("STBI_NO_LINEAR")
#undef STBI_NO_LINEAR
#pragma push_macro("STBI_NO_PIC")
#undef STBI_NO_PIC
#pragma push_macro("STBI_NO_PNG")
#undef STBI_NO_PNG
#pragma push_macro("STBI_NO_PNM")
#undef STBI_NO_PNM
#pragma push_macro("STBI_NO_PSD")
#undef STBI_NO_PSD
#pragma push_macro("STBI_NO_SIMD")
#undef STBI_NO_SIMD
#pragma push_macro("STBI_NO_STDIO")
#undef STBI_NO_STDIO
#pragma push_macro("STBI_NO_TGA")
#undef STBI_NO_TGA
#pragma push_macro("STBI_NO_THREAD_LOCALS")
#undef STBI_NO_THREAD_LOCALS
#pragma push_macro("STBI_NO_ZLIB")
#undef STBI_NO_ZLIB
#pragma push_macro("STBI_ONLY_BMP")
#undef STBI_ONLY_BMP
#pragma push_macro("STBI_ONLY_GIF")
#undef STBI_ONLY_GIF
#pragma push_macro("STBI_ONLY_HDR")
#undef STBI_ONLY_HDR
#pragma push_macro("STBI_ONLY_JPEG")
#undef STBI_ONLY_JPEG
#pragma push_macro("STBI_ONLY_PIC")
#undef STBI_ONLY_PIC
#pragma push_macro("STBI_ONLY_PNG")
#undef STBI_ONLY_PNG
#pragma push_macro("STBI_ONLY_PNM")
#undef STBI_ONLY_PNM
#pragma push_macro("STBI_ONLY_PSD")
#undef STBI_ONLY_PSD
#pragma push_macro("STBI_ONLY_TGA")
#undef STBI_ONLY_TGA
#pragma push_macro("STBI_ONLY_ZLIB")
#undef STBI_ONLY_ZLIB
#pragma push_macro("STBI_REALLOC")
#undef STBI_REALLOC
#pragma push_macro("STBI_REALLOC_SIZED")
#undef STBI_REALLOC_SIZED
#pragma push_macro("STBI_SIMD_ALIGN")
#undef STBI_SIMD_ALIGN
#pragma push_macro("STBI_SSE2")
#undef STBI_SSE2
#pragma push_macro("STBI_SUPPORT_ZLIB")
#undef STBI_SUPPORT_ZLIB
#pragma push_macro("STBI_THREAD_LOCAL")
#undef STBI_THREAD_LOCAL
#pragma push_macro("STBI_VERSION")
#undef STBI_VERSION
#pragma push_macro("STBI_WINDOWS_UTF8")
#undef STBI_WINDOWS_UTF8
#pragma push_macro("STBI__ASNEEDED")
#undef STBI__ASNEEDED
#pragma push_macro("STBI__BYTECAST")
#undef STBI__BYTECAST
#pragma push_macro("STBI__CASE")
#undef STBI__CASE
#pragma push_macro("STBI__COMBO")
#undef STBI__COMBO
#pragma push_macro("STBI__HDR_BUFLEN")
#undef STBI__HDR_BUFLEN
#pragma push_macro("STBI__IDCT_1D")
#undef STBI__IDCT_1D
#pragma push_macro("STBI__MARKER_none")
#undef STBI__MARKER_none
#pragma push_macro("STBI__PNG_TYPE")
#undef STBI__PNG_TYPE
#pragma push_macro("STBI__RESTART")
#undef STBI__RESTART
#pragma push_macro("STBI__X64_TARGET")
#undef STBI__X64_TARGET
#pragma push_macro("STBI__X86_TARGET")
#undef STBI__X86_TARGET
#pragma push_macro("STBI__ZFAST_BITS")
#undef STBI__ZFAST_BITS
#pragma push_macro("STBI__ZFAST_MASK")
#undef STBI__ZFAST_MASK
#pragma push_macro("STBI__ZNSYMS")
#undef STBI__ZNSYMS
#pragma push_macro("STB_IMAGE_IMPLEMENTATION")
#undef STB_IMAGE_IMPLEMENTATION
#pragma push_macro("STB_IMAGE_STATIC")
#undef STB_IMAGE_STATIC
#pragma push_macro("dct_bfly32o")
#undef dct_bfly32o
#pragma push_macro("dct_const")
#undef dct_const
#pragma push_macro("dct_interleave16")
#undef dct_interleave16
#pragma push_macro("dct_interleave8")
#undef dct_interleave8
#pragma push_macro("dct_long_mac")
#undef dct_long_mac
#pragma push_macro("dct_long_mul")
#undef dct_long_mul
#pragma push_macro("dct_pass")
#undef dct_pass
#pragma push_macro("dct_rot")
#undef dct_rot
#pragma push_macro("dct_trn16")
#undef dct_trn16
#pragma push_macro("dct_trn32")
#undef dct_trn32
#pragma push_macro("dct_trn64")
#undef dct_trn64
#pragma push_macro("dct_trn8_16")
#undef dct_trn8_16
#pragma push_macro("dct_trn8_32")
#undef dct_trn8_32
#pragma push_macro("dct_trn8_8")
#undef dct_trn8_8
#pragma push_macro("dct_wadd")
#undef dct_wadd
#pragma push_macro("dct_widen")
#undef dct_widen
#pragma push_macro("dct_wsub")
#undef dct_wsub
#pragma push_macro("stbi__DNL")
#undef stbi__DNL
#pragma push_macro("stbi__EOI")
#undef stbi__EOI
#pragma push_macro("stbi__SOF")
#undef stbi__SOF
#pragma push_macro("stbi__SOF_progressive")
#undef stbi__SOF_progressive
#pragma push_macro("stbi__SOI")
#undef stbi__SOI
#pragma push_macro("stbi__SOS")
#undef stbi__SOS
#pragma push_macro("stbi__de_iphone_flag")
#undef stbi__de_iphone_flag
#pragma push_macro("stbi__div16")
#undef stbi__div16
#pragma push_macro("stbi__div4")
#undef stbi__div4
#pragma push_macro("stbi__err")
#undef stbi__err
#pragma push_macro("stbi__errpf")
#undef stbi__errpf
#pragma push_macro("stbi__errpuc")
#undef stbi__errpuc
#pragma push_macro("stbi__f2f")
#undef stbi__f2f
#pragma push_macro("stbi__float2fixed")
#undef stbi__float2fixed
#pragma push_macro("stbi__float2int")
#undef stbi__float2int
#pragma push_macro("stbi__fsh")
#undef stbi__fsh
#pragma push_macro("stbi__unpremultiply_on_load")
#undef stbi__unpremultiply_on_load
#pragma push_macro("stbi__unpremultiply_on_load_thread")
#undef stbi__unpremultiply_on_load_thread
#pragma push_macro("stbi__vertically_flip_on_load")
#undef stbi__vertically_flip_on_load
#pragma push_macro("stbi_convert_iphone_png_to_rgb")
#undef stbi_convert_iphone_png_to_rgb
#pragma push_macro("stbi_convert_iphone_png_to_rgb_thread")
#undef stbi_convert_iphone_png_to_rgb_thread
#pragma push_macro("stbi_convert_wchar_to_utf8")
#undef stbi_convert_wchar_to_utf8
#pragma push_macro("stbi_failure_reason")
#undef stbi_failure_reason
#pragma push_macro("stbi_hdr_to_ldr_gamma")
#undef stbi_hdr_to_ldr_gamma
#pragma push_macro("stbi_hdr_to_ldr_scale")
#undef stbi_hdr_to_ldr_scale
#pragma push_macro("stbi_image_free")
#undef stbi_image_free
#pragma push_macro("stbi_info")
#undef stbi_info
#pragma push_macro("stbi_info_from_callbacks")
#undef stbi_info_from_callbacks
#pragma push_macro("stbi_info_from_file")
#undef stbi_info_from_file
#pragma push_macro("stbi_info_from_memory")
#undef stbi_info_from_memory
#pragma push_macro("stbi_inline")
#undef stbi_inline
#pragma push_macro("stbi_is_16_bit")
#undef stbi_is_16_bit
#pragma push_macro("stbi_is_16_bit_from_callbacks")
#undef stbi_is_16_bit_from_callbacks
#pragma push_macro("stbi_is_16_bit_from_file")
#undef stbi_is_16_bit_from_file
#pragma push_macro("stbi_is_16_bit_from_memory")
#undef stbi_is_16_bit_from_memory
#pragma push_macro("stbi_is_hdr")
#undef stbi_is_hdr
#pragma push_macro("stbi_is_hdr_from_callbacks")
#undef stbi_is_hdr_from_callbacks
#pragma push_macro("stbi_is_hdr_from_file")
#undef stbi_is_hdr_from_file
#pragma push_macro("stbi_is_hdr_from_memory")
#undef stbi_is_hdr_from_memory
#pragma push_macro("stbi_ldr_to_hdr_gamma")
#undef stbi_ldr_to_hdr_gamma
#pragma push_macro("stbi_ldr_to_hdr_scale")
#undef stbi_ldr_to_hdr_scale
#pragma push_macro("stbi_load")
#undef stbi_load
#pragma push_macro("stbi_load_16")
#undef stbi_load_16
#pragma push_macro("stbi_load_16_from_callbacks")
#undef stbi_load_16_from_callbacks
#pragma push_macro("stbi_load_16_from_memory")
#undef stbi_load_16_from_memory
#pragma push_macro("stbi_load_from_callbacks")
#undef stbi_load_from_callbacks
#pragma push_macro("stbi_load_from_file")
#undef stbi_load_from_file
#pragma push_macro("stbi_load_from_file_16")
#undef stbi_load_from_file_16
#pragma push_macro("stbi_load_from_memory")
#undef stbi_load_from_memory
#pragma push_macro("stbi_load_gif_from_memory")
#undef stbi_load_gif_from_memory
#pragma push_macro("stbi_loadf")
#undef stbi_loadf
#pragma push_macro("stbi_loadf_from_callbacks")
#undef stbi_loadf_from_callbacks
#pragma push_macro("stbi_loadf_from_file")
#undef stbi_loadf_from_file
#pragma push_macro("stbi_loadf_from_memory")
#undef stbi_loadf_from_memory
#pragma push_macro("stbi_lrot")
#undef stbi_lrot
#pragma push_macro("stbi_set_flip_vertically_on_load")
#undef stbi_set_flip_vertically_on_load
#pragma push_macro("stbi_set_flip_vertically_on_load_thread")
#undef stbi_set_flip_vertically_on_load_thread
#pragma push_macro("stbi_set_unpremultiply_on_load")
#undef stbi_set_unpremultiply_on_load
#pragma push_macro("stbi_set_unpremultiply_on_load_thread")
#undef stbi_set_unpremultiply_on_load_thread
#pragma push_macro("stbi_zlib_compress")
#undef stbi_zlib_compress
#pragma push_macro("stbi_zlib_decode_buffer")
#undef stbi_zlib_decode_buffer
#pragma push_macro("stbi_zlib_decode_malloc")
#undef stbi_zlib_decode_malloc
#pragma push_macro("stbi_zlib_decode_malloc_guesssize")
#undef stbi_zlib_decode_malloc_guesssize
#pragma push_macro("stbi_zlib_decode_malloc_guesssize_headerflag")
#undef stbi_zlib_decode_malloc_guesssize_headerflag
#pragma push_macro("stbi_zlib_decode_noheader_buffer")
#undef stbi_zlib_decode_noheader_buffer
#pragma push_macro("stbi_zlib_decode_noheader_malloc")
#undef stbi_zlib_decode_noheader_malloc
// ---- Our settings --------------------------------------------------------------------------------------------------
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_NO_STDIO
#define STBI_NO_LINEAR
#define STBI_NO_HDR
#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
#define STBI_ONLY_BMP
#define STBI_MALLOC(size) ::stoker::v0::detail::stb_allocate(size)
#define STBI_REALLOC(memory, size) ::stoker::v0::detail::stb_reallocate(memory, size)
#define STBI_FREE(memory) ::stoker::v0::detail::stb_free(memory)
#define STBI_ASSERT(condition) ((condition) ? (void)0 : ::stoker::v0::detail::stb_assertion())
#if defined(__ARM_NEON)
#define STBI_NEON
#endif

// ---- Its public functions, under names of ours ---------------------------------------------------------------------
#define stbi__unpremultiply_on_load_thread stoker_v0_stbi__unpremultiply_on_load_thread
#define stbi_convert_iphone_png_to_rgb stoker_v0_stbi_convert_iphone_png_to_rgb
#define stbi_convert_iphone_png_to_rgb_thread stoker_v0_stbi_convert_iphone_png_to_rgb_thread
#define stbi_convert_wchar_to_utf8 stoker_v0_stbi_convert_wchar_to_utf8
#define stbi_failure_reason stoker_v0_stbi_failure_reason
#define stbi_hdr_to_ldr_gamma stoker_v0_stbi_hdr_to_ldr_gamma
#define stbi_hdr_to_ldr_scale stoker_v0_stbi_hdr_to_ldr_scale
#define stbi_image_free stoker_v0_stbi_image_free
#define stbi_info stoker_v0_stbi_info
#define stbi_info_from_callbacks stoker_v0_stbi_info_from_callbacks
#define stbi_info_from_file stoker_v0_stbi_info_from_file
#define stbi_info_from_memory stoker_v0_stbi_info_from_memory
#define stbi_is_16_bit stoker_v0_stbi_is_16_bit
#define stbi_is_16_bit_from_callbacks stoker_v0_stbi_is_16_bit_from_callbacks
#define stbi_is_16_bit_from_file stoker_v0_stbi_is_16_bit_from_file
#define stbi_is_16_bit_from_memory stoker_v0_stbi_is_16_bit_from_memory
#define stbi_is_hdr stoker_v0_stbi_is_hdr
#define stbi_is_hdr_from_callbacks stoker_v0_stbi_is_hdr_from_callbacks
#define stbi_is_hdr_from_file stoker_v0_stbi_is_hdr_from_file
#define stbi_is_hdr_from_memory stoker_v0_stbi_is_hdr_from_memory
#define stbi_ldr_to_hdr_gamma stoker_v0_stbi_ldr_to_hdr_gamma
#define stbi_ldr_to_hdr_scale stoker_v0_stbi_ldr_to_hdr_scale
#define stbi_load stoker_v0_stbi_load
#define stbi_load_16 stoker_v0_stbi_load_16
#define stbi_load_16_from_callbacks stoker_v0_stbi_load_16_from_callbacks
#define stbi_load_16_from_memory stoker_v0_stbi_load_16_from_memory
#define stbi_load_from_callbacks stoker_v0_stbi_load_from_callbacks
#define stbi_load_from_file stoker_v0_stbi_load_from_file
#define stbi_load_from_file_16 stoker_v0_stbi_load_from_file_16
#define stbi_load_from_memory stoker_v0_stbi_load_from_memory
#define stbi_load_gif_from_memory stoker_v0_stbi_load_gif_from_memory
#define stbi_loadf stoker_v0_stbi_loadf
#define stbi_loadf_from_callbacks stoker_v0_stbi_loadf_from_callbacks
#define stbi_loadf_from_file stoker_v0_stbi_loadf_from_file
#define stbi_loadf_from_memory stoker_v0_stbi_loadf_from_memory
#define stbi_set_flip_vertically_on_load stoker_v0_stbi_set_flip_vertically_on_load
#define stbi_set_flip_vertically_on_load_thread stoker_v0_stbi_set_flip_vertically_on_load_thread
#define stbi_set_unpremultiply_on_load stoker_v0_stbi_set_unpremultiply_on_load
#define stbi_set_unpremultiply_on_load_thread stoker_v0_stbi_set_unpremultiply_on_load_thread
#define stbi_zlib_compress stoker_v0_stbi_zlib_compress
#define stbi_zlib_decode_buffer stoker_v0_stbi_zlib_decode_buffer
#define stbi_zlib_decode_malloc stoker_v0_stbi_zlib_decode_malloc
#define stbi_zlib_decode_malloc_guesssize stoker_v0_stbi_zlib_decode_malloc_guesssize
#define stbi_zlib_decode_malloc_guesssize_headerflag stoker_v0_stbi_zlib_decode_malloc_guesssize_headerflag
#define stbi_zlib_decode_noheader_buffer stoker_v0_stbi_zlib_decode_noheader_buffer
#define stbi_zlib_decode_noheader_malloc stoker_v0_stbi_zlib_decode_noheader_malloc

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wunknown-warning-option"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wold-style-cast"
#pragma GCC diagnostic ignored "-Wcast-qual"
#pragma GCC diagnostic ignored "-Wcast-align"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wuseless-cast"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wimplicit-fallthrough"
#pragma GCC diagnostic ignored "-Wzero-as-null-pointer-constant"
#pragma GCC diagnostic ignored "-Wundefined-internal"
#pragma GCC diagnostic ignored "-Wdouble-promotion"

namespace stoker {
inline namespace v0 {
namespace detail {
namespace stb_image_code {
#include <stb/stb_image.h>
}  // namespace stb_image_code

/// Decodes with stb_image to 8-bit RGB; everything lives in `heap`, whose begin() was called.
/// @throws std::bad_alloc, DecodeHeap::LimitReached, StbAssertion
[[gnu::visibility("hidden")]] inline StbPicture stb_decode(std::span<const std::byte> bytes, DecodeHeap& heap) {
    struct Current {  // a decode inside a decode (an allocation hook of the application's) finds its own heap again
        DecodeHeap* const before = stb_heap;
        explicit Current(DecodeHeap& now) noexcept { stb_heap = &now; }
        Current(const Current&) = delete;
        Current& operator=(const Current&) = delete;
        ~Current() { stb_heap = before; }
    } const current{heap};
    if (bytes.size() > static_cast<std::size_t>(INT_MAX)) {
        return {nullptr, 0, 0, "more than 2 GB"};
    }
    static_cast<void>(
        stb_image_code::stbi__err("no reason given", "no reason given"));  // not that of the picture before
    int width = 0;
    int height = 0;
    int channels = 0;
    const std::uint8_t* const pixels =
        stb_image_code::stbi_load_from_memory(reinterpret_cast<const unsigned char*>(bytes.data()),
                                              static_cast<int>(bytes.size()), &width, &height, &channels, 3);
    if (pixels == nullptr) {
        return {nullptr, 0, 0, stb_image_code::stbi_failure_reason()};
    }
    return {pixels, static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height), nullptr};
}

}  // namespace detail
}  // namespace v0
}  // namespace stoker

#pragma GCC diagnostic pop

// ---- Everything as it was ------------------------------------------------------------------------------------------
#undef FAST_BITS
#pragma pop_macro("FAST_BITS")
#undef STBIDEF
#pragma pop_macro("STBIDEF")
#undef STBI_ASSERT
#pragma pop_macro("STBI_ASSERT")
#undef STBI_BUFFER_SIZE
#pragma pop_macro("STBI_BUFFER_SIZE")
#undef STBI_EXTERN
#pragma pop_macro("STBI_EXTERN")
#undef STBI_FAILURE_USERMSG
#pragma pop_macro("STBI_FAILURE_USERMSG")
#undef STBI_FREE
#pragma pop_macro("STBI_FREE")
#undef STBI_HAS_LROTL
#pragma pop_macro("STBI_HAS_LROTL")
#undef STBI_INCLUDE_STB_IMAGE_H
#pragma pop_macro("STBI_INCLUDE_STB_IMAGE_H")
#undef STBI_MALLOC
#pragma pop_macro("STBI_MALLOC")
#undef STBI_MAX_DIMENSIONS
#pragma pop_macro("STBI_MAX_DIMENSIONS")
#undef STBI_MINGW_ENABLE_SSE2
#pragma pop_macro("STBI_MINGW_ENABLE_SSE2")
#undef STBI_NEON
#pragma pop_macro("STBI_NEON")
#undef STBI_NOTUSED
#pragma pop_macro("STBI_NOTUSED")
#undef STBI_NO_BMP
#pragma pop_macro("STBI_NO_BMP")
#undef STBI_NO_FAILURE_STRINGS
#pragma pop_macro("STBI_NO_FAILURE_STRINGS")
#undef STBI_NO_GIF
#pragma pop_macro("STBI_NO_GIF")
#undef STBI_NO_HDR
#pragma pop_macro("STBI_NO_HDR")
#undef STBI_NO_JPEG
#pragma pop_macro("STBI_NO_JPEG")
#undef STBI_NO_LINEAR
#pragma pop_macro("STBI_NO_LINEAR")
#undef STBI_NO_PIC
#pragma pop_macro("STBI_NO_PIC")
#undef STBI_NO_PNG
#pragma pop_macro("STBI_NO_PNG")
#undef STBI_NO_PNM
#pragma pop_macro("STBI_NO_PNM")
#undef STBI_NO_PSD
#pragma pop_macro("STBI_NO_PSD")
#undef STBI_NO_SIMD
#pragma pop_macro("STBI_NO_SIMD")
#undef STBI_NO_STDIO
#pragma pop_macro("STBI_NO_STDIO")
#undef STBI_NO_TGA
#pragma pop_macro("STBI_NO_TGA")
#undef STBI_NO_THREAD_LOCALS
#pragma pop_macro("STBI_NO_THREAD_LOCALS")
#undef STBI_NO_ZLIB
#pragma pop_macro("STBI_NO_ZLIB")
#undef STBI_ONLY_BMP
#pragma pop_macro("STBI_ONLY_BMP")
#undef STBI_ONLY_GIF
#pragma pop_macro("STBI_ONLY_GIF")
#undef STBI_ONLY_HDR
#pragma pop_macro("STBI_ONLY_HDR")
#undef STBI_ONLY_JPEG
#pragma pop_macro("STBI_ONLY_JPEG")
#undef STBI_ONLY_PIC
#pragma pop_macro("STBI_ONLY_PIC")
#undef STBI_ONLY_PNG
#pragma pop_macro("STBI_ONLY_PNG")
#undef STBI_ONLY_PNM
#pragma pop_macro("STBI_ONLY_PNM")
#undef STBI_ONLY_PSD
#pragma pop_macro("STBI_ONLY_PSD")
#undef STBI_ONLY_TGA
#pragma pop_macro("STBI_ONLY_TGA")
#undef STBI_ONLY_ZLIB
#pragma pop_macro("STBI_ONLY_ZLIB")
#undef STBI_REALLOC
#pragma pop_macro("STBI_REALLOC")
#undef STBI_REALLOC_SIZED
#pragma pop_macro("STBI_REALLOC_SIZED")
#undef STBI_SIMD_ALIGN
#pragma pop_macro("STBI_SIMD_ALIGN")
#undef STBI_SSE2
#pragma pop_macro("STBI_SSE2")
#undef STBI_SUPPORT_ZLIB
#pragma pop_macro("STBI_SUPPORT_ZLIB")
#undef STBI_THREAD_LOCAL
#pragma pop_macro("STBI_THREAD_LOCAL")
#undef STBI_VERSION
#pragma pop_macro("STBI_VERSION")
#undef STBI_WINDOWS_UTF8
#pragma pop_macro("STBI_WINDOWS_UTF8")
#undef STBI__ASNEEDED
#pragma pop_macro("STBI__ASNEEDED")
#undef STBI__BYTECAST
#pragma pop_macro("STBI__BYTECAST")
#undef STBI__CASE
#pragma pop_macro("STBI__CASE")
#undef STBI__COMBO
#pragma pop_macro("STBI__COMBO")
#undef STBI__HDR_BUFLEN
#pragma pop_macro("STBI__HDR_BUFLEN")
#undef STBI__IDCT_1D
#pragma pop_macro("STBI__IDCT_1D")
#undef STBI__MARKER_none
#pragma pop_macro("STBI__MARKER_none")
#undef STBI__PNG_TYPE
#pragma pop_macro("STBI__PNG_TYPE")
#undef STBI__RESTART
#pragma pop_macro("STBI__RESTART")
#undef STBI__X64_TARGET
#pragma pop_macro("STBI__X64_TARGET")
#undef STBI__X86_TARGET
#pragma pop_macro("STBI__X86_TARGET")
#undef STBI__ZFAST_BITS
#pragma pop_macro("STBI__ZFAST_BITS")
#undef STBI__ZFAST_MASK
#pragma pop_macro("STBI__ZFAST_MASK")
#undef STBI__ZNSYMS
#pragma pop_macro("STBI__ZNSYMS")
#undef STB_IMAGE_IMPLEMENTATION
#pragma pop_macro("STB_IMAGE_IMPLEMENTATION")
#undef STB_IMAGE_STATIC
#pragma pop_macro("STB_IMAGE_STATIC")
#undef dct_bfly32o
#pragma pop_macro("dct_bfly32o")
#undef dct_const
#pragma pop_macro("dct_const")
#undef dct_interleave16
#pragma pop_macro("dct_interleave16")
#undef dct_interleave8
#pragma pop_macro("dct_interleave8")
#undef dct_long_mac
#pragma pop_macro("dct_long_mac")
#undef dct_long_mul
#pragma pop_macro("dct_long_mul")
#undef dct_pass
#pragma pop_macro("dct_pass")
#undef dct_rot
#pragma pop_macro("dct_rot")
#undef dct_trn16
#pragma pop_macro("dct_trn16")
#undef dct_trn32
#pragma pop_macro("dct_trn32")
#undef dct_trn64
#pragma pop_macro("dct_trn64")
#undef dct_trn8_16
#pragma pop_macro("dct_trn8_16")
#undef dct_trn8_32
#pragma pop_macro("dct_trn8_32")
#undef dct_trn8_8
#pragma pop_macro("dct_trn8_8")
#undef dct_wadd
#pragma pop_macro("dct_wadd")
#undef dct_widen
#pragma pop_macro("dct_widen")
#undef dct_wsub
#pragma pop_macro("dct_wsub")
#undef stbi__DNL
#pragma pop_macro("stbi__DNL")
#undef stbi__EOI
#pragma pop_macro("stbi__EOI")
#undef stbi__SOF
#pragma pop_macro("stbi__SOF")
#undef stbi__SOF_progressive
#pragma pop_macro("stbi__SOF_progressive")
#undef stbi__SOI
#pragma pop_macro("stbi__SOI")
#undef stbi__SOS
#pragma pop_macro("stbi__SOS")
#undef stbi__de_iphone_flag
#pragma pop_macro("stbi__de_iphone_flag")
#undef stbi__div16
#pragma pop_macro("stbi__div16")
#undef stbi__div4
#pragma pop_macro("stbi__div4")
#undef stbi__err
#pragma pop_macro("stbi__err")
#undef stbi__errpf
#pragma pop_macro("stbi__errpf")
#undef stbi__errpuc
#pragma pop_macro("stbi__errpuc")
#undef stbi__f2f
#pragma pop_macro("stbi__f2f")
#undef stbi__float2fixed
#pragma pop_macro("stbi__float2fixed")
#undef stbi__float2int
#pragma pop_macro("stbi__float2int")
#undef stbi__fsh
#pragma pop_macro("stbi__fsh")
#undef stbi__unpremultiply_on_load
#pragma pop_macro("stbi__unpremultiply_on_load")
#undef stbi__unpremultiply_on_load_thread
#pragma pop_macro("stbi__unpremultiply_on_load_thread")
#undef stbi__vertically_flip_on_load
#pragma pop_macro("stbi__vertically_flip_on_load")
#undef stbi_convert_iphone_png_to_rgb
#pragma pop_macro("stbi_convert_iphone_png_to_rgb")
#undef stbi_convert_iphone_png_to_rgb_thread
#pragma pop_macro("stbi_convert_iphone_png_to_rgb_thread")
#undef stbi_convert_wchar_to_utf8
#pragma pop_macro("stbi_convert_wchar_to_utf8")
#undef stbi_failure_reason
#pragma pop_macro("stbi_failure_reason")
#undef stbi_hdr_to_ldr_gamma
#pragma pop_macro("stbi_hdr_to_ldr_gamma")
#undef stbi_hdr_to_ldr_scale
#pragma pop_macro("stbi_hdr_to_ldr_scale")
#undef stbi_image_free
#pragma pop_macro("stbi_image_free")
#undef stbi_info
#pragma pop_macro("stbi_info")
#undef stbi_info_from_callbacks
#pragma pop_macro("stbi_info_from_callbacks")
#undef stbi_info_from_file
#pragma pop_macro("stbi_info_from_file")
#undef stbi_info_from_memory
#pragma pop_macro("stbi_info_from_memory")
#undef stbi_inline
#pragma pop_macro("stbi_inline")
#undef stbi_is_16_bit
#pragma pop_macro("stbi_is_16_bit")
#undef stbi_is_16_bit_from_callbacks
#pragma pop_macro("stbi_is_16_bit_from_callbacks")
#undef stbi_is_16_bit_from_file
#pragma pop_macro("stbi_is_16_bit_from_file")
#undef stbi_is_16_bit_from_memory
#pragma pop_macro("stbi_is_16_bit_from_memory")
#undef stbi_is_hdr
#pragma pop_macro("stbi_is_hdr")
#undef stbi_is_hdr_from_callbacks
#pragma pop_macro("stbi_is_hdr_from_callbacks")
#undef stbi_is_hdr_from_file
#pragma pop_macro("stbi_is_hdr_from_file")
#undef stbi_is_hdr_from_memory
#pragma pop_macro("stbi_is_hdr_from_memory")
#undef stbi_ldr_to_hdr_gamma
#pragma pop_macro("stbi_ldr_to_hdr_gamma")
#undef stbi_ldr_to_hdr_scale
#pragma pop_macro("stbi_ldr_to_hdr_scale")
#undef stbi_load
#pragma pop_macro("stbi_load")
#undef stbi_load_16
#pragma pop_macro("stbi_load_16")
#undef stbi_load_16_from_callbacks
#pragma pop_macro("stbi_load_16_from_callbacks")
#undef stbi_load_16_from_memory
#pragma pop_macro("stbi_load_16_from_memory")
#undef stbi_load_from_callbacks
#pragma pop_macro("stbi_load_from_callbacks")
#undef stbi_load_from_file
#pragma pop_macro("stbi_load_from_file")
#undef stbi_load_from_file_16
#pragma pop_macro("stbi_load_from_file_16")
#undef stbi_load_from_memory
#pragma pop_macro("stbi_load_from_memory")
#undef stbi_load_gif_from_memory
#pragma pop_macro("stbi_load_gif_from_memory")
#undef stbi_loadf
#pragma pop_macro("stbi_loadf")
#undef stbi_loadf_from_callbacks
#pragma pop_macro("stbi_loadf_from_callbacks")
#undef stbi_loadf_from_file
#pragma pop_macro("stbi_loadf_from_file")
#undef stbi_loadf_from_memory
#pragma pop_macro("stbi_loadf_from_memory")
#undef stbi_lrot
#pragma pop_macro("stbi_lrot")
#undef stbi_set_flip_vertically_on_load
#pragma pop_macro("stbi_set_flip_vertically_on_load")
#undef stbi_set_flip_vertically_on_load_thread
#pragma pop_macro("stbi_set_flip_vertically_on_load_thread")
#undef stbi_set_unpremultiply_on_load
#pragma pop_macro("stbi_set_unpremultiply_on_load")
#undef stbi_set_unpremultiply_on_load_thread
#pragma pop_macro("stbi_set_unpremultiply_on_load_thread")
#undef stbi_zlib_compress
#pragma pop_macro("stbi_zlib_compress")
#undef stbi_zlib_decode_buffer
#pragma pop_macro("stbi_zlib_decode_buffer")
#undef stbi_zlib_decode_malloc
#pragma pop_macro("stbi_zlib_decode_malloc")
#undef stbi_zlib_decode_malloc_guesssize
#pragma pop_macro("stbi_zlib_decode_malloc_guesssize")
#undef stbi_zlib_decode_malloc_guesssize_headerflag
#pragma pop_macro("stbi_zlib_decode_malloc_guesssize_headerflag")
#undef stbi_zlib_decode_noheader_buffer
#pragma pop_macro("stbi_zlib_decode_noheader_buffer")
#undef stbi_zlib_decode_noheader_malloc
#pragma pop_macro("stbi_zlib_decode_noheader_malloc")
