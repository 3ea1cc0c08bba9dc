// Arguments of a call into ATen, as data: a small closed variant. Used by `extern` nodes of every IR and by the
// recorded calls that the front-end reads. Tensors and symbols computed elsewhere are operand references.
#pragma once

#include <complex>
#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "ir/dtype.h"
#include "sym/expr.h"

namespace cxxinductor {

struct None {
  friend bool operator==(None, None) = default;
};
// Index into the operand list of the node that owns this tree.
struct OperandRef {
  uint32_t operand;
  friend bool operator==(OperandRef, OperandRef) = default;
};
// In-process object (generator, Python callable, script object) that the bridge holds by index.
struct Handle {
  uint32_t index;
  friend bool operator==(Handle, Handle) = default;
};
struct LayoutArg {
  int torch_layout;
  friend bool operator==(LayoutArg, LayoutArg) = default;
};
struct MemoryFormatArg {
  int torch_memory_format;
  friend bool operator==(MemoryFormatArg, MemoryFormatArg) = default;
};

struct Arg;
using ArgList = std::vector<Arg>;
struct Arg {
  std::variant<None, OperandRef, sym::Expr, int64_t, double, std::complex<double>, bool, std::string, DType, Device, LayoutArg, MemoryFormatArg, Handle,
               ArgList>
      value;
  Arg() = default;
  template <class T>
  requires(!std::is_same_v<std::decay_t<T>, Arg>) Arg(T v) : value(std::move(v)) {}  // NOLINT: an Arg is its value
  template <class T>
  const T* as() const {
    return std::get_if<T>(&value);
  }
  bool is_none() const { return std::holds_alternative<None>(value); }
  friend bool operator==(const Arg& a, const Arg& b) { return a.value == b.value; }
};

// Calls visit with each operand reference of the tree, in order. Tree: Arg or const Arg.
template <class Tree, class Visit>
requires std::is_same_v<std::remove_const_t<Tree>, Arg>
void for_each_operand_ref(Tree& arg, const Visit& visit) {
  if (auto* ref = std::get_if<OperandRef>(&arg.value)) visit(*ref);
  if (auto* list = std::get_if<ArgList>(&arg.value))
    for (auto& item : *list) for_each_operand_ref(item, visit);
}
// Of what has positional and keyword arguments: an extern of any IR, a recorded call.
template <class Callee, class Visit>
requires requires(Callee& callee) { callee.args, callee.kwargs; }
void for_each_operand_ref(Callee& callee, const Visit& visit) {
  for (auto& arg : callee.args) for_each_operand_ref(arg, visit);
  for (auto& named : callee.kwargs) for_each_operand_ref(named.second, visit);
}

// Text: none, $0 (operand reference), expr(2*s0), 3, 1.5, complex(1.0, 2.0), true, "text", f32, device(cuda:0), layout(0), memory_format(0), handle(0),
// [..]
std::string to_string(const Arg& arg);
// With operand references as the caller spells them: calls of a model name their values.
using OperandSpelling = std::function<std::string(OperandRef)>;
std::string to_string(const Arg& arg, const OperandSpelling& spell);

}  // namespace cxxinductor
