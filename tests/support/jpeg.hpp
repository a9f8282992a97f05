// SPDX-License-Identifier: MIT
/// @file
/// Writes baseline JPEG files for tests.
#pragma once

#include <cstdint>
#include <vector>

namespace testing_support {

/// Encodes `channels` (1 or 3) interleaved 8-bit channels at `quality` (1 to 100; above 90: 4:4:4, else 4:2:0).
[[nodiscard]] std::vector<std::uint8_t> jpeg_file(int width, int height, int channels,
                                                  const std::vector<std::uint8_t>& pixels, int quality);

}  // namespace testing_support
