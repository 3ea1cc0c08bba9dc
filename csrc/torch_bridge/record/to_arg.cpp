#include "torch_bridge/record/to_arg.h"

#include <ATen/core/jit_type.h>

#include "support/error.h"
#include "torch_bridge/record/size_node.h"
#include "torch_bridge/types.h"

namespace cxxinductor::torch_bridge {
namespace {

Arg integer_to_arg(const c10::IValue& value, c10::TypeKind kind) {
  if (value.isSymInt()) {
    const sym::Expr e = to_expr(value.toSymInt());
    return e.is_constant() ? Arg(e.constant()) : Arg(e);
  }
  const int64_t integer = value.toInt();
  switch (kind) {
    case c10::TypeKind::ScalarTypeType:
      return from_torch(static_cast<c10::ScalarType>(integer));
    case c10::TypeKind::LayoutType:
      return LayoutArg{static_cast<int>(integer)};
    case c10::TypeKind::MemoryFormatType:
      return MemoryFormatArg{static_cast<int>(integer)};
    default:
      return integer;
  }
}

Arg list_to_arg(const c10::IValue& value, const c10::TypePtr& element, const TensorToArg& tensor_to_arg) {
  ArgList list;
  for (const c10::IValue& item : value.toListRef()) list.push_back(to_arg(item, element, tensor_to_arg));
  return list;
}

}  // namespace

Arg to_arg(const c10::IValue& value, const c10::TypePtr& type, const TensorToArg& tensor_to_arg) {
  if (const auto* optional = type->castRaw<c10::OptionalType>()) return value.isNone() ? Arg() : to_arg(value, optional->getElementType(), tensor_to_arg);
  if (value.isNone()) return {};
  if (value.isTensor()) return value.toTensor().defined() ? tensor_to_arg(value.toTensor()) : Arg();
  if (value.isList()) {
    const auto* list = type->castRaw<c10::ListType>();
    return list_to_arg(value, list != nullptr ? list->getElementType() : type, tensor_to_arg);
  }
  if (value.isBool()) return value.toBool();
  if (value.isSymBool()) return value.toSymBool().guard_bool(__FILE__, __LINE__);
  if (value.isInt() || value.isSymInt()) return integer_to_arg(value, type->kind());
  if (value.isDouble()) return value.toDouble();
  if (value.isSymFloat()) return value.toSymFloat().guard_float(__FILE__, __LINE__);
  if (value.isComplexDouble()) return std::complex<double>(value.toComplexDouble().real(), value.toComplexDouble().imag());
  if (value.isString()) return value.toStringRef();
  if (value.isDevice()) return from_torch(value.toDevice());
  throw_unsupported("arguments of type {} in a call of an op", value.tagKind());
}

}  // namespace cxxinductor::torch_bridge
