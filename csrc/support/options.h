// Options by name. One table (cxxinductor/options.def) generates the struct, the readers, the error for unknown names and docs/options.md.
#pragma once

#include <cxxinductor/options.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cxxinductor {

struct OptionInfo {
  std::string_view name, type, environment, doc;
};
std::span<const OptionInfo> option_table();
// Environment variables of ours that no option stands for.
struct VariableInfo {
  std::string_view name, doc;
};
std::span<const VariableInfo> variable_table();
std::span<const std::string_view> option_values(std::string_view option);  // the words that it accepts; empty: see its type
// UserError lists the known names for an unknown one, and what is expected for a bad value.
void set_option(Options& options, std::string_view name, std::string_view value);
std::string get_option(const Options& options, std::string_view name);  // as set_option reads it; of Options(): the default
void check_options(const Options& options);  // those that a program filled in; UserError as from set_option
// Reads CXXINDUCTOR_* through `get_environment` (name -> value) and rejects unknown CXXINDUCTOR_ names among `names`.
Options options_from_environment(const std::vector<std::pair<std::string, std::string>>& environment);
std::vector<std::string> list_items(std::string_view list);  // of an option that is a list with commas: trimmed, none empty
std::string to_string(const Options& options);  // canonical, for cache keys

}  // namespace cxxinductor
