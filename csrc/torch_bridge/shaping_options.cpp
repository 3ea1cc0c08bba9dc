#include "torch_bridge/shaping_options.h"

#include <algorithm>
#include <string_view>

#include "readers/pt2/printable.h"
#include "support/error.h"
#include "support/options.h"

namespace cxxinductor::torch_bridge {
namespace {

bool decides_kernels(const OptionInfo& option) { return option.decides == Decides::Kernels; }

}  // namespace

OptionTexts shaping_options(const Options& options) {
  OptionTexts texts;
  for (const OptionInfo& option : option_table())
    if (decides_kernels(option)) texts.emplace_back(option.name, get_option(options, option.name));
  return texts;
}

void set_shaping_options(Options& options, const OptionTexts& texts) {
  for (const auto& [name, value] : texts) {
    if (std::ranges::none_of(option_table(), [&](const OptionInfo& option) { return option.name == name && decides_kernels(option); }))
      throw_user_error("package: manifest: options: expected options that shape kernels, found '{}'", readers::printable(name));
    set_option(options, name, value);
  }
}

}  // namespace cxxinductor::torch_bridge
