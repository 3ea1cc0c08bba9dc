#include "torch_bridge/input_symbols.h"

#include <ATen/ops/empty_strided.h>

#include "support/error.h"

namespace cxxinductor::torch_bridge {

using model::CallValueInfo;

InputSymbols::InputSymbols(const model::CallGraph& calls) {
  for (model::CallValue input : calls.inputs) inputs_.push_back(calls.values[input]);
  std::set<std::string, std::less<>> known;
  for (const CallValueInfo& info : inputs_) {
    if (info.kind == CallValueInfo::Kind::SymInt && info.symbol.is_symbol()) known.emplace(info.symbol.name());
    for (sym::Expr size : info.sizes)
      if (size.is_symbol()) known.emplace(size.name());
  }
  derive(std::move(known));
}

void InputSymbols::derive(std::set<std::string, std::less<>> known) {
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < inputs_.size(); ++i)
      for (size_t d = 0; d < inputs_[i].sizes.size(); ++d) {
        const sym::Expr size = inputs_[i].sizes[d];
        std::vector<sym::Expr> unknown;
        for (sym::Expr symbol : size.free_symbols())
          if (!known.contains(symbol.name())) unknown.push_back(symbol);
        sym::Expr factor, rest;
        if (unknown.size() != 1 || !sym::split_linear(size, unknown.front(), &factor, &rest) || !factor.is_constant() || factor.is_constant(0)) continue;
        derived_.push_back({std::string(unknown.front().name()), i, d, factor.constant(), rest});
        known.emplace(unknown.front().name());
        changed = true;
      }
  }
}

std::vector<std::string> InputSymbols::derived() const {
  std::vector<std::string> names;
  for (const Derived& derived : derived_) names.push_back(derived.symbol);
  return names;
}

std::optional<InputSymbols::Values> InputSymbols::values(const std::vector<c10::IValue>& inputs) const {
  Values found;
  if (inputs.size() != inputs_.size()) return std::nullopt;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const CallValueInfo& info = inputs_[i];
    if (info.kind == CallValueInfo::Kind::SymInt) {
      if (!inputs[i].isInt()) return std::nullopt;
      if (info.symbol.is_symbol()) found.emplace(info.symbol.name(), inputs[i].toInt());
    }
    if (info.kind != CallValueInfo::Kind::Tensor) continue;
    if (!inputs[i].isTensor() || static_cast<size_t>(inputs[i].toTensor().dim()) != info.sizes.size()) return std::nullopt;
    for (size_t d = 0; d < info.sizes.size(); ++d)
      if (info.sizes[d].is_symbol()) found.emplace(info.sizes[d].name(), inputs[i].toTensor().size(static_cast<int64_t>(d)));
  }
  for (const Derived& derived : derived_)
    found.emplace(derived.symbol, (inputs[derived.input].toTensor().size(static_cast<int64_t>(derived.dim)) - evaluate(derived.rest, found)) / derived.factor);
  return found;
}

void InputSymbols::lay_out(std::vector<c10::IValue>& inputs) const {
  const auto symbols = values(inputs);
  if (!symbols) return;  // who runs the graph says what is wrong
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].kind != CallValueInfo::Kind::Tensor) continue;
    const at::Tensor& tensor = inputs[i].toTensor();
    std::vector<int64_t> strides;
    bool same = true;
    for (size_t d = 0; d < inputs_[i].strides.size(); ++d) {
      strides.push_back(evaluate(inputs_[i].strides[d], *symbols));
      same = same && (strides[d] == tensor.stride(static_cast<int64_t>(d)) || tensor.size(static_cast<int64_t>(d)) <= 1);
    }
    if (!same) inputs[i] = at::empty_strided(tensor.sizes(), strides, tensor.options()).copy_(tensor);
  }
}

void add_symbol_inputs(model::CallGraph& calls, const std::vector<std::string>& symbols) {
  for (const std::string& symbol : symbols) {
    CallValueInfo info;
    info.kind = CallValueInfo::Kind::SymInt;
    info.name = "symbol." + symbol;  // no name of torch's has a point
    info.symbol = sym::Expr::symbol(symbol);
    calls.inputs.push_back(static_cast<model::CallValue>(calls.values.size()));
    calls.input_sources.emplace_back();
    calls.values.push_back(std::move(info));
  }
}

model::CallGraph with_derived_symbols(model::CallGraph calls) {
  add_symbol_inputs(calls, InputSymbols(calls).derived());
  return calls;
}

int64_t evaluate(sym::Expr e, const InputSymbols::Values& values) {
  return sym::evaluate(e, [&](std::string_view name) {
    const auto found = values.find(name);
    if (found == values.end()) throw_user_error("the symbol {} has no value", name);
    return found->second;
  });
}

}  // namespace cxxinductor::torch_bridge
