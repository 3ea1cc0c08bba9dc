#include "torch_bridge/types.h"

#include <ATen/ScalarOps.h>
#include <ATen/core/List.h>
#include <ATen/core/jit_type.h>
#include <c10/core/TensorOptions.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <optional>

#include "ir/device_types.h"
#include "support/error.h"

namespace cxxinductor::torch_bridge {

c10::ScalarType to_torch(DType dtype) { return static_cast<c10::ScalarType>(info(dtype).torch_scalar_type); }

DType from_torch(c10::ScalarType type) {
  if (auto dtype = dtype_from_torch(static_cast<int>(type))) return *dtype;
  throw_unsupported("tensors of dtype {}", c10::toString(type));
}

c10::Device to_torch(Device device) {
  const auto type = static_cast<c10::DeviceType>(info(device.type).torch_device_type);
  return has_streams(device) ? c10::Device(type, static_cast<c10::DeviceIndex>(device.index)) : c10::Device(type);
}

c10::DispatchKeySet dense_keys(c10::DeviceType type) { return c10::DispatchKeySet(c10::computeDispatchKey(std::nullopt, std::nullopt, c10::Device(type))); }

namespace {

// "cuda" without an index is the device that is current when the graph is read, as in FakeTensors.
int current_index(c10::DeviceType type) {
  if (!c10::impl::hasDeviceGuardImpl(type)) return 0;
  return c10::impl::VirtualGuardImpl(type).getDevice().index();
}

}  // namespace

Device from_torch(c10::Device device) {
  for (const DeviceTypeInfo& row : device_types()) {
    if (row.torch_device_type != static_cast<int>(device.type())) continue;
    if (!row.has_streams) return {row.type, 0};
    return {row.type, device.has_index() ? device.index() : current_index(device.type())};
  }
  throw_unsupported("tensors on device {}", device.str());
}

namespace {

[[noreturn]] void mismatch(const Arg& arg, const c10::TypePtr& type) { throw_user_error("argument {} does not fit type {}", to_string(arg), type->str()); }

int64_t integer_of(const Arg& arg, const c10::TypePtr& type, const ArgResolver& resolver) {
  if (const auto* i = arg.as<int64_t>()) return *i;
  if (const auto* b = arg.as<bool>()) return *b ? 1 : 0;
  if (const auto* handle = arg.as<Handle>()) return handle->index;
  if (const auto* e = arg.as<sym::Expr>()) return resolver.symbol(*e).guard_int(__FILE__, __LINE__);
  if (const auto* ref = arg.as<OperandRef>()) {
    c10::IValue v = resolver.operand(ref->operand);
    if (v.isInt()) return v.toInt();
  }
  if (const auto* d = arg.as<double>()) return static_cast<int64_t>(*d);
  mismatch(arg, type);
}

std::optional<at::Scalar> number_of(const Arg& arg, const ArgResolver& resolver) {
  if (const auto* b = arg.as<bool>()) return at::Scalar(*b);
  if (const auto* i = arg.as<int64_t>()) return at::Scalar(*i);
  if (const auto* d = arg.as<double>()) return at::Scalar(*d);
  if (const auto* z = arg.as<std::complex<double>>()) return at::Scalar(c10::complex<double>(z->real(), z->imag()));
  if (const auto* e = arg.as<sym::Expr>()) return at::Scalar(resolver.symbol(*e));
  if (const auto* ref = arg.as<OperandRef>()) {
    const c10::IValue value = resolver.operand(ref->operand);
    if (value.isScalar()) return value.toScalar();
  }
  return std::nullopt;
}

// A float that each call gives anew, or a tensor of one element where the schema wants a number: floats that are made of sizes.
std::optional<at::Scalar> given_number(const Arg& arg, const ArgResolver& resolver) {
  const auto* ref = arg.as<OperandRef>();
  if (ref == nullptr) return std::nullopt;
  const c10::IValue value = resolver.operand(ref->operand);
  if (value.isDouble()) return value.toDouble();
  if (!value.isTensor() || value.toTensor().dim() != 0) return std::nullopt;
  return value.toTensor().item();
}

double real_of(const Arg& arg, const c10::TypePtr& type, const ArgResolver& resolver) {
  if (const auto* d = arg.as<double>()) return *d;
  if (const auto number = given_number(arg, resolver)) return number->toDouble();
  return static_cast<double>(integer_of(arg, type, resolver));
}

// Symbolic where the resolver's symbols are.
c10::IValue size_of(const Arg& arg, const c10::TypePtr& type, const ArgResolver& resolver) {
  if (const auto* e = arg.as<sym::Expr>()) return resolver.symbol(*e);
  return integer_of(arg, type, resolver);
}

c10::IValue sizes_of(const ArgList& list, const c10::TypePtr& element, const ArgResolver& resolver) {
  std::vector<int64_t> numbers;
  std::vector<c10::SymInt> symbols;
  for (const Arg& item : list) {
    symbols.push_back(size_of(item, element, resolver).toSymInt());
    if (const auto number = symbols.back().maybe_as_int()) numbers.push_back(*number);
  }
  return numbers.size() == symbols.size() ? c10::IValue(std::move(numbers)) : c10::IValue(symbols);
}

// A number where the schema wants a tensor (x + 1 is add.Tensor): wrapped, so that it takes part in type promotion as a
// number does.
c10::IValue tensor_to_ivalue(const Arg& arg, const c10::TypePtr& type, const ArgResolver& resolver) {
  if (arg.is_none()) return at::Tensor();
  if (const std::optional<at::Scalar> number = number_of(arg, resolver)) return at::native::wrapped_scalar_tensor(*number);
  if (const auto* ref = arg.as<OperandRef>()) return resolver.operand(ref->operand);
  mismatch(arg, type);
}

c10::IValue list_to_ivalue(const Arg& arg, const c10::ListType& type, const ArgResolver& resolver) {
  const ArgList* list = arg.as<ArgList>();
  const c10::TypePtr& element = type.getElementType();
  // A scalar where the schema says int[2] means that it is repeated; the dispatcher wants a list, one element is enough.
  const ArgList single{arg};
  if (list == nullptr) list = &single;
  switch (element->kind()) {
    case c10::TypeKind::TensorType: {
      c10::List<at::Tensor> out;
      for (const Arg& item : *list) out.push_back(to_ivalue(item, element, resolver).toTensor());
      return out;
    }
    case c10::TypeKind::OptionalType: {
      c10::List<std::optional<at::Tensor>> out;
      for (const Arg& item : *list) {
        if (item.is_none())
          out.push_back(std::nullopt);
        else
          out.push_back(to_ivalue(item, c10::TensorType::get(), resolver).toTensor());
      }
      return out;
    }
    case c10::TypeKind::SymIntType:
      return sizes_of(*list, element, resolver);
    case c10::TypeKind::IntType: {
      c10::List<int64_t> out;
      for (const Arg& item : *list) out.push_back(integer_of(item, element, resolver));
      return out;
    }
    case c10::TypeKind::FloatType: {
      c10::List<double> out;
      for (const Arg& item : *list) out.push_back(real_of(item, element, resolver));
      return out;
    }
    case c10::TypeKind::BoolType: {
      c10::List<bool> out;
      for (const Arg& item : *list) out.push_back(integer_of(item, element, resolver) != 0);
      return out;
    }
    case c10::TypeKind::NumberType: {
      c10::List<at::Scalar> out;
      for (const Arg& item : *list) out.push_back(to_ivalue(item, element, resolver).toScalar());
      return out;
    }
    default:
      throw_unsupported("lists of {} as arguments of an op", element->str());
  }
}

}  // namespace

c10::IValue to_ivalue(const Arg& arg, const c10::TypePtr& type, const ArgResolver& resolver) {
  if (type->kind() == c10::TypeKind::OptionalType) {
    if (arg.is_none()) return {};
    return to_ivalue(arg, type->expectRef<c10::OptionalType>().getElementType(), resolver);
  }
  switch (type->kind()) {
    case c10::TypeKind::TensorType:
      return tensor_to_ivalue(arg, type, resolver);
    case c10::TypeKind::ListType:
      return list_to_ivalue(arg, type->expectRef<c10::ListType>(), resolver);
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      if (const auto* dtype = arg.as<DType>()) return static_cast<int64_t>(to_torch(*dtype));
      if (const auto* layout = arg.as<LayoutArg>()) return static_cast<int64_t>(layout->torch_layout);
      if (const auto* format = arg.as<MemoryFormatArg>()) return static_cast<int64_t>(format->torch_memory_format);
      return type->kind() == c10::TypeKind::SymIntType ? size_of(arg, type, resolver) : integer_of(arg, type, resolver);
    case c10::TypeKind::ScalarTypeType:
      if (const auto* dtype = arg.as<DType>()) return static_cast<int64_t>(to_torch(*dtype));
      mismatch(arg, type);
    case c10::TypeKind::LayoutType:
      if (const auto* layout = arg.as<LayoutArg>()) return static_cast<int64_t>(layout->torch_layout);
      mismatch(arg, type);
    case c10::TypeKind::MemoryFormatType:
      if (const auto* format = arg.as<MemoryFormatArg>()) return static_cast<int64_t>(format->torch_memory_format);
      mismatch(arg, type);
    case c10::TypeKind::FloatType:
    case c10::TypeKind::SymFloatType:
      return real_of(arg, type, resolver);
    case c10::TypeKind::BoolType:
    case c10::TypeKind::SymBoolType:
      return integer_of(arg, type, resolver) != 0;
    case c10::TypeKind::NumberType:
      if (const auto* d = arg.as<double>()) return *d;
      if (const auto* z = arg.as<std::complex<double>>()) return c10::complex<double>(z->real(), z->imag());
      if (const auto* b = arg.as<bool>()) return *b;
      if (const auto number = given_number(arg, resolver)) return *number;
      return size_of(arg, type, resolver);
    case c10::TypeKind::StringType:
      if (const auto* s = arg.as<std::string>()) return *s;
      mismatch(arg, type);
    case c10::TypeKind::DeviceObjType:
      if (const auto* device = arg.as<Device>()) return to_torch(*device);
      mismatch(arg, type);
    default:
      if (const auto* ref = arg.as<OperandRef>()) return resolver.operand(ref->operand);
      throw_unsupported("arguments of type {} in a call of an op", type->str());
  }
}

std::vector<c10::IValue> build_stack(const c10::FunctionSchema& schema, const std::vector<Arg>& args, const std::vector<std::pair<std::string, Arg>>& kwargs,
                                     const ArgResolver& resolver) {
  std::vector<c10::IValue> stack;
  stack.reserve(schema.arguments().size());
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::Argument& formal = schema.arguments()[i];
    const Arg* actual = i < args.size() ? &args[i] : nullptr;
    for (const auto& [name, value] : kwargs) {
      if (name == formal.name()) actual = &value;
    }
    if (actual != nullptr) {
      stack.push_back(to_ivalue(*actual, formal.real_type(), resolver));
    } else if (formal.default_value()) {
      stack.push_back(*formal.default_value());
    } else {
      throw_user_error("{} needs an argument '{}'", schema.name(), formal.name());
    }
  }
  return stack;
}

}  // namespace cxxinductor::torch_bridge
