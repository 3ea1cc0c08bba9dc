#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "api/signature.h"
#include "cli/inputs.h"
#include "support/error.h"
#include "torch_bridge/types.h"

namespace cxxinductor::cli {
namespace {

using readers::InputSpec;

class Symbols {
 public:
  explicit Symbols(const readers::Program& program) : assumptions_(program.calls.assumptions) {
    for (const InputSpec& spec : program.signature.inputs) {
      if (spec.kind != InputSpec::Kind::User) continue;
      const model::CallValueInfo& info = program.calls.values[program.calls.inputs[spec.index]];
      add(info.symbol);
      for (const auto& expressions : {info.sizes, info.strides})
        for (sym::Expr e : expressions) add(e);
    }
  }
  void set(const std::string& text) {
    const size_t equals = text.find('=');
    int64_t value = 0;
    const char* const end = text.data() + text.size();
    if (equals == text.npos || std::from_chars(text.data() + equals + 1, end, value).ptr != end || equals + 1 == text.size())
      throw_user_error("--size: expected symbol=value, found '{}'", text);
    const auto symbol = values_.find(text.substr(0, equals));
    if (symbol == values_.end()) throw_user_error("--size: no input has the symbol '{}'; the symbols of the inputs: {}", text.substr(0, equals), known());
    symbol->second = value;
  }
  int64_t value_of(sym::Expr e) const {
    return sym::evaluate(e, [this](std::string_view symbol) { return values_.find(symbol)->second; });
  }

 private:
  // Small, in the symbol's range, and a multiple of its divisor.
  int64_t chosen(std::string_view symbol) const {
    constexpr int64_t usual = 8;
    const sym::Interval range = assumptions_.range(symbol);
    const int64_t divisor = assumptions_.divisor(symbol), start = std::clamp(usual, range.low, range.high);
    const int64_t above = start + (divisor - start % divisor) % divisor;
    return above <= range.high ? above : start - start % divisor;
  }
  void add(sym::Expr e) {
    for (sym::Expr symbol : e.free_symbols()) values_.try_emplace(std::string(symbol.name()), chosen(symbol.name()));
  }
  std::string known() const {
    std::string names;
    for (const auto& [name, value] : values_) names += (names.empty() ? "" : ", ") + name;
    return names.empty() ? "none" : names;
  }

  const sym::Assumptions& assumptions_;
  std::map<std::string, int64_t, std::less<>> values_;
};

std::vector<int64_t> values_of(const std::vector<sym::Expr>& expressions, const Symbols& symbols) {
  std::vector<int64_t> values;
  for (sym::Expr e : expressions) values.push_back(symbols.value_of(e));
  return values;
}

// How many elements of a storage such a tensor reaches.
int64_t reach(const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) {
  int64_t count = 1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] < 0 || strides[d] < 0) throw_user_error("random inputs: size {} with stride {} is not possible; choose sizes with --size", sizes[d], strides[d]);
    if (sizes[d] == 0) return 0;
    int64_t step = 0;
    if (__builtin_mul_overflow(sizes[d] - 1, strides[d], &step) || __builtin_add_overflow(count, step, &count))
      throw_user_error("random inputs: a tensor of size {} with stride {} is too large; choose sizes with --size", sizes[d], strides[d]);
  }
  return count;
}

at::Tensor random_tensor(const model::CallValueInfo& info, const Symbols& symbols) {
  const std::vector<int64_t> sizes = values_of(info.sizes, symbols), strides = values_of(info.strides, symbols);
  const c10::ScalarType dtype = torch_bridge::to_torch(info.dtype);
  const int64_t count = reach(sizes, strides);
  const bool whole = c10::isIntegralType(dtype, /*includeBool=*/true);
  // Drawn in a dtype that every device has, and on the CPU, so that a seed means the same everywhere.
  const at::Tensor drawn = whole ? at::randint(0, 2, {count}) : at::randn({count}, c10::isComplexType(dtype) ? at::kComplexFloat : at::kFloat);
  return drawn.to(at::TensorOptions().dtype(dtype).device(torch_bridge::to_torch(info.device))).as_strided(sizes, strides);
}

}  // namespace

std::vector<c10::IValue> make_random_inputs(const readers::Program& program, const std::vector<std::string>& sizes, int64_t seed) {
  Symbols symbols(program);
  for (const std::string& size : sizes) symbols.set(size);
  at::manual_seed(static_cast<uint64_t>(seed));
  std::vector<c10::IValue> inputs;
  for (const InputSpec& spec : program.signature.inputs) {
    if (spec.kind == InputSpec::Kind::Literal) inputs.push_back(api::literal_value(spec.name, spec.literal));
    if (spec.kind != InputSpec::Kind::User) continue;
    const model::CallValueInfo& info = program.calls.values[program.calls.inputs[spec.index]];
    if (info.kind == model::CallValueInfo::Kind::Tensor)
      inputs.emplace_back(random_tensor(info, symbols));
    else if (info.kind == model::CallValueInfo::Kind::SymInt)
      inputs.emplace_back(symbols.value_of(info.symbol));
    else
      throw_unsupported("random inputs: '{}' is neither a tensor nor an integer; give inputs with --inputs", spec.name);
  }
  return inputs;
}

}  // namespace cxxinductor::cli
