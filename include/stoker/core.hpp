// SPDX-License-Identifier: MIT
/// @file
/// Everything that needs nothing but the standard library.
#pragma once

#include <stoker/batch.hpp>
#include <stoker/batch_info.hpp>
#include <stoker/device.hpp>
#include <stoker/error.hpp>
#include <stoker/lease.hpp>
#include <stoker/options.hpp>
#include <stoker/order.hpp>
#include <stoker/plan.hpp>
#include <stoker/prefetcher.hpp>
#include <stoker/random.hpp>
#include <stoker/report.hpp>
#include <stoker/ring.hpp>
#include <stoker/source.hpp>
#include <stoker/state.hpp>
#include <stoker/tensor.hpp>
#include <stoker/version.hpp>
