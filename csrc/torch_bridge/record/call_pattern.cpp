#include "torch_bridge/record/call_pattern.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "ir/strides.h"
#include "support/error.h"
#include "torch_bridge/types.h"

namespace cxxinductor::torch_bridge {
namespace {

using Kind = ArgumentPattern::Kind;

// The format that eager takes the tensor's to be, where its elements are dense in it. A dimension of size 1 may have any stride: elements do not
// tell the formats apart then, but results of eager have the format that the strides tell.
std::optional<c10::MemoryFormat> format_of(const at::Tensor& tensor) {
  const c10::MemoryFormat format = tensor.suggest_memory_format();
  return tensor.is_contiguous(format) ? std::optional(format) : std::nullopt;
}

ArgumentPattern pattern_of_tensor(const at::Tensor& tensor) {
  if (tensor.layout() != c10::kStrided || tensor.is_quantized()) throw_unsupported("tensors of layout {}", c10::str(tensor.layout()));
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
  pattern.format = format_of(tensor);
  return pattern;
}

bool is_constant(const c10::IValue& value) {
  return value.isNone() || (value.isTensor() && !value.toTensor().defined()) || value.isBool() || value.isString() || value.isDevice() || value.isIntList() ||
         value.isDoubleList() || value.isBoolList() || value.isComplexDouble();
}

uint64_t bits_of(double number) { return std::bit_cast<uint64_t>(number); }

bool equals(double a, double b) { return bits_of(a) == bits_of(b); }

bool equals(const c10::IValue& a, const c10::IValue& b) {
  if (a.tagKind() != b.tagKind()) return false;
  if (a.isTensor()) return !a.toTensor().defined() && !b.toTensor().defined();
  if (a.isDouble()) return equals(a.toDouble(), b.toDouble());
  if (a.isComplexDouble()) {
    const auto x = a.toComplexDouble(), y = b.toComplexDouble();
    return equals(x.real(), y.real()) && equals(x.imag(), y.imag());
  }
  if (a.isDoubleList()) {
    const std::vector<double> x = a.toDoubleVector(), y = b.toDoubleVector();
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](double i, double j) { return equals(i, j); });
  }
  return a == b;
}

// What has to be equal in all calls that share a compiled form, sizes aside.
bool is_alike(const ArgumentPattern& pattern, const at::Tensor& tensor) {
  return pattern.dtype == tensor.scalar_type() && pattern.device == tensor.device() && static_cast<int64_t>(pattern.sizes.size()) == tensor.dim() &&
         tensor.layout() == c10::kStrided && pattern.conjugate == tensor.is_conj() && pattern.negative == tensor.is_neg() &&
         pattern.is_wrapped_number == tensor.unsafeGetTensorImpl()->is_wrapped_number() && pattern.format == format_of(tensor) &&
         (pattern.format || tensor.strides() == c10::IntArrayRef(pattern.strides));
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
    } else if (argument.isDouble()) {
      pattern.kind = Kind::Real;
      pattern.constant = argument;
    } else if (is_constant(argument)) {
      pattern.constant = argument;
    } else {
      throw_unsupported("arguments of type {}", argument.tagKind());
    }
  }
  find_inputs();
}

void CallPattern::find_inputs() {
  std::vector<char> symbols(hints_.size()), reals(reals_);
  for (ArgumentPattern& pattern : arguments_) {
    pattern.is_input = pattern.kind == Kind::Tensor;
    const auto is_first = [](std::vector<char>& found, size_t number) { return std::exchange(found[number], 1) == 0; };
    if (pattern.is_symbol()) pattern.is_input = is_first(symbols, static_cast<size_t>(-1 - pattern.integer));
    if (pattern.real) pattern.is_input = is_first(reals, *pattern.real);
  }
}

std::vector<int64_t> CallPattern::numbers() const {
  std::vector<int64_t> all;
  for (const ArgumentPattern& pattern : arguments_) {
    all.insert(all.end(), pattern.sizes.begin(), pattern.sizes.end());
    if (pattern.kind == Kind::Integer) all.push_back(pattern.integer);
  }
  return all;
}

std::vector<c10::IValue> CallPattern::take_inputs(std::span<c10::IValue> arguments) const {
  std::vector<c10::IValue> inputs;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments_[i].is_input) inputs.push_back(std::move(arguments[i]));
  return inputs;
}

std::optional<std::vector<int64_t>> CallPattern::match(std::span<const c10::IValue> arguments) const {
  if (arguments.size() != arguments_.size()) return std::nullopt;
  std::vector<int64_t> symbols(hints_.size(), 0);
  std::vector<std::optional<double>> reals(reals_);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ArgumentPattern& pattern = arguments_[i];
    const c10::IValue& argument = arguments[i];
    switch (pattern.kind) {
      case Kind::Tensor: {
        if (!argument.isTensor() || !argument.toTensor().defined() || !is_alike(pattern, argument.toTensor())) return std::nullopt;
        const c10::IntArrayRef sizes = argument.toTensor().sizes();
        for (size_t d = 0; d < sizes.size(); ++d)
          if (!match_number(pattern.sizes[d], sizes[d], symbols)) return std::nullopt;
        break;
      }
      case Kind::Integer:
        if (!argument.isInt() || !match_number(pattern.integer, argument.toInt(), symbols)) return std::nullopt;
        break;
      case Kind::Real: {
        if (!argument.isDouble()) return std::nullopt;
        const double found = argument.toDouble();
        std::optional<double>* given = pattern.real ? &reals[*pattern.real] : nullptr;
        const double expected = given ? given->value_or(found) : pattern.constant.toDouble();
        if (bits_of(expected) != bits_of(found)) return std::nullopt;
        if (given) *given = found;
        break;
      }
      case Kind::Constant:
        if (!equals(argument, pattern.constant)) return std::nullopt;
        break;
    }
  }
  return symbols;
}

namespace {

// Makes a pattern more general, number by number. Numbers that were equal and are equal stay one.
class Generalization {
 public:
  explicit Generalization(Generality generality) : generality_(generality) {}

  // False: the number cannot be a symbol.
  bool add_size(int64_t& expected, int64_t found) {
    if (expected == found) return true;
    if (expected >= 0 && !generality_.sizes) {
      expected = found;
      return true;
    }
    if (found <= 1 || expected == 0 || expected == 1) return false;
    const auto [symbol, fresh] = symbols_.emplace(std::pair(expected, found), hints_.size());
    if (fresh) hints_.push_back(found);
    expected = ArgumentPattern::symbol(symbol->second);
    return true;
  }

  bool add_tensor(ArgumentPattern& pattern, const c10::IValue& argument) {
    if (!argument.isTensor() || !argument.toTensor().defined() || !is_alike(pattern, argument.toTensor())) return false;
    const at::Tensor& tensor = argument.toTensor();
    for (size_t d = 0; d < pattern.sizes.size(); ++d)
      if (!add_size(pattern.sizes[d], tensor.size(static_cast<int64_t>(d)))) return false;
    pattern.strides = tensor.strides().vec();
    return true;
  }

  bool add_real(ArgumentPattern& pattern, const c10::IValue& argument) {
    if (!argument.isDouble()) return false;
    const uint64_t found = bits_of(argument.toDouble());
    const uint64_t before = pattern.real ? *pattern.real : bits_of(pattern.constant.toDouble());
    if (!pattern.real && before == found) return true;
    if (!generality_.reals) return false;
    pattern.real = reals_.emplace(std::tuple(pattern.real.has_value(), before, found), reals_.size()).first->second;
    return true;
  }

  std::vector<int64_t> hints() { return std::move(hints_); }
  size_t reals() const { return reals_.size(); }

 private:
  const Generality generality_;
  std::map<std::pair<int64_t, int64_t>, size_t> symbols_;  // by what stood there and what does now
  std::vector<int64_t> hints_;
  std::map<std::tuple<bool, uint64_t, uint64_t>, size_t> reals_;  // by whether a given float stood there, likewise
};

}  // namespace

std::optional<CallPattern> CallPattern::generalized(std::span<const c10::IValue> arguments, Generality generality) const {
  if (arguments.size() != arguments_.size()) return std::nullopt;
  CallPattern general = *this;
  Generalization made(generality);
  for (size_t i = 0; i < arguments.size(); ++i) {
    ArgumentPattern& pattern = general.arguments_[i];
    bool fits = false;
    switch (pattern.kind) {
      case Kind::Tensor:
        fits = made.add_tensor(pattern, arguments[i]);
        break;
      case Kind::Integer:
        fits = arguments[i].isInt() && arguments[i].toInt() >= 0 && made.add_size(pattern.integer, arguments[i].toInt());
        pattern.constant = arguments[i];
        break;
      case Kind::Real:
        fits = made.add_real(pattern, arguments[i]);
        break;
      case Kind::Constant:
        fits = equals(arguments[i], pattern.constant);
        break;
    }
    if (!fits) return std::nullopt;
  }
  general.hints_ = made.hints();
  general.reals_ = made.reals();
  general.find_inputs();
  return general;
}

CallPattern CallPattern::with_given_reals() const {
  CallPattern given = *this;
  given.reals_ = 0;
  for (ArgumentPattern& pattern : given.arguments_)
    if (pattern.kind == Kind::Real) pattern.real = given.reals_++;
  given.find_inputs();
  return given;
}

sym::Assumptions assumptions_of(const CallPattern& pattern) {
  sym::Assumptions assumptions;
  for (size_t symbol = 0; symbol < pattern.symbol_count(); ++symbol) assumptions.set_range(symbol_name(symbol), {2, std::numeric_limits<int64_t>::max()});
  return assumptions;
}

model::SizeHints hints_of(const CallPattern& pattern) {
  model::SizeHints hints;
  for (size_t symbol = 0; symbol < pattern.symbol_count(); ++symbol) hints.emplace(symbol_name(symbol), pattern.hint(symbol));
  return hints;
}

std::optional<CallPattern> CallPattern::with_symbols(std::span<const c10::IValue> arguments, std::span<const std::vector<int64_t>> sizes, size_t symbol_count) {
  CallPattern pattern(arguments);
  if (sizes.size() != arguments.size()) return std::nullopt;
  pattern.hints_.assign(symbol_count, 0);
  const auto place = [&](int64_t& number, int64_t wanted) {
    if (!match_number(wanted, number, pattern.hints_)) return false;
    number = wanted;
    return true;
  };
  for (size_t i = 0; i < sizes.size(); ++i) {
    ArgumentPattern& argument = pattern.arguments_[i];
    std::vector<int64_t*> numbers;
    if (argument.kind == Kind::Integer) numbers.push_back(&argument.integer);
    if (argument.kind == Kind::Tensor)
      for (int64_t& size : argument.sizes) numbers.push_back(&size);
    if (numbers.size() != sizes[i].size()) return std::nullopt;
    for (size_t d = 0; d < numbers.size(); ++d)
      if (!place(*numbers[d], sizes[i][d])) return std::nullopt;
  }
  pattern.find_inputs();
  const bool all_bound = std::find(pattern.hints_.begin(), pattern.hints_.end(), 0) == pattern.hints_.end();
  return all_bound ? std::optional(std::move(pattern)) : std::nullopt;
}

CallPattern CallPattern::with_numbers(const std::vector<bool>& symbols) const {
  CallPattern pattern = *this;
  pattern.hints_.clear();
  std::vector<int64_t> replacements;
  for (size_t symbol = 0; symbol < hints_.size(); ++symbol) {
    replacements.push_back(symbols[symbol] ? hints_[symbol] : ArgumentPattern::symbol(pattern.hints_.size()));
    if (!symbols[symbol]) pattern.hints_.push_back(hints_[symbol]);
  }
  const auto replace = [&](int64_t& number) {
    if (number < 0) number = replacements[static_cast<size_t>(-1 - number)];
  };
  for (ArgumentPattern& argument : pattern.arguments_) {
    if (argument.kind == Kind::Integer) replace(argument.integer);
    for (int64_t& size : argument.sizes) replace(size);
  }
  pattern.find_inputs();
  return pattern;
}

std::vector<std::vector<int64_t>> CallPattern::symbolic_sizes() const {
  std::vector<std::vector<int64_t>> sizes;
  for (const ArgumentPattern& argument : arguments_) {
    std::vector<int64_t>& list = sizes.emplace_back();
    if (argument.kind == Kind::Tensor) list = argument.sizes;
    if (argument.kind == Kind::Integer) list = {argument.integer};
  }
  return sizes;
}

std::string kind_text(const ArgumentPattern& pattern) {
  switch (pattern.kind) {
    case Kind::Integer:
      return "integer";
    case Kind::Real:
      if (pattern.real) return fmt::format("float {}", *pattern.real);
      [[fallthrough]];
    case Kind::Constant:
      return fmt::format("constant {} {}", pattern.constant.tagKind(), c10::str(pattern.constant));
    case Kind::Tensor:
      break;
  }
  return fmt::format("{} on {} {}{}{}{}", c10::toString(pattern.dtype), pattern.device.str(),
                     pattern.format ? c10::str(*pattern.format) : fmt::format("strides {}", c10::str(pattern.strides)), pattern.conjugate ? " conjugate" : "",
                     pattern.negative ? " negative" : "", pattern.is_wrapped_number ? " number" : "");
}

std::string symbol_name(size_t symbol) { return fmt::format("s{}", symbol); }

size_t symbol_number(std::string_view name) {
  size_t number = 0;
  const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), number);
  CXXI_CHECK(error == std::errc() && end == name.data() + name.size(), "{} is not a symbol of a pattern", name);
  return number;
}

namespace {

sym::Expr size_of_number(int64_t number) { return number >= 0 ? sym::Expr(number) : sym::Expr::symbol(symbol_name(static_cast<size_t>(-1 - number))); }

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
    info.symbol = size_of_number(pattern.integer);
    return info;
  }
  info.dtype = from_torch(pattern.dtype);
  info.device = from_torch(pattern.device);
  info.conjugate = pattern.conjugate;
  info.negative = pattern.negative;
  for (int64_t size : pattern.sizes) info.sizes.push_back(size_of_number(size));
  const bool has_numbers = std::all_of(pattern.sizes.begin(), pattern.sizes.end(), [](int64_t size) { return size >= 0; });
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
