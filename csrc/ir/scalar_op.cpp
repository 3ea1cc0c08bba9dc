#include "ir/scalar_op.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "ir/registered_ops.h"
#include "ir/scalar_statements.h"
#include "support/error.h"

namespace cxxinductor {
namespace {

// ---- Functions for the evaluators of ops.def ----------------------------------------------------------------------

template <class T>
T one(T) {
  return T(1);
}
template <class T>
T zero(T) {
  return T(0);
}
template <class T>
T fraction(T, double value) {
  return static_cast<T>(value);
}
template <class T>
T smaller_real(T a, T b) {
  return a != a ? a : b != b ? b : a < b ? a : b;
}
template <class T>
T larger_real(T a, T b) {
  return a != a ? a : b != b ? b : a > b ? a : b;
}
template <class T>
T limited(T a, T high) {
  return a != a ? a : std::fmin(std::fmax(a, T(0)), high);
}

// ATen's div_floor_floating (c10/util/generic_math.h), re-expressed.
template <class T>
T floor_quotient(T a, T b) {
  if (b == 0) return a / b;
  T modulus = std::fmod(a, b);
  T quotient = (a - modulus) / b;
  if (modulus != 0 && (b < 0) != (modulus < 0)) quotient -= T(1);
  if (quotient == 0) return std::copysign(T(0), a / b);
  T floored = std::floor(quotient);
  if (quotient - floored > T(0.5)) floored += T(1);
  return floored;
}

template <class T>
T floor_remainder(T a, T b) {
  T modulus = std::fmod(a, b);
  if (modulus != 0 && (b < 0) != (modulus < 0)) modulus += b;
  return modulus;
}

template <class T>
T silu_backward(T grad, T a) {
  const T s = T(1) / (T(1) + std::exp(-a));
  return grad * s * std::fma(a, T(1) - s, T(1));
}
template <class T>
T gelu_backward(T grad, T a) {
  const T cdf = T(0.5) * (T(1) + std::erf(a * T(0.70710678118654752440)));
  const T pdf = std::exp(T(-0.5) * a * a) * T(0.39894228040143267794);
  return grad * (cdf + a * pdf);
}
template <class T>
T gelu_tanh_backward(T grad, T a) {
  const T beta = T(0.79788456080286535588), kappa = T(0.044715);
  const T t = std::tanh(beta * std::fma(kappa, a * a * a, a));
  const T left = T(0.5) * a, right = T(1) + t;
  const T inner = beta * std::fma(T(3) * kappa, a * a, T(1));
  return grad * (T(0.5) * right + left * std::fma(-t, t, T(1)) * inner);
}

template <class T>
T mish_backward(T grad, T a) {
  const T s = T(1) / (T(1) + std::exp(-a));
  const T t = std::tanh(std::log1p(std::exp(a)));
  return grad * std::fma(a * s, std::fma(-t, t, T(1)), t);
}

bool is_signed(DType dtype) { return info(dtype).dtype_class == DTypeClass::Signed; }
int64_t wrapping(int64_t a, int64_t b, char op) {
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  return static_cast<int64_t>(op == '+' ? x + y : op == '-' ? x - y : x * y);
}
bool less(int64_t a, int64_t b, DType dtype) { return dtype == DType::U64 ? static_cast<uint64_t>(a) < static_cast<uint64_t>(b) : a < b; }
int64_t larger(int64_t a, int64_t b, DType dtype) { return less(a, b, dtype) ? b : a; }
int64_t smaller(int64_t a, int64_t b, DType dtype) { return less(b, a, dtype) ? b : a; }
int64_t trunc_quotient_integer(int64_t a, int64_t b, DType dtype) {
  if (b == 0) return 0;
  if (dtype == DType::U64) return static_cast<int64_t>(static_cast<uint64_t>(a) / static_cast<uint64_t>(b));
  return b == -1 ? wrapping(0, a, '-') : a / b;
}
int64_t trunc_remainder_integer(int64_t a, int64_t b, DType dtype) {
  if (b == 0) return 0;
  if (dtype == DType::U64) return static_cast<int64_t>(static_cast<uint64_t>(a) % static_cast<uint64_t>(b));
  return b == -1 ? 0 : a % b;
}
int64_t floor_quotient_integer(int64_t a, int64_t b, DType dtype) {
  const int64_t q = trunc_quotient_integer(a, b, dtype);
  return trunc_remainder_integer(a, b, dtype) != 0 && is_signed(dtype) && (a < 0) != (b < 0) ? q - 1 : q;
}
int64_t floor_remainder_integer(int64_t a, int64_t b, DType dtype) {
  const int64_t r = trunc_remainder_integer(a, b, dtype);
  return r != 0 && is_signed(dtype) && (r < 0) != (b < 0) ? r + b : r;
}
int64_t integer_power(int64_t base, int64_t signed_exponent, DType dtype) {
  if (is_signed(dtype) && signed_exponent < 0) return base == 1 ? 1 : base == -1 ? (signed_exponent % 2 ? -1 : 1) : 0;
  int64_t result = 1;
  for (auto exponent = static_cast<uint64_t>(signed_exponent); exponent != 0; exponent /= 2) {
    if (exponent % 2) result = wrapping(result, base, '*');
    base = wrapping(base, base, '*');
  }
  return result;
}
int64_t bit_width(DType dtype) { return 8 * byte_size(dtype); }
int64_t shift_left(int64_t a, int64_t b, DType dtype) {
  if (b < 0 || b >= bit_width(dtype)) return 0;
  return static_cast<int64_t>(static_cast<uint64_t>(a) << b);
}
// Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC 2011). The words of one call of a sequence.
std::array<uint32_t, 4> philox_words(int64_t seed, uint64_t call, uint32_t sequence) {
  std::array<uint32_t, 4> c{static_cast<uint32_t>(call), static_cast<uint32_t>(call >> 32), sequence, 0};
  auto low = static_cast<uint32_t>(seed), high = static_cast<uint32_t>(static_cast<uint64_t>(seed) >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * c[0], b = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ low, static_cast<uint32_t>(b), static_cast<uint32_t>(a >> 32) ^ c[3] ^ high, static_cast<uint32_t>(a)};
    low += 0x9E3779B9;
    high += 0xBB67AE85;
  }
  return c;
}
int64_t philox_word(int64_t seed, int64_t call, int64_t position, int64_t fours, int64_t threads) {
  const auto four = static_cast<uint32_t>(static_cast<uint64_t>(position) >> 2);
  const uint32_t width = std::max(1u, static_cast<uint32_t>(fours)), all = std::max(1u, static_cast<uint32_t>(threads));
  const uint64_t number = static_cast<uint64_t>(call) + static_cast<uint64_t>(four / width / all) * width + four % width;
  return philox_words(seed, number, four / width % all)[static_cast<uint64_t>(position) & 3];
}
int64_t philox_pair(int64_t seed, int64_t call, int64_t sequence, int64_t pair) {
  const auto words = philox_words(seed, static_cast<uint64_t>(call), static_cast<uint32_t>(sequence));
  const size_t first = 2 * (static_cast<uint64_t>(pair) & 1);
  return static_cast<int64_t>(uint64_t{words[first]} << 32 | words[first + 1]);
}
int64_t shift_right(int64_t a, int64_t b, DType dtype) {
  if (!is_signed(dtype)) return b < 0 || b >= bit_width(dtype) ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) >> b);
  if (b < 0 || b >= bit_width(dtype)) return a < 0 ? -1 : 0;
  return a >> b;
}

template <class F>
double real_result(F f, const double* x) {
  return static_cast<double>(f(x[0], x[1], x[2], x[3], x[4]));
}
template <class F>
double math_result(F f, const double* x, bool single) {
  if (!single) return f(x[0], x[1], x[2], x[3], x[4]);
  const auto at = [&](int i) { return static_cast<float>(x[i]); };
  return f(at(0), at(1), at(2), at(3), at(4));
}

#define CXXI_OPERANDS(T) [[maybe_unused]] T a, [[maybe_unused]] T b, [[maybe_unused]] T c, [[maybe_unused]] T d, [[maybe_unused]] T e
#define REAL(...) [](const double* x, bool) { return real_result([](CXXI_OPERANDS(double)) { return __VA_ARGS__; }, x); }
#define MATH(...) [](const double* x, bool single) { return math_result([](CXXI_OPERANDS(auto)) { return __VA_ARGS__; }, x, single); }
#define INTEGER(...)                                                                 \
  [](const int64_t* x, [[maybe_unused]] DType dtype) -> int64_t {                    \
    [[maybe_unused]] const int64_t a = x[0], b = x[1], c = x[2], d = x[3], e = x[4]; \
    return static_cast<int64_t>(__VA_ARGS__);                                        \
  }
#define OP(enumerator, ...) ScalarOpInfo{__VA_ARGS__},
constexpr std::array op_rows{
#include "ir/ops.def"
};
#undef OP

// ---- Validity of rows ----------------------------------------------------------------------------------------------

constexpr bool is_name(std::string_view name) {
  bool letters = !name.empty() && name[0] >= 'a' && name[0] <= 'z';
  for (char c : name) letters = letters && ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_');
  return letters;
}

// Placeholders are {0} to {arity - 1}, {T} and {f}; every operand is used.
constexpr bool is_spelling(std::string_view text, int arity) {
  if (text.empty()) return true;
  unsigned used = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '{') continue;
    if (i + 2 >= text.size() || text[i + 2] != '}') return false;
    if (text[i + 1] == 'T' || text[i + 1] == 'f') continue;
    if (text[i + 1] < '0' || text[i + 1] >= '0' + arity) return false;
    used |= 1u << (text[i + 1] - '0');
  }
  return used == (1u << arity) - 1;
}

constexpr bool has_meaning(const ScalarOpInfo& row) {
  if (row.rule == TypeRule::Cast) return true;
  const bool real = row.eval_real != nullptr, integer = row.eval_integer != nullptr;
  switch (row.types) {
    case TypeSet::Floating:
      return real && !integer;
    case TypeSet::Integral:
    case TypeSet::IntegralOrBool:
      return integer && !real;
    case TypeSet::Numeric:
    case TypeSet::Any:
      return real && integer;
  }
  return false;
}

constexpr bool has_arity(const ScalarOpInfo& row) {
  switch (row.rule) {
    case TypeRule::Cast:
    case TypeRule::Identity:
      return row.arity == 1;
    case TypeRule::Select:
      return row.arity == 3;
    case TypeRule::Same:
    case TypeRule::Predicate:
      break;
  }
  if (row.traits.commutative) return row.arity == 2;
  return row.arity >= 1 && row.arity <= 5;
}

// The number of the first invalid row, or the number of rows if all are valid: the compiler's message about the assertion
// below shows it.
constexpr size_t first_invalid_row() {
  for (size_t i = 0; i < op_rows.size(); ++i) {
    const ScalarOpInfo& row = op_rows[i];
    bool sound = is_name(row.name) && !row.doc.empty() && has_arity(row) && has_meaning(row);
    for (std::string_view spelling : {row.cuda_real, row.cuda_integer, row.cpu_real, row.cpu_integer}) sound = sound && is_spelling(spelling, row.arity);
    sound = sound && (row.sleef.empty() || row.traits.transcendental);
    sound = sound && (row.aten.empty() || row.aten.find('.') != row.aten.npos);
    for (size_t j = 0; j < i; ++j) sound = sound && op_rows[j].name != row.name;
    if (!sound) return i;
  }
  return op_rows.size();
}
static_assert(first_invalid_row() == op_rows.size());

}  // namespace

const ScalarOpInfo& info(ScalarOp op) {
  const size_t index = static_cast<size_t>(op);
  return index < op_rows.size() ? op_rows[index] : registered_scalar_op(index - op_rows.size());
}
std::span<const ScalarOpInfo> scalar_ops() { return op_rows; }

std::optional<ScalarOp> find_scalar_op(std::string_view name) {
  for (size_t i = 0; i < op_rows.size(); ++i) {
    if (op_rows[i].name == name) return static_cast<ScalarOp>(i);
  }
  if (const auto found = find_registered_scalar_op_named(name)) return static_cast<ScalarOp>(op_rows.size() + *found);
  return std::nullopt;
}

bool accepts(TypeSet set, DType dtype) {
  switch (set) {
    case TypeSet::Floating:
      return is_float(dtype);
    case TypeSet::Integral:
      return is_integer(dtype);
    case TypeSet::IntegralOrBool:
      return is_integer(dtype) || dtype == DType::Bool;
    case TypeSet::Numeric:
      return is_float(dtype) || is_integer(dtype);
    case TypeSet::Any:
      return !is_opaque(dtype);
  }
  return false;
}

DType result_dtype(ScalarOp op, DType operand, DType cast_to) {
  switch (info(op).rule) {
    case TypeRule::Predicate:
      return DType::Bool;
    case TypeRule::Cast:
      return cast_to;
    case TypeRule::Same:
    case TypeRule::Select:
    case TypeRule::Identity:
      return operand;
  }
  return operand;
}

bool can_evaluate(ScalarOp op, std::span<const Scalar> operands, DType cast_to) {
  const ScalarOpInfo& row = info(op);
  if (row.registered && !row.definition) return false;
  return row.rule != TypeRule::Cast || is_same_on_all_devices(operands[0], cast_to);
}

Scalar evaluate(ScalarOp op, std::span<const Scalar> operands, DType cast_to) {
  const ScalarOpInfo& row = info(op);
  CXXI_CHECK(operands.size() == static_cast<size_t>(row.arity), "{} takes {} operands, found {}", row.name, row.arity, operands.size());
  if (row.rule == TypeRule::Cast) return cast(operands[0], cast_to);
  if (row.rule == TypeRule::Identity) return operands[0];
  if (row.rule == TypeRule::Select) return operands[0].truth() ? operands[1] : operands[2];
  const DType type = operands[0].dtype();
  if (row.definition) return row.definition->run({operands.begin(), operands.end()}, type).front();
  if (row.registered) throw_user_error("{} cannot be evaluated: register it with a definition", row.name);
  const DType result = result_dtype(op, type, cast_to);
  if (is_float(type)) {
    CXXI_CHECK(row.eval_real != nullptr, "{} has no meaning on {}", row.name, to_string(type));
    double values[5] = {};
    for (size_t i = 0; i < operands.size(); ++i) values[i] = operands[i].real();
    return Scalar::from_real(result, row.eval_real(values, type != DType::F64));
  }
  CXXI_CHECK(row.eval_integer != nullptr, "{} has no meaning on {}", row.name, to_string(type));
  int64_t values[5] = {};
  for (size_t i = 0; i < operands.size(); ++i) values[i] = operands[i].integer();
  return Scalar::from_integer(result, row.eval_integer(values, type));
}

}  // namespace cxxinductor
