#include "torch_bridge/dispatcher_schemas.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include "torch_bridge/types.h"

namespace cxxinductor::torch_bridge {
namespace {

bool holds_tensor(const c10::Type& type) {
  if (type.kind() == c10::TypeKind::TensorType) return true;
  for (const c10::TypePtr& inner : type.containedTypes()) {
    if (holds_tensor(*inner)) return true;
  }
  return false;
}

std::optional<Arg> default_arg(const c10::Argument& argument) {
  const auto& value = argument.default_value();
  if (!value) return std::nullopt;
  if (value->isNone()) return Arg(cxxinductor::None{});
  if (value->isBool()) return Arg(value->toBool());
  if (value->isInt()) return Arg(value->toInt());
  if (value->isDouble()) return Arg(value->toDouble());
  if (value->isString()) return Arg(value->toStringRef());
  if (value->isIntList()) {
    ArgList list;
    for (int64_t item : value->toIntVector()) list.emplace_back(item);
    return Arg(std::move(list));
  }
  return std::nullopt;
}

// Of a list: that of its items.
std::string alias_name(const c10::AliasInfo* alias) {
  if (alias == nullptr) return {};
  if (!alias->beforeSets().empty()) return alias->beforeSets().begin()->toUnqualString();
  return alias->containedTypes().empty() ? std::string() : alias_name(&alias->containedTypes().front());
}

}  // namespace

std::optional<model::Schema> DispatcherSchemas::find(std::string_view callee, std::string_view overload) const {
  const auto handle = c10::Dispatcher::singleton().findSchema({std::string(callee), overload == "default" ? "" : std::string(overload)});
  if (!handle) return std::nullopt;
  const c10::FunctionSchema& torch_schema = handle->schema();
  model::Schema schema;
  for (const c10::Argument& argument : torch_schema.arguments()) {
    model::SchemaArgument out;
    out.name = argument.name();
    out.default_value = default_arg(argument);
    out.is_tensor = holds_tensor(*argument.type());
    out.is_list = argument.type()->kind() == c10::TypeKind::ListType;
    out.kwarg_only = argument.kwarg_only();
    out.alias = alias_name(argument.alias_info());
    out.written = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    out.out = argument.is_out();
    schema.arguments.push_back(std::move(out));
  }
  for (const c10::Argument& result : torch_schema.returns()) {
    model::SchemaReturn out;
    out.alias = alias_name(result.alias_info());
    out.written = result.alias_info() != nullptr && result.alias_info()->isWrite();
    out.is_tensor = holds_tensor(*result.type());
    out.is_list = result.type()->kind() == c10::TypeKind::ListType;
    schema.returns.push_back(std::move(out));
  }
  schema.nondeterministic_seeded = handle->hasTag(at::Tag::nondeterministic_seeded);
  schema.planned_form = model::planned_form(callee);
  return schema;
}

}  // namespace cxxinductor::torch_bridge
