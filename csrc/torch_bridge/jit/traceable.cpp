#include "torch_bridge/jit/traceable.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

#include "model/infer/infer.h"
#include "torch_bridge/dispatcher_schemas.h"
#include "torch_bridge/record/composites.h"

namespace cxxinductor::torch_bridge {
namespace {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Value;
namespace prim = torch::jit::prim;

bool holds_tensors(const c10::TypePtr& type) {
  if (type->kind() == c10::TypeKind::TensorType || type->kind() == c10::TypeKind::AnyType) return true;
  const auto contained = type->containedTypes();
  return std::any_of(contained.begin(), contained.end(), holds_tensors);
}
bool gives_tensors(const c10::TypePtr& type) {
  const auto* list = type->castRaw<c10::ListType>();
  return (list == nullptr ? type : list->getElementType())->isSubtypeOf(*c10::TensorType::get());
}

// Values of these types come into a region, and out of it.
bool is_plain(const c10::TypePtr& type) {
  static constexpr std::array scalars{c10::TypeKind::TensorType, c10::TypeKind::IntType,       c10::TypeKind::FloatType,
                                      c10::TypeKind::BoolType,   c10::TypeKind::StringType,    c10::TypeKind::NoneType,
                                      c10::TypeKind::NumberType, c10::TypeKind::DeviceObjType, c10::TypeKind::ComplexType};
  static constexpr std::array containers{c10::TypeKind::ListType, c10::TypeKind::TupleType, c10::TypeKind::DictType, c10::TypeKind::OptionalType};
  if (std::find(scalars.begin(), scalars.end(), type->kind()) != scalars.end()) return true;
  if (std::find(containers.begin(), containers.end(), type->kind()) == containers.end()) return false;
  const auto contained = type->containedTypes();
  return std::all_of(contained.begin(), contained.end(), is_plain);
}
bool is_plain_value(const Value* value) { return is_plain(value->type()); }

std::string name_of(const c10::FunctionSchema& schema) { return schema.overload_name().empty() ? schema.name() : schema.name() + "." + schema.overload_name(); }

// The compiler can state the metadata of its results: by a rule, or by those of the calls that it consists of.
bool can_be_recorded(const c10::FunctionSchema& schema) {
  const auto op = c10::Dispatcher::singleton().findSchema(schema.operator_name());
  if (!op || !schema.name().starts_with("aten::")) return false;
  return op->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) || find_composite(name_of(schema)) != nullptr ||
         model::OpRule::find(schema.name(), schema.overload_name(), DispatcherSchemas()).has_value();
}

// Ops that read no element of a tensor, only metadata.
bool reads_metadata(const Node* node) {
  static constexpr std::array<std::string_view, 15> names{
      "aten::size",   "aten::dim",       "aten::numel",         "aten::len",       "aten::is_complex",
      "prim::dtype",  "prim::device",    "prim::is_cuda",       "prim::layout",    "aten::is_floating_point",
      "aten::__is__", "aten::__isnot__", "prim::requires_grad", "prim::is_nested", "aten::get_device"};
  return std::find(names.begin(), names.end(), node->kind().toQualString()) != names.end();
}

// Whether an op that only TorchScript has takes tensors for what they are: items of a list, say.
bool is_generic(const Node* node, const c10::FunctionSchema& schema) {
  for (size_t i = 0; i < node->inputs().size(); ++i) {
    if (!holds_tensors(node->input(i)->type())) continue;
    if (i >= schema.arguments().size() || !schema.arguments()[i].type()->hasFreeVariables()) return false;
  }
  const bool depends_on_arguments = !node->inputs().empty() || schema.name() == "aten::dict";
  return depends_on_arguments && !c10::Dispatcher::singleton().findSchema(schema.operator_name());
}

// Questions that have one answer wherever a compiled form runs: regions run as written under autocast.
bool asks_for_autocast(const c10::FunctionSchema& schema) {
  return schema.name() == "aten::is_autocast_enabled" || schema.name() == "aten::is_autocast_cpu_enabled";
}

// Of sizes in tensors without dimensions, as traces have them.
bool is_size_arithmetic(const Node* node) {
  static constexpr std::array<std::string_view, 10> names{
      "aten::add", "aten::sub",         "aten::rsub",           "aten::mul",   "aten::floor_divide", "aten::remainder",
      "aten::Int", "aten::IntImplicit", "aten::ScalarImplicit", "aten::detach"};
  if (std::string_view(node->kind().toQualString()) == "aten::div") {
    const auto mode = torch::jit::toIValue(node->inputs().back());
    return node->inputs().size() == 3 && mode && mode->isString();
  }
  return std::find(names.begin(), names.end(), node->kind().toQualString()) != names.end();
}

bool makes_tensor_of_numbers(const Node* node) {
  return std::string_view(node->kind().toQualString()) == "aten::tensor" &&
         std::none_of(node->inputs().begin(), node->inputs().end(), [](const Value* value) { return holds_tensors(value->type()); });
}

bool is_view(const c10::FunctionSchema& schema) {
  return !schema.is_mutable() &&
         std::any_of(schema.returns().begin(), schema.returns().end(), [](const auto& result) { return result.alias_info() != nullptr; });
}

Role role_of_op(Node* node, const c10::FunctionSchema& schema) {
  if (computes_size(node) || asks_for_autocast(schema)) return Role::Helper;
  const bool tensors = std::all_of(node->outputs().begin(), node->outputs().end(), [](const Value* value) { return gives_tensors(value->type()); });
  if (tensors && !node->outputs().empty() && can_be_recorded(schema)) return is_view(schema) ? Role::View : Role::Compute;
  if (makes_tensor_of_numbers(node) || is_generic(node, schema)) {
    const bool is_known = node->kind().is_aten() || node->kind().is_prim();
    return is_known && !node->hasSideEffects() && !node->isNondeterministic() ? Role::Helper : Role::Boundary;
  }
  return reads_metadata(node) ? Role::Helper : Role::Boundary;
}

}  // namespace

bool is_size_tensor(const Value* value) {
  const Node* node = value->node();
  if (node->kind() == prim::NumToTensor) return node->input()->type()->kind() == c10::TypeKind::IntType;
  if (value->type()->kind() != c10::TypeKind::TensorType) return false;
  if (const auto constant = torch::jit::constant_as<at::Tensor>(value))
    return constant->dim() == 0 && constant->scalar_type() == at::kLong && constant->is_cpu();
  return computes_size(node);
}

bool computes_size(const Node* node) {
  if (node->kind() == prim::NumToTensor) return is_size_tensor(node->output());
  const auto is_tensor = [](const Value* value) { return value->type()->kind() == c10::TypeKind::TensorType; };
  const auto inputs = node->inputs();
  return is_size_arithmetic(node) && std::any_of(inputs.begin(), inputs.end(), is_tensor) && std::all_of(inputs.begin(), inputs.end(), [&](const Value* value) {
           return is_tensor(value) ? is_size_tensor(value) : value->node()->kind() == prim::Constant && value->type()->kind() != c10::TypeKind::FloatType;
         });
}

namespace {

// That a loop runs as often for other sizes: it is unrolled into the region.
bool is_fixed_count(const Value* value) {
  static constexpr std::array<std::string_view, 6> arithmetic{"aten::add", "aten::sub", "aten::mul", "prim::min", "prim::max", "aten::floordiv"};
  static constexpr std::array<std::string_view, 4> by_size{"aten::unbind", "aten::split", "aten::split_with_sizes", "aten::tensor_split"};
  const Node* node = value->node();
  const std::string_view op = node->kind().toQualString();
  if (node->kind() == prim::Constant || op == "aten::dim") return true;
  if (op == "aten::len") {
    const std::string_view source = node->input(0)->node()->kind().toQualString();
    return node->input(0)->type()->kind() == c10::TypeKind::ListType && std::find(by_size.begin(), by_size.end(), source) == by_size.end();
  }
  return std::find(arithmetic.begin(), arithmetic.end(), op) != arithmetic.end() && std::all_of(node->inputs().begin(), node->inputs().end(), is_fixed_count);
}

// A constant count is that of a while loop where it is huge.
bool is_unrolled(const Node* loop) {
  const auto count = torch::jit::constant_as<int64_t>(loop->input(0));
  return is_fixed_count(loop->input(0)) && (!count || *count < std::numeric_limits<int32_t>::max());
}

Role role_of_blocks(Node* node, const NodeSet& excluded) {
  if (node->kind() != prim::If && !(node->kind() == prim::Loop && is_unrolled(node))) return Role::Boundary;
  Role role = Role::Helper;
  for (Block* block : node->blocks())
    for (Node* inner : block->nodes()) {
      const Role found = role_of(inner, excluded);
      if (found == Role::Boundary) return found;
      role = std::min(role, found);  // Compute before View before Helper
    }
  return role;
}

}  // namespace

Role role_of(Node* node, const NodeSet& excluded) {
  const auto kind = node->kind();
  if (excluded.contains(node)) return Role::Boundary;
  if (kind == prim::RaiseException) return Role::Helper;
  if (!std::all_of(node->inputs().begin(), node->inputs().end(), is_plain_value) ||
      !std::all_of(node->outputs().begin(), node->outputs().end(), is_plain_value))
    return Role::Boundary;
  if (!node->blocks().empty()) return role_of_blocks(node, excluded);
  static constexpr std::array structure{prim::Constant,    prim::ListConstruct, prim::TupleConstruct, prim::DictConstruct, prim::ListUnpack,
                                        prim::TupleUnpack, prim::Uninitialized, prim::unchecked_cast, prim::TupleIndex};
  if (std::any_of(structure.begin(), structure.end(), [&](auto symbol) { return kind == symbol; })) return Role::Helper;
  const c10::FunctionSchema* schema = node->maybeSchema();
  return schema == nullptr ? Role::Boundary : role_of_op(node, *schema);
}

std::vector<Value*> written_containers(Node* node) {
  std::vector<Value*> written;
  const c10::FunctionSchema* schema = node->maybeSchema();
  if (schema == nullptr) return written;
  for (size_t i = 0; i < node->inputs().size() && i < schema->arguments().size(); ++i) {
    const c10::AliasInfo* alias = schema->arguments()[i].alias_info();
    if (alias != nullptr && alias->isWrite() && node->input(i)->type()->kind() != c10::TypeKind::TensorType) written.push_back(node->input(i));
  }
  return written;
}
bool writes_container(Node* node) { return !written_containers(node).empty(); }

}  // namespace cxxinductor::torch_bridge
