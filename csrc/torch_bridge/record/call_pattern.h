// What a compiled form holds for: metadata of the arguments of a call.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/call_graph.h"

namespace cxxinductor::torch_bridge {

// Of one argument: a tensor, an integer, or a value that the form holds for alone (a flag, a float, None, a text).
struct ArgumentPattern {
  enum class Kind : uint8_t { Tensor, Integer, Constant };
  // Of sizes and integers: what is not negative is the number itself; symbol k is -1 - k.
  static constexpr int64_t symbol(size_t number) { return -1 - static_cast<int64_t>(number); }

  Kind kind = Kind::Constant;
  c10::ScalarType dtype = c10::ScalarType::Undefined;
  c10::Device device = c10::kCPU;
  // Dense in that format; none: the strides are numbers.
  std::optional<c10::MemoryFormat> format;
  std::vector<int64_t> sizes, strides;
  bool conjugate = false, negative = false, is_wrapped_number = false;
  int64_t integer = 0;
  c10::IValue constant;
};

class CallPattern {
 public:
  // With the numbers of these arguments: tensors, integers, floats, booleans, texts, devices, None. Unsupported for
  // others.
  explicit CallPattern(std::span<const c10::IValue> arguments);

  // The values of the symbols, where the pattern holds for the arguments.
  std::optional<std::vector<int64_t>> match(std::span<const c10::IValue> arguments) const;
  // A pattern that holds for the arguments too: sizes and integers above 1 that differ are symbols, of which equal ones
  // are one. None where more than that differs.
  std::optional<CallPattern> generalized(std::span<const c10::IValue> arguments) const;

  const std::vector<ArgumentPattern>& arguments() const { return arguments_; }
  size_t symbol_count() const { return hints_.size(); }
  int64_t hint(size_t symbol) const { return hints_[symbol]; }

 private:
  std::vector<ArgumentPattern> arguments_;
  std::vector<int64_t> hints_;  // by symbol: its value when the pattern was made
};

// "s0"
std::string symbol_name(size_t symbol);
// Metadata of an argument that is a tensor or an integer.
model::CallValueInfo info_of(const ArgumentPattern& pattern);
model::CallValueInfo info_of(const at::Tensor& tensor);

}  // namespace cxxinductor::torch_bridge
