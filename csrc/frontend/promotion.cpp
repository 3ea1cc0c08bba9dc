#include "frontend/promotion.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/device_types.h"

namespace cxxinductor::frontend {
namespace {

DType dtype_of(const ScalarArg& number) {
  if (std::holds_alternative<bool>(number)) return DType::Bool;
  return std::holds_alternative<double>(number) || std::holds_alternative<GivenReal>(number) ? DType::F32 : DType::I64;
}

bool holds(DType dtype, int64_t value) {
  if (dtype == DType::Bool) return value == 0 || value == 1;
  if (dtype == DType::I64) return true;
  if (dtype == DType::U64) return value >= 0;
  return Scalar::from_integer(dtype, value).integer() == value;
}

}  // namespace

std::optional<DType> common_dtype(const graph::Graph& graph, std::span<const Term> terms) {
  using model::OperandKind;
  std::vector<model::PromotedOperand> operands;
  for (const Term& term : terms) {
    if (const auto* id = std::get_if<ValueId>(&term)) {
      const graph::Value& value = graph.value(*id);
      operands.push_back({value.dtype, value.sizes.empty() ? OperandKind::ZeroDimensional : OperandKind::Dimensioned});
    } else if (const auto* known = std::get_if<KnownScalar>(&term)) {
      operands.push_back({known->dtype, OperandKind::ZeroDimensional});
    } else {
      operands.push_back({dtype_of(std::get<ScalarArg>(term)), OperandKind::Number});
    }
  }
  const auto common = model::common_dtype(operands);
  return common && is_opaque(*common) ? std::nullopt : common;
}

std::optional<Operand> number_operand(const CallContext& context, const ScalarArg& number, DType dtype) {
  const auto* given = std::get_if<GivenReal>(&number);
  if (given == nullptr) return immediate(number, dtype);
  return is_float(dtype) ? std::optional<Operand>(context.in_compute_type(*given, dtype)) : std::nullopt;
}

std::optional<Operand> immediate(const ScalarArg& number, DType dtype) {
  const DType compute = compute_type(dtype);
  if (const auto* symbol = std::get_if<sym::Expr>(&number)) return Operand(*symbol);
  if (std::holds_alternative<GivenReal>(number)) return std::nullopt;
  if (is_float(dtype)) return Operand(Scalar::from_real(compute, *constant_real(number)));
  if (const auto* real = std::get_if<double>(&number)) {
    if (std::trunc(*real) != *real || std::abs(*real) >= 0x1p53) return std::nullopt;
    return immediate(ScalarArg(static_cast<int64_t>(*real)), dtype);
  }
  const int64_t integer = std::holds_alternative<bool>(number) ? std::get<bool>(number) : std::get<int64_t>(number);
  if (!holds(dtype, integer)) return std::nullopt;
  return Operand(Scalar::from_integer(compute, integer));
}

bool may_fill(DType dtype, const ScalarArg& number) {
  const auto real = constant_real(number);
  if (!real || !is_float(dtype) || !std::isfinite(*real)) return true;
  const double largest = dtype == DType::F16 ? 65504 : dtype == DType::BF16 ? 0x1.FEp127 : std::numeric_limits<float>::max();
  return dtype == DType::F64 || std::abs(*real) <= largest;
}

Operand rounded_number(const CallContext& context, Operand number, DType dtype) {
  const DType compute = compute_type(dtype);
  if (const auto* scalar = std::get_if<Scalar>(&number)) return Operand(Scalar::from_real(compute, round_to(dtype, scalar->real())));
  if (const auto* value = std::get_if<ValueId>(&number)) return Operand(context.build.cast(context.build.cast(*value, dtype), compute));
  return number;
}

const ScalarArg* scalar_arg_of(const Term& term) {
  if (const auto* known = std::get_if<KnownScalar>(&term)) return &known->value;
  return std::get_if<ScalarArg>(&term);
}

namespace {

// The value of a rank-0 tensor that a `full` made, rounded to the tensor's dtype.
std::optional<ScalarArg> known_value(const graph::Graph& graph, ValueId id) {
  const graph::Value& value = graph.value(id);
  if (!value.sizes.empty() || !value.producer.valid()) return std::nullopt;
  const graph::Node& node = graph.nodes[value.producer];
  if (node.as<graph::Full>() == nullptr) return std::nullopt;
  if (const auto* symbol = std::get_if<sym::Expr>(&node.operands.front())) {
    return value.dtype == DType::I64 ? std::optional(ScalarArg(*symbol)) : std::nullopt;
  }
  const auto* scalar = std::get_if<Scalar>(&node.operands.front());
  if (scalar == nullptr) return std::nullopt;
  if (is_float(value.dtype)) return ScalarArg(round_to(value.dtype, scalar->as_real()));
  if (value.dtype == DType::Bool) return ScalarArg(scalar->truth());
  return ScalarArg(scalar->as_integer());
}

bool on_host(const CallContext& context, ValueId id) { return in_host_memory(context.value(id).device) && !in_host_memory(context.result().device); }

bool is_view(const CallContext& context, ValueId id) {
  const graph::NodeId producer = context.value(id).producer;
  return producer.valid() && graph::is_view(context.build.graph().nodes[producer].kind);
}

// Whether a CPU scalar becomes an argument of a GPU kernel in `held`, not in its own dtype, which is neither that nor the op's.
bool is_converted(const CallContext& context, ValueId id, DType dtype, DType held) { return context.dtype(id) != dtype && context.dtype(id) != held; }

}  // namespace

std::optional<std::vector<Operand>> operands_in(CallContext& context, std::span<const Term> terms, DType dtype, ScalarRounding rounding) {
  const bool narrow = is_float(dtype) && compute_type(dtype) != dtype;
  const auto stays_wide = [&](size_t i) { return rounding == ScalarRounding::Never || (rounding == ScalarRounding::ButSecond && i == 1); };
  bool dimensioned = false;
  std::vector<Operand> operands(terms.size(), Operand(sym::Expr()));
  for (size_t i = 0; i < terms.size(); ++i) {  // numbers first: nothing is built when one does not fit
    if (const ScalarArg* number = scalar_arg_of(terms[i])) {
      const auto converted = number_operand(context, *number, dtype);
      if (!converted) return std::nullopt;
      operands[i] = narrow && context.eager().rounds_numbers && !stays_wide(i) ? rounded_number(context, *converted, dtype) : *converted;
    } else {
      dimensioned = dimensioned || context.rank(std::get<ValueId>(terms[i])) > 0;
    }
  }
  const bool keeps_rank0 = narrow && dimensioned && context.eager().one_element_in_compute_type;
  // Kernels of a GPU hold scalars of the CPU in the type that they compute in.
  const DType held = narrow && dimensioned ? compute_type(dtype) : dtype;
  for (const Term& term : terms) {
    const auto* id = std::get_if<ValueId>(&term);
    if (!id || !on_host(context, *id) || context.cpu_kernels() || context.is_scalar_constant(*id)) continue;
    // The CPU would have to convert it, or to take it out of a tensor.
    if (is_view(context, *id) || is_converted(context, *id, dtype, held)) return std::nullopt;
  }
  for (size_t i = 0; i < terms.size(); ++i) {
    const auto* id = std::get_if<ValueId>(&terms[i]);
    if (!id) continue;
    if (!on_host(context, *id))
      operands[i] = context.build.cast(*id, keeps_rank0 && stays_wide(i) && context.rank(*id) == 0 ? compute_type(dtype) : dtype);
    else if (const auto number = context.scalar_constant_on_result_device(*id))
      operands[i] = context.build.cast(*number, held);
    else
      operands[i] = is_converted(context, *id, dtype, held) ? context.build.cast(*id, held) : *id;
  }
  return operands;
}

std::optional<Term> term(const CallContext& context, size_t position, std::string_view name) {
  const Arg* arg = context.find(position, name);
  if (arg == nullptr) return std::nullopt;
  if (const auto id = context.as_tensor(*arg)) {
    if (on_host(context, *id)) {
      const auto number = known_value(context.build.graph(), *id);
      return number ? Term(KnownScalar{*number, context.dtype(*id)}) : Term(*id);
    }
    return Term(*id);
  }
  const auto number = context.scalar_arg(position, name);
  return number ? std::optional(Term(*number)) : std::nullopt;
}

}  // namespace cxxinductor::frontend
