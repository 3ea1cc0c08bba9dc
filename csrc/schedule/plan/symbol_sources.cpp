#include "schedule/plan/symbol_sources.h"

#include <map>
#include <set>
#include <string>

#include "support/error.h"

namespace cxxinductor::schedule {
namespace {

using sym::Expr;
using Sources = std::map<std::string, plan::SymbolSource, std::less<>>;

class SymbolCollector {
 public:
  const std::set<std::string>& names() const { return names_; }

  void add(Expr e) {
    for (Expr symbol : e.free_symbols()) names_.emplace(symbol.name());
  }
  void add(const std::vector<Expr>& list) {
    for (Expr e : list) add(e);
  }
  void add(const plan::View& view) {
    add(view.sizes);
    add(view.strides);
    add(view.offset);
  }
  void add(const Arg& arg) {
    if (const Expr* e = arg.as<Expr>()) add(*e);
    if (const ArgList* list = arg.as<ArgList>())
      for (const Arg& item : *list) add(item);
  }
  void add(const plan::Step& step) {
    for (const plan::Launch& launch : plan::launches_of(step)) {
      add(launch.symbol_args);
      add(launch.grid_x);
      add(launch.grid_y);
      for (const plan::Specialization& special : launch.specializations) {
        add(special.grid_x);
        for (const auto& [symbol, range] : special.when.ranges()) names_.insert(symbol);
        for (const auto& [symbol, divisor] : special.when.divisors()) names_.insert(symbol);
      }
    }
    if (const auto* call = std::get_if<plan::CallExtern>(&step)) {
      for (const auto& operand : call->operands) std::visit([&](const auto& o) { add(o); }, operand);
      for (const Arg& arg : call->args) add(arg);
      for (const auto& [name, arg] : call->kwargs) add(arg);
    }
  }

 private:
  std::set<std::string> names_;
};

std::set<std::string> needed_symbols(const plan::Plan& plan) {
  SymbolCollector collector;
  for (const plan::Buffer& buffer : plan.buffers) {
    collector.add(buffer.sizes);
    collector.add(buffer.strides);
  }
  for (const plan::Step& step : plan.steps) collector.add(step);
  for (const plan::Output& output : plan.outputs) {
    if (output.kind == plan::Output::Kind::Symbol) collector.add(output.symbol);
    if (output.kind == plan::Output::Kind::View) collector.add(output.view);
  }
  return collector.names();
}

Sources symbol_sources(const plan::Plan& plan) {
  Sources sources;
  auto add = [&](std::string_view symbol, size_t input, size_t dim) {
    sources.try_emplace(std::string(symbol),
                        plan::SymbolSource{std::string(symbol), static_cast<uint32_t>(input), static_cast<int>(dim)});
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
    if (source == sources.end())
      throw_unsupported("the value of {} is neither an input nor a size or stride of one, so {} cannot compute it",
                        name, plan.name);
    found.push_back(source->second);
  }
  return found;
}

}  // namespace cxxinductor::schedule
