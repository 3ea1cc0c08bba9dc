#include "support/options.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "support/error.h"
#include "support/nearest_name.h"

namespace cxxinductor {
namespace {

constexpr std::array option_rows{
#define OPTION(name, type, default_value, decides, accepts, doc) OptionInfo{#name, #type, Decides::decides, accepts, doc},
#include <cxxinductor/options.def>
#undef OPTION
};

struct Renamed {
  std::string_view option;  // empty: the name is an option's own, not one of its values
  std::string_view old_name, new_name;
};
constexpr std::array renamed_rows{
#define RENAMED_OPTION(old_name, new_name) Renamed{{}, old_name, new_name},
#define RENAMED_VALUE(option, old_name, new_name) Renamed{option, old_name, new_name},
#include "support/renamed_options.def"
#undef RENAMED_OPTION
#undef RENAMED_VALUE
};

constexpr std::string_view several = ", ...";  // ends OptionInfo::accepts where a value is a list

// Variables that are not options.
constexpr std::array variable_rows{
    VariableInfo{"CXXINDUCTOR_JIT",
                 "1: PyTorch's TorchScript executor compiles modules that it runs, in a program that only loads the library; read when the library is loaded"},
    VariableInfo{"CXXINDUCTOR_BUILD_DIR", "folder of a build that `setup.py` takes instead of making one"},
    VariableInfo{"CXXINDUCTOR_BUILD_TYPE", "CMake's build type for `setup.py`; default Release"},
    VariableInfo{"CXXINDUCTOR_BLESS", "1: tests of golden files write what they find as what they expect"},
    VariableInfo{"CXXINDUCTOR_FUZZ_SEED", "seed of the fuzzers, or random"},
    VariableInfo{"CXXINDUCTOR_TEXTS", "folder that the test of emitted text writes all of it into"},
    VariableInfo{"CXXINDUCTOR_TEXT_MUTATIONS", "texts that the fuzzer of readers makes of each form"},
    VariableInfo{"CXXINDUCTOR_TEST_TARGET", "library of a target that the tests of kernels run"},
};

bool is_hex_digit(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool is_name_character(char c) { return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool is_public_key(std::string_view item) { return item.size() == 64 && std::ranges::all_of(item, is_hex_digit); }
bool is_name(std::string_view item) { return !item.empty() && std::ranges::all_of(item, is_name_character); }
bool is_op_or_library(std::string_view item) {
  const size_t colons = item.find("::");
  return is_name(item.substr(0, colons)) && (colons == item.npos || is_name(item.substr(colons + 2)));
}

// What stands for the names of other layers in OptionInfo::accepts. Those without a form are for their layer to check.
struct ItemForm {
  std::string_view word;
  bool (*holds)(std::string_view item);
  std::string_view expected;
};
constexpr std::array item_forms{
    ItemForm{"OP_OR_LIBRARY", is_op_or_library, "mylib::op, or mylib for all ops of a library"},
    ItemForm{"KEY", is_public_key, "Ed25519 public keys of 64 hexadecimal digits each"},
};

bool stands_for_names(std::string_view word) {
  return std::ranges::any_of(word, [](char c) { return c >= 'A' && c <= 'Z'; });
}

const OptionInfo& row_of(std::string_view option) { return *std::ranges::find(option_rows, option, &OptionInfo::name); }

// The alternatives of OptionInfo::accepts.
std::vector<std::string_view> alternatives(const OptionInfo& option) {
  std::string_view rest = option.accepts;
  if (rest.ends_with(several)) rest.remove_suffix(several.size());
  std::vector<std::string_view> found;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('|'), rest.size());
    found.push_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return found;
}

template <class Number>
struct Range {
  Number least, most;
};
// Of OptionInfo::accepts; none where all numbers are accepted.
template <class Number>
std::optional<Range<Number>> range_of(std::string_view option) {
  const std::string_view accepts = row_of(option).accepts;
  const size_t dots = accepts.find("..");
  if (dots == accepts.npos) return std::nullopt;
  Range<Number> range{};
  std::from_chars(accepts.data(), accepts.data() + dots, range.least);
  std::from_chars(accepts.data() + dots + 2, accepts.data() + accepts.size(), range.most);
  return range;
}

[[noreturn]] void unknown(std::string_view what, std::string_view name, std::string (*name_of)(const OptionInfo&)) {
  std::vector<std::string> known;
  for (const OptionInfo& row : option_rows) known.push_back(name_of(row));
  throw_user_error("unknown {} '{}'; did you mean '{}'? Known: {}", what, name, nearest_name(name, known), fmt::join(known, ", "));
}

// The item of a comma-separated list at its start, trimmed; removes it and the comma.
std::string_view take_item(std::string_view& list) {
  const size_t end = std::min(list.find(','), list.size());
  std::string_view item = list.substr(0, end);
  list.remove_prefix(std::min(end + 1, list.size()));
  while (item.starts_with(' ')) item.remove_prefix(1);
  while (item.ends_with(' ')) item.remove_suffix(1);
  return item;
}

void reject_renamed(std::string_view name, std::string_view value) {
  for (const Renamed& row : renamed_rows)
    if (row.option.empty() && row.old_name == name) throw_user_error("option '{}' is now '{}'", name, row.new_name);
  while (!value.empty()) {
    const std::string_view item = take_item(value);
    for (const Renamed& row : renamed_rows)
      if (row.option == name && row.old_name == item) throw_user_error("option '{}': '{}' is now '{}'", name, item, row.new_name);
  }
}

void assign(bool& target, std::string_view name, std::string_view value) {
  if (value == "1" || value == "true" || value == "on") {
    target = true;
  } else if (value == "0" || value == "false" || value == "off") {
    target = false;
  } else {
    throw_user_error("option '{}': expected true or false, found '{}'", name, value);
  }
}

void assign(int64_t& target, std::string_view name, std::string_view value) {
  int64_t parsed = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed);
  if (error != std::errc() || end != value.data() + value.size()) throw_user_error("option '{}': expected an integer, found '{}'", name, value);
  if (const auto range = range_of<int64_t>(name); range && (parsed < range->least || parsed > range->most))
    throw_user_error("option '{}': expected an integer from {} to {}, found '{}'", name, range->least, range->most, value);
  target = parsed;
}

void assign(double& target, std::string_view name, std::string_view value) {
  double parsed = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), parsed);
  const Range<double> range = range_of<double>(name).value();  // options.def gives one to each
  if (error != std::errc() || end != value.data() + value.size() || !(parsed >= range.least && parsed <= range.most))
    throw_user_error("option '{}': expected a number from {} to {}, found '{}'", name, range.least, range.most, value);
  target = parsed;
}

// One of the words, or one that begins as what stands for names does ("after:STAGE").
bool is_accepted(const std::vector<std::string_view>& words, std::string_view item) {
  return std::ranges::any_of(words, [&](std::string_view word) {
    const size_t names = word.rfind(':') + 1;
    return word == item || (stands_for_names(word) && names > 0 && item.starts_with(word.substr(0, names)));
  });
}

void assign(std::string& target, std::string_view name, std::string_view value) {
  const OptionInfo& option = row_of(name);
  const std::vector<std::string_view> words = alternatives(option);
  const bool is_list = option.accepts.ends_with(several);
  const std::vector<std::string> items = is_list ? list_items(value) : std::vector<std::string>{std::string(value)};
  const auto form = std::ranges::find_if(item_forms, [&](const ItemForm& f) { return words.size() == 1 && words[0] == f.word; });
  const bool is_open = words.empty() || (words.size() == 1 && stands_for_names(words[0]));
  for (const std::string& item : items) {
    if (form != std::end(item_forms) && !form->holds(item))
      throw_user_error("option '{}': expected {}, separated by commas, found '{}'", name, form->expected, item);
    if (is_open || is_accepted(words, item)) continue;
    std::string known;
    for (std::string_view word : words) known += fmt::format("{}'{}'", known.empty() ? "" : ", ", word);
    throw_user_error("option '{}': expected {} of {}, found '{}'", name, is_list ? "any, separated by commas," : "one", known, item);
  }
  target = std::string(value);
}

}  // namespace

std::vector<std::string> list_items(std::string_view list) {
  std::vector<std::string> items;
  while (!list.empty())
    if (const std::string_view item = take_item(list); !item.empty()) items.emplace_back(item);
  return items;
}

std::span<const OptionInfo> option_table() { return option_rows; }

std::span<const VariableInfo> variable_table() { return variable_rows; }

std::string environment_variable(std::string_view option) {
  std::string name = "CXXINDUCTOR_";
  for (char c : option) name += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return name;
}

std::vector<std::string_view> option_values(std::string_view option) {
  const OptionInfo& row = row_of(option);
  std::vector<std::string_view> words = row.type == "std::string" ? alternatives(row) : std::vector<std::string_view>();
  std::erase_if(words, [](std::string_view word) { return stands_for_names(word) && word.find(':') == word.npos; });
  return words;
}

void set_option(Options& options, std::string_view name, std::string_view value) {
  reject_renamed(name, value);
#define OPTION(option, ...) \
  if (name == #option) return assign(options.option, name, value);
#include <cxxinductor/options.def>
#undef OPTION
  unknown("option", name, [](const OptionInfo& row) { return std::string(row.name); });
}

std::string get_option(const Options& options, std::string_view name) {
#define OPTION(option, ...) \
  if (name == #option) return fmt::format("{}", options.option);
#include <cxxinductor/options.def>
#undef OPTION
  unknown("option", name, [](const OptionInfo& row) { return std::string(row.name); });
}

Options options_from_environment(const std::vector<std::pair<std::string, std::string>>& environment) {
  Options options;
  for (const auto& entry : environment) {
    const std::string& variable = entry.first;
    if (!variable.starts_with("CXXINDUCTOR_")) continue;
    if (std::ranges::any_of(variable_rows, [&](const VariableInfo& row) { return row.name == variable; })) continue;
    for (const Renamed& renamed : renamed_rows)
      if (renamed.option.empty() && variable == environment_variable(renamed.old_name))
        throw_user_error("environment variable '{}' is now '{}'", variable, environment_variable(renamed.new_name));
    const auto row = std::ranges::find_if(option_rows, [&](const OptionInfo& r) { return environment_variable(r.name) == variable; });
    if (row == option_rows.end()) unknown("environment variable", variable, [](const OptionInfo& r) { return environment_variable(r.name); });
    if (!entry.second.empty()) set_option(options, row->name, entry.second);
  }
  return options;
}

void check_options(const Options& options) {
  Options checked;
  for (const OptionInfo& row : option_rows) set_option(checked, row.name, get_option(options, row.name));
}

std::string to_string(const Options& options) {
  std::string text;
#define OPTION(name, ...) text += fmt::format("{}{}={}", text.empty() ? "" : ", ", #name, options.name);
#include <cxxinductor/options.def>
#undef OPTION
  return text;
}

}  // namespace cxxinductor
