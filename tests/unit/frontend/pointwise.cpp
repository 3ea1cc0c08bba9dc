#include "unit/catch.h"
#include "unit/frontend/calls.h"

namespace cxxinductor::frontend {
namespace {

using D = DType;
using Lines = std::vector<std::string>;

// The nodes that one call becomes, on x and y of a dtype and size 4.
Lines import_one(const std::string& name, std::vector<Arg> rest, DType dtype, DType result, Device device = kCuda,
                 std::vector<std::pair<std::string, Arg>> kwargs = {}) {
  Calls calls(device);
  std::vector<Arg> args{calls.input("x", {dtype, {4}})};
  const Arg y = calls.input("y", {dtype, {4}});
  for (Arg& arg : rest) args.push_back(arg == Arg(std::string("y")) ? y : arg);
  return body_of(calls.text(calls.call(name, args, {result, {4}}, std::move(kwargs))));
}
const Arg input_y = std::string("y");

}  // namespace

TEST_CASE("add and sub choose by alpha") {
  CHECK(import_one("aten::add.Tensor", {input_y}, D::F32, D::F32) == Lines{"%0 = add(%x, %y)"});
  CHECK(import_one("aten::add.Tensor", {input_y}, D::F32, D::F32, kCuda, {{"alpha", int64_t{1}}}) == Lines{"%0 = add(%x, %y)"});
  CHECK(import_one("aten::add.Tensor", {input_y}, D::F32, D::F32, kCuda, {{"alpha", 0.5}}) == Lines{"%0 = add_alpha(%x, %y, 0.5)"});
  CHECK(import_one("aten::sub.Tensor", {input_y, int64_t{2}}, D::I64, D::I64) == Lines{"%0 = sub_alpha(%x, %y, 2)"});
  CHECK(import_one("aten::rsub.Scalar", {1.0}, D::F32, D::F32) == Lines{"%0 = sub(1.0, %x)"});
  CHECK(import_one("aten::add.Tensor", {input_y}, D::Bool, D::Bool) == Lines{"%0 = logical_or(%x, %y)"});
}

TEST_CASE("division by a number multiplies on CUDA and divides on the CPU") {
  CHECK(import_one("aten::div.Tensor", {4.0}, D::F32, D::F32, kCuda) == Lines{"%0 = mul(%x, 0.25)"});
  CHECK(import_one("aten::div.Tensor", {3.0}, D::BF16, D::BF16, kCuda) == Lines{"%0 = mul(%x, 0.33333334)"});
  CHECK(import_one("aten::div.Tensor", {3.0}, D::BF16, D::BF16, kCpu) == Lines{"%0 = div(%x, 3.0)"});
  CHECK(import_one("aten::div.Tensor", {input_y}, D::I64, D::F32, kCuda) == Lines{"%0 = cast<f32>(%x)", "%1 = cast<f32>(%y)", "%2 = div(%0, %1)"});
  CHECK(import_one("aten::div.Tensor_mode", {input_y}, D::I64, D::I64, kCuda, {{"rounding_mode", std::string("floor")}}) == Lines{"%0 = floor_div(%x, %y)"});
  CHECK(import_one("aten::div.Tensor_mode", {4.0}, D::BF16, D::BF16, kCuda, {{"rounding_mode", std::string("trunc")}}) ==
        Lines{"%0 = cast<f32>(%x)", "%1 = mul(%0, 0.25)", "%2 = trunc(%1)", "%3 = cast<bf16>(%2)"});
}

TEST_CASE("quotients of narrow tensors round before they are truncated") {
  const std::vector<std::pair<std::string, Arg>> trunc{{"rounding_mode", std::string("trunc")}};
  for (const Device device : {kCpu, kCuda})
    CHECK(import_one("aten::div.Tensor_mode", {input_y}, D::BF16, D::BF16, device, trunc) == Lines{"%0 = div(%x, %y)", "%1 = trunc(%0)"});
  CHECK(import_one("aten::div.Tensor_mode", {input_y}, D::F32, D::F32, kCpu, trunc) == Lines{"%0 = trunc_div(%x, %y)"});
  CHECK(import_one("aten::div.Tensor_mode", {0.3}, D::BF16, D::BF16, kCpu, trunc) == Lines{"%0 = trunc_div(%x, 0.3)"});
}

TEST_CASE("floor division of narrow tensors rounds where eager's kernels do") {
  const auto lines = [](Device device) {
    return import_one("aten::div.Tensor_mode", {input_y}, D::BF16, D::BF16, device, {{"rounding_mode", std::string("floor")}});
  };
  CHECK(lines(kCpu).at(1) == "%1 = fmod(%x, %y)");
  CHECK(lines(kCuda).at(0) == "%0 = cast<f32>(%x)");
  CHECK(import_one("aten::div.Tensor_mode", {input_y}, D::F32, D::F32, kCuda, {{"rounding_mode", std::string("floor")}}) == Lines{"%0 = floor_div(%x, %y)"});
}

TEST_CASE("words that ATen does not take stay calls, which raise what eager raises") {
  const auto is_call = [](const Lines& lines) { return lines.size() == 1 && lines[0].find("extern") != std::string::npos; };
  for (const char* word : {"ceil", ""})
    CHECK(is_call(import_one("aten::div.Tensor_mode", {input_y}, D::F32, D::F32, kCpu, {{"rounding_mode", std::string(word)}})));
  CHECK(is_call(import_one("aten::gelu", {}, D::F32, D::F32, kCpu, {{"approximate", std::string("sigmoid")}})));
  CHECK(is_call(import_one("aten::gelu_backward", {input_y}, D::F32, D::F32, kCpu, {{"approximate", std::string("sigmoid")}})));
  CHECK(import_one("aten::gelu", {}, D::F32, D::F32, kCpu, {{"approximate", std::string("none")}}) == Lines{"%0 = gelu(%x)"});
}

TEST_CASE("division by a symbol") {
  Calls calls;
  const Arg x = calls.input("x", {D::F32, {sym::Expr::symbol("s0")}});
  const Lines body = body_of(calls.text(calls.call("aten::div.Tensor", {x, sym::Expr::symbol("s0")}, {D::F32, {sym::Expr::symbol("s0")}})));
  CHECK(body == Lines{"%0: f32[] = full(expr(s0))", "%1 = reciprocal(%0)", "%2 = mul(%x, %1)"});
}

TEST_CASE("pow spells ATen's special exponents") {
  const auto pow = [](Arg e, DType dtype, DType result, Device device = kCuda) { return import_one("aten::pow.Tensor_Scalar", {e}, dtype, result, device); };
  CHECK(pow(int64_t{2}, D::BF16, D::BF16) == Lines{"%0 = mul(%x, %x)"});
  CHECK(pow(int64_t{3}, D::BF16, D::BF16) == Lines{"%0 = mul(%x, %x)", "%1 = mul(%0, %x)"});
  CHECK(pow(0.5, D::F32, D::F32) == Lines{"%0 = sqrt(%x)"});
  CHECK(pow(-0.5, D::F32, D::F32) == Lines{"%0 = rsqrt(%x)"});
  CHECK(pow(-1.0, D::F32, D::F32) == Lines{"%0 = reciprocal(%x)"});
  CHECK(pow(-2.0, D::F32, D::F32) == Lines{"%0 = mul(%x, %x)", "%1 = reciprocal(%0)"});
  CHECK(pow(int64_t{0}, D::I64, D::I64) == Lines{"%0: i64[4] = full(1)"});
  CHECK(pow(int64_t{1}, D::I64, D::I64) == Lines{"%0 = identity(%x)"});
  CHECK(pow(int64_t{5}, D::I64, D::I64) == Lines{"%0 = pow(%x, 5)"});
  CHECK(pow(0.5, D::I64, D::F32) == Lines{"%0 = cast<f32>(%x)", "%1 = sqrt(%0)"});
  CHECK(pow(1.7, D::BF16, D::BF16) == Lines{"%0 = pow(%x, 1.703125)"});
  CHECK(pow(3.0, D::F16, D::F16, kCpu) == Lines{"%0 = cast<f32>(%x)", "%1 = mul(%0, %0)", "%2 = mul(%1, %0)", "%3 = cast<f16>(%2)"});
}

TEST_CASE("comparisons and logic") {
  CHECK(import_one("aten::lt.Scalar", {0.5}, D::I64, D::Bool) == Lines{"%0 = cast<f32>(%x)", "%1 = lt(%0, 0.5)"});
  CHECK(import_one("aten::eq.Scalar", {int64_t{3}}, D::U8, D::Bool) == Lines{"%0 = eq(%x, 3)"});
  CHECK(import_one("aten::ne.Tensor", {input_y}, D::F16, D::Bool) == Lines{"%0 = ne(%x, %y)"});
  CHECK(import_one("aten::logical_and", {input_y}, D::F32, D::Bool) == Lines{"%0 = logical_and(%x, %y)"});
  CHECK(import_one("aten::bitwise_and.Tensor", {input_y}, D::Bool, D::Bool) == Lines{"%0 = bit_and(%x, %y)"});
  CHECK(import_one("aten::bitwise_not", {}, D::I32, D::I32) == Lines{"%0 = bit_not(%x)"});
}

TEST_CASE("unary ops promote integers to floats, rounding ops copy them") {
  CHECK(import_one("aten::exp", {}, D::I64, D::F32) == Lines{"%0 = cast<f32>(%x)", "%1 = exp(%0)"});
  CHECK(import_one("aten::floor", {}, D::I64, D::I64) == Lines{"%0 = identity(%x)"});
  CHECK(import_one("aten::floor", {}, D::F16, D::F16) == Lines{"%0 = floor(%x)"});
  CHECK(import_one("aten::neg", {}, D::I8, D::I8) == Lines{"%0 = neg(%x)"});
}

TEST_CASE("activations and their defaults") {
  CHECK(import_one("aten::gelu", {}, D::BF16, D::BF16) == Lines{"%0 = gelu(%x)"});
  CHECK(import_one("aten::gelu", {}, D::BF16, D::BF16, kCuda, {{"approximate", std::string("tanh")}}) == Lines{"%0 = gelu_tanh(%x)"});
  CHECK(import_one("aten::leaky_relu", {}, D::F32, D::F32) == Lines{"%0 = leaky_relu(%x, 0.01)"});
  CHECK(import_one("aten::leaky_relu", {0.2}, D::BF16, D::BF16, kCpu) == Lines{"%0 = leaky_relu(%x, 0.2)"});
  CHECK(import_one("aten::elu", {}, D::F32, D::F32) == Lines{"%0 = elu(%x, 1.0, 1.0, 1.0)"});
  CHECK(import_one("aten::hardtanh", {0.0, 6.0}, D::F32, D::F32) == Lines{"%0 = clamp(%x, 0.0, 6.0)"});
  CHECK(import_one("aten::gelu_backward", {input_y}, D::F32, D::F32) == Lines{"%0 = gelu_backward(%x, %y)"});
  CHECK(import_one("aten::threshold_backward", {input_y, int64_t{0}}, D::BF16, D::BF16) == Lines{"%0 = threshold_backward(%x, %y, 0.0)"});
}

TEST_CASE("clamp with absent bounds") {
  CHECK(import_one("aten::clamp", {-1.0, 1.0}, D::F32, D::F32) == Lines{"%0 = clamp(%x, -1.0, 1.0)"});
  CHECK(import_one("aten::clamp", {None{}, 1.0}, D::F32, D::F32) == Lines{"%0 = clamp_max(%x, 1.0)"});
  CHECK(import_one("aten::clamp", {int64_t{0}}, D::I64, D::I64) == Lines{"%0 = clamp_min(%x, 0)"});
  CHECK(import_one("aten::clamp", {0.5}, D::I64, D::F32) == Lines{"%0 = cast<f32>(%x)", "%1 = clamp_min(%0, 0.5)"});
  CHECK(import_one("aten::clamp_min", {int64_t{2}}, D::F32, D::F32) == Lines{"%0 = clamp_min(%x, 2.0)"});
}

TEST_CASE("where and masked_fill") {
  Calls calls;
  const Arg c = calls.input("c", {D::Bool, {2, 4}});
  const Arg x = calls.input("x", {D::BF16, {4}});
  const Arg chosen = calls.call("aten::where.ScalarOther", {c, x, 0.0}, {D::BF16, {2, 4}});
  const Lines body = body_of(calls.text(calls.call("aten::masked_fill.Scalar", {chosen, c, -std::numeric_limits<double>::infinity()}, {D::BF16, {2, 4}})));
  CHECK(body == Lines{"%0: bf16[2, 4] = expand(%x)", "%1 = where(%c, %0, 0.0)", "%2 = where(%c, -inf, %1)"});
}

TEST_CASE("casts and copies") {
  CHECK(import_one("aten::_to_copy", {}, D::F32, D::BF16, kCuda, {{"dtype", D::BF16}}) == Lines{"%0 = cast<bf16>(%x)"});
  CHECK(import_one("aten::_to_copy", {}, D::F32, D::F32) == Lines{"%0 = identity(%x)"});
  CHECK(import_one("aten::clone", {}, D::F8E5M2, D::F8E5M2) == Lines{"%0 = identity(%x)"});
  CHECK(import_one("aten::_to_copy", {}, D::F8E5M2, D::F32) == Lines{"%0 = cast<f32>(%x)"});
}

TEST_CASE("8-bit floats and complex numbers do not compute natively") {
  for (const DType dtype : {D::F8E4M3FN, D::C64}) {
    Calls calls;
    const Arg x = calls.input("x", {dtype, {4}});
    calls.output(calls.call("aten::mul.Tensor", {x, x}, {dtype, {4}}));
    CHECK(count_externs(calls.import()) == 1);
  }
}

}  // namespace cxxinductor::frontend
