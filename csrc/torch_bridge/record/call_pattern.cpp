#include "torch_bridge/record/call_pattern.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "ir/strides.h"
#include "support/error.h"
#include "torch_bridge/types.h"

namespace cxxinductor::torch_bridge {
namespace {

using Kind = ArgumentPattern::Kind;

constexpr std::array formats{c10::MemoryFormat::Contiguous, c10::MemoryFormat::ChannelsLast,
                             c10::MemoryFormat::ChannelsLast3d};

bool is_dense_in(const at::Tensor& tensor, c10::MemoryFormat format) {
  if (format == c10::MemoryFormat::ChannelsLast && tensor.dim() != 4) return false;
  if (format == c10::MemoryFormat::ChannelsLast3d && tensor.dim() != 5) return false;
  return tensor.is_contiguous(format);
}

ArgumentPattern pattern_of_tensor(const at::Tensor& tensor) {
  if (tensor.layout() != c10::kStrided || tensor.is_quantized())
    throw_unsupported("tensors of layout {}", c10::str(tensor.layout()));
  ArgumentPattern pattern;
  pattern.kind = Kind::Tensor;
  pattern.dtype = tensor.scalar_type();
  from_torch(pattern.dtype);  // Unsupported for exotic ones
  pattern.device = tensor.device();
  pattern.sizes = tensor.sizes().vec();
  pattern.strides = tensor.strides().vec();
  pattern.conjugate = tensor.is_conj();
  pattern.negative = tensor.is_neg();
  pattern.is_wrapped_number = tensor.unsafeGetTensorImpl()->is_wrapped_number();
  const auto format = std::find_if(formats.begin(), formats.end(), [&](auto f) { return is_dense_in(tensor, f); });
  if (format != formats.end()) pattern.format = *format;
  return pattern;
}

bool is_constant(const c10::IValue& value) {
  return value.isNone() || value.isBool() || value.isDouble() || value.isString() || value.isDevice() ||
         value.isIntList() || value.isDoubleList() || value.isBoolList() || value.isComplexDouble();
}

bool equals(const c10::IValue& a, const c10::IValue& b) { return a.tagKind() == b.tagKind() && a == b; }

// What has to be equal in all calls that share a compiled form, sizes aside.
bool is_alike(const ArgumentPattern& pattern, const at::Tensor& tensor) {
  return pattern.dtype == tensor.scalar_type() && pattern.device == tensor.device() &&
         static_cast<int64_t>(pattern.sizes.size()) == tensor.dim() && tensor.layout() == c10::kStrided &&
         pattern.conjugate == tensor.is_conj() && pattern.negative == tensor.is_neg() &&
         pattern.is_wrapped_number == tensor.unsafeGetTensorImpl()->is_wrapped_number() &&
         (pattern.format ? is_dense_in(tensor, *pattern.format)
                         : tensor.strides() == c10::IntArrayRef(pattern.strides));
}

// Binds the symbols that sizes stand for; 0 is not bound yet, as symbols are above 1.
bool match_number(int64_t expected, int64_t found, std::vector<int64_t>& symbols) {
  if (expected >= 0) return expected == found;
  int64_t& symbol = symbols[static_cast<size_t>(-1 - expected)];
  if (symbol == 0) symbol = found;
  return found > 1 && symbol == found;
}

}  // namespace

CallPattern::CallPattern(std::span<const c10::IValue> arguments) {
  for (const c10::IValue& argument : arguments) {
    ArgumentPattern& pattern = arguments_.emplace_back();
    if (argument.isTensor() && argument.toTensor().defined()) {
      pattern = pattern_of_tensor(argument.toTensor());
    } else if (argument.isInt()) {
      pattern.kind = argument.toInt() >= 0 ? Kind::Integer : Kind::Constant;
      pattern.integer = argument.toInt();
      pattern.constant = argument;
    } else if (is_constant(argument)) {
      pattern.constant = argument;
    } else {
      throw_unsupported("arguments of type {}", argument.tagKind());
    }
  }
}

std::optional<std::vector<int64_t>> CallPattern::match(std::span<const c10::IValue> arguments) const {
  if (arguments.size() != arguments_.size()) return std::nullopt;
  std::vector<int64_t> symbols(hints_.size(), 0);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ArgumentPattern& pattern = arguments_[i];
    const c10::IValue& argument = arguments[i];
    switch (pattern.kind) {
      case Kind::Tensor: {
        if (!argument.isTensor() || !argument.toTensor().defined() || !is_alike(pattern, argument.toTensor()))
          return std::nullopt;
        const c10::IntArrayRef sizes = argument.toTensor().sizes();
        for (size_t d = 0; d < sizes.size(); ++d)
          if (!match_number(pattern.sizes[d], sizes[d], symbols)) return std::nullopt;
        break;
      }
      case Kind::Integer:
        if (!argument.isInt() || !match_number(pattern.integer, argument.toInt(), symbols)) return std::nullopt;
        break;
      case Kind::Constant:
        if (!equals(argument, pattern.constant)) return std::nullopt;
        break;
    }
  }
  return symbols;
}

std::optional<CallPattern> CallPattern::generalized(std::span<const c10::IValue> arguments) const {
  if (arguments.size() != arguments_.size()) return std::nullopt;
  CallPattern general = *this;
  general.hints_.clear();
  std::map<std::pair<int64_t, int64_t>, size_t> symbols;  // by what stood there and what does now
  bool fits = true;
  const auto generalize = [&](int64_t& expected, int64_t found) {
    if (expected == found) return;
    fits = fits && found > 1 && (expected < 0 || expected > 1);
    const auto [symbol, fresh] = symbols.emplace(std::pair(expected, found), general.hints_.size());
    if (fresh) general.hints_.push_back(found);
    expected = ArgumentPattern::symbol(symbol->second);
  };
  for (size_t i = 0; i < arguments.size() && fits; ++i) {
    ArgumentPattern& pattern = general.arguments_[i];
    const c10::IValue& argument = arguments[i];
    switch (pattern.kind) {
      case Kind::Tensor: {
        if (!argument.isTensor() || !argument.toTensor().defined() || !is_alike(pattern, argument.toTensor()))
          return std::nullopt;
        const c10::IntArrayRef sizes = argument.toTensor().sizes();
        for (size_t d = 0; d < sizes.size(); ++d) generalize(pattern.sizes[d], sizes[d]);
        break;
      }
      case Kind::Integer:
        if (!argument.isInt()) return std::nullopt;
        generalize(pattern.integer, argument.toInt());
        break;
      case Kind::Constant:
        if (!equals(argument, pattern.constant)) return std::nullopt;
        break;
    }
  }
  return fits ? std::optional(std::move(general)) : std::nullopt;
}

std::string symbol_name(size_t symbol) { return fmt::format("s{}", symbol); }

namespace {

sym::Expr to_expr(int64_t number) {
  return number >= 0 ? sym::Expr(number) : sym::Expr::symbol(symbol_name(static_cast<size_t>(-1 - number)));
}

std::vector<sym::Expr> strides_in(c10::MemoryFormat format, const std::vector<sym::Expr>& sizes) {
  if (format == c10::MemoryFormat::Contiguous) return row_major_strides(sizes);
  std::vector<sym::Expr> strides(sizes.size());
  strides[1] = 1;
  sym::Expr stride = sizes[1];
  for (size_t d = sizes.size(); d-- > 2;) {
    strides[d] = stride;
    stride = stride * sizes[d];
  }
  strides[0] = stride;
  return strides;
}

}  // namespace

model::CallValueInfo info_of(const ArgumentPattern& pattern) {
  model::CallValueInfo info;
  if (pattern.kind == Kind::Integer) {
    info.kind = model::CallValueInfo::Kind::SymInt;
    info.symbol = to_expr(pattern.integer);
    return info;
  }
  info.dtype = from_torch(pattern.dtype);
  info.device = from_torch(pattern.device);
  info.conjugate = pattern.conjugate;
  info.negative = pattern.negative;
  for (int64_t size : pattern.sizes) info.sizes.push_back(to_expr(size));
  const bool has_numbers =
      std::all_of(pattern.sizes.begin(), pattern.sizes.end(), [](int64_t size) { return size >= 0; });
  if (has_numbers || !pattern.format)
    info.strides.assign(pattern.strides.begin(), pattern.strides.end());
  else
    info.strides = strides_in(*pattern.format, info.sizes);
  return info;
}

model::CallValueInfo info_of(const at::Tensor& tensor) {
  model::CallValueInfo info = info_of(pattern_of_tensor(tensor));
  info.storage_offset = tensor.storage_offset();
  return info;
}

}  // namespace cxxinductor::torch_bridge
