#include "frontend/pointwise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "frontend/aten_table.h"
#include "ir/device_types.h"
#include "model/pointwise_ops.h"

namespace cxxinductor::frontend {

std::optional<DType> operation_dtype(const CallContext& context, ScalarOp op, std::span<const Term> terms) {
  auto dtype = common_dtype(context.build.graph(), terms);
  if (!dtype) return std::nullopt;
  const ScalarOpInfo& row = info(op);
  if (row.types == TypeSet::Floating) dtype = integer_to_float(*dtype);
  if (is_opaque(*dtype) || !accepts(row.types, *dtype)) return std::nullopt;
  return dtype;
}

Results apply(CallContext& context, ScalarOp op, std::span<const Term> terms, DType dtype, ScalarRounding rounding) {
  bool has_tensor = false;
  for (const Term& term : terms) has_tensor = has_tensor || std::holds_alternative<ValueId>(term);
  if (!has_tensor || terms.size() != static_cast<size_t>(info(op).arity)) return std::nullopt;
  auto operands = operands_in(context, terms, dtype, rounding);
  if (!operands) return std::nullopt;
  return std::vector{context.build.elementwise(op, std::move(*operands))};
}

Results apply_promoted(CallContext& context, ScalarOp op, std::span<const Term> terms, ScalarRounding rounding) {
  const auto dtype = operation_dtype(context, op, terms);
  return dtype ? apply(context, op, terms, *dtype, rounding) : std::nullopt;
}

std::optional<std::vector<Term>> terms_of(const CallContext& context, std::initializer_list<std::string_view> names, size_t first) {
  std::vector<Term> terms;
  for (std::string_view name : names) {
    auto found = term(context, first++, name);
    if (!found) return std::nullopt;
    terms.push_back(std::move(*found));
  }
  return terms;
}

bool divides_integers_by_zero(const CallContext& context, std::span<const Term> terms) {
  const ScalarArg* divisor = scalar_arg_of(terms[1]);
  const auto dtype = common_dtype(context.build.graph(), terms);
  return divisor != nullptr && dtype && !is_float(*dtype) && constant_real(*divisor) == 0.0;
}

Scalar immediate_real(DType dtype, double value) { return Scalar::from_real(compute_type(dtype), value); }

namespace {

// An op on tensors followed by numbers that have defaults and do not promote: leaky_relu(x, negative_slope=0.01).
struct ParameterRow {
  std::string_view overload;
  ScalarOp op;
  int tensors;
  std::array<std::string_view, 3> names;
  std::array<double, 3> defaults;
  bool rounds_parameters = false;  // where kernels of eager's round parameters at all
};

const ParameterRow kParameterRows[] = {
    {"aten::leaky_relu", ScalarOp::LeakyRelu, 1, {"negative_slope"}, {0.01}},
    {"aten::hardtanh", ScalarOp::Clamp, 1, {"min_val", "max_val"}, {-1, 1}},
    {"aten::elu", ScalarOp::Elu, 1, {"alpha", "scale", "input_scale"}, {1, 1, 1}},
    {"aten::softplus", ScalarOp::Softplus, 1, {"beta", "threshold"}, {1, 20}},
    {"aten::softplus_backward", ScalarOp::SoftplusBackward, 2, {"beta", "threshold"}, {1, 20}},
    {"aten::hardtanh_backward", ScalarOp::HardtanhBackward, 2, {"min_val", "max_val"}, {-1, 1}},
    {"aten::threshold_backward", ScalarOp::ThresholdBackward, 2, {"threshold"}, {0}, true},
    {"aten::threshold", ScalarOp::Threshold, 1, {"threshold", "value"}, {0, 0}, true},
};

Results import_with_parameters(CallContext& context, const ParameterRow& row) {
  std::vector<Term> tensors;
  for (int i = 0; i < row.tensors; ++i) tensors.push_back(context.tensor(static_cast<size_t>(i), "self"));
  const auto dtype = operation_dtype(context, row.op, tensors);
  if (!dtype) return std::nullopt;
  std::vector<Operand> parameters;
  for (int i = row.tensors; i < info(row.op).arity; ++i) {
    const auto p = static_cast<size_t>(i - row.tensors);
    const auto given = context.scalar_arg(static_cast<size_t>(i), row.names[p]);
    const auto value = number_operand(context, given.value_or(ScalarArg(row.defaults[p])), *dtype);
    if (!value || (!given && context.has(static_cast<size_t>(i), row.names[p]))) return std::nullopt;
    parameters.push_back(row.rounds_parameters && is_float(*dtype) && context.eager().rounds_parameters ? rounded_number(context, *value, *dtype) : *value);
  }
  auto operands = operands_in(context, tensors, *dtype);
  operands->insert(operands->end(), parameters.begin(), parameters.end());
  return std::vector{context.build.elementwise(row.op, std::move(*operands))};
}

Results import_gelu(CallContext& context) {
  const Term x = context.tensor(0, "self");
  const auto approximate = context.one_of(1, "approximate", {"none", "tanh"});
  if (!approximate) return std::nullopt;
  return apply_promoted(context, *approximate == "tanh" ? ScalarOp::GeluTanh : ScalarOp::Gelu, {{x}});
}

Results import_gelu_backward(CallContext& context) {
  const std::vector<Term> terms{context.tensor(0, "grad_output"), context.tensor(1, "self")};
  const auto approximate = context.one_of(2, "approximate", {"none", "tanh"});
  if (!approximate) return std::nullopt;
  return apply_promoted(context, *approximate == "tanh" ? ScalarOp::GeluTanhBackward : ScalarOp::GeluBackward, terms);
}

Results import_leaky_relu_backward(CallContext& context) {
  const std::vector<Term> tensors{context.tensor(0, "grad_output"), context.tensor(1, "self")};
  const auto slope = context.scalar_arg(2, "negative_slope");
  const auto dtype = operation_dtype(context, ScalarOp::LeakyReluBackward, tensors);
  const auto parameter = slope && dtype ? number_operand(context, *slope, *dtype) : std::nullopt;
  if (!parameter) return std::nullopt;
  auto operands = operands_in(context, tensors, *dtype);
  operands->push_back(*parameter);
  return std::vector{context.build.elementwise(ScalarOp::LeakyReluBackward, std::move(*operands))};
}

// Of two zeros, the bound: eager's kernels of tensors as bounds are maximum and minimum of vectors.
Results clamp_by_tensors(CallContext& context, std::span<const Term> terms, bool low, bool high) {
  const auto dtype = common_dtype(context.build.graph(), terms);
  const auto operands = dtype ? operands_in(context, terms, *dtype) : std::nullopt;
  if (!operands) return std::nullopt;
  Operand limited = operands->front();
  if (low) limited = Operand(context.build.elementwise(ScalarOp::Maximum, {limited, (*operands)[1]}));
  if (high) limited = Operand(context.build.elementwise(ScalarOp::Minimum, {limited, operands->back()}));
  return std::vector{std::get<ValueId>(limited)};
}

// clamp(self, min?, max?): either bound may be absent. Numbers and rank-0 tensors promote.
Results import_clamp(CallContext& context) {
  auto low = term(context, 1, "min");
  auto high = term(context, 2, "max");
  if ((context.has(1, "min") && !low) || (context.has(2, "max") && !high) || (!low && !high)) return std::nullopt;
  std::vector<Term> terms{context.tensor(0, "self")};
  if (low) terms.push_back(*low);
  if (high) terms.push_back(*high);
  const auto is_tensor = [](const Term& bound) { return std::holds_alternative<ValueId>(bound); };
  const auto has_dims = [&](const Term& bound) { return context.rank(std::get<ValueId>(bound)) > 0; };
  // Its kernel takes two bounds of rank 0 element by element, and of two zeros the element.
  if (std::ranges::all_of(terms, is_tensor) && (terms.size() == 2 || std::any_of(terms.begin() + 1, terms.end(), has_dims)))
    return clamp_by_tensors(context, terms, low.has_value(), high.has_value());
  // Eager's kernels of one bound are the target's minimum and maximum, which take the element where the bound is NaN.
  const ScalarArg* bound = low && high ? nullptr : scalar_arg_of(terms[1]);
  if (bound != nullptr && std::holds_alternative<GivenReal>(*bound)) return std::nullopt;
  if (bound != nullptr && std::isnan(constant_real(*bound).value_or(0))) {
    const auto dtype = common_dtype(context.build.graph(), terms);
    return dtype ? apply(context, ScalarOp::Identity, {terms.data(), 1}, *dtype) : std::nullopt;
  }
  return apply_promoted(context, low && high ? ScalarOp::Clamp : low ? ScalarOp::ClampMin : ScalarOp::ClampMax, terms);
}

// Whether one bound that the program reads from a tensor is NaN shows when it runs.
Results import_clamp_by_numbers(CallContext& context) {
  const bool low = context.has(1, "min"), high = context.has(2, "max");
  if (low != high) {
    const auto bound = low ? term(context, 1, "min") : term(context, 2, "max");
    if (bound && scalar_arg_of(*bound) == nullptr) return std::nullopt;
  }
  return import_clamp(context);
}

Results import_where(CallContext& context) {
  const ValueId condition = context.tensor(0, "condition");
  const auto branches = terms_of(context, {"self", "other"}, 1);
  if (!branches || context.dtype(condition) != DType::Bool) return std::nullopt;
  const auto dtype = common_dtype(context.build.graph(), *branches);
  auto operands = dtype ? operands_in(context, *branches, *dtype) : std::nullopt;
  if (!operands) return std::nullopt;
  const bool immediates = scalar_arg_of((*branches)[0]) != nullptr && scalar_arg_of((*branches)[1]) != nullptr;
  if (immediates) {  // an op of immediates alone has no dtype: state it
    (*operands)[0] = context.build.full((*operands)[0], *dtype, context.result().device, {});
  }
  operands->insert(operands->begin(), condition);
  return std::vector{context.build.elementwise(ScalarOp::Where, std::move(*operands))};
}

// masked_fill(self, mask, value): the value takes self's dtype, it does not promote.
Results import_masked_fill(CallContext& context) {
  const ValueId self = context.tensor(0, "self"), mask = context.tensor(1, "mask");
  const auto value = term(context, 2, "value");
  if (!value || context.dtype(mask) != DType::Bool) return std::nullopt;
  const DType dtype = context.dtype(self);
  if (const ScalarArg* number = scalar_arg_of(*value); number && !may_fill(dtype, *number)) return std::nullopt;
  auto operands = operands_in(context, {{*value, Term(self)}}, dtype);
  if (!operands) return std::nullopt;
  operands->insert(operands->begin(), mask);
  return std::vector{context.build.elementwise(ScalarOp::Where, std::move(*operands))};
}

// addcmul and addcdiv: the weight is held in the compute type. A kernel of addcdiv that does not contract divides
// value * tensor1, adds, and rounds once.
Results import_weighted(CallContext& context, ScalarOp op) {
  const std::vector<Term> tensors{context.tensor(0, "self"), context.tensor(1, "tensor1"), context.tensor(2, "tensor2")};
  const auto dtype = operation_dtype(context, op, tensors);
  const auto given = context.scalar_arg(3, "value");
  const auto weight = dtype ? number_operand(context, given.value_or(ScalarArg(1.0)), *dtype) : std::nullopt;
  if (!weight) return std::nullopt;
  graph::Builder& build = context.build;
  auto operands = *operands_in(context, tensors, *dtype);
  if (context.eager().addcdiv_contracts || op == ScalarOp::Addcmul) {
    operands.push_back(*weight);
    return std::vector{build.elementwise(op, std::move(operands))};
  }
  const auto wide = [&](size_t i) { return build.cast(std::get<ValueId>(operands[i]), compute_type(*dtype)); };
  const ValueId self = wide(0), weighted = build.elementwise(ScalarOp::Mul, {wide(1), *weight});
  const ValueId quotient = build.elementwise(ScalarOp::Div, {weighted, wide(2)});
  return std::vector{build.cast(build.elementwise(ScalarOp::Add, {self, quotient}), *dtype)};
}

Results import_lerp_scalar(CallContext& context) {
  const std::vector<Term> tensors{context.tensor(0, "self"), context.tensor(1, "end")};
  const auto dtype = operation_dtype(context, ScalarOp::Lerp, tensors);
  const auto given = context.scalar_arg(2, "weight");
  const auto weight = dtype && given ? number_operand(context, *given, *dtype) : std::nullopt;
  if (!weight) return std::nullopt;
  auto operands = operands_in(context, tensors, *dtype);
  operands->push_back(*weight);
  return std::vector{context.build.elementwise(ScalarOp::Lerp, std::move(*operands))};
}

// floor, ceil, round, trunc of integers are copies.
Results import_rounding(CallContext& context, ScalarOp op) {
  const ValueId x = context.tensor(0, "self");
  if (!is_float(context.dtype(x))) op = ScalarOp::Identity;
  return std::vector{context.build.elementwise(op, {x})};
}

// exp(-|x|)
ValueId negative_power(graph::Builder& build, ValueId x) {
  return build.elementwise(ScalarOp::Exp, {build.elementwise(ScalarOp::Neg, {build.elementwise(ScalarOp::Abs, {x})})});
}

// log_sigmoid_forward(self) -> (output, buffer): the buffer is exp(-|x|) or empty.
Results import_log_sigmoid(CallContext& context) {
  const ValueId x = context.tensor(0, "self");
  const CallValueInfo& buffer = context.result(1);
  graph::Builder& build = context.build;
  if (!context.eager().log_sigmoid_saves_power) {
    const auto output = apply_promoted(context, ScalarOp::LogSigmoid, {{Term(x)}});
    if (!output) return std::nullopt;
    const Operand zero(Scalar::from_integer(DType::F32, 0));
    return std::vector{output->front(), build.full(zero, buffer.dtype, buffer.device, buffer.sizes)};
  }
  const DType dtype = context.dtype(x);
  if (!is_float(dtype)) return std::nullopt;
  const ValueId wide = build.cast(x, compute_type(dtype));
  const ValueId power = negative_power(build, wide);
  const ValueId least = build.elementwise(ScalarOp::Minimum, {wide, Operand(immediate_real(dtype, 0))});
  const ValueId logarithm = build.elementwise(ScalarOp::Log1p, {power});
  return std::vector{build.cast(build.elementwise(ScalarOp::Sub, {least, logarithm}), dtype), build.cast(power, dtype)};
}

// log_sigmoid_backward(grad_output, self, buffer): grad * ((x < 0) - sign * z / (1 + z)) with z = exp(-|x|), which the
// buffer may be. The sign is 1 or -1, so that a contraction is none.
Results import_log_sigmoid_backward(CallContext& context) {
  graph::Builder& build = context.build;
  const ValueId gradient = context.tensor(0, "grad_output"), x = context.tensor(1, "self");
  const ValueId buffer = context.tensor(2, "buffer");
  const DType dtype = context.dtype(x), compute = compute_type(dtype);
  if (!is_float(dtype) || context.dtype(gradient) != dtype || context.dtype(buffer) != dtype) return std::nullopt;
  const auto number = [&](double value) { return Operand(immediate_real(dtype, value)); };
  const ValueId wide = build.cast(x, compute);
  const ValueId power = context.eager().log_sigmoid_saves_power ? build.cast(buffer, compute) : negative_power(build, wide);
  const ValueId share = build.elementwise(ScalarOp::Div, {power, build.elementwise(ScalarOp::Add, {power, number(1)})});
  const ValueId is_negative = build.elementwise(ScalarOp::Lt, {wide, number(0)});
  const ValueId below = build.elementwise(ScalarOp::Sub, {number(1), share});
  const ValueId slope = build.elementwise(ScalarOp::Where, {is_negative, below, share});
  return std::vector{build.cast(build.elementwise(ScalarOp::Mul, {slope, build.cast(gradient, compute)}), dtype)};
}

// elu_backward(grad_output, alpha, scale, input_scale, is_result, self_or_result)
Results import_elu_backward(CallContext& context) {
  graph::Builder& build = context.build;
  const ValueId gradient = context.tensor(0, "grad_output"), x = context.tensor(5, "self_or_result");
  const DType dtype = context.dtype(x), compute = compute_type(dtype);
  if (!is_float(dtype) || context.dtype(gradient) != dtype) return std::nullopt;
  const auto rounded = [&](double value) { return immediate_real(dtype, value).real(); };
  const double scale = rounded(context.real(2, "scale", 1)), input_scale = rounded(context.real(3, "input_scale", 1));
  const double weight = rounded(rounded(context.real(1, "alpha", 1)) * scale);
  const auto times = [&](ValueId a, double b) { return build.elementwise(ScalarOp::Mul, {a, Operand(immediate_real(dtype, b))}); };
  const ValueId wide = build.cast(x, compute), g = build.cast(gradient, compute);
  ValueId below = times(g, input_scale);
  if (context.boolean(4, "is_result", false)) {
    const ValueId raised = build.elementwise(ScalarOp::Add, {wide, Operand(immediate_real(dtype, weight))});
    below = build.elementwise(ScalarOp::Mul, {below, raised});
  } else {
    const ValueId power = build.elementwise(ScalarOp::Exp, {times(wide, input_scale)});
    below = build.elementwise(ScalarOp::Mul, {times(below, weight), power});
  }
  const Operand zero(immediate_real(dtype, 0));
  const ValueId above = times(g, scale);
  const ValueId chosen = context.eager().elu_gradient_of_nan_is_above
                             ? build.elementwise(ScalarOp::Where, {build.elementwise(ScalarOp::Le, {wide, zero}), below, above})
                             : build.elementwise(ScalarOp::Where, {build.elementwise(ScalarOp::Gt, {wide, zero}), above, below});
  return std::vector{build.cast(chosen, dtype)};
}

// _prelu_kernel_backward(grad_output, self, weight) -> gradients of self and, unreduced, of the weight
Results import_prelu_backward(CallContext& context) {
  graph::Builder& build = context.build;
  const ValueId gradient = context.tensor(0, "grad_output"), x = context.tensor(1, "self");
  const ValueId weight = context.tensor(2, "weight");
  const DType dtype = context.dtype(x), compute = compute_type(dtype);
  if (!is_float(dtype) || context.dtype(gradient) != dtype || context.dtype(weight) != dtype) return std::nullopt;
  const Operand zero(immediate_real(dtype, 0));
  const ValueId wide = build.cast(x, compute), g = build.cast(gradient, compute);
  const ValueId is_positive = build.elementwise(ScalarOp::Gt, {wide, zero});
  const ValueId weighted = build.elementwise(ScalarOp::Mul, {build.cast(weight, compute), g});
  const ValueId product = build.elementwise(ScalarOp::Mul, {wide, g});
  return std::vector{build.cast(build.elementwise(ScalarOp::Where, {is_positive, g, weighted}), dtype),
                     build.cast(build.elementwise(ScalarOp::Where, {is_positive, zero, product}), dtype)};
}

// round(self, decimals): of f16 and bf16, eager's kernels round between the steps.
Results import_round_decimals(CallContext& context) {
  graph::Builder& build = context.build;
  const ValueId x = context.tensor(0, "self");
  const DType dtype = context.dtype(x);
  const int64_t decimals = context.integer(1, "decimals", 0);
  if (decimals == 0) return import_rounding(context, ScalarOp::Round);
  if (dtype != DType::F32 && dtype != DType::F64) return std::nullopt;
  const Operand power(immediate_real(dtype, std::pow(10.0, static_cast<double>(std::abs(decimals)))));
  const ScalarOp first = decimals > 0 ? ScalarOp::Mul : ScalarOp::Div;
  const ScalarOp second = decimals > 0 ? ScalarOp::Div : ScalarOp::Mul;
  const ValueId whole = build.elementwise(ScalarOp::Round, {build.elementwise(first, {x, power})});
  return std::vector{build.elementwise(second, {whole, power})};
}

// native_dropout_backward(grad_output, mask, scale): grad * mask * scale in the compute type, rounded once.
Results import_dropout_backward(CallContext& context) {
  graph::Builder& build = context.build;
  const ValueId gradient = context.tensor(0, "grad_output"), mask = context.tensor(1, "mask");
  const DType dtype = context.dtype(gradient), compute = compute_type(dtype);
  if (!is_float(dtype) || context.dtype(mask) != DType::Bool) return std::nullopt;
  const ValueId kept = build.elementwise(ScalarOp::Mul, {build.cast(gradient, compute), build.cast(mask, compute)});
  const Operand scale(immediate_real(dtype, context.real(2, "scale", 1)));
  return std::vector{build.cast(build.elementwise(ScalarOp::Mul, {kept, scale}), dtype)};
}

// celu(self, alpha) is elu with the input scaled by 1 / alpha.
Results import_celu(CallContext& context) {
  const std::vector<Term> tensors{context.tensor(0, "self")};
  const auto dtype = operation_dtype(context, ScalarOp::Elu, tensors);
  const double alpha = context.real(1, "alpha", 1);
  if (!dtype || alpha == 0) return std::nullopt;
  auto operands = operands_in(context, tensors, *dtype);
  for (double parameter : {alpha, 1.0, 1.0 / alpha}) operands->emplace_back(immediate_real(*dtype, parameter));
  return std::vector{context.build.elementwise(ScalarOp::Elu, std::move(*operands))};
}

// glu(self, dim): a * sigmoid(b) of the two halves, rounded once.
Results import_glu(CallContext& context) {
  graph::Builder& build = context.build;
  const ValueId x = context.tensor(0, "self");
  const DType dtype = context.dtype(x);
  if (!is_float(dtype) || context.rank(x) == 0) return std::nullopt;
  const int dim = context.dim(1, "dim", -1, context.rank(x));
  const sym::Expr half = context.result().sizes[static_cast<size_t>(dim)];
  const ValueId wide = build.cast(x, compute_type(dtype));
  const ValueId gate = build.elementwise(ScalarOp::Sigmoid, {build.slice(wide, dim, half, half, 1)});
  const ValueId product = build.elementwise(ScalarOp::Mul, {build.slice(wide, dim, 0, half, 1), gate});
  return std::vector{build.cast(product, dtype)};
}

// _prelu_kernel(self, weight): leaky_relu with a slope for each element.
Results import_prelu(CallContext& context) {
  return apply_promoted(context, ScalarOp::LeakyRelu, {{Term(context.tensor(0, "self")), Term(context.tensor(1, "weight"))}});
}

// A row of ops.def: the op's operands are the call's first arguments, numbers promote, and there are no others.
Results import_plain(CallContext& context, ScalarOp op) {
  const auto arity = static_cast<size_t>(info(op).arity);
  if (context.call().args.size() != arity || !context.call().kwargs.empty()) return std::nullopt;
  std::vector<Term> terms;
  for (size_t i = 0; i < arity; ++i) {
    auto found = term(context, i, "");
    if (!found) return std::nullopt;
    terms.push_back(std::move(*found));
  }
  if ((op == ScalarOp::Remainder || op == ScalarOp::Fmod) && divides_integers_by_zero(context, terms)) return context.decline("it divides integers by zero");
  return apply_promoted(context, op, terms);
}

// Kernels of f64 multiply by the f32 nearest to 1/6, as those of f32 do, or divide by 6.
Results import_over_six(CallContext& context, ScalarOp op) {
  const ValueId x = context.tensor(0, "self");
  if (context.dtype(x) != DType::F64 || context.eager().f64_sixths_in_f32) return import_plain(context, op);
  graph::Builder& build = context.build;
  const auto number = [](double value) { return immediate_real(DType::F64, value); };
  const ValueId raised = build.elementwise(ScalarOp::Add, {x, number(3)});
  const ValueId limited = build.elementwise(ScalarOp::Clamp, {raised, number(0), number(6)});
  const ValueId share = op == ScalarOp::Hardswish ? build.elementwise(ScalarOp::Mul, {x, limited}) : limited;
  return std::vector{build.elementwise(ScalarOp::Div, {share, number(6)})};
}

}  // namespace

void add_pointwise_rows(ImportTable& table) {
  const auto add = [&table](std::string_view name, const Importer& importer) { table.emplace(name, ImportRow{.importer = importer, .given_reals = true}); };
  for (const ParameterRow& row : kParameterRows) {
    add(row.overload, [&row](CallContext& c) { return import_with_parameters(c, row); });
  }
  table.emplace("aten::gelu", ImportRow{import_gelu});
  table.emplace("aten::gelu_backward", ImportRow{import_gelu_backward});
  table.emplace("aten::glu", ImportRow{import_glu});
  table.emplace("aten::_prelu_kernel", ImportRow{import_prelu});
  table.emplace("aten::celu", ImportRow{import_celu});
  table.emplace("aten::native_dropout_backward", ImportRow{import_dropout_backward});
  add("aten::leaky_relu_backward", import_leaky_relu_backward);
  table.emplace("aten::log_sigmoid_forward", ImportRow{import_log_sigmoid});
  table.emplace("aten::log_sigmoid_backward", ImportRow{import_log_sigmoid_backward});
  table.emplace("aten::elu_backward", ImportRow{import_elu_backward});
  table.emplace("aten::_prelu_kernel_backward", ImportRow{import_prelu_backward});
  table.emplace("aten::round.decimals", ImportRow{import_round_decimals});
  add("aten::clamp", import_clamp_by_numbers);
  add("aten::clamp.Tensor", import_clamp);
  for (const char* name : {"aten::where.self", "aten::where.ScalarSelf", "aten::where.ScalarOther", "aten::where.Scalar"}) {
    table.emplace(name, ImportRow{import_where});
  }
  for (const char* name : {"aten::masked_fill.Scalar", "aten::masked_fill.Tensor"}) add(name, import_masked_fill);
  add("aten::addcmul", [](CallContext& c) { return import_weighted(c, ScalarOp::Addcmul); });
  add("aten::addcdiv", [](CallContext& c) { return import_weighted(c, ScalarOp::Addcdiv); });
  add("aten::lerp.Scalar", import_lerp_scalar);
  table.emplace("aten::hardswish", ImportRow{[](CallContext& c) { return import_over_six(c, ScalarOp::Hardswish); }});
  table.emplace("aten::hardsigmoid", ImportRow{[](CallContext& c) { return import_over_six(c, ScalarOp::Hardsigmoid); }});
  const std::pair<const char*, ScalarOp> roundings[] = {
      {"aten::floor", ScalarOp::Floor}, {"aten::ceil", ScalarOp::Ceil}, {"aten::round", ScalarOp::Round}, {"aten::trunc", ScalarOp::Trunc}};
  for (const auto& [name, op] : roundings) {
    table.emplace(name, ImportRow{[op](CallContext& c) { return import_rounding(c, op); }});
  }
  const auto add_plain = [&table](std::string_view name, ScalarOp op) {
    table.emplace(name, ImportRow{.importer = [op](CallContext& c) { return import_plain(c, op); }, .host_scalars = true, .given_reals = true});
  };
  for (const model::PointwiseOp& row : model::pointwise_ops()) add_plain(row.overload, row.op);
}

}  // namespace cxxinductor::frontend
