// Ops that users register with a standard result, and those without.
#include "ir/registered_ops.h"
#include "model/infer/table.h"
#include "unit/model/infer/cases.h"

namespace cxxinductor::model {
namespace {

const SchemaTable schemas(
    "infer::blend(Tensor a, Tensor b, Scalar t=1) -> Tensor\n"
    "infer::steps(Tensor x) -> Tensor\n"
    "infer::unpromised(Tensor x) -> Tensor\n"
    "infer::spread(Tensor x, int[] axes=[], bool keep=False) -> (Tensor, Tensor)\n");

void register_ops() {
  add_scalar_op({.overload = "infer::blend", .arguments = {"a", "b", "t"}, .cpu = "({0} + {2} * ({1} - {0}))", .standard_result = true});
  add_scalar_op({.overload = "infer::steps", .arguments = {"x"}, .types = OperandTypes::Integral, .cpu = "({0} + 1)", .standard_result = true});
  add_scalar_op({.overload = "infer::unpromised", .arguments = {"x"}, .cpu = "({0} + 1)"});
  const RegisteredReduction spread{.overload = "infer::spread",
                                   .state = "low:T high:T",
                                   .results = "spread:T at:i64",
                                   .start = "low = highest, high = lowest",
                                   .lift = "low = x, high = x",
                                   .merge = "low = minimum(a.low, b.low), high = maximum(a.high, b.high)",
                                   .finish = "spread = sub(high, low), at = 0",
                                   .standard_result = true};
  add_reduction(spread);
}

}  // namespace

TEST_CASE("registered ops with a standard result promote and broadcast") {
  register_ops();
  check_cases(
      {
          {"%x: f32[4, 1]; %y: bf16[3]", "\"infer::blend\"(%x, %y, 0.5)", "f32[4, 3] strides [3, 1]"},
          {"%x: f16[4, 3] strides [1, 4]", "\"infer::blend\"(%x, %x, 0.5)", "f16[4, 3] strides [1, 4]"},
          {"%x: i32[4]", "\"infer::blend\"(%x, %x, 1)", "f32[4] strides [1]"},
          {"2 <= s0 | %x: f32[s0]; %y: f32[3, 1]", "\"infer::blend\"(%x, t = 0.5, b = %y)", "f32[3, s0] strides [s0, 1]"},
          {"%x: f32[4]; %y: f32[3]", "\"infer::blend\"(%x, %y, 0.5)", "error: found [4] and [3]"},
          {"%x: f32[4]", "\"infer::blend\"(%x, %x)", "f32[4] strides [1]"},
          {"%x: i64[4]", "\"infer::steps\"(%x)", "i64[4] strides [1]"},
          {"%x: f32[4]", "\"infer::steps\"(%x)", "none"},
          {"%x: f32[4]", "\"infer::unpromised\"(%x)", "none"},
      },
      schemas);
}

TEST_CASE("registered reductions with a standard result are contiguous, of the stated types") {
  register_ops();
  check_cases(
      {
          {"%x: bf16[4, 5] strides [1, 4]", "\"infer::spread\"(%x, [1], true)", "bf16[4, 1] strides [1, 1]; i64[4, 1] strides [1, 1]"},
          {"%x: f32[4, 5]", "\"infer::spread\"(%x, [-2])", "f32[5] strides [1]; i64[5] strides [1]"},
          {"%x: f32[4, 5]", "\"infer::spread\"(%x)", "f32[] strides []; i64[] strides []"},
          {"%x: f32[4, 5]", "\"infer::spread\"(%x, [0, -2])", "error: found 0 twice"},
          {"%x: f32[4, 5]", "\"infer::spread\"(%x, [2])", "error: expected a dimension in [-2, 1], found 2"},
      },
      schemas);
}

TEST_CASE("registered ops cost what fused kernels cost") {
  register_ops();
  CHECK(recompute_cost("infer::blend") == RecomputeCost::Free);
  CHECK(recompute_cost("infer::spread") == RecomputeCost::Kernel);
  CHECK(recompute_cost("infer::unknown") == RecomputeCost::Library);
}

}  // namespace cxxinductor::model
