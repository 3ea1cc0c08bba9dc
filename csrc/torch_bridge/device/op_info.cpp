#include "torch_bridge/device/op_info.h"

#include <ATen/ops/ones.h>

#include <algorithm>
#include <array>

#include "frontend/import.h"
#include "torch_bridge/device/backing_guard.h"
#include "torch_bridge/device/buffer.h"
#include "torch_bridge/device/composites.h"
#include "torch_bridge/device/out_variants.h"
#include "torch_bridge/dispatcher_schemas.h"
#include "torch_bridge/record/make_call.h"

namespace cxxinductor::torch_bridge {
namespace {

MemoryOp memory_op_of(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, MemoryOp>, 7> ops{{
      {"aten::empty.memory_format", MemoryOp::Empty},
      {"aten::empty_strided", MemoryOp::EmptyStrided},
      {"aten::copy_", MemoryOp::Copy},
      {"aten::_to_copy", MemoryOp::ToCopy},
      {"aten::set_.source_Storage", MemoryOp::SetStorage},
      {"aten::set_.source_Storage_storage_offset", MemoryOp::SetStorageView},
      {"aten::set_.source_Tensor", MemoryOp::SetTensor},
  }};
  const auto found = std::find_if(ops.begin(), ops.end(), [&](const auto& row) { return row.first == name; });
  return found == ops.end() ? MemoryOp::None : found->second;
}

bool is_of_kind(const c10::Argument& argument, c10::TypeKind kind) {
  c10::TypePtr type = argument.real_type();
  if (const auto* optional = type->castRaw<c10::OptionalType>()) type = optional->getElementType();
  return type->kind() == kind;
}

bool is_enum(const c10::Argument& argument) {
  return is_of_kind(argument, c10::TypeKind::ScalarTypeType) || is_of_kind(argument, c10::TypeKind::LayoutType) ||
         is_of_kind(argument, c10::TypeKind::MemoryFormatType);
}

// The argument of that alias set that is written; -1: none is.
int written_argument_of(const c10::Argument& result, const std::vector<c10::Argument>& arguments) {
  const c10::AliasInfo* alias = result.alias_info();
  if (alias == nullptr || !alias->isWrite()) return -1;
  const auto found = std::find_if(arguments.begin(), arguments.end(), [&](const c10::Argument& argument) {
    return argument.alias_info() != nullptr && argument.alias_info()->beforeSets() == alias->beforeSets();
  });
  return found == arguments.end() ? -1 : static_cast<int>(found - arguments.begin());
}

}  // namespace

OpInfo::OpInfo(const c10::OperatorHandle& handle) : op(handle), name(c10::toString(handle.operator_name())) {
  const c10::FunctionSchema& schema = op.schema();
  composite = find_device_composite(name);
  is_composite = op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) && !frontend::is_read_whole(name);
  // What changes a tensor's sizes in place has the tensor as its result, and no value that says so.
  const bool changes_metadata = op.hasTag(at::Tag::inplace_view);
  if (!is_composite && !changes_metadata) rule = model::OpRule::find(schema.name(), schema.overload_name(), DispatcherSchemas());
  memory_op = memory_op_of(name);
  if (!rule && !composite && !is_composite && !op.hasTag(at::Tag::nondeterministic_seeded)) functional = functional_form(op);
  is_sync = memory_op != MemoryOp::None || name == "aten::_local_scalar_dense" || name == "aten::equal";
  is_random = op.hasTag(at::Tag::nondeterministic_seeded);
  returns_list = torch_bridge::returns_list(op);
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::AliasInfo* alias = schema.arguments()[i].alias_info();
    is_enum.push_back(torch_bridge::is_enum(schema.arguments()[i]));
    is_written.push_back(alias != nullptr && alias->isWrite());
    writes = writes || is_written.back();
    if (is_of_kind(schema.arguments()[i], c10::TypeKind::DeviceObjType)) device_argument = static_cast<int>(i);
    if (is_of_kind(schema.arguments()[i], c10::TypeKind::GeneratorType)) generator_argument = static_cast<int>(i);
  }
  for (const c10::Argument& result : schema.returns()) {
    written_argument.push_back(written_argument_of(result, schema.arguments()));
    is_alias.push_back(result.alias_info() != nullptr);
  }
  const bool is_view = !writes && !is_alias.empty() && std::find(is_alias.begin(), is_alias.end(), false) == is_alias.end();
  reads_settings = !is_view && !op.hasTag(at::Tag::pointwise);
}

bool OpInfo::has_kernel(const torch::jit::Stack& stack, c10::Device backing) const {
  if (!op.hasTag(at::Tag::pointwise)) return true;
  torch::jit::Stack arguments = torch::jit::last(stack, is_enum.size()).vec();
  std::string kinds;
  for (const c10::IValue& argument : arguments) {
    if (argument.isTensorList()) return true;
    kinds += argument.tagKind();
    if (argument.isTensor() && argument.toTensor().defined()) kinds += c10::toString(argument.toTensor().scalar_type());
    if (argument.isString()) kinds += argument.toStringRef();
    kinds += ';';
  }
  const auto [found, is_new] = has_kernel_.emplace(std::move(kinds), true);
  if (!is_new) return found->second;
  const BackingGuard guard;
  for (c10::IValue& argument : arguments)
    if (argument.isTensor() && buffer_of(argument.toTensor()) != nullptr)
      argument = at::ones({1}, at::TensorOptions(argument.toTensor().dtype()).device(backing));
  try {
    op.callBoxed(arguments);
  } catch (const c10::NotImplementedError&) {
    found->second = false;
  } catch (const std::exception&) {  // of another kind: sizes, say, which these are not
  }
  return found->second;
}

const OpInfo& OpTable::of(const c10::OperatorHandle& op) {
  std::unique_ptr<OpInfo>& info = infos_[&op.schema()];
  if (!info) info = std::make_unique<OpInfo>(op);
  return *info;
}

}  // namespace cxxinductor::torch_bridge
