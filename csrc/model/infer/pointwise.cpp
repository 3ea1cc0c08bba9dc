#include "model/infer/pointwise.h"

#include <algorithm>
#include <array>

#include "ir/device_types.h"
#include "ir/strides.h"
#include "model/pointwise_ops.h"

namespace cxxinductor::model {
namespace {

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) { return std::find(names.begin(), names.end(), name) != names.end(); }

// Numbers of these arguments become tensors of one element.
bool is_operand(std::string_view name) { return is_one_of(name, {"self", "other", "n", "x"}); }
// Numbers of these promote, and are constants of the function.
bool is_promoting_constant(std::string_view name) { return is_one_of(name, {"min", "max", "exponent"}); }

ResultType result_type(ScalarOp op) {
  const ScalarOpInfo& row = info(op);
  if (row.rule == TypeRule::Predicate) return ResultType::Bool;
  if (op == ScalarOp::Abs) return ResultType::Real;
  // ATen's kernels leave integers as they are.
  const bool rounds = op == ScalarOp::Floor || op == ScalarOp::Ceil || op == ScalarOp::Round || op == ScalarOp::Trunc;
  return row.types == TypeSet::Floating && !rounds ? ResultType::Float : ResultType::Common;
}

Rule pointwise(ResultType type) {
  return [type](InferContext& c) { return infer_pointwise(c, operands_of(c, type != ResultType::Condition), type); };
}

InferredResults infer_div_mode(InferContext& c) { return infer_pointwise(c, operands_of(c), c.has("rounding_mode") ? ResultType::Common : ResultType::Float); }

InferredResults infer_masked_fill(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  return std::vector{contiguous_like(self, c.broadcast(self.sizes, c.tensor("mask").sizes))};
}

InferredResults infer_frexp(InferContext& c) {
  auto results = infer_pointwise(c, operands_of(c), ResultType::Float);
  if (!results) return results;
  results->push_back(results->front());
  results->back().dtype = DType::I32;
  return results;
}

InferredResults infer_complex(InferContext& c) {
  auto results = infer_pointwise(c, operands_of(c), ResultType::Common);
  if (results) results->front().dtype = complex_of(results->front().dtype);
  return results;
}

InferredResults infer_glu(InferContext& c) {
  CallValueInfo half = c.tensor("self");
  const auto dim = static_cast<size_t>(c.dim("dim", half.sizes.size()));
  if (half.sizes.empty()) c.reject("expected a tensor with dimensions");
  half.sizes[dim] = c.simplify(sym::floor_div(half.sizes[dim], 2));
  PointwiseOperands operands;
  operands.add(half);
  return infer_pointwise(c, operands, ResultType::Common);
}

InferredResults infer_log_sigmoid(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  if (eager(self.device).log_sigmoid_saves_power) return std::vector(2, contiguous_like(self, self.sizes));
  return std::vector{empty_like(self, MemoryFormat::Preserve, c.sizes), contiguous_like(self, {0})};
}

InferredResults infer_mvlgamma(InferContext& c) {
  const CallValueInfo& self = c.tensor("self");
  return std::vector{contiguous(integer_to_float(self.dtype), self.device, self.sizes)};
}

// grad * mask * scale, of which the last is a number.
InferredResults infer_dropout_backward(InferContext& c) {
  PointwiseOperands operands;
  operands.add(c.tensor("grad_output"));
  operands.add(c.tensor("mask"));
  operands.promoted.push_back({DType::F32, OperandKind::Number});
  return infer_pointwise(c, operands, ResultType::Common);
}

// Numbers to powers: contiguous, whatever the exponents' strides.
InferredResults infer_power_of_number(InferContext& c) {
  auto results = infer_pointwise(c, operands_of(c), ResultType::Common);
  if (results) results->front() = contiguous_like(results->front(), results->front().sizes);
  return results;
}

// self * 2.0 ** other
InferredResults infer_ldexp(InferContext& c) {
  PointwiseOperands exponent, operands;
  exponent.add(c.tensor("other"));
  exponent.promoted.push_back({DType::F32, OperandKind::Number});
  const auto power = infer_pointwise(c, exponent, ResultType::Common);
  if (!power) return std::nullopt;
  const CallValueInfo dense = contiguous_like(power->front(), power->front().sizes);
  operands.add(c.tensor("self"));
  operands.add(dense);
  return infer_pointwise(c, operands, ResultType::Common);
}

// Gradients of an input and of what it is multiplied by, each with the sizes of all.
InferredResults infer_prelu_backward(InferContext& c) {
  const CallValueInfo result = empty_like(c.tensor("self"), MemoryFormat::Preserve, c.sizes);
  return std::vector{result, result};
}

// Of what the operands promote to.
constexpr std::initializer_list<const char*> kCommonOps = {"aten::add.Tensor",
                                                           "aten::add.Scalar",
                                                           "aten::sub.Tensor",
                                                           "aten::sub.Scalar",
                                                           "aten::rsub.Tensor",
                                                           "aten::rsub.Scalar",
                                                           "aten::mul.Tensor",
                                                           "aten::mul.Scalar",
                                                           "aten::floor_divide",
                                                           "aten::floor_divide.Scalar",
                                                           "aten::pow.Tensor_Tensor",
                                                           "aten::pow.Tensor_Scalar",
                                                           "aten::clamp",
                                                           "aten::clamp.Tensor",
                                                           "aten::addcmul",
                                                           "aten::addcdiv",
                                                           "aten::lerp.Scalar",
                                                           "aten::threshold",
                                                           "aten::elu",
                                                           "aten::elu_backward",
                                                           "aten::leaky_relu",
                                                           "aten::leaky_relu_backward",
                                                           "aten::softplus",
                                                           "aten::gelu",
                                                           "aten::gelu_backward",
                                                           "aten::hardshrink",
                                                           "aten::hardshrink_backward",
                                                           "aten::softshrink",
                                                           "aten::softshrink_backward",
                                                           "aten::round.decimals",
                                                           "aten::heaviside",
                                                           "aten::nextafter",
                                                           "aten::gcd",
                                                           "aten::lcm",
                                                           "aten::conj_physical",
                                                           "aten::celu",
                                                           "aten::logit_backward",
                                                           "aten::positive",
                                                           "aten::max.other",
                                                           "aten::min.other"};

// Of that, and of the default float dtype where it is an integer.
constexpr std::initializer_list<const char*> kFloatOps = {"aten::div.Tensor",
                                                          "aten::div.Scalar",
                                                          "aten::true_divide.Tensor",
                                                          "aten::digamma",
                                                          "aten::erfinv",
                                                          "aten::i0",
                                                          "aten::igamma",
                                                          "aten::igammac",
                                                          "aten::logit",
                                                          "aten::deg2rad",
                                                          "aten::rad2deg",
                                                          "aten::xlogy.Scalar_Self",
                                                          "aten::xlogy.Scalar_Other",
                                                          "aten::special_airy_ai",
                                                          "aten::special_bessel_j0",
                                                          "aten::special_bessel_j1",
                                                          "aten::special_bessel_y0",
                                                          "aten::special_bessel_y1",
                                                          "aten::special_entr",
                                                          "aten::special_erfcx",
                                                          "aten::special_i0e",
                                                          "aten::special_i1",
                                                          "aten::special_i1e",
                                                          "aten::special_log_ndtr",
                                                          "aten::special_modified_bessel_i0",
                                                          "aten::special_modified_bessel_i1",
                                                          "aten::special_modified_bessel_k0",
                                                          "aten::special_modified_bessel_k1",
                                                          "aten::special_ndtri",
                                                          "aten::special_scaled_modified_bessel_k0",
                                                          "aten::special_scaled_modified_bessel_k1",
                                                          "aten::special_spherical_bessel_j0",
                                                          "aten::special_xlog1py",
                                                          "aten::special_xlog1py.other_scalar",
                                                          "aten::special_xlog1py.self_scalar",
                                                          "aten::special_zeta",
                                                          "aten::special_zeta.other_scalar",
                                                          "aten::special_zeta.self_scalar"};

// Overloads of each: two tensors, and a number for one of them.
constexpr std::initializer_list<const char*> kPolynomials = {
    "chebyshev_polynomial_t",         "chebyshev_polynomial_u",         "chebyshev_polynomial_v",         "chebyshev_polynomial_w",
    "hermite_polynomial_h",           "hermite_polynomial_he",          "laguerre_polynomial_l",          "legendre_polynomial_p",
    "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_w"};

}  // namespace

void PointwiseOperands::add(const CallValueInfo& info, bool promotes) {
  tensors.push_back(&info);
  if (promotes) promoted.push_back({info.dtype, info.sizes.empty() ? OperandKind::ZeroDimensional : OperandKind::Dimensioned});
}

PointwiseOperands operands_of(const InferContext& context, bool first_promotes) {
  PointwiseOperands operands;
  for (const SchemaArgument& argument : context.schema().arguments) {
    const Arg* arg = context.find(argument);
    if (arg == nullptr || argument.is_list || argument.out) continue;
    if (const CallValueInfo* info = context.as_tensor(*arg)) {
      operands.add(*info, first_promotes || !operands.tensors.empty());
      continue;
    }
    const bool becomes_tensor = argument.is_tensor || is_operand(argument.name);
    if (!becomes_tensor && !is_promoting_constant(argument.name)) continue;
    if (const auto dtype = context.dtype_of_number(*arg)) operands.promoted.push_back({*dtype, OperandKind::Number});
    operands.has_numbers = operands.has_numbers || becomes_tensor;
  }
  return operands;
}

InferredResults infer_pointwise(const InferContext& context, const PointwiseOperands& operands, ResultType type) {
  if (operands.tensors.empty()) return std::nullopt;
  auto dtype = common_dtype(operands.promoted);
  if (type == ResultType::Bool) dtype = DType::Bool;
  if (!dtype) return std::nullopt;
  if (type == ResultType::Float) dtype = integer_to_float(*dtype);
  if (type == ResultType::Real) dtype = real_of(*dtype);
  Exprs sizes;
  // Tensors in the host's memory without dimensions may join those of another device.
  Device device = operands.tensors.front()->device;
  for (const CallValueInfo* info : operands.tensors) {
    sizes = context.broadcast(sizes, info->sizes);
    if (!in_host_memory(info->device)) device = info->device;
  }
  for (const CallValueInfo* info : operands.tensors)
    if (info->device != device && !info->sizes.empty())
      context.reject("expected tensors of one device, found {} and {}", to_string(device), to_string(info->device));
  Exprs strides = pointwise_strides(sizes, operands.tensors, operands.has_numbers, context.sizes);
  return std::vector{new_tensor(*dtype, device, std::move(sizes), std::move(strides))};
}

void add_pointwise_rules(RuleTable& table) {
  add_rules(table, kCommonOps, pointwise(ResultType::Common));
  add_rules(table, kFloatOps, pointwise(ResultType::Float));
  add_rules(table, {"aten::isposinf", "aten::isneginf"}, pointwise(ResultType::Bool));
  for (const char* polynomial : kPolynomials)
    for (const char* overload : {"", ".x_scalar", ".n_scalar"})
      table.emplace(fmt::format("aten::special_{}{}", polynomial, overload), pointwise(ResultType::Float));
  add_rules(table, {"aten::div.Tensor_mode", "aten::div.Scalar_mode"}, infer_div_mode);
  add_rules(table, {"aten::where.self", "aten::where.ScalarSelf", "aten::where.ScalarOther", "aten::where.Scalar"}, pointwise(ResultType::Condition));
  add_rules(table, {"aten::masked_fill.Scalar", "aten::masked_fill.Tensor"}, infer_masked_fill);
  add_rules(table, {"aten::hardtanh", "aten::nan_to_num", "aten::_prelu_kernel", "aten::fill.Scalar", "aten::fill.Tensor", "aten::_conj_physical"},
            formatted_as("self"));
  add_rules(table, {"aten::tril", "aten::triu"}, [](InferContext& c) {  // of elements and their positions
    if (c.tensor("self").sizes.size() < 2) c.reject("expected at least 2 dimensions, found {}", c.tensor("self").sizes.size());
    return contiguous_as("self")(c);
  });
  add_rules(table, {"aten::rrelu_with_noise"}, contiguous_as("self"));
  add_rules(table, {"aten::mvlgamma"}, infer_mvlgamma);
  add_rules(table, {"aten::native_dropout_backward"}, infer_dropout_backward);
  add_rules(table, {"aten::pow.Scalar"}, infer_power_of_number);
  add_rules(table, {"aten::ldexp.Tensor"}, infer_ldexp);
  add_rules(table, {"aten::log_sigmoid_backward", "aten::mish_backward", "aten::rrelu_with_noise_backward"}, formatted_as("grad_output"));
  add_rules(table, {"aten::_prelu_kernel_backward"}, infer_prelu_backward);
  add_rules(table, {"aten::angle"}, [](InferContext& c) {
    auto results = infer_pointwise(c, operands_of(c), ResultType::Float);
    if (results) results->front().dtype = real_of(results->front().dtype);
    return results;
  });
  add_rules(table, {"aten::polygamma"}, [](InferContext& c) -> InferredResults {
    PointwiseOperands operands;
    operands.add(c.tensor("self"));
    return infer_pointwise(c, operands, ResultType::Float);
  });
  add_rules(table, {"aten::complex", "aten::polar"}, infer_complex);
  add_rules(table, {"aten::frexp.Tensor"}, infer_frexp);
  add_rules(table, {"aten::glu"}, infer_glu);
  add_rules(table, {"aten::glu_backward"}, contiguous_as("self"));
  add_rules(table, {"aten::log_sigmoid_forward"}, infer_log_sigmoid);
  for (const PointwiseOp& row : pointwise_ops()) table.emplace(row.overload, pointwise(result_type(row.op)));
}

}  // namespace cxxinductor::model
