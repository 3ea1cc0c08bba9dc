// What the inputs of a call say of the symbols of a graph.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/call_graph.h"

namespace cxxinductor::torch_bridge {

class InputSymbols {
 public:
  using Values = std::map<std::string, int64_t, std::less<>>;

  InputSymbols() = default;
  explicit InputSymbols(const model::CallGraph& calls);

  // Symbols that no input is, nor has as a size, but that follow from one: s0, of a size 4*s0 + 1.
  std::vector<std::string> derived() const;

  const std::vector<model::CallValueInfo>& inputs() const { return inputs_; }
  // Of symbols that are integers, or sizes of tensors, among the inputs, and of those that follow. None where an input is not of the kind or rank that the
  // graph has.
  std::optional<Values> values(const std::vector<c10::IValue>& inputs) const;
  // Puts copies in the place of tensors that have other strides than the graph was recorded with.
  void lay_out(std::vector<c10::IValue>& inputs) const;

 private:
  // size of dimension `dim` of an input == factor * symbol + rest
  struct Derived {
    std::string symbol;
    size_t input = 0, dim = 0;
    int64_t factor = 1;
    sym::Expr rest;
  };
  void derive(std::set<std::string, std::less<>> known);

  std::vector<model::CallValueInfo> inputs_;
  std::vector<Derived> derived_;  // each after those that its rest has
};

// Adds inputs for these symbols, the last.
void add_symbol_inputs(model::CallGraph& calls, const std::vector<std::string>& symbols);
// With an input for each symbol that follows from a size alone, so that a graph's checks compare them: FileModel gives their values.
model::CallGraph with_derived_symbols(model::CallGraph calls);

// The value of an expression; UserError where it has another symbol.
int64_t evaluate(sym::Expr e, const InputSymbols::Values& values);

}  // namespace cxxinductor::torch_bridge
