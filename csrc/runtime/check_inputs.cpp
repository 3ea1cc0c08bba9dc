// The checks that stand in for Python guards: every message names the input, what was expected and what was found.
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "runtime/executable_tables.h"
#include "support/error.h"

namespace cxxinductor::runtime {
namespace {

std::string input_name(const plan::Plan& plan, size_t index) {
  const plan::Input& input = plan.inputs[index];
  if (!input.source.empty()) return fmt::format("input {} ({})", index, input.source);
  if (input.kind == plan::Input::Kind::Tensor) return fmt::format("input {} ({})", index, plan.buffers[input.buffer].name);
  return fmt::format("input {}", index);
}

std::string_view kind_text(Value::Kind kind) {
  switch (kind) {
    case Value::Kind::None:
      return "no value";
    case Value::Kind::Integer:
      return "an integer";
    case Value::Kind::Tensor:
      return "a tensor";
  }
  return "?";
}

std::string list_text(std::span<const int64_t> numbers) { return fmt::format("[{}]", fmt::join(numbers, ", ")); }

std::string declared_text(const std::vector<sym::Expr>& expressions, std::span<const int64_t> values) {
  std::string text = "[";
  for (size_t i = 0; i < expressions.size(); ++i) {
    if (i > 0) text += ", ";
    if (!expressions[i].is_constant()) text += sym::to_string(expressions[i]) + " = ";
    text += std::to_string(values[i]);
  }
  return text + "]";
}

void check_type(const plan::Plan& plan, size_t index, const TensorRef& tensor) {
  const plan::Buffer& buffer = plan.buffers[plan.inputs[index].buffer];
  if (tensor.dtype != buffer.dtype) {
    throw_user_error("{}: expected dtype {}, found {}", input_name(plan, index), to_string(buffer.dtype), to_string(tensor.dtype));
  }
  if (tensor.device != buffer.device) {
    throw_user_error("{}: expected a tensor on {}, found one on {}", input_name(plan, index), to_string(buffer.device), to_string(tensor.device));
  }
  if (tensor.rank != buffer.sizes.size()) {
    throw_user_error("{}: expected {} dimensions, found {} (sizes {})", input_name(plan, index), buffer.sizes.size(), tensor.rank, list_text(tensor.sizes()));
  }
}

std::string range_text(const std::string& symbol, sym::Interval range) {
  std::string text = symbol;
  if (range.low != std::numeric_limits<int64_t>::min()) text = fmt::format("{} <= {}", range.low, text);
  if (range.high != std::numeric_limits<int64_t>::max()) text = fmt::format("{} <= {}", text, range.high);
  return text;
}

std::string place_text(const plan::Plan& plan, const SymbolBinding& binding) {
  const std::string name = input_name(plan, binding.input);
  if (binding.dim < 0) return name;
  const auto dim = static_cast<uint32_t>(binding.dim);
  if (dim < binding.rank) return fmt::format("size {} of {}", dim, name);
  return fmt::format("stride {} of {}", dim - binding.rank, name);
}

int64_t bound_value(const SymbolBinding& binding, const Value& input) {
  if (binding.dim < 0) return input.integer;
  const auto dim = static_cast<uint32_t>(binding.dim);
  return dim < binding.rank ? input.tensor.sizes_data[dim] : input.tensor.strides_data[dim - binding.rank];
}

void check_tensor(const plan::Plan& plan, const Tables& tables, size_t index, const TensorRef& tensor, std::span<const int64_t> values) {
  const auto buffer_index = static_cast<size_t>(tables.input_buffers[index]);
  const Geometry geometry = tables.buffers[buffer_index].geometry;
  const Slot* slots = tables.dims.data() + geometry.first;
  bool empty = false, same_sizes = true, same_strides = true;
  for (uint32_t d = 0; d < geometry.rank; ++d) {
    same_sizes &= tensor.sizes_data[d] == values[slots[d]];
    empty |= tensor.sizes_data[d] == 0;
    same_strides &= tensor.strides_data[d] == values[slots[geometry.rank + d]] || tensor.sizes_data[d] <= 1;
  }
  if (same_sizes && (same_strides || empty)) [[likely]]
    return;
  const plan::Buffer& buffer = plan.buffers[plan.inputs[index].buffer];
  std::vector<int64_t> declared;
  for (uint32_t d = 0; d < geometry.rank; ++d) declared.push_back(values[slots[d + (same_sizes ? geometry.rank : 0)]]);
  if (!same_sizes) {
    throw_user_error("{}: expected sizes {}, found {}", input_name(plan, index), declared_text(buffer.sizes, declared), list_text(tensor.sizes()));
  }
  throw_user_error(
      "{}: expected strides {}, found {} (sizes {}); pass a tensor laid out as the one the graph was compiled for, or "
      "compile it again for this layout",
      input_name(plan, index), declared_text(buffer.strides, declared), list_text(tensor.strides()), list_text(tensor.sizes()));
}

}  // namespace

void check_ranks_and_types(const plan::Plan& plan, const std::vector<Value>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& value = inputs[i];
    switch (plan.inputs[i].kind) {
      case plan::Input::Kind::Tensor:
        if (!value.is_tensor()) {
          throw_user_error("{}: expected a tensor, found {}", input_name(plan, i), kind_text(value.kind));
        }
        check_type(plan, i, value.tensor);
        break;
      case plan::Input::Kind::Symbol:
        if (!value.is_integer()) {
          throw_user_error("{}: expected an integer, found {}", input_name(plan, i), kind_text(value.kind));
        }
        break;
      case plan::Input::Kind::Opaque:
        break;
    }
  }
}

void check_symbols(const plan::Plan& plan, const Tables& tables, const std::vector<Value>& inputs, std::span<const int64_t> values) {
  for (const SymbolBinding& binding : tables.bindings) {
    const std::string& symbol = tables.program.symbols()[binding.slot];
    const int64_t value = bound_value(binding, inputs[binding.input]);
    if (value != values[binding.slot]) {
      throw_user_error("{} is {}, but {} is {} elsewhere in this call: they must be equal", place_text(plan, binding), value, symbol, values[binding.slot]);
    }
    if (value < binding.range.low || value > binding.range.high) {
      throw_user_error("{} is {}, but the graph was compiled for {}; compile it again for this size (an exported model: export it again first)",
                       place_text(plan, binding), value, range_text(symbol, binding.range));
    }
    if (binding.divisor > 1 && value % binding.divisor != 0) {
      throw_user_error("{} is {}, but the graph was compiled for multiples of {}; compile it again for this size (an exported model: export it again first)",
                       place_text(plan, binding), value, binding.divisor);
    }
  }
}

void check_geometry(const plan::Plan& plan, const Tables& tables, const std::vector<Value>& inputs, std::span<const int64_t> values) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (plan.inputs[i].kind == plan::Input::Kind::Tensor) check_tensor(plan, tables, i, inputs[i].tensor, values);
  }
}

}  // namespace cxxinductor::runtime
