// SPDX-License-Identifier: MIT
#pragma once

#include <stoker/image/stb_decoder.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "../support/png.hpp"

namespace coexist {

/// 8x8, the top half red, the bottom half blue.
inline std::vector<std::uint8_t> two_halves() {
    std::vector<std::uint8_t> rows;
    for (int i = 0; i < 64; ++i) {
        const std::uint8_t red = i < 32 ? 255 : 0;
        rows.insert(rows.end(), {red, 0, static_cast<std::uint8_t>(255 - red)});
    }
    return testing_support::png_from_rows(8, 8, 8, 2, rows);
}

/// Whether our decoder shows the picture the right way up. Internal: each file that includes this has its own.
static inline bool is_upright() {
    const std::vector<std::uint8_t> file = two_halves();
    std::vector<std::uint8_t> out(8 * 8 * 3);
    stoker::DecodeScratch scratch;
    const auto all = [](const stoker::PictureInfo& info) {
        return stoker::Geometry{stoker::whole_picture(info.width, info.height), info.height, info.width};
    };
    const stoker::DecodeResult result =
        stoker::StbDecoder{}.decode(std::as_bytes(std::span{file}), all, {out.data(), {8, 8, 3}}, scratch);
    return result.status == stoker::DecodeStatus::ok && out[0] == 255 && out[2] == 0 && out[63 * 3] == 0 &&
           out[63 * 3 + 2] == 255;
}

int a_is_upright();
int b_is_upright();
int static_copy_is_upright();
int application_is_upright();
void application_flips(bool flips);
const char* application_reason();

}  // namespace coexist
