#include "codegen/cpu/spelling.h"

#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "codegen/spelling.h"
#include "support/error.h"

namespace cxxinductor::codegen {
namespace {

std::string parameters(int count, std::string_view type) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("{}{} {}", i > 0 ? ", " : "", type, static_cast<char>('a' + i));
  return text;
}

}  // namespace

std::string cpu_dtype_tag(DType dtype) {
  if (is_opaque(dtype)) throw_unsupported("kernels do not compute with dtype {}", to_string(dtype));
  if (dtype == DType::Bool) return "cxxi::boolean";
  return fmt::format("cxxi::{}", to_string(dtype));
}

std::string_view cpu_compute_type(DType dtype) {
  if (compute_type(dtype) != dtype || is_opaque(dtype)) throw_internal("{} is no compute type", to_string(dtype));
  return info(dtype).c;
}

std::string cpu_literal(const Scalar& value) {
  const DType dtype = value.dtype();
  if (dtype == DType::Bool) return value.truth() ? "true" : "false";
  if (is_float(dtype)) {
    const bool wide = dtype == DType::F64;
    const double real = value.real();
    std::string text;
    if (std::isnan(real)) {
      text = fmt::format("{}__builtin_nan{}(\"\")", std::signbit(real) ? "-" : "", wide ? "" : "f");
    } else if (std::isinf(real)) {
      text = fmt::format("{}__builtin_inf{}()", real < 0 ? "-" : "", wide ? "" : "f");
    } else if (real == 0) {  // versions of fmt differ in its exponent
      text = fmt::format("{}0x0p+0{}", std::signbit(real) ? "-" : "", wide ? "" : "f");
    } else {
      text = fmt::format("{:a}{}", real, wide ? "" : "f");
    }
    if (wide || dtype == DType::F32) return text;
    return fmt::format("cxxi::cast<{}, cxxi::f32>({})", cpu_dtype_tag(dtype), text);
  }
  const std::string_view type = cpu_compute_type(dtype);
  if (dtype == DType::U64) return fmt::format("{}ULL", static_cast<uint64_t>(value.integer()));
  if (value.integer() == std::numeric_limits<int64_t>::min()) return "(-9223372036854775807LL - 1)";
  return fmt::format("static_cast<{}>({}LL)", type, value.integer());
}

std::string cpu_math_slot(std::string_view sleef, DType dtype) { return fmt::format("cxxi_slot_{}_{}", sleef, to_string(dtype)); }

std::string cpu_expression(const ScalarOpInfo& op, DType dtype) {
  const std::array<std::string, 5> names{"a", "b", "c", "d", "e"};
  const std::string_view row = is_float(dtype) ? op.cpu_real : op.cpu_integer;
  return applied_op(op, row, dtype, cpu_compute_type(dtype), std::span(names).first(static_cast<size_t>(op.arity)));
}

std::string cpu_apply(const ScalarOpInfo& op, DType from, DType to, const std::string& lanes, const std::vector<std::string>& operands) {
  const std::string list = fmt::format("{}", fmt::join(operands, ", "));
  switch (op.rule) {
    case TypeRule::Identity:
      return list;
    case TypeRule::Cast:
      return fmt::format("cxxi::cast<{}, {}>({})", cpu_dtype_tag(to), cpu_dtype_tag(from), list);
    case TypeRule::Select:
      return fmt::format("cxxi::select({})", list);
    case TypeRule::Same:
    case TypeRule::Predicate:
      break;
  }
  const std::string spelled = cpu_expression(op, from);
  if (op.registered) {  // its text is about one element
    const std::string typed = parameters(op.arity, cpu_compute_type(from));
    return fmt::format("cxxi::apply<{}, {}>([]({}) -> {} {{ return {}; }}, {})", cpu_compute_type(to), lanes, typed, cpu_compute_type(to), spelled, list);
  }
  const std::string function = fmt::format("[]({}) -> decltype({}) {{ return {}; }}", parameters(op.arity, "auto"), spelled, spelled);
  if (!op.sleef.empty() && is_float(from)) {
    return fmt::format("cxxi::call_math<{}, {}, {}>({}, {})", cpu_math_slot(op.sleef, from), cpu_compute_type(from), lanes, function, list);
  }
  // A single lane of a function that is composed of vector ones takes the same steps: tails equal the rest bit for bit.
  const bool as_vector = op.traits.transcendental && is_float(from);
  return fmt::format("cxxi::{}<{}, {}>({}, {})", as_vector ? "apply_as_vector" : "apply", cpu_compute_type(to), lanes, function, list);
}

}  // namespace cxxinductor::codegen
