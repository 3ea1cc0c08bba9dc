#include "unit/model/infer/cases.h"

namespace cxxinductor::model {

TEST_CASE("matrix products") {
  check_cases({
      {"2 <= s0 | %a: bf16[s0, 8]; %b: bf16[8, 4] strides [1, 8]", "\"aten::mm\"(%a, %b)", "bf16[s0, 4] strides [4, 1]"},
      {"%a: f32[2, 8]; %b: f32[7, 4]", "\"aten::mm\"(%a, %b)", "error: rows of the second matrix: expected 8, found 7"},
      {"%a: f32[2, 8]; %b: f16[8, 4]", "\"aten::mm\"(%a, %b)", "error: matrices of one dtype"},
      {"%c: f32[3]; %a: f32[2, 8]; %b: f32[8, 4]", "\"aten::addmm\"(%c, %a, %b)", "error: sizes that broadcast"},
      {"%c: f32[4]; %a: f32[2, 8]; %b: f32[8, 4]", "\"aten::addmm\"(%c, %a, %b)", "f32[2, 4] strides [4, 1]"},
  });
}

TEST_CASE("convolutions take the format of input or weight") {
  const char* call = "\"aten::convolution\"(%x, %w, none, [2, 2], [1, 1], [1, 1], false, [0, 0], 1)";
  check_cases({
      {"%x: f32[2, 4, 9, 9]; %w: f32[6, 4, 3, 3]", call, "f32[2, 6, 5, 5] strides [150, 25, 5, 1]"},
      {"%x: f32[2, 4, 9, 9] strides [324, 1, 36, 4]; %w: f32[6, 4, 3, 3]", call, "f32[2, 6, 5, 5] strides [150, 1, 30, 6]"},
      {"%x: f64[2, 4, 9, 9] strides [324, 1, 36, 4] on cuda:0; %w: f64[6, 4, 3, 3] on cuda:0", call, "f64[2, 6, 5, 5] strides [150, 25, 5, 1] on cuda:0"},
      {"2 <= s0, 8 <= s1 | %x: f32[s0, 4, s1, s1]; %w: f32[6, 4, 3, 3]", call,
       "f32[s0, 6, floordiv(s1 + 1, 2), floordiv(s1 + 1, 2)] strides [6*floordiv(s1 + 1, 2)*floordiv(s1 + 1, 2), "
       "floordiv(s1 + 1, 2)*floordiv(s1 + 1, 2), floordiv(s1 + 1, 2), 1]"},
      {"%x: f32[2, 5, 9, 9]; %w: f32[6, 4, 3, 3]", call, "error: channels: expected 4, found 5"},
  });
}

TEST_CASE("reductions, norms and softmaxes") {
  check_cases({
      {"%x: bool[2, s0, 4]", "\"aten::sum.dim_IntList\"(%x, [1, -1], true)", "i64[2, 1, 1] strides [1, 1, 1]"},
      {"%x: f32[2, 3]", "\"aten::sum.dim_IntList\"(%x, [1, -1])", "error: found 1 twice"},
      {"%x: i64[2, 3]", "\"aten::mean\"(%x)", "error: expected a float or complex dtype, found i64"},
      {"%x: f16[2, 3]", "\"aten::max.dim\"(%x, 0)", "f16[3] strides [1]; i64[3] strides [1]"},
      {"%x: f32[2, 0]", "\"aten::amax\"(%x, [1])", "error: expected elements in dimension 1"},
      {"%x: f16[2, s0]; %w: f32[s0]", "\"aten::native_layer_norm\"(%x, [expr(s0)], %w, none, 1e-05)",
       "f16[2, s0] strides [s0, 1]; f32[2, 1] strides [1, 1]; f32[2, 1] strides [1, 1]"},
      {"%x: f16[2, 3] strides [1, 2]", "\"aten::_softmax\"(%x, 1, true)", "f32[2, 3] strides [3, 1]"},
      {"%x: f32[2, 3, 4, 4] strides [48, 1, 12, 3]", "\"aten::max_pool2d_with_indices\"(%x, [3, 3], [2, 2], [0, 0], [1, 1], true)",
       "f32[2, 3, 2, 2] strides [12, 1, 6, 3]; i64[2, 3, 2, 2] strides [12, 1, 6, 3]"},
  });
}

TEST_CASE("ops in place and ops on lists") {
  check_cases({
      {"%x: f16[2, 3] strides [1, 2] storage 1; %y: f32[3]", "\"aten::add_.Tensor\"(%x, %y)", "f16[2, 3] strides [1, 2] storage 1"},
      {"%x: f16[3] storage 1; %y: f32[2, 3]", "\"aten::add_.Tensor\"(%x, %y)", "error: a result of sizes [3], found [2, 3]"},
      {"%x: i64[3]; %y: f32[3]", "\"aten::add_.Tensor\"(%x, %y)", "error: a result that i64 holds, found f32"},
      {"%x: i64[3] storage 1; %y: f32[3]", "\"aten::zero_\"(%x)", "i64[3] strides [1] storage 1"},
      {"%x: f32[2]; %y: f16[3]", "\"aten::_foreach_mul.Scalar\"([%x, %y], 2.0)", "f32[2] strides [1]; f16[3] strides [1]"},
      {"%x: f32[2]; %y: f16[3]", "\"aten::_foreach_norm.Scalar\"([%x, %y])", "f32[] strides []; f16[] strides []"},
      {"%x: f32[2]; %y: f16[3]", "\"aten::_foreach_mul_.Scalar\"([%x, %y], 2.0)", ""},
      {"%x: f32[2]", "\"aten::unknown\"(%x)", "none"},
  });
}

TEST_CASE("new tensors, indices and copies") {
  check_cases({
      {"2 <= s0 | %w: f32[10, 4]; %i: i64[s0]; %o: i64[3]", "\"aten::_embedding_bag\"(%w, %i, %o, false, 2)",
       "f32[3, 4] strides [4, 1]; i64[s0] strides [1]; i64[3] strides [1]; i64[3, 4] strides [4, 1]"},
      {"%x: i64[2]", "\"aten::tril_indices\"(3, 4, 1)", "i64[2, 9] strides [9, 1]"},
      {"%x: f32[20, 2, 8]; %t: i64[2, 6]", "\"aten::_ctc_loss\"(%x, %t, [20, 20], [6, 4])", "f32[2] strides [1]; f32[2, 20, 13] strides [260, 13, 1]"},
      {"%x: i64[2]", "\"aten::full\"([2, 3], true)", "bool[2, 3] strides [3, 1]"},
      {"2 <= s0 | %x: i64[s0]", "\"aten::arange\"(expr(s0))", "i64[s0] strides [1]"},
      {"%x: i64[2]", "\"aten::arange.start_step\"(0, 1, 0.25)", "f32[4] strides [1]"},
      {"%x: f32[2, 3] strides [1, 4]", "\"aten::empty_like\"(%x, dtype = f64)", "f64[2, 3] strides [1, 2]"},
      {"%x: f32[2, 3]", "\"aten::empty.memory_format\"([2, -1])", "error: expected sizes of at least 0"},
      {"%x: f32[2, 3, 4]; %i: i64[5, 1]; %j: i64[6]", "\"aten::index.Tensor\"(%x, [%i, none, %j])", "f32[5, 6, 3] strides [18, 3, 1]"},
      {"%x: f32[2, 3, 4]; %i: i64[5]", "\"aten::index.Tensor\"(%x, [none, %i])", "f32[2, 5, 4] strides [20, 4, 1]"},
      {"%x: f32[2]; %m: bool[2]", "\"aten::index.Tensor\"(%x, [%m])", "none"},
      {"2 <= s0 | %w: f16[10, 4]; %i: i64[2, s0]", "\"aten::embedding\"(%w, %i)", "f16[2, s0, 4] strides [4*s0, 4, 1]"},
      {"2 <= s0 | %x: f32[s0, 4]; %y: f16[3, 4]", "\"aten::cat\"([%x, %y])", "f32[s0 + 3, 4] strides [4, 1]"},
      {"%x: f32[2, 4]; %y: f32[3, 5]", "\"aten::cat\"([%x, %y])", "error: size of a concatenated tensor: expected 4, found 5"},
      {"%x: f32[2, 3]", "\"aten::constant_pad_nd\"(%x, [1, -2])", "f32[2, 2] strides [2, 1]"},
      {"%x: f32[2, 3]", "\"aten::topk\"(%x, 4)", "error: expected at most 3 elements, found 4"},
      {"%x: f32[2, 3] strides [1, 2]", "\"aten::sort\"(%x)", "f32[2, 3] strides [1, 2]; i64[2, 3] strides [1, 2]"},
      {"%x: f32[2, 3]", "\"aten::nonzero\"(%x)", "none"},
      {"%x: f32[2, 4, 8, 16]", "\"aten::_scaled_dot_product_efficient_attention\"(%x, %x, %x, none, true)",
       "f32[2, 4, 8, 16] strides [512, 16, 64, 1]; f32[2, 4, 32] strides [128, 32, 1]; i64[] strides []; i64[] strides "
       "[]"},
  });
}

}  // namespace cxxinductor::model
