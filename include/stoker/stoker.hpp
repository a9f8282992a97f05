// SPDX-License-Identifier: MIT
/// @file
/// Everything that needs no CUDA, for convenience. Needs stb_image (package libstb-dev); <stoker/core.hpp> does not.
#pragma once

#include <stoker/core.hpp>
#include <stoker/data/image_folder.hpp>
#include <stoker/data/path_list.hpp>
#include <stoker/data/read_file.hpp>
#include <stoker/image/decode.hpp>
#include <stoker/image/decoder.hpp>
#include <stoker/image/geometry.hpp>
#include <stoker/image/resize.hpp>
#include <stoker/image/stb_decoder.hpp>
