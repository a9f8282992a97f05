// SPDX-License-Identifier: MIT
/// @file
/// The version of the library; CMake reads it here too.
#pragma once

#define STOKER_VERSION_MAJOR 0
#define STOKER_VERSION_MINOR 1
#define STOKER_VERSION_PATCH 0
