#include "torch_bridge/shaping_options.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "readers/pt2/printable.h"
#include "support/error.h"
#include "support/options.h"

namespace cxxinductor::torch_bridge {
namespace {

constexpr std::array<std::string_view, 6> names{"numerics", "skip_passes", "fusion", "epilogue_fusion", "max_fusion_size", "generalize_kernels"};

}  // namespace

OptionTexts shaping_options(const Options& options) {
  OptionTexts texts;
  for (std::string_view name : names) texts.emplace_back(name, get_option(options, name));
  return texts;
}

void set_shaping_options(Options& options, const OptionTexts& texts) {
  for (const auto& [name, value] : texts) {
    if (std::ranges::find(names, name) == names.end())
      throw_user_error("package: manifest: options: expected options that shape kernels, found '{}'", readers::printable(name));
    set_option(options, name, value);
  }
}

}  // namespace cxxinductor::torch_bridge
