#include "model/pointwise_ops.h"

#include <initializer_list>
#include <sstream>
#include <string_view>

namespace cxxinductor::model {
namespace {

// Binary ops, in all the overloads that ATen has for tensors and numbers.
struct PromotingRow {
  ScalarOp op;
  std::initializer_list<std::string_view> overloads;
};

const PromotingRow kPromotingRows[] = {
    {ScalarOp::Eq, {"aten::eq.Tensor", "aten::eq.Scalar"}},
    {ScalarOp::Ne, {"aten::ne.Tensor", "aten::ne.Scalar"}},
    {ScalarOp::Lt, {"aten::lt.Tensor", "aten::lt.Scalar"}},
    {ScalarOp::Le, {"aten::le.Tensor", "aten::le.Scalar"}},
    {ScalarOp::Gt, {"aten::gt.Tensor", "aten::gt.Scalar"}},
    {ScalarOp::Ge, {"aten::ge.Tensor", "aten::ge.Scalar"}},
    {ScalarOp::LogicalAnd, {"aten::logical_and"}},
    {ScalarOp::LogicalOr, {"aten::logical_or"}},
    {ScalarOp::LogicalXor, {"aten::logical_xor"}},
    {ScalarOp::BitAnd,
     {"aten::bitwise_and.Tensor", "aten::bitwise_and.Scalar", "aten::bitwise_and.Scalar_Tensor", "aten::__and__.Tensor", "aten::__and__.Scalar"}},
    {ScalarOp::BitOr, {"aten::bitwise_or.Tensor", "aten::bitwise_or.Scalar", "aten::bitwise_or.Scalar_Tensor", "aten::__or__.Tensor", "aten::__or__.Scalar"}},
    {ScalarOp::BitXor,
     {"aten::bitwise_xor.Tensor", "aten::bitwise_xor.Scalar", "aten::bitwise_xor.Scalar_Tensor", "aten::__xor__.Tensor", "aten::__xor__.Scalar"}},
    {ScalarOp::ShiftLeft, {"aten::bitwise_left_shift.Tensor", "aten::bitwise_left_shift.Tensor_Scalar", "aten::__lshift__.Tensor", "aten::__lshift__.Scalar"}},
    {ScalarOp::ShiftRight,
     {"aten::bitwise_right_shift.Tensor", "aten::bitwise_right_shift.Tensor_Scalar", "aten::__rshift__.Tensor", "aten::__rshift__.Scalar"}},
    {ScalarOp::Remainder, {"aten::remainder.Tensor", "aten::remainder.Scalar", "aten::remainder.Scalar_Tensor"}},
    {ScalarOp::Fmod, {"aten::fmod.Tensor", "aten::fmod.Scalar"}},
    {ScalarOp::Copysign, {"aten::copysign.Tensor", "aten::copysign.Scalar"}},
    {ScalarOp::ClampMin, {"aten::clamp_min"}},
    {ScalarOp::ClampMax, {"aten::clamp_max"}},
    {ScalarOp::Maximum, {"aten::clamp_min.Tensor"}},
    {ScalarOp::Minimum, {"aten::clamp_max.Tensor"}},
    {ScalarOp::Sign, {"aten::sgn"}},
    {ScalarOp::Lerp, {"aten::lerp.Tensor"}},
};

}  // namespace

std::vector<PointwiseOp> pointwise_ops() {
  std::vector<PointwiseOp> ops;
  for (const PromotingRow& row : kPromotingRows)
    for (std::string_view overload : row.overloads) ops.push_back({std::string(overload), row.op});
  for (size_t i = 0; i < scalar_ops().size(); ++i) {
    const auto op = static_cast<ScalarOp>(i);
    std::istringstream words{std::string(info(op).aten)};
    for (std::string word; words >> word;) {
      if (word.ends_with(".default")) word.resize(word.size() - 8);
      ops.push_back({"aten::" + word, op});
    }
  }
  return ops;
}

}  // namespace cxxinductor::model
