#include "model/promotion.h"

#include "unit/catch.h"

namespace cxxinductor::model {

using D = DType;

TEST_CASE("promote_types follows c10::promoteTypes") {
  const struct {
    DType a, b;
    std::optional<DType> result;
  } rows[] = {
      {D::F32, D::F64, D::F64},  {D::F16, D::BF16, D::F32}, {D::BF16, D::F32, D::F32}, {D::I64, D::BF16, D::BF16},  {D::Bool, D::U8, D::U8},
      {D::U8, D::I8, D::I16},    {D::U8, D::I32, D::I32},   {D::I8, D::I64, D::I64},   {D::Bool, D::F16, D::F16},   {D::F8E4M3FN, D::F32, {}},
      {D::U16, D::I32, {}},      {D::C64, D::F32, D::C64},  {D::C64, D::F64, D::C128}, {D::C128, D::I32, D::C128},  {D::C32, D::F16, D::C32},
      {D::C32, D::BF16, D::C64}, {D::C32, D::I64, D::C32},  {D::C32, D::F64, D::C128}, {D::Bool, D::Bool, D::Bool}, {D::F8E5M2, D::F8E5M2, D::F8E5M2},
  };
  for (const auto& row : rows) {
    CAPTURE(to_string(row.a), to_string(row.b));
    CHECK(promote_types(row.a, row.b) == row.result);
    CHECK(promote_types(row.b, row.a) == row.result);
  }
}

TEST_CASE("operands of a lower kind matter in a higher category alone") {
  using enum OperandKind;
  const auto common = [](std::initializer_list<PromotedOperand> operands) { return common_dtype(std::span(operands.begin(), operands.size())); };
  CHECK(common({{D::BF16, Dimensioned}, {D::F32, ZeroDimensional}}) == D::BF16);
  CHECK(common({{D::I32, Dimensioned}, {D::F16, ZeroDimensional}}) == D::F16);
  CHECK(common({{D::I32, Dimensioned}, {D::F32, Number}}) == D::F32);
  CHECK(common({{D::Bool, Dimensioned}, {D::I64, Number}}) == D::I64);
  CHECK(common({{D::F64, Dimensioned}, {D::C64, Number}}) == D::C128);
  CHECK(common({{D::F16, Dimensioned}, {D::C128, ZeroDimensional}}) == D::C32);
  CHECK(common({{D::BF16, Dimensioned}, {D::C64, Number}}) == D::C64);
  CHECK(common({{D::U16, Dimensioned}, {D::I32, Dimensioned}}) == std::nullopt);
}

TEST_CASE("results in place may be cast to a higher category") {
  CHECK(can_cast(D::I64, D::U8));
  CHECK(can_cast(D::F64, D::F16));
  CHECK_FALSE(can_cast(D::F32, D::I64));
  CHECK_FALSE(can_cast(D::I64, D::Bool));
  CHECK_FALSE(can_cast(D::C64, D::F64));
}

}  // namespace cxxinductor::model
