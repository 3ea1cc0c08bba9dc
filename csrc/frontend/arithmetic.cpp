// add, sub, mul, div and pow: ATen's kernels of these ops depend on the kind of their arguments.
#include <cmath>

#include "frontend/aten_table.h"
#include "frontend/pointwise.h"
#include "ir/device_types.h"

namespace cxxinductor::frontend {
namespace {

bool is_one(const ScalarArg& number) { return constant_real(number) == 1.0; }

// a + alpha * b, or a - alpha * b; one rounding, as in eager's kernel.
Results import_sum(CallContext& context, std::vector<Term> terms, ScalarOp plain, ScalarOp weighted) {
  const Arg* given = context.find(2, "alpha");
  const auto alpha = context.scalar_arg(2, "alpha");
  if (given != nullptr && !alpha) return std::nullopt;
  const auto dtype = common_dtype(context.build.graph(), terms);
  if (!dtype) return std::nullopt;
  const bool unit = !alpha || is_one(*alpha);
  if (*dtype == DType::Bool) {  // the sum of bools is or; eager rejects their difference
    if (plain != ScalarOp::Add || !unit) return std::nullopt;
    return apply(context, ScalarOp::LogicalOr, terms, *dtype);
  }
  if (unit) return apply(context, plain, terms, *dtype);
  if (!is_float(*dtype) && (std::holds_alternative<double>(*alpha) || std::holds_alternative<GivenReal>(*alpha))) return std::nullopt;
  terms.push_back(*alpha);
  return apply(context, weighted, terms, *dtype);
}

Results import_add(CallContext& context) {
  auto terms = terms_of(context, {"self", "other"});
  return terms ? import_sum(context, std::move(*terms), ScalarOp::Add, ScalarOp::AddAlpha) : std::nullopt;
}

Results import_sub(CallContext& context) {
  auto terms = terms_of(context, {"self", "other"});
  return terms ? import_sum(context, std::move(*terms), ScalarOp::Sub, ScalarOp::SubAlpha) : std::nullopt;
}

Results import_rsub(CallContext& context) {
  auto terms = terms_of(context, {"self", "other"});
  if (!terms) return std::nullopt;
  std::swap((*terms)[0], (*terms)[1]);
  return import_sum(context, std::move(*terms), ScalarOp::Sub, ScalarOp::SubAlpha);
}

Results import_mul(CallContext& context) {
  const auto terms = terms_of(context, {"self", "other"});
  const auto dtype = terms ? common_dtype(context.build.graph(), *terms) : std::nullopt;
  if (!dtype) return std::nullopt;
  if (*dtype == DType::Bool) return apply(context, ScalarOp::LogicalAnd, *terms, *dtype);
  return apply(context, ScalarOp::Mul, *terms, *dtype, ScalarRounding::ButSecond);
}

enum class Rounding : uint8_t { None, Floor, Trunc };

// Whether eager's kernel takes the divisor by value: it holds it in the compute type, and rounds the quotient once.
bool is_by_value(const CallContext& context, const Term& divisor) {
  const auto* id = std::get_if<ValueId>(&divisor);
  if (id == nullptr) return true;
  const graph::Value& value = context.value(*id);
  if (context.eager().one_element_in_compute_type) return graph::element_count(value.sizes).is_constant(1);
  return value.device != context.result().device;
}

// A divisor that is taken by value, in the compute type.
Operand held_divisor(CallContext& context, const Operand& divisor, DType dtype) {
  const DType compute = compute_type(dtype);
  if (const auto* symbol = std::get_if<sym::Expr>(&divisor)) return Operand(context.build.full(Operand(*symbol), compute, context.result().device, {}));
  const auto* id = std::get_if<ValueId>(&divisor);
  return id == nullptr || context.dtype(*id) == compute ? divisor : Operand(context.apply_to_number(ScalarOp::Cast, *id, compute));
}

// The operand; a tensor of the CPU among operands of a GPU as a value of the GPU in that type.
Operand on_result_device(CallContext& context, const Operand& operand, DType dtype) {
  const auto* id = std::get_if<ValueId>(&operand);
  if (id == nullptr || context.value(*id).device == context.result().device) return operand;
  return Operand(context.apply_to_number(context.dtype(*id) == dtype ? ScalarOp::Identity : ScalarOp::Cast, *id, dtype));
}

// Computed once on the host by eager's CUDA kernel.
Operand inverse(CallContext& context, const Operand& divisor, DType dtype) {
  const DType compute = compute_type(dtype);
  const auto* constant = std::get_if<Scalar>(&divisor);  // two roundings of a quotient of singles equal one
  return constant != nullptr ? Operand(Scalar::from_real(compute, 1.0 / constant->real()))
                             : Operand(context.apply_to_number(ScalarOp::Reciprocal, std::get<ValueId>(divisor), compute));
}

// Where the remainder has the other sign than the divisor.
ValueId crosses_zero(graph::Builder& build, ValueId remainder, const Operand& divisor, const Operand& zero) {
  const auto* constant = std::get_if<Scalar>(&divisor);
  if (constant != nullptr) return build.elementwise(constant->real() < 0 ? ScalarOp::Gt : ScalarOp::Lt, {remainder, zero});
  const ValueId differs =
      build.elementwise(ScalarOp::LogicalXor, {build.elementwise(ScalarOp::Lt, {divisor, zero}), build.elementwise(ScalarOp::Lt, {remainder, zero})});
  return build.elementwise(ScalarOp::LogicalAnd, {differs, build.elementwise(ScalarOp::Ne, {remainder, zero})});
}

// c10's div_floor_floating in the steps of eager's kernels: up to the quotient's floor each is rounded to `step`, from there on to `dtype`.
template <class Divide>
ValueId floor_quotient(graph::Builder& build, const Operand& dividend, const Operand& divisor, DType step, DType dtype, const Divide& divide) {
  const auto number = [&](double value) { return Operand(immediate_real(step, value)); };
  const ValueId basic = divide(dividend);
  const auto* constant = std::get_if<Scalar>(&divisor);
  if (constant != nullptr && constant->real() == 0) return build.cast(basic, dtype);
  const ValueId remainder = build.elementwise(ScalarOp::Fmod, {dividend, divisor});
  const ValueId whole = divide(Operand(build.elementwise(ScalarOp::Sub, {dividend, remainder})));
  const ValueId below = build.elementwise(ScalarOp::Sub, {whole, number(1)});
  const ValueId quotient = build.elementwise(ScalarOp::Where, {crosses_zero(build, remainder, divisor, number(0)), below, whole});
  const ValueId floored = build.cast(build.elementwise(ScalarOp::Floor, {quotient}), dtype);
  const ValueId above = build.elementwise(ScalarOp::Add, {floored, Operand(immediate_real(dtype, 1))});
  const ValueId rest = build.elementwise(ScalarOp::Sub, {quotient, build.cast(floored, step)});
  const ValueId nearest = build.elementwise(ScalarOp::Where, {build.elementwise(ScalarOp::Gt, {rest, number(0.5)}), above, floored});
  const ValueId zero = build.cast(build.elementwise(ScalarOp::Copysign, {number(0), basic}), dtype);
  const ValueId found = build.elementwise(ScalarOp::Where, {build.elementwise(ScalarOp::Eq, {quotient, number(0)}), zero, nearest});
  if (constant != nullptr) return found;
  return build.elementwise(ScalarOp::Where, {build.elementwise(ScalarOp::Eq, {divisor, number(0)}), build.cast(basic, dtype), found});
}

// Eager's kernels of a GPU multiply by the inverse of a divisor that they take by value.
ValueId quotient_by_inverse(CallContext& context, const std::vector<Operand>& operands, DType dtype, Rounding rounding) {
  graph::Builder& build = context.build;
  const Operand divisor = held_divisor(context, operands[1], dtype), factor = inverse(context, divisor, dtype);
  const ValueId dividend = std::get<ValueId>(operands[0]);
  if (rounding == Rounding::None) return build.elementwise(ScalarOp::Mul, {dividend, factor});
  const auto divide = [&](const Operand& x) { return build.elementwise(ScalarOp::Mul, {x, factor}); };
  const DType compute = compute_type(dtype);
  const ValueId wide = build.cast(dividend, compute);
  if (rounding == Rounding::Floor) return floor_quotient(build, Operand(wide), on_result_device(context, divisor, compute), compute, dtype, divide);
  return build.cast(build.elementwise(ScalarOp::Trunc, {divide(Operand(wide))}), dtype);
}

// Of two tensors of a narrow dtype.
ValueId rounded_quotient(CallContext& context, std::vector<Operand> operands, DType dtype, Rounding rounding) {
  graph::Builder& build = context.build;
  const DType step = rounding == Rounding::Trunc || context.eager().floor_division_rounds_steps ? dtype : compute_type(dtype);
  for (Operand& operand : operands)
    if (const auto* id = std::get_if<ValueId>(&operand)) operand = Operand(build.cast(*id, step));
  const auto divide = [&](const Operand& x) { return build.elementwise(ScalarOp::Div, {x, operands[1]}); };
  if (rounding == Rounding::Floor) return floor_quotient(build, operands[0], operands[1], step, dtype, divide);
  return build.elementwise(ScalarOp::Trunc, {divide(operands[0])});
}

ScalarOp quotient_op(Rounding rounding) {
  return rounding == Rounding::None ? ScalarOp::Div : rounding == Rounding::Floor ? ScalarOp::FloorDiv : ScalarOp::TruncDiv;
}

Results import_quotient(CallContext& context, Rounding rounding) {
  const auto terms = terms_of(context, {"self", "other"});
  auto dtype = terms ? common_dtype(context.build.graph(), *terms) : std::nullopt;
  if (!dtype) return std::nullopt;
  if (rounding == Rounding::None) dtype = integer_to_float(*dtype);
  if (rounding != Rounding::None && divides_integers_by_zero(context, *terms)) return context.decline("it divides integers by zero");
  const ScalarOp op = quotient_op(rounding);
  if (!accepts(info(op).types, *dtype)) return std::nullopt;
  const bool by_value = is_by_value(context, (*terms)[1]), narrow = is_float(*dtype) && compute_type(*dtype) != *dtype;
  if (!is_float(*dtype) || (!narrow && !by_value)) return apply(context, op, *terms, *dtype);
  auto operands = operands_in(context, *terms, *dtype, ScalarRounding::ButSecond);
  if (!operands) return std::nullopt;
  operands->front() =
      scalar_arg_of((*terms)[0]) != nullptr ? rounded_number(context, operands->front(), *dtype) : on_result_device(context, operands->front(), *dtype);
  if (by_value && context.eager().divides_by_inverse && std::holds_alternative<ValueId>(operands->front()))
    return std::vector{quotient_by_inverse(context, *operands, *dtype, rounding)};
  if (!by_value && rounding != Rounding::None) return std::vector{rounded_quotient(context, *operands, *dtype, rounding)};
  return std::vector{context.build.elementwise(op, std::move(*operands))};
}

Results import_div(CallContext& context) {
  const auto mode = context.one_of(2, "rounding_mode", {"", "floor", "trunc"});
  if (!mode) return std::nullopt;
  return import_quotient(context, *mode == "floor" ? Rounding::Floor : *mode == "trunc" ? Rounding::Trunc : Rounding::None);
}

Results import_floor_divide(CallContext& context) { return import_quotient(context, Rounding::Floor); }

// pow with the exponents that ATen's kernels expand: products are rounded to the dtype one by one.
Results import_pow_scalar(CallContext& context) {
  const Term base = context.tensor(0, "self");
  const auto exponent = context.scalar_arg(1, "exponent");
  if (!exponent) return std::nullopt;
  const std::vector<Term> terms{base, *exponent};
  const auto dtype = common_dtype(context.build.graph(), terms);
  const auto constant = constant_real(*exponent);
  if (!dtype || *dtype == DType::Bool || !constant) return std::nullopt;
  const double e = *constant;
  if (!is_float(*dtype) && e < 0) return std::nullopt;
  graph::Builder& build = context.build;
  const CallValueInfo& result = context.result();
  if (e == 0) return std::vector{build.full(Operand(immediate_real(*dtype, 1)), *dtype, result.device, result.sizes)};
  // Without roots, pow(-0, 0.5) and pow(-inf, 0.5) differ.
  const bool in_f32 = *dtype == DType::F16 && context.eager().f16_powers_in_f32;
  const bool root = (e == 0.5 || e == -0.5) && !in_f32;
  const bool special = root || e == 1 || e == 2 || e == 3 || e == -1 || e == -2;
  if (!special) {
    // Eager's kernels take the exponent in the tensor's dtype.
    const auto power = number_operand(context, is_float(*dtype) ? ScalarArg(round_to(*dtype, e)) : *exponent, *dtype);
    if (!power) return std::nullopt;
    return std::vector{build.elementwise(ScalarOp::Pow, {build.cast(std::get<ValueId>(base), *dtype), *power})};
  }
  if (in_f32 && (e == 3 || e == -2)) {  // not rounded between
    const ValueId wide = build.cast(build.cast(std::get<ValueId>(base), *dtype), DType::F32);
    const ValueId wide_square = build.elementwise(ScalarOp::Mul, {wide, wide});
    const ValueId power = e == 3 ? build.elementwise(ScalarOp::Mul, {wide_square, wide}) : build.elementwise(ScalarOp::Reciprocal, {wide_square});
    return std::vector{build.cast(power, *dtype)};
  }
  const ValueId x = build.cast(std::get<ValueId>(base), *dtype);
  if (e == 1) return std::vector{build.elementwise(ScalarOp::Identity, {x})};
  if (e == 0.5) return std::vector{build.elementwise(ScalarOp::Sqrt, {x})};
  if (e == -0.5) return std::vector{build.elementwise(ScalarOp::Rsqrt, {x})};
  if (e == -1) return std::vector{build.elementwise(ScalarOp::Reciprocal, {x})};
  const ValueId square = build.elementwise(ScalarOp::Mul, {x, x});
  if (e == 2) return std::vector{square};
  if (e == 3) return std::vector{build.elementwise(ScalarOp::Mul, {square, x})};
  return std::vector{build.elementwise(ScalarOp::Reciprocal, {square})};
}

Results import_pow_tensor(CallContext& context) {
  const auto terms = terms_of(context, {"self", "exponent"});
  const auto dtype = terms ? common_dtype(context.build.graph(), *terms) : std::nullopt;
  if (!dtype || !is_float(*dtype)) return std::nullopt;  // integers: eager checks exponents
  return apply(context, ScalarOp::Pow, *terms, *dtype);
}

// pow(number, tensor): eager makes pow(1, x) ones.
Results import_pow_of_scalar(CallContext& context) {
  const auto base = context.scalar_arg(0, "self");
  const ValueId exponent = context.tensor(1, "exponent");
  if (!base || is_one(*base)) return std::nullopt;
  const std::vector<Term> terms{*base, exponent};
  const auto dtype = common_dtype(context.build.graph(), terms);
  if (!dtype || !is_float(*dtype)) return std::nullopt;
  return apply(context, ScalarOp::Pow, terms, *dtype);
}

// maximum and minimum of bools are or and and.
Results import_extremum(CallContext& context, ScalarOp op, ScalarOp of_bools) {
  const auto terms = terms_of(context, {"self", "other"});
  const auto dtype = terms ? common_dtype(context.build.graph(), *terms) : std::nullopt;
  if (!dtype) return std::nullopt;
  return apply(context, *dtype == DType::Bool ? of_bools : op, *terms, *dtype);
}

}  // namespace

void add_arithmetic_rows(ImportTable& table) {
  const auto add = [&table](std::initializer_list<const char*> names, const Importer& importer) {
    for (const char* name : names) table.emplace(name, ImportRow{importer});
  };
  add({"aten::add.Tensor", "aten::add.Scalar"}, import_add);
  add({"aten::sub.Tensor", "aten::sub.Scalar"}, import_sub);
  add({"aten::rsub.Tensor", "aten::rsub.Scalar"}, import_rsub);
  add({"aten::mul.Tensor", "aten::mul.Scalar"}, import_mul);
  add({"aten::div.Tensor", "aten::div.Scalar", "aten::div.Tensor_mode", "aten::div.Scalar_mode", "aten::true_divide.Tensor"}, import_div);
  add({"aten::floor_divide", "aten::floor_divide.Scalar"}, import_floor_divide);
  add({"aten::pow.Tensor_Scalar"}, import_pow_scalar);
  add({"aten::pow.Tensor_Tensor"}, import_pow_tensor);
  add({"aten::pow.Scalar"}, import_pow_of_scalar);
  add({"aten::maximum", "aten::max.other"}, [](CallContext& c) { return import_extremum(c, ScalarOp::Maximum, ScalarOp::LogicalOr); });
  add({"aten::minimum", "aten::min.other"}, [](CallContext& c) { return import_extremum(c, ScalarOp::Minimum, ScalarOp::LogicalAnd); });
}

}  // namespace cxxinductor::frontend
