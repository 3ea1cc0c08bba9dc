#include "unit/model/infer/cases.h"

namespace cxxinductor::model {

TEST_CASE("views share memory at an offset") {
  check_cases({
      {"%x: f32[4, 6] storage 1", "\"aten::view\"(%x, [2, -1])", "f32[2, 12] strides [12, 1] storage 1"},
      {"%x: f32[4, 6] strides [1, 4] storage 1", "\"aten::view\"(%x, [24])", "error: have no view of sizes [24]"},
      {"%x: f32[4, 6] strides [1, 4] storage 1", "\"aten::reshape\"(%x, [24])", "f32[24] strides [1]"},
      {"%x: f32[4, 6] strides [12, 1] storage 1", "\"aten::view\"(%x, [2, 2, 3, 2])", "f32[2, 2, 3, 2] strides [24, 12, 2, 1] storage 1"},
      {"%x: f32[4, 6]", "\"aten::view\"(%x, [5, 5])", "error: expected sizes for 24 elements, found [5, 5]"},
      {"%x: f32[4, 1] storage 1", "\"aten::expand\"(%x, [2, -1, 3])", "f32[2, 4, 3] strides [0, 1, 0] storage 1"},
      {"%x: f32[4, 6] storage 1", "\"aten::slice.Tensor\"(%x, 1, -5, 9223372036854775807, 2)", "f32[4, 3] strides [6, 2] offset(1) storage 1"},
      {"%x: f32[4, 6] storage 1", "\"aten::select.int\"(%x, 0, -1)", "f32[6] strides [1] offset(18) storage 1"},
      {"%x: f32[4, 6]", "\"aten::select.int\"(%x, 0, 4)", "error: expected an index"},
      {"%x: f32[5, 2] storage 1", "\"aten::split.Tensor\"(%x, 2)",
       "f32[2, 2] strides [2, 1] storage 1; f32[2, 2] strides [2, 1] offset(4) storage 1; f32[1, 2] strides [2, 1] "
       "offset(8) storage 1"},
      {"%x: f32[4, 6] storage 1", "\"aten::diagonal\"(%x, 2)", "f32[4] strides [7] offset(2) storage 1"},
      {"%x: f32[4, 6] storage 1", "\"aten::permute\"(%x, [1, 1])", "error: each of 2 dimensions once"},
      {"%x: f32[10] storage 1", "\"aten::unfold\"(%x, 0, 4, 3)", "f32[3, 4] strides [3, 1] storage 1"},
      {"%x: f32[1, 4, 1] storage 1", "\"aten::squeeze.dims\"(%x, [0, 1])", "f32[4, 1] strides [1, 1] storage 1"},
      {"%x: c64[4] offset(3) storage 1", "\"aten::view_as_real\"(%x)", "f32[4, 2] strides [2, 1] offset(6) storage 1"},
      {"%x: f32[4, 6] storage 1", "\"aten::t_copy\"(%x)", "f32[6, 4] strides [4, 1]"},
  });
}

TEST_CASE("composites of views") {
  check_cases({
      {"2 <= s0 | %x: f32[s0, 4, 6] storage 1", "\"aten::flatten.using_ints\"(%x, 1)", "f32[s0, 24] strides [24, 1] storage 1"},
      {"2 <= s0 | %x: f32[s0, 4, 6] storage 1", "\"aten::flatten.using_ints\"(%x)", "f32[24*s0] strides [1] storage 1"},
      {"%x: f32[4, 6] strides [1, 4] storage 1", "\"aten::flatten.using_ints\"(%x)", "f32[24] strides [1]"},
      {"%x: f32[4, 6]", "\"aten::flatten.using_ints\"(%x, 1, 0)", "error: a first dimension of at most 0, found 1"},
      {"2 <= s0 | %x: f32[s0, 12] storage 1", "\"aten::unflatten.int\"(%x, -1, [4, -1])", "f32[s0, 4, 3] strides [12, 3, 1] storage 1"},
      {"%x: f32[12]", "\"aten::unflatten.int\"(%x, 0, [5, -1])", "error: expected sizes for 12 elements"},
      {"%x: f32[2, 3, 4] storage 1", "\"aten::movedim.int\"(%x, 0, -1)", "f32[3, 4, 2] strides [4, 1, 12] storage 1"},
      {"%x: f32[2, 3, 4]", "\"aten::movedim.intlist\"(%x, [0, 0], [1, 2])", "error: a place for each dimension"},
      {"%x: f32[7] storage 1", "\"aten::chunk\"(%x, 3)",
       "f32[3] strides [1] storage 1; f32[3] strides [1] offset(3) storage 1; f32[1] strides [1] offset(6) storage 1"},
      {"%x: f32[7]", "\"aten::chunk\"(%x, 0)", "error: at least 1 chunk"},
      {"2 <= s0 | %x: f32[s0, 4] storage 1", "\"aten::contiguous\"(%x)", "f32[s0, 4] strides [4, 1] storage 1"},
      {"2 <= s0 | %x: f32[s0, 4] strides [1, s0] storage 1", "\"aten::contiguous\"(%x)", "f32[s0, 4] strides [4, 1]"},
      {"2 <= s0 | %x: f32[1] storage 1; %y: f32[s0, 4]", "\"aten::expand_as\"(%x, %y)", "f32[s0, 4] strides [0, 0] storage 1"},
  });
}

TEST_CASE("sizes and strides as values") {
  check_cases({
      {"2 <= s0 | %x: f32[s0, 4]", "\"aten::sym_size.int\"(%x, -2)", "size s0"},
      {"2 <= s0 | %x: f32[4, s0]", "\"aten::sym_stride.int\"(%x, 0)", "size s0"},
      {"2 <= s0 | %x: f32[4, s0]", "\"aten::sym_numel\"(%x)", "size 4*s0"},
      {"%x: f32[4] offset(3)", "\"aten::sym_storage_offset\"(%x)", "size 3"},
      {"%x: f32[]", "\"aten::sym_size.int\"(%x, 0)", "error: expected a tensor with dimensions"},
  });
}

TEST_CASE("views of symbolic sizes") {
  check_cases({
      {"2 <= s0 | %x: f32[s0, 8, 4] storage 1", "\"aten::view\"(%x, [expr(8*s0), -1])", "f32[8*s0, 4] strides [4, 1] storage 1"},
      {"2 <= s0 | %x: f32[s0, 8, 4] storage 1", "\"aten::view\"(%x, [-1, 4])", "f32[8*s0, 4] strides [4, 1] storage 1"},
      {"1 <= s0, 1 <= s1 | %x: f32[s0, s1, 64] storage 1", "\"aten::view\"(%x, [expr(s0), expr(s1), 8, 8])",
       "f32[s0, s1, 8, 8] strides [64*s1, 64, 8, 1] storage 1"},
      {"1 <= s0 | %x: f32[s0, 8] strides [1, s0]", "\"aten::reshape\"(%x, [expr(8*s0)])", "f32[8*s0] strides [1]"},
      {"2 <= s0 | %x: f32[s0, 4] storage 1", "\"aten::slice.Tensor\"(%x, 0, 1, 9223372036854775807)", "f32[s0 - 1, 4] strides [4, 1] offset(4) storage 1"},
      {"2 <= s0 | %x: f32[s0] storage 1", "\"aten::slice.Tensor\"(%x, 0, 0, 8)", "f32[min(8, s0)] strides [1] storage 1"},
      {"2 <= s0 | %x: f32[s0]", "\"aten::unbind.int\"(%x)", "none"},
  });
}

}  // namespace cxxinductor::model
