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
  if (!is_float(*dtype) && (std::holds_alternative<double>(*alpha) || std::holds_alternative<GivenReal>(*alpha)))
    return std::nullopt;
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
  return apply(context, ScalarOp::Mul, *terms, *dtype, ScalarRounding::Never);
}

// 1 / number in the compute type, as eager's CUDA kernel computes it once on the host.
Operand inverse(CallContext& context, const ScalarArg& number, DType dtype) {
  const DType compute = compute_type(dtype);
  if (const auto* symbol = std::get_if<sym::Expr>(&number)) {
    const ValueId value = context.build.full(Operand(*symbol), compute, context.result().device, {});
    return Operand(context.build.elementwise(ScalarOp::Reciprocal, {value}));
  }
  if (const auto* given = std::get_if<GivenReal>(&number))
    return Operand(context.apply_to_number(ScalarOp::Reciprocal, context.in_compute_type(*given, dtype), compute));
  const double divisor = Scalar::from_real(compute, *constant_real(number)).real();
  return Operand(Scalar::from_real(compute, 1.0 / divisor));  // two roundings of a quotient of singles equal one
}

enum class Rounding : uint8_t { None, Floor, Trunc };

Results import_quotient(CallContext& context, Rounding rounding) {
  const auto terms = terms_of(context, {"self", "other"});
  auto dtype = terms ? common_dtype(context.build.graph(), *terms) : std::nullopt;
  if (!dtype) return std::nullopt;
  if (rounding == Rounding::None) dtype = integer_to_float(*dtype);
  const ScalarOp op = rounding == Rounding::None    ? ScalarOp::Div
                      : rounding == Rounding::Floor ? ScalarOp::FloorDiv
                                                    : ScalarOp::TruncDiv;
  if (!accepts(info(op).types, *dtype)) return std::nullopt;
  const ScalarArg* divisor = scalar_arg_of((*terms)[1]);
  const auto* dividend = std::get_if<ValueId>(&(*terms)[0]);
  if (!is_float(*dtype) || divisor == nullptr || dividend == nullptr || !context.eager().divides_by_inverse ||
      rounding == Rounding::Floor) {
    return apply(context, op, *terms, *dtype, ScalarRounding::Never);
  }
  const Operand factor = inverse(context, *divisor, *dtype);
  graph::Builder& build = context.build;
  if (rounding == Rounding::None)
    return std::vector{build.elementwise(ScalarOp::Mul, {build.cast(*dividend, *dtype), factor})};
  const ValueId wide = build.cast(build.cast(*dividend, *dtype), compute_type(*dtype));
  const ValueId quotient = build.elementwise(ScalarOp::Mul, {wide, factor});
  return std::vector{build.cast(build.elementwise(ScalarOp::Trunc, {quotient}), *dtype)};
}

Results import_div(CallContext& context) {
  const std::string mode = context.text(2, "rounding_mode", "");
  return import_quotient(context, mode == "floor"   ? Rounding::Floor
                                  : mode == "trunc" ? Rounding::Trunc
                                                    : Rounding::None);
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
    const ValueId power = e == 3 ? build.elementwise(ScalarOp::Mul, {wide_square, wide})
                                 : build.elementwise(ScalarOp::Reciprocal, {wide_square});
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
  add({"aten::div.Tensor", "aten::div.Scalar", "aten::div.Tensor_mode", "aten::div.Scalar_mode",
       "aten::true_divide.Tensor"},
      import_div);
  add({"aten::floor_divide", "aten::floor_divide.Scalar"}, import_floor_divide);
  add({"aten::pow.Tensor_Scalar"}, import_pow_scalar);
  add({"aten::pow.Tensor_Tensor"}, import_pow_tensor);
  add({"aten::pow.Scalar"}, import_pow_of_scalar);
  add({"aten::maximum", "aten::max.other"},
      [](CallContext& c) { return import_extremum(c, ScalarOp::Maximum, ScalarOp::LogicalOr); });
  add({"aten::minimum", "aten::min.other"},
      [](CallContext& c) { return import_extremum(c, ScalarOp::Minimum, ScalarOp::LogicalAnd); });
}

}  // namespace cxxinductor::frontend
