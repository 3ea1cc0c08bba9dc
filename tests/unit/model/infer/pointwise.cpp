#include "unit/model/infer/cases.h"

namespace cxxinductor::model {

TEST_CASE("pointwise results promote and broadcast") {
  check_cases({
      {"%x: f32[4, 1]; %y: bf16[3]", "\"aten::add.Tensor\"(%x, %y)", "f32[4, 3] strides [3, 1]"},
      {"%x: i32[4]; %y: f32[]", "\"aten::mul.Tensor\"(%x, %y)", "f32[4] strides [1]"},
      {"%x: f16[4]; %y: f32[]", "\"aten::mul.Tensor\"(%x, %y)", "f16[4] strides [1]"},
      {"%x: i32[4]", "\"aten::mul.Tensor\"(%x, 2.5)", "f32[4] strides [1]"},
      {"%x: i32[4]", "\"aten::div.Tensor\"(%x, 2)", "f32[4] strides [1]"},
      {"%x: i32[4]", "\"aten::div.Tensor_mode\"(%x, 2, rounding_mode = \"floor\")", "i32[4] strides [1]"},
      {"%x: i64[4]", "\"aten::exp\"(%x)", "f32[4] strides [1]"},
      {"%x: i64[4]", "\"aten::floor\"(%x)", "i64[4] strides [1]"},
      {"%x: c64[4]", "\"aten::abs\"(%x)", "f32[4] strides [1]"},
      {"%x: f32[4]; %y: f64[4]", "\"aten::lt.Tensor\"(%x, %y)", "bool[4] strides [1]"},
      {"%c: bool[4, 1]; %x: f16[3]", "\"aten::where.ScalarOther\"(%c, %x, 1)", "f16[4, 3] strides [3, 1]"},
      {"%x: f32[4] on cuda:0; %y: f32[]", "\"aten::add.Tensor\"(%x, %y)", "f32[4] strides [1] on cuda:0"},
      {"%x: f32[4]; %y: f32[3]", "\"aten::add.Tensor\"(%x, %y)", "error: found [4] and [3]"},
      {"%x: f32[4] on cuda:0; %y: f32[4]", "\"aten::add.Tensor\"(%x, %y)", "error: of one device"},
  });
}

TEST_CASE("pointwise results lie in memory as their operands do") {
  check_cases({
      {"%x: f32[2, 3, 4] strides [12, 1, 3]", "\"aten::neg\"(%x)", "f32[2, 3, 4] strides [12, 1, 3]"},
      {"%x: f32[2, 3] strides [1, 4]", "\"aten::neg\"(%x)", "f32[2, 3] strides [1, 2]"},
      {"%x: f32[2, 3] strides [0, 1]; %y: f32[2, 3] strides [1, 2]", "\"aten::add.Tensor\"(%x, %y)", "f32[2, 3] strides [1, 2]"},
      {"%x: f32[2, 3]; %y: f32[2, 3] strides [1, 2]", "\"aten::add.Tensor\"(%x, %y)", "f32[2, 3] strides [3, 1]"},
      {"%x: f32[2, 3, 4, 4] strides [48, 1, 12, 3]; %y: f32[3, 1, 1]", "\"aten::mul.Tensor\"(%x, %y)", "f32[2, 3, 4, 4] strides [48, 1, 12, 3]"},
      // Both contiguous and channels-last: the number makes the difference, as it does in eager.
      {"%x: f32[2, 3, 1, 1] strides [3, 1, 3, 3]", "\"aten::relu\"(%x)", "f32[2, 3, 1, 1] strides [3, 1, 1, 1]"},
      {"%x: f32[2, 3, 1, 1] strides [3, 1, 3, 3]", "\"aten::add.Tensor\"(%x, 1)", "f32[2, 3, 1, 1] strides [3, 1, 3, 3]"},
  });
}

TEST_CASE("pointwise results of symbolic sizes") {
  check_cases({
      {"1 <= s0 | %x: f32[s0, 8]; %y: f32[8]", "\"aten::add.Tensor\"(%x, %y)", "f32[s0, 8] strides [8, 1]"},
      {"2 <= s0, 2 <= s1 | %x: f32[s0, s1]; %y: f32[s0, 1]", "\"aten::add.Tensor\"(%x, %y)", "f32[s0, s1] strides [s1, 1]"},
      {"1 <= s0 | %x: f32[s0, 2, 64] strides [64, 64*s0, 1]", "\"aten::neg\"(%x)", "f32[s0, 2, 64] strides [64, 64*s0, 1]"},
      {"2 <= s0, 2 <= s1 | %x: f32[s0, 3, s1, s1] strides [3*s1*s1, 1, 3*s1, 3]", "\"aten::neg\"(%x)", "f32[s0, 3, s1, s1] strides [3*s1*s1, 1, 3*s1, 3]"},
      // One of them may be 1: what nothing decides, eager needs to be equal.
      {"1 <= s0 | %x: f32[s0]; %y: f32[8]", "\"aten::add.Tensor\"(%x, %y)", "f32[8] strides [1]"},
      {"9 <= s0 | %x: f32[s0]; %y: f32[8]", "\"aten::add.Tensor\"(%x, %y)", "error: sizes that broadcast"},
  });
}

TEST_CASE("calls in place return their argument") {
  check_cases({
      {"%x: f32[2, 3] strides [1, 2] storage 7", "\"aten::add_.Tensor\"(%x, 1)", "f32[2, 3] strides [1, 2] storage 7"},
      {"%x: f32[3] storage 7; %y: f32[2, 3]", "\"aten::add_.Tensor\"(%x, %y)", "error: expected a result of sizes [3]"},
      {"%x: i64[3] storage 7", "\"aten::mul_.Tensor\"(%x, 1.5)", "error: expected a result that i64 holds"},
      {"%x: f32[2, 3] storage 7", "\"aten::transpose_\"(%x, 0, 1)", "f32[3, 2] strides [1, 3] storage 7"},
      {"%x: f32[2]; %y: bf16[s0] ", "\"aten::_foreach_add.List\"([%x, %y], [%x, %y])", "f32[2] strides [1]; bf16[s0] strides [1]"},
  });
}

}  // namespace cxxinductor::model
