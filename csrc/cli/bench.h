// Times of calls, measured in turns.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "cli/commands.h"

namespace cxxinductor::cli {

void check_samples(const Arguments& arguments);  // UserError
// Prints the medians of both, after a warm-up. gpus: that calls work on. load_time: in seconds.
void compare_times(std::function<void()> aten_call, std::function<void()> compiled_call, const std::vector<int>& gpus, double load_time, int64_t samples);

}  // namespace cxxinductor::cli
