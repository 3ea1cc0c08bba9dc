#include "torch_bridge/jit/interpret.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/clone.h>
#include <ATen/ops/scalar_tensor.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "support/error.h"
#include "torch_bridge/jit/traceable.h"
#include "torch_bridge/record/fake_tensor.h"

namespace cxxinductor::torch_bridge {
namespace {

using torch::jit::Block;
using torch::jit::Node;
using torch::jit::Stack;
using torch::jit::Value;

// Beyond this many a loop is better compiled by its body.
constexpr int64_t most_iterations = 256;

bool is_symbolic(const c10::IValue& value) { return value.isSymInt() && !value.toSymInt().maybe_as_int(); }

c10::IValue simplified(const c10::SymInt& size) {
  const auto number = size.maybe_as_int();
  return number ? c10::IValue(*number) : c10::IValue(size);
}

// Lists are of the type that TorchScript gives them; lists of integers may hold symbolic ones.
c10::IValue make_list(const std::vector<c10::IValue>& items, const c10::TypePtr& element) {
  c10::impl::GenericList list(element);
  for (const c10::IValue& item : items) list.push_back(item);
  return list;
}

std::vector<c10::IValue> items_of(const c10::IValue& list) {
  if (list.isTuple()) return list.toTupleRef().elements().vec();
  std::vector<c10::IValue> items;
  for (const c10::IValue& item : list.toListRef()) items.push_back(item);
  return items;
}

// As Python and TorchScript divide, which C++ does not where a number is negative.
c10::SymInt floor_div(const c10::SymInt& a, const c10::SymInt& b) {
  const auto x = a.maybe_as_int(), y = b.maybe_as_int();
  if (!x || !y || *y == 0) return a / b;
  return *x / *y - (*x % *y != 0 && (*x < 0) != (*y < 0) ? 1 : 0);
}
c10::SymInt remainder(const c10::SymInt& a, const c10::SymInt& b) {
  const auto x = a.maybe_as_int(), y = b.maybe_as_int();
  return x && y && *y != 0 ? c10::SymInt(*x - *y * floor_div(a, b).expect_int()) : a % b;
}
// Towards zero.
c10::SymInt truncated_div(const c10::SymInt& a, const c10::SymInt& b) {
  const auto is_negative = [](const c10::SymInt& size) { return size.sym_lt(0).guard_bool(__FILE__, __LINE__); };
  const c10::SymInt whole = floor_div(is_negative(a) ? -a : a, is_negative(b) ? -b : b);
  return is_negative(a) == is_negative(b) ? whole : -whole;
}

using SizeOp = c10::SymInt (*)(const c10::SymInt& a, const c10::SymInt& b);
using SizeTest = c10::SymBool (*)(const c10::SymInt& a, const c10::SymInt& b);
template <class Compute>
struct SizeRow {
  std::string_view op;
  Compute compute;
};
constexpr std::array size_ops{
    SizeRow<SizeOp>{"aten::add.int", [](const c10::SymInt& a, const c10::SymInt& b) { return a + b; }},
    SizeRow<SizeOp>{"aten::sub.int", [](const c10::SymInt& a, const c10::SymInt& b) { return a - b; }},
    SizeRow<SizeOp>{"aten::mul.int", [](const c10::SymInt& a, const c10::SymInt& b) { return a * b; }},
    SizeRow<SizeOp>{"aten::floordiv.int", floor_div},
    SizeRow<SizeOp>{"aten::remainder.int", remainder},
    SizeRow<SizeOp>{"prim::min.int", [](const c10::SymInt& a, const c10::SymInt& b) { return a.min(b); }},
    SizeRow<SizeOp>{"prim::max.int", [](const c10::SymInt& a, const c10::SymInt& b) { return a.max(b); }},
};
constexpr std::array size_tests{
    SizeRow<SizeTest>{"aten::eq.int", [](const c10::SymInt& a, const c10::SymInt& b) { return a.sym_eq(b); }},
    SizeRow<SizeTest>{"aten::ne.int", [](const c10::SymInt& a, const c10::SymInt& b) { return a.sym_ne(b); }},
    SizeRow<SizeTest>{"aten::lt.int", [](const c10::SymInt& a, const c10::SymInt& b) { return a.sym_lt(b); }},
    SizeRow<SizeTest>{"aten::le.int", [](const c10::SymInt& a, const c10::SymInt& b) { return a.sym_le(b); }},
    SizeRow<SizeTest>{"aten::gt.int", [](const c10::SymInt& a, const c10::SymInt& b) { return a.sym_gt(b); }},
    SizeRow<SizeTest>{"aten::ge.int", [](const c10::SymInt& a, const c10::SymInt& b) { return a.sym_ge(b); }},
};

template <class Rows>
auto row_of(const Rows& rows, std::string_view op) {
  return std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.op == op; });
}

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
  if (inputs.size() != 2 || !(is_symbolic(inputs[0]) || is_symbolic(inputs[1]))) return std::nullopt;
  if (const auto row = row_of(size_ops, op); row != size_ops.end()) return simplified(row->compute(inputs[0].toSymInt(), inputs[1].toSymInt()));
  if (const auto row = row_of(size_tests, op); row != size_tests.end())
    return row->compute(inputs[0].toSymInt(), inputs[1].toSymInt()).guard_bool(__FILE__, __LINE__);
  return std::nullopt;
}

bool is_size(const c10::TypePtr& type) { return type->kind() == c10::TypeKind::SymIntType || type->kind() == c10::TypeKind::NumberType; }

c10::TypePtr without_optional(const c10::TypePtr& type) {
  const auto* optional = type->castRaw<c10::OptionalType>();
  return optional == nullptr ? type : optional->getElementType();
}

// A number or list as an op of the dispatcher takes it: with symbols, or with numbers where the schema takes nothing else.
c10::IValue as_argument(const c10::IValue& value, const c10::TypePtr& formal) {
  const c10::TypePtr type = without_optional(formal);
  if (is_symbolic(value) && !is_size(type)) return value.toSymInt().guard_int(__FILE__, __LINE__);
  if (!value.isIntList()) return value;
  const std::vector<c10::IValue> items = items_of(value);
  if (std::none_of(items.begin(), items.end(), is_symbolic)) return value;
  const auto* list = type->castRaw<c10::ListType>();
  if (list != nullptr && is_size(list->getElementType())) {
    std::vector<c10::SymInt> sizes;
    for (const c10::IValue& item : items) sizes.push_back(item.toSymInt());
    return sizes;
  }
  std::vector<int64_t> numbers;
  for (const c10::IValue& item : items) numbers.push_back(item.toSymInt().guard_int(__FILE__, __LINE__));
  return numbers;
}

// Ops that only TorchScript has and that move values without looking at them.
bool moves_values(const c10::FunctionSchema& schema) {
  static constexpr std::array<std::string_view, 27> names{
      "aten::append", "aten::insert", "aten::extend", "aten::pop",       "aten::popitem",     "aten::clear",    "aten::reverse",
      "aten::copy",   "aten::list",   "aten::len",    "aten::slice",     "aten::select",      "aten::add",      "aten::add_",
      "aten::mul",    "aten::dict",   "aten::keys",   "aten::values",    "aten::items",       "aten::get",      "aten::setdefault",
      "aten::update", "aten::Delete", "aten::__is__", "aten::__isnot__", "aten::__getitem__", "aten::_set_item"};
  return std::find(names.begin(), names.end(), schema.name()) != names.end();
}

// With numbers in place of symbols, which holds for these sizes alone; in the containers themselves, as the op may write to them.
c10::IValue with_numbers(c10::IValue value) {
  if (is_symbolic(value)) return value.toSymInt().guard_int(__FILE__, __LINE__);
  if (value.isList()) {
    c10::List<c10::IValue> list = value.toList();
    for (size_t i = 0; i < list.size(); ++i) {
      const c10::IValue item = list.get(i);
      if (is_symbolic(item) || item.isList() || item.isTuple() || item.isGenericDict()) list.set(i, with_numbers(item));
    }
  } else if (value.isTuple()) {
    const std::vector<c10::IValue> items = items_of(value);
    for (size_t i = 0; i < items.size(); ++i) value.toTupleRef().unsafeSetElement(i, with_numbers(items[i]));
  } else if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict()) entry.setValue(with_numbers(entry.value()));
  }
  return value;
}

class Interpreter {
 public:
  explicit Interpreter(const Node*& at) : at_(at) {}

  std::vector<c10::IValue> run(const torch::jit::Graph& graph, std::vector<c10::IValue> arguments) {
    for (size_t i = 0; i < arguments.size(); ++i) define(graph.inputs()[i], std::move(arguments[i]));
    return items_of(run_block(graph.block()).at(0));
  }

 private:
  std::vector<c10::IValue> run_block(const Block* block) {
    for (const Node* node : block->nodes()) run_node(node);
    return values_of(block->outputs());
  }

  std::vector<c10::IValue> values_of(at::ArrayRef<const Value*> values) const {
    std::vector<c10::IValue> found;
    for (const Value* value : values) {
      const c10::IValue& item = values_.at(value);
      const bool is_size = value->type()->kind() == c10::TypeKind::TensorType && (item.isInt() || item.isSymInt());
      found.push_back(is_size ? tensor_of(item) : item);
    }
    return found;
  }

  // Of its own at each call.
  static at::Tensor tensor_of(const c10::IValue& number) {
    at::Tensor made;
    {
      const c10::impl::ExcludeDispatchKeyGuard no_recording(recording_key);
      made = at::scalar_tensor(number.toInt(), at::kLong);
    }
    return at::clone(made);
  }

  // Sizes in tensors stay numbers until an op takes them as tensors.
  c10::IValue compute_size(const Node* node) const {
    const c10::impl::ExcludeDispatchKeyGuard no_recording(recording_key);
    std::vector<c10::SymInt> numbers;
    bool truncates = false;
    for (const Value* input : node->inputs()) {
      const c10::IValue& value = values_.at(input);
      if (value.isString()) {
        truncates = value.toStringRef() == "trunc";
        continue;
      }
      numbers.push_back(value.isTensor() ? value.toTensor().item().toLong() : value.toSymInt());
    }
    const std::string_view op = node->kind().toQualString();
    if (op == "aten::mul") return simplified(numbers[0] * numbers[1]);
    if (op == "aten::floor_divide" || op == "aten::div")
      return simplified(truncates ? truncated_div(numbers[0], numbers[1]) : floor_div(numbers[0], numbers[1]));
    if (op == "aten::remainder") return simplified(remainder(numbers[0], numbers[1]));
    if (op == "aten::add") return simplified(numbers[0] + numbers[1] * numbers[2]);
    if (op == "aten::sub") return simplified(numbers[0] - numbers[1] * numbers[2]);
    if (op == "aten::rsub") return simplified(numbers[1] - numbers[0] * numbers[2]);
    return simplified(numbers[0]);
  }

  void run_node(const Node* node) {
    namespace prim = torch::jit::prim;
    at_ = node;
    const auto kind = node->kind();
    if (kind == prim::If) return run_branch(node);
    if (kind == prim::Loop) return run_loop(node);
    if (kind == prim::RaiseException) throw_user_error("the code raises an exception for these arguments");
    if (kind == prim::Constant) return define(node, {torch::jit::toIValue(node->output()).value_or(c10::IValue())});
    if (kind == prim::Uninitialized) return define(node, {c10::IValue()});
    if (computes_size(node)) return define(node, {compute_size(node)});
    std::vector<c10::IValue> inputs = values_of(node->inputs());
    if (kind == prim::unchecked_cast) return define(node, std::move(inputs));
    if (kind == prim::ListConstruct) return define(node, {make_list(inputs, node->output()->type()->expectRef<c10::ListType>().getElementType())});
    if (kind == prim::DictConstruct) return define(node, {make_dict(node, inputs)});
    if (kind == prim::TupleConstruct) return define(node, {make_tuple(node, std::move(inputs))});
    if (kind == prim::TupleIndex) return define(node, {item_of(inputs.at(0), inputs.at(1).toInt())});
    if (kind == prim::ListUnpack || kind == prim::TupleUnpack) return define(node, items_of(inputs.at(0)));
    run_op(node, std::move(inputs));
  }

  void run_branch(const Node* node) {
    const Block* taken = node->blocks().at(values_.at(node->input()).toBool() ? 0 : 1);
    std::vector<c10::IValue> results = run_block(taken);
    define(node, std::move(results));
  }

  // Inputs: the most iterations, whether there is a first, what it carries. The body takes its number and what it
  // carries, and gives whether there is another, and what it carries.
  void run_loop(const Node* node) {
    std::vector<c10::IValue> carried = values_of(node->inputs().slice(2));
    const int64_t most = values_.at(node->input(0)).toInt();
    bool goes_on = values_.at(node->input(1)).toBool();
    const Block* body = node->blocks().at(0);
    for (int64_t i = 0; i < most && goes_on; ++i) {
      if (i == most_iterations) throw_unsupported("a loop of more than {} iterations", most_iterations);
      define(body->inputs().at(0), i);
      for (size_t k = 0; k < carried.size(); ++k) define(body->inputs()[k + 1], std::move(carried[k]));
      std::vector<c10::IValue> results = run_block(body);
      goes_on = results.at(0).toBool();
      carried.assign(std::make_move_iterator(results.begin() + 1), std::make_move_iterator(results.end()));
      at_ = node;
    }
    define(node, std::move(carried));
  }

  static c10::IValue item_of(const c10::IValue& tuple, int64_t index) {
    const auto& items = tuple.toTupleRef().elements();
    const auto count = static_cast<int64_t>(items.size());
    if (index < -count || index >= count) throw_user_error("item {} of a tuple of {}", index, count);
    return items[static_cast<size_t>(index < 0 ? index + count : index)];
  }
  static c10::IValue make_tuple(const Node* node, std::vector<c10::IValue> items) {
    const auto type = node->output()->type()->cast<c10::TupleType>();
    return type->schema() ? c10::ivalue::Tuple::createNamed(std::move(items), type) : c10::ivalue::Tuple::create(std::move(items));
  }
  static c10::IValue make_dict(const Node* node, const std::vector<c10::IValue>& items) {
    const auto& type = node->output()->type()->expectRef<c10::DictType>();
    c10::impl::GenericDict dict(type.getKeyType(), type.getValueType());
    for (size_t i = 0; i + 1 < items.size(); i += 2) dict.insert_or_assign(items[i], items[i + 1]);
    return dict;
  }

  void run_op(const Node* node, std::vector<c10::IValue> inputs) {
    const c10::FunctionSchema& schema = node->schema();
    const std::string op = schema.overload_name().empty() ? schema.name() : schema.name() + "." + schema.overload_name();
    if (auto size = read_sizes(op, inputs)) return define(node, {std::move(*size)});
    const auto handle = c10::Dispatcher::singleton().findSchema(schema.operator_name());
    const auto looks_at = [&](size_t input) {
      return !moves_values(schema) || input >= schema.arguments().size() || !schema.arguments()[input].type()->hasFreeVariables();
    };
    Stack stack;
    for (size_t i = 0; i < inputs.size(); ++i)
      stack.push_back(handle        ? as_argument(inputs[i], handle->schema().arguments()[i].type())
                      : looks_at(i) ? with_numbers(std::move(inputs[i]))
                                    : std::move(inputs[i]));
    if (schema.is_vararg()) stack.emplace_back(static_cast<int64_t>(inputs.size()));
    if (handle) {
      handle->callBoxed(stack);
    } else {
      // Ops that only TorchScript has: on lists, numbers and texts. Those that make tensors of numbers write elements.
      const c10::impl::ExcludeDispatchKeyGuard no_recording(recording_key);
      node->getOperation()(stack);
    }
    for (c10::IValue& result : stack)  // of its own at each call
      if (!handle && result.isTensor() && node->output()->type()->kind() == c10::TypeKind::TensorType && op.starts_with("aten::tensor"))
        result = at::clone(result.toTensor());
    define(node, std::move(stack));
  }

  void define(const Value* value, c10::IValue found) { values_.insert_or_assign(value, std::move(found)); }
  void define(const Node* node, std::vector<c10::IValue> outputs) {
    if (outputs.size() != node->outputs().size())
      throw_unsupported("{}: expected {} results, found {}", node->kind().toQualString(), node->outputs().size(), outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) define(node->output(i), std::move(outputs[i]));
  }

  const Node*& at_;
  std::unordered_map<const Value*, c10::IValue> values_;
};

}  // namespace

std::vector<c10::IValue> interpret(const torch::jit::Graph& code, std::vector<c10::IValue> arguments, const torch::jit::Node*& at) {
  return Interpreter(at).run(code, std::move(arguments));
}

}  // namespace cxxinductor::torch_bridge
