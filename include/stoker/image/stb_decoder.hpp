// SPDX-License-Identifier: MIT
/// @file
/// The decoder that is always there: JPEG, PNG and BMP through stb_image, behind a check of each file's structure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <string_view>

#include <stoker/detail/picture_structure.hpp>
#include <stoker/detail/stb-inl.hpp>
#include <stoker/image/decoder.hpp>
#include <stoker/image/resize.hpp>

namespace stoker {
inline namespace v0 {

/// Decodes the whole picture with stb_image, then crops and resizes; see PictureDecoder.
///
/// What decodes: JPEG, baseline, extended and progressive, 8 bits, 1, 3 or 4 components (4: with an Adobe marker, CMYK
/// or YCCK); PNG, all of the standard but for its extensions, 16-bit samples by their high byte; BMP, 1, 4, 8, 16, 24,
/// 32 bits, with bit masks of up to 8 bits, not run-length encoded. Alpha is dropped, grey is repeated. Orientation
/// tags and colour profiles are not applied. All else is an error that says "unsupported". What is checked beside
/// stb_image: limits, before anything is allocated; files that end early; missing or malformed tables; lost restart
/// intervals; palettes shorter than their pixels (PNG: such pixels are black; BMP: an error). Not checked: checksums;
/// coefficients that are missing though the file is complete; these decode to something. Thread-safety: decode by any
/// number of threads at once, each with its own scratch. No state is shared with an application's own stb_image, nor
/// its flags. Memory: the picture as RGB, and its planes, held in the scratch during the call; limited by what the
/// header says.
class StbDecoder {
  public:
    [[nodiscard]] bool accepts(PictureFormat format) const noexcept {
        return format == PictureFormat::jpeg || format == PictureFormat::png || format == PictureFormat::bmp;
    }

    [[gnu::visibility("hidden")]] DecodeResult decode(std::span<const std::byte> bytes, const GeometryChooser& choose,
                                                      const Tensor<std::uint8_t, 3>& out, DecodeScratch& scratch,
                                                      const DecodeLimits& limits = {}) const {
        struct Trim {
            DecodeScratch& scratch;
            ~Trim() { scratch.trim(); }
        } const trim{scratch};
        PictureInfo info{detect_format(bytes), 0, 0};
        detail::StbPicture picture;
        try {
            detail::PictureStructure structure;
            std::span<const std::byte> mended = bytes;
            if (info.format == PictureFormat::jpeg) {
                structure = detail::JpegWalk{bytes, limits}.walk();
            } else if (info.format == PictureFormat::png) {
                detail::PngStructure png = detail::walk_png(bytes, limits);
                if (png.is_ok() && png.needs_mending) {
                    detail::mend_png(bytes, png, scratch.mended);
                    mended = scratch.mended;
                }
                structure = std::move(png);
            } else if (info.format == PictureFormat::bmp) {
                detail::BmpStructure bmp = detail::walk_bmp(bytes, limits);
                if (bmp.is_ok() && bmp.needs_mending) {
                    detail::mend_bmp(bytes, bmp, scratch.mended);
                    mended = scratch.mended;
                }
                structure = std::move(bmp);
            } else {
                return DecodeResult::error(ErrorKind::unsupported,
                                           std::string{"the format "} + to_string(info.format) + " is unsupported",
                                           info);
            }
            if (!structure.is_ok()) {
                return std::move(structure.result);
            }
            info = structure.result.info;
            if (std::uint64_t{info.width} * info.height > std::uint64_t{INT32_MAX} / 3) {
                return DecodeResult::error(ErrorKind::too_large,
                                           "the picture has " + detail::size_text(info.width, info.height) +
                                               " pixels, more than the 715827882 that this decoder can hold",
                                           info);
            }
            scratch.heap.begin(structure.memory);
            picture = detail::stb_decode(mended, scratch.heap);
        } catch (const std::bad_alloc&) {
            return DecodeResult::error(
                ErrorKind::too_large,
                "out of memory for a picture of " + detail::size_text(info.width, info.height) + " pixels", info);
        } catch (const detail::DecodeHeap::LimitReached&) {
            return DecodeResult::error(ErrorKind::damaged,
                                       "its data expand to more than a picture of " +
                                           detail::size_text(info.width, info.height) + " pixels can have",
                                       info);
        } catch (const detail::StbAssertion&) {
            return DecodeResult::error(ErrorKind::damaged, "stb_image reports an inconsistency", info);
        }
        if (picture.pixels == nullptr) {
            return DecodeResult::error(
                ErrorKind::damaged,
                "stb_image reports \"" + std::string{picture.reason != nullptr ? picture.reason : "failure"} + "\"",
                info);
        }
        if (picture.width != info.width || picture.height != info.height) {
            return DecodeResult::error(
                ErrorKind::damaged,
                "its headers disagree about its size: " + detail::size_text(info.width, info.height) + " or " +
                    detail::size_text(picture.width, picture.height),
                info);
        }
        const Geometry geometry = choose(info);
        if (out.extent(0) != geometry.height || out.extent(1) != geometry.width || out.extent(2) != 3) {
            throw OptionError{"cannot decode to " + detail::size_text(geometry.width, geometry.height) +
                              " pixels of 3 bytes: the output has the shape " + std::to_string(out.extent(0)) + " x " +
                              std::to_string(out.extent(1)) + " x " + std::to_string(out.extent(2)) +
                              " (height, width, channels)"};
        }
        resize({picture.pixels, info.width, info.height, std::size_t{info.width} * 3}, geometry, out.data(),
               scratch.resize);
        return {DecodeStatus::ok, ErrorKind::other, {}, info};
    }
};
static_assert(PictureDecoder<StbDecoder>);

}  // namespace v0
}  // namespace stoker
