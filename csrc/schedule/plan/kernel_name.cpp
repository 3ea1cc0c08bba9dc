#include "schedule/plan/kernel_name.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

#include "ir/loops/stmt_properties.h"

namespace cxxinductor::schedule {
namespace {

using loops::Stmt;

constexpr size_t most_names = 3;
constexpr size_t longest_hint = 48;
constexpr size_t longest_module = 40;

// "aten.native_layer_norm.default", "aten::native_layer_norm" -> "native_layer_norm", as a C identifier.
std::string op_name(std::string_view call) {
  for (std::string_view separator : {"::", "."})
    if (size_t at = call.find(separator); at != std::string_view::npos) {
      call.remove_prefix(at + separator.size());
      break;
    }
  call = call.substr(0, call.find('.'));
  while (!call.empty() && call.front() == '_') call.remove_prefix(1);
  std::string name;
  for (char c : call) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

std::string operation_name(const Stmt& stmt) {
  if (const auto state = row_state(stmt)) return op_name(info(state->reduction).name);
  if (const auto* apply = stmt.as<loops::Apply>()) return op_name(info(apply->op).name);
  if (const auto* store = stmt.as<loops::Store>(); store && store->update) return "update";
  return {};
}

void add_name(std::vector<std::string>& names, std::string name) {
  if (!name.empty() && names.size() < most_names && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
}

// "transformer.h.0.ln_1" -> "transformer_h_ln_1", the end of it where it is long. Layers share kernels, so their numbers go.
std::string module_name(std::string_view path) {
  std::string name;
  while (!path.empty()) {
    const size_t end = std::min(path.find('.'), path.size());
    const std::string_view part = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    if (std::ranges::all_of(part, [](unsigned char c) { return std::isdigit(c); })) continue;
    if (!name.empty()) name += '_';
    for (unsigned char c : part) name += std::isalnum(c) ? static_cast<char>(c) : '_';
  }
  return name.size() <= longest_module ? name : name.substr(name.size() - longest_module);
}

std::string ops_name(const loops::Region& region, const OriginTable& origins) {
  std::vector<std::string> names;
  for (bool reductions : {true, false})
    for (const Stmt& stmt : region.body)
      if (!reductions || row_state(stmt))
        if (stmt.origin.valid() && origins.contains(stmt.origin)) add_name(names, op_name(origins[stmt.origin].call));
  if (names.empty())
    for (bool reductions : {true, false})
      for (const Stmt& stmt : region.body)
        if (!reductions || row_state(stmt)) add_name(names, operation_name(stmt));
  if (names.empty()) return "copy";
  std::string hint = names.front();
  for (size_t k = 1; k < names.size() && hint.size() + names[k].size() < longest_hint; ++k) hint += "_" + names[k];
  return hint.substr(0, longest_hint);
}

}  // namespace

std::string kernel_hint(const loops::Region& region, const OriginTable& origins) {
  const OriginId origin = main_origin(region);
  const std::string module = origins.contains(origin) ? module_name(origins[origin].module) : "";
  return ops_name(region, origins) + (module.empty() ? "" : "__" + module);
}

OriginId main_origin(const loops::Region& region) {
  for (const Stmt& stmt : region.body)
    if (row_state(stmt) && stmt.origin.valid()) return stmt.origin;
  for (const Stmt& stmt : region.body)
    if (stmt.as<loops::Store>() && stmt.origin.valid()) return stmt.origin;
  return {};
}

}  // namespace cxxinductor::schedule
