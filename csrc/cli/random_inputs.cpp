#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string_view>

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
    if (sizes[d] < 0 || strides[d] < 0)
      throw_user_error("random inputs: size {} with stride {} is not possible; choose sizes with --size", sizes[d], strides[d]);
    if (sizes[d] == 0) return 0;
    int64_t step = 0;
    if (__builtin_mul_overflow(sizes[d] - 1, strides[d], &step) || __builtin_add_overflow(count, step, &count))
      throw_user_error("random inputs: a tensor of size {} with stride {} is too large; choose sizes with --size", sizes[d], strides[d]);
  }
  return count;
}

// Drawn in a dtype that every device has, and on the CPU, so that a seed means the same everywhere.
at::Tensor random_elements(int64_t count, c10::ScalarType dtype, c10::Device device) {
  const bool whole = c10::isIntegralType(dtype, /*includeBool=*/true);
  const at::Tensor drawn = whole ? at::randint(0, 2, {count}) : at::randn({count}, c10::isComplexType(dtype) ? at::kComplexFloat : at::kFloat);
  return drawn.to(at::TensorOptions().dtype(dtype).device(device));
}

at::Tensor random_tensor(const model::CallValueInfo& info, const Symbols& symbols) {
  const std::vector<int64_t> sizes = values_of(info.sizes, symbols), strides = values_of(info.strides, symbols);
  const c10::ScalarType dtype = torch_bridge::to_torch(info.dtype);
  return random_elements(reach(sizes, strides), dtype, torch_bridge::to_torch(info.device)).as_strided(sizes, strides);
}

// "1, 3, 224" between brackets.
std::vector<int64_t> parse_sizes(std::string_view list, const std::string& text) {
  std::vector<int64_t> sizes;
  while (list.find_first_not_of(' ') != list.npos) {
    list.remove_prefix(list.find_first_not_of(' '));
    int64_t size = -1;
    const char* const last = list.data() + list.size();
    const auto [end, error] = std::from_chars(list.data(), last, size);
    list.remove_prefix(static_cast<size_t>(end - list.data()));
    list.remove_prefix(std::min(list.find_first_not_of(' '), list.size()));
    if (error != std::errc() || size < 0 || !(list.empty() || list.front() == ',')) throw_user_error("--input: expected sizes, found '{}'", text);
    sizes.push_back(size);
    if (!list.empty()) list.remove_prefix(1);
  }
  return sizes;
}

std::optional<c10::IValue> parse_scalar(const std::string& text) {
  if (text == "True" || text == "False") return text == "True";
  if (text == "None") return c10::IValue();
  const char* const end = text.data() + text.size();
  int64_t whole = 0;
  if (const auto found = std::from_chars(text.data(), end, whole); found.ec == std::errc() && found.ptr == end) return whole;
  double real = 0;
  if (const auto found = std::from_chars(text.data(), end, real); found.ec == std::errc() && found.ptr == end) return real;
  return std::nullopt;
}

void require_device(Device device) {
  try {
    at::empty({0}, at::TensorOptions().device(torch_bridge::to_torch(device)));
  } catch (const c10::Error&) {  // torch lists its kernels
    throw_user_error("--input: this machine has no device {}", to_string(device));
  }
}

}  // namespace

c10::IValue make_random_input(const std::string& text) {
  if (auto scalar = parse_scalar(text)) return std::move(*scalar);
  constexpr std::string_view on = " on ";
  const size_t open = text.find('['), close = text.find(']');
  const auto dtype = find_dtype(text.substr(0, std::min(open, text.size())));
  if (!dtype || close == text.npos || close < open)
    throw_user_error("--input: expected a tensor as f32[1, 3, 224, 224], a number, True, False or None, found '{}'", text);
  std::optional<Device> device = Device();
  if (const std::string rest = text.substr(close + 1); !rest.empty())
    device = rest.starts_with(on) ? find_device(std::string_view(rest).substr(on.size())) : std::nullopt;
  if (!device) throw_user_error("--input: expected a device behind the sizes, as f32[2, 3] on cuda:0, found '{}'", text);
  require_device(*device);
  const std::vector<int64_t> sizes = parse_sizes(std::string_view(text).substr(open + 1, close - open - 1), text);
  constexpr int64_t most = int64_t{1} << 48;
  int64_t count = 1;
  for (const int64_t size : sizes)
    if (__builtin_mul_overflow(count, size, &count) || count > most) throw_user_error("--input: expected a tensor that fits into memory, found '{}'", text);
  return random_elements(count, torch_bridge::to_torch(*dtype), torch_bridge::to_torch(*device)).view(sizes);
}

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
