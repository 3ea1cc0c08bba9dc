#include "schedule/plan/symbol_sources.h"

#include <map>
#include <set>
#include <string>

#include "ir/plan/symbols.h"
#include "support/error.h"

namespace cxxinductor::schedule {
namespace {

using sym::Expr;
using Sources = std::map<std::string, plan::SymbolSource, std::less<>>;

// Without those that steps define.
std::set<std::string, std::less<>> needed_symbols(const plan::Plan& plan) {
  std::set<std::string, std::less<>> names;
  const auto add = [&](Expr e) {
    for (Expr symbol : e.free_symbols()) names.emplace(symbol.name());
  };
  for (const plan::Buffer& buffer : plan.buffers) plan::for_each_expression(buffer, add);
  for (const plan::Step& step : plan.steps) plan::for_each_expression(step, add);
  for (const plan::Output& output : plan.outputs) {
    add(output.symbol);
    for (const auto* list : {&output.view.sizes, &output.view.strides})
      for (Expr e : *list) add(e);
    add(output.view.offset);
  }
  for (const auto& [symbol, time] : plan::find_definition_times(plan)) names.erase(symbol);
  return names;
}

Sources symbol_sources(const plan::Plan& plan) {
  Sources sources;
  auto add = [&](std::string_view symbol, size_t input, size_t dim) {
    sources.try_emplace(std::string(symbol), plan::SymbolSource{std::string(symbol), static_cast<uint32_t>(input), static_cast<int>(dim)});
  };
  for (size_t k = 0; k < plan.inputs.size(); ++k)
    if (const plan::Input& input = plan.inputs[k]; input.kind == plan::Input::Kind::Symbol)
      sources.try_emplace(input.symbol, plan::SymbolSource{input.symbol, static_cast<uint32_t>(k), -1});
  for (size_t k = 0; k < plan.inputs.size(); ++k) {
    if (plan.inputs[k].kind != plan::Input::Kind::Tensor) continue;
    const plan::Buffer& buffer = plan.buffers[plan.inputs[k].buffer];
    for (size_t d = 0; d < buffer.sizes.size(); ++d)
      if (buffer.sizes[d].is_symbol()) add(buffer.sizes[d].name(), k, d);
    for (size_t d = 0; d < buffer.strides.size(); ++d)
      if (buffer.strides[d].is_symbol()) add(buffer.strides[d].name(), k, buffer.sizes.size() + d);
  }
  return sources;
}

}  // namespace

std::vector<plan::SymbolSource> find_symbol_sources(const plan::Plan& plan) {
  Sources sources = symbol_sources(plan);
  std::vector<plan::SymbolSource> found;
  for (const std::string& name : needed_symbols(plan)) {
    auto source = sources.find(name);
    if (source == sources.end()) throw_unsupported("the value of {} is neither an input nor a size or stride of one, so {} cannot compute it", name, plan.name);
    found.push_back(source->second);
  }
  return found;
}

}  // namespace cxxinductor::schedule
