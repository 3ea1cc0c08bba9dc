#include "torch_bridge/jit/interpret.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "support/error.h"

namespace cxxinductor::torch_bridge {
namespace {

using torch::jit::Node;
using torch::jit::Stack;
using torch::jit::Value;

bool is_symbolic(const c10::IValue& value) { return value.isSymInt() && !value.toSymInt().maybe_as_int(); }

c10::IValue simplified(const c10::SymInt& size) {
  const auto number = size.maybe_as_int();
  return number ? c10::IValue(*number) : c10::IValue(size);
}

// A list as TorchScript has it; one that holds symbols is of symbolic integers.
c10::IValue make_list(const std::vector<c10::IValue>& items, const c10::TypePtr& element) {
  if (std::any_of(items.begin(), items.end(), is_symbolic)) {
    std::vector<c10::SymInt> sizes;
    for (const c10::IValue& item : items) sizes.push_back(item.toSymInt());
    return sizes;
  }
  c10::impl::GenericList list(element);
  for (const c10::IValue& item : items) list.push_back(item);
  return list;
}

std::vector<c10::IValue> items_of(const c10::IValue& list) {
  if (list.isTuple()) return list.toTuple()->elements().vec();
  std::vector<c10::IValue> items;
  for (const c10::IValue& item : list.toListRef()) items.push_back(item);
  return items;
}

using SizeOp = c10::SymInt (*)(const c10::SymInt& a, const c10::SymInt& b);
struct SizeRow {
  std::string_view op;
  SizeOp compute;
};
constexpr std::array size_ops{
    SizeRow{"aten::add.int", [](const c10::SymInt& a, const c10::SymInt& b) { return a + b; }},
    SizeRow{"aten::sub.int", [](const c10::SymInt& a, const c10::SymInt& b) { return a - b; }},
    SizeRow{"aten::mul.int", [](const c10::SymInt& a, const c10::SymInt& b) { return a * b; }},
    SizeRow{"aten::floordiv.int", [](const c10::SymInt& a, const c10::SymInt& b) { return a / b; }},
    SizeRow{"aten::remainder.int", [](const c10::SymInt& a, const c10::SymInt& b) { return a % b; }},
};

// Reads of sizes and arithmetic on them, which may be symbolic. None: another op.
std::optional<c10::IValue> read_sizes(std::string_view op, const std::vector<c10::IValue>& inputs) {
  if (op == "aten::size") {
    std::vector<c10::IValue> sizes;
    for (const c10::SymInt& size : inputs[0].toTensor().sym_sizes()) sizes.push_back(simplified(size));
    return make_list(sizes, c10::IntType::get());
  }
  if (op == "aten::size.int") return simplified(inputs[0].toTensor().sym_size(inputs[1].toInt()));
  if (op == "aten::numel") return simplified(inputs[0].toTensor().sym_numel());
  if (op == "aten::len.Tensor") return simplified(inputs[0].toTensor().sym_size(0));
  if (op == "aten::neg.int" && is_symbolic(inputs[0])) return simplified(-inputs[0].toSymInt());
  if (op == "aten::__getitem__.t" && inputs[0].isSymIntList()) {
    const std::vector<c10::IValue> items = items_of(inputs[0]);
    const int64_t index = inputs[1].toInt(), count = static_cast<int64_t>(items.size());
    if (index < -count || index >= count)
      throw_unsupported("{}: expected an index below {}, found {}", op, count, index);
    return items[static_cast<size_t>(index < 0 ? index + count : index)];
  }
  const auto row =
      std::find_if(size_ops.begin(), size_ops.end(), [&](const SizeRow& candidate) { return candidate.op == op; });
  if (row != size_ops.end() && (is_symbolic(inputs[0]) || is_symbolic(inputs[1])))
    return simplified(row->compute(inputs[0].toSymInt(), inputs[1].toSymInt()));
  return std::nullopt;
}

// With numbers where the schema takes nothing else.
c10::IValue without_symbols(const c10::IValue& value) {
  if (is_symbolic(value)) return value.toSymInt().guard_int(__FILE__, __LINE__);
  if (!value.isSymIntList()) return value;
  std::vector<int64_t> numbers;
  for (const c10::SymInt& size : value.toSymIntVector()) numbers.push_back(size.guard_int(__FILE__, __LINE__));
  return numbers;
}

bool takes_symbols(const c10::Argument& argument) {
  const c10::TypePtr& type = argument.real_type();
  const auto is_size = [](const c10::TypePtr& t) {
    return t->kind() == c10::TypeKind::SymIntType || t->kind() == c10::TypeKind::NumberType;
  };
  if (is_size(type)) return true;
  if (const auto* list = type->castRaw<c10::ListType>()) return is_size(list->getElementType());
  const auto* optional = type->castRaw<c10::OptionalType>();
  if (optional == nullptr) return false;
  if (is_size(optional->getElementType())) return true;
  const auto* list = optional->getElementType()->castRaw<c10::ListType>();
  return list != nullptr && is_size(list->getElementType());
}

class Interpreter {
 public:
  std::vector<c10::IValue> run(const torch::jit::Graph& graph, std::vector<c10::IValue> arguments) {
    for (size_t i = 0; i < arguments.size(); ++i) values_.emplace(graph.inputs()[i], std::move(arguments[i]));
    for (const Node* node : graph.nodes()) run(node);
    return items_of(values_.at(graph.outputs().at(0)));
  }

 private:
  void run(const Node* node) {
    namespace prim = torch::jit::prim;
    std::vector<c10::IValue> inputs;
    for (const Value* input : node->inputs()) inputs.push_back(values_.at(input));
    const auto kind = node->kind();
    if (kind == prim::Constant) return define(node, {torch::jit::toIValue(node->output()).value_or(c10::IValue())});
    if (kind == prim::ListConstruct)
      return define(node, {make_list(inputs, node->output()->type()->expectRef<c10::ListType>().getElementType())});
    if (kind == prim::TupleConstruct) return define(node, {c10::ivalue::Tuple::create(std::move(inputs))});
    if (kind == prim::ListUnpack || kind == prim::TupleUnpack) return define(node, items_of(inputs.at(0)));
    run_op(node, std::move(inputs));
  }

  void run_op(const Node* node, std::vector<c10::IValue> inputs) {
    const c10::FunctionSchema& schema = node->schema();
    const std::string op =
        schema.overload_name().empty() ? schema.name() : schema.name() + "." + schema.overload_name();
    if (auto size = read_sizes(op, inputs)) return define(node, {std::move(*size)});
    const auto handle = c10::Dispatcher::singleton().findSchema(schema.operator_name());
    Stack stack;
    for (size_t i = 0; i < inputs.size(); ++i)
      stack.push_back(handle && takes_symbols(handle->schema().arguments()[i]) ? inputs[i]
                                                                               : without_symbols(inputs[i]));
    if (handle)
      handle->callBoxed(stack);
    else
      node->getOperation()(stack);
    define(node, std::move(stack));
  }

  void define(const Node* node, std::vector<c10::IValue> outputs) {
    if (outputs.size() != node->outputs().size())
      throw_unsupported("{}: expected {} results, found {}", node->kind().toQualString(), node->outputs().size(),
                        outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) values_.insert_or_assign(node->output(i), std::move(outputs[i]));
  }

  std::unordered_map<const Value*, c10::IValue> values_;
};

}  // namespace

std::vector<c10::IValue> interpret(const torch::jit::Graph& graph, std::vector<c10::IValue> arguments) {
  return Interpreter().run(graph, std::move(arguments));
}

}  // namespace cxxinductor::torch_bridge
