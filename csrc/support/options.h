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

// What an option decides. Keys of caches have those that decide kernels or the graph.
enum class Decides : uint8_t {
  Kernels,  // the kernels of a graph: packages are compiled with the values that they were written with
  Graph,    // what else is made of a graph
  Calls,    // when graphs compile, and how calls run
  Process,  // folders, limits and reports
};

struct OptionInfo {
  std::string_view name, type;
  Decides decides;
  std::string_view accepts, doc;  // accepts: see options.def
};
inline bool decides_what_is_compiled(const OptionInfo& option) { return option.decides == Decides::Kernels || option.decides == Decides::Graph; }
std::span<const OptionInfo> option_table();
// Environment variables of ours that no option stands for.
struct VariableInfo {
  std::string_view name, doc;
};
std::span<const VariableInfo> variable_table();
std::string environment_variable(std::string_view option);
std::vector<std::string_view> option_values(std::string_view option);  // the words that it accepts, "after:STAGE" among them; empty: see its type
// UserError lists the known names for an unknown one, and what is expected for a bad value.
void set_option(Options& options, std::string_view name, std::string_view value);
std::string get_option(const Options& options, std::string_view name);  // as set_option reads it; of Options(): the default
void check_options(const Options& options);                             // those that a program filled in; UserError as from set_option
// From the CXXINDUCTOR_* among the variables (name, value): empty ones leave the default, names of no option are errors.
Options options_from_environment(const std::vector<std::pair<std::string, std::string>>& environment);
std::vector<std::string> list_items(std::string_view list);  // of an option that is a list with commas: trimmed, none empty
std::string to_string(const Options& options);               // canonical, for cache keys

}  // namespace cxxinductor
