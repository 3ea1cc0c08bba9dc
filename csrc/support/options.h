// Options. One table (options.def) generates the struct, the readers, the error for unknown names and docs/options.md.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cxxinductor {

struct Options {
#define OPTION(name, type, default_value, ...) type name = default_value;
#include "support/options.def"
#undef OPTION
  bool eager_numerics() const { return numerics == "eager"; }
};

struct OptionInfo {
  std::string_view name, type, environment, doc;
};
std::span<const OptionInfo> option_table();
std::span<const std::string_view> option_values(std::string_view option);  // the words that it accepts; empty: see its type
// UserError lists the known names for an unknown one, and what is expected for a bad value.
void set_option(Options& options, std::string_view name, std::string_view value);
std::string get_option(const Options& options, std::string_view name);  // as set_option reads it; of Options(): the default
// Reads CXXINDUCTOR_* through `get_environment` (name -> value) and rejects unknown CXXINDUCTOR_ names among `names`.
Options options_from_environment(const std::vector<std::pair<std::string, std::string>>& environment);
std::string to_string(const Options& options);  // canonical, for cache keys

}  // namespace cxxinductor
