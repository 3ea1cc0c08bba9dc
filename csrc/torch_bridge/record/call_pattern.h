// What a compiled form holds for: metadata of the arguments of a call.
#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/call_graph.h"
#include "model/size_guards.h"

namespace cxxinductor::torch_bridge {

// Of one argument: a tensor, an integer, a float, or a value that the form holds for alone (a flag, None, a text).
struct ArgumentPattern {
  enum class Kind : uint8_t { Tensor, Integer, Real, Constant };
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
  std::optional<size_t> real;  // of a float that a form does not hold for alone: its number among those
  bool is_input = false;       // of the compiled form: a tensor, or the first argument that is a symbol or such a float

  bool is_symbol() const { return kind == Kind::Integer && integer < 0; }
};

// What may become more general in a pattern. Sizes that may not are numbers again, those of the arguments.
struct Generality {
  bool sizes = true, reals = false;
};

class CallPattern {
 public:
  // With the numbers of these arguments: tensors, integers, floats, booleans, texts, devices, None. Unsupported for
  // others.
  explicit CallPattern(std::span<const c10::IValue> arguments);

  // The values of the symbols, where the pattern holds for the arguments.
  std::optional<std::vector<int64_t>> match(std::span<const c10::IValue> arguments) const;
  // A pattern for these arguments that is as general as this one, and more so in what differs: sizes and integers above 1
  // become symbols, of which equal ones are one, floats become inputs. None where more differs, or what may not.
  std::optional<CallPattern> generalized(std::span<const c10::IValue> arguments, Generality generality) const;
  // With all floats as inputs, equal or not.
  CallPattern with_given_reals() const;
  // What a compiled form takes of the arguments, moved out of them.
  std::vector<c10::IValue> take_inputs(std::span<c10::IValue> arguments) const;

  // Of these arguments, with symbols for the sizes and integers that are below 0 in `sizes` (by argument; symbol k is -1 - k). None where
  // other numbers differ, one symbol would stand for two, or for nothing.
  static std::optional<CallPattern> with_symbols(std::span<const c10::IValue> arguments, std::span<const std::vector<int64_t>> sizes, size_t symbol_count);
  // The same pattern with the hints of these symbols in their place.
  CallPattern with_numbers(const std::vector<bool>& symbols) const;
  // As with_symbols takes them.
  std::vector<std::vector<int64_t>> symbolic_sizes() const;

  const std::vector<ArgumentPattern>& arguments() const { return arguments_; }
  size_t symbol_count() const { return hints_.size(); }
  int64_t hint(size_t symbol) const { return hints_[symbol]; }
  size_t real_count() const { return reals_; }
  bool is_general() const { return !hints_.empty() || reals_ > 0; }
  std::vector<int64_t> numbers() const;  // sizes and integers, as in ArgumentPattern

 private:
  void find_inputs();

  std::vector<ArgumentPattern> arguments_;
  size_t reals_ = 0;            // floats that are inputs
  std::vector<int64_t> hints_;  // by symbol: its value when the pattern was made
};

// Symbols of a pattern are above 1; their hints are what the pattern was made of.
sym::Assumptions assumptions_of(const CallPattern& pattern);
model::SizeHints hints_of(const CallPattern& pattern);
// All that a pattern states of an argument but sizes: "Float on cpu contiguous".
std::string kind_text(const ArgumentPattern& pattern);
// "s0"
std::string symbol_name(size_t symbol);
size_t symbol_number(std::string_view name);
// Metadata of an argument that is a tensor or an integer.
model::CallValueInfo info_of(const ArgumentPattern& pattern);
model::CallValueInfo info_of(const at::Tensor& tensor);

}  // namespace cxxinductor::torch_bridge
