// The options that shape kernels: a package fixes them.
#pragma once

#include <cxxinductor/options.h>

#include <string>
#include <utility>
#include <vector>

namespace cxxinductor::torch_bridge {

using OptionTexts = std::vector<std::pair<std::string, std::string>>;
OptionTexts shaping_options(const Options& options);
// UserError for one that is not among them, or has a bad value.
void set_shaping_options(Options& options, const OptionTexts& texts);

}  // namespace cxxinductor::torch_bridge
