#include <algorithm>
#include <map>
#include <set>

#include "frontend/importer.h"
#include "ir/strides.h"
#include "support/error.h"
#include "sym/simplify.h"

namespace cxxinductor::frontend {

std::optional<ScalarArg> to_scalar_arg(const Arg& arg) {
  if (const auto* value = arg.as<bool>()) return ScalarArg(*value);
  if (const auto* value = arg.as<int64_t>()) return ScalarArg(*value);
  if (const auto* value = arg.as<double>()) return ScalarArg(*value);
  if (const auto* value = arg.as<sym::Expr>()) {
    if (value->is_constant()) return ScalarArg(value->constant());
    return ScalarArg(*value);
  }
  return std::nullopt;
}

std::optional<double> constant_real(const ScalarArg& number) {
  if (const auto* value = std::get_if<bool>(&number)) return *value ? 1.0 : 0.0;
  if (const auto* value = std::get_if<int64_t>(&number)) return static_cast<double>(*value);
  if (const auto* value = std::get_if<double>(&number)) return *value;
  return std::nullopt;
}

bool CallContext::is_contiguous(const Sizes& sizes, const Sizes& strides) const {
  const Sizes expected = graph::contiguous_strides(sizes);
  const sym::Assumptions elements = assume_nonempty(sizes, assumptions());
  for (size_t d = 0; d < expected.size(); ++d) {
    if (!sizes[d].is_constant(1) && !sym::prove_equal(expected[d], strides[d], elements)) return false;
  }
  return true;
}

namespace {

// Properties of a generated value's nodes for which two devices may compute different results.
struct GeneratedTraits {
  bool ranked = false;        // not all of rank 0
  bool approximate = false;   // functions that the devices' libraries round differently
  bool float_to_int = false;  // values out of range differ between devices
  bool may_overflow = false;  // floats that may leave the range of integers

  bool add(const graph::Graph& graph, const graph::Node& node, const graph::Value& value) {
    ranked |= !value.sizes.empty();
    for (const Operand& operand : node.operands)
      if (const auto* scalar = std::get_if<Scalar>(&operand)) may_overflow |= !is_same_on_all_devices(*scalar, DType::I32);
    const auto* elementwise = node.as<graph::Elementwise>();
    if (!elementwise) return node.as<graph::Full>() || node.as<graph::Iota>() || node.as<graph::Cat>() || node.as<graph::Pad>() || graph::is_view(node.kind);
    const ScalarOp op = elementwise->op;
    approximate |= info(op).traits.transcendental || info(op).traits.random;
    may_overflow |= is_float(value.dtype) && (op == ScalarOp::Div || op == ScalarOp::Reciprocal);
    if (op != ScalarOp::Cast) return true;
    const auto* from = std::get_if<ValueId>(&node.operands.front());
    float_to_int |= from && is_float(graph.values[*from].dtype) && is_integer(value.dtype);
    return true;
  }
  // Numbers are computed where they are read, whatever they take.
  bool is_same_everywhere() const { return !ranked || (!approximate && !(float_to_int && may_overflow)); }
};

}  // namespace

std::vector<ValueId> CallContext::parts_of_generated(ValueId id) const {
  constexpr size_t most = 64;
  const graph::Graph& graph = build.graph();
  GeneratedTraits traits;
  std::set<ValueId> found{id};
  for (std::vector<ValueId> open{id}; !open.empty();) {
    const graph::Value& value = this->value(open.back());
    open.pop_back();
    if (!value.producer.valid() || !traits.add(graph, graph.nodes[value.producer], value)) return {};
    for (const graph::Operand& operand : graph.nodes[value.producer].operands)
      if (const auto* from = std::get_if<ValueId>(&operand); from && found.insert(*from).second) open.push_back(*from);
    if (found.size() > most) return {};
  }
  return traits.is_same_everywhere() ? std::vector<ValueId>(found.begin(), found.end()) : std::vector<ValueId>();
}

bool CallContext::is_generated(ValueId id) const { return !parts_of_generated(id).empty(); }
bool CallContext::is_scalar_constant(ValueId id) const { return value(id).sizes.empty() && is_generated(id); }

std::optional<ValueId> CallContext::generated_on_result_device(ValueId id) const {
  std::map<ValueId, ValueId> made;
  for (ValueId part : parts_of_generated(id)) {
    const graph::Node node = build.graph().nodes[value(part).producer];
    std::vector<graph::Operand> operands = node.operands;
    for (graph::Operand& operand : operands)
      if (auto* from = std::get_if<ValueId>(&operand)) *from = made.at(*from);
    graph::Value result = value(part);
    result.name.clear();
    result.device = this->result().device;
    result.layout.kind = graph::Layout::Kind::Flexible;
    made[part] = build.append(node.kind, std::move(operands), std::move(result));
  }
  return made.empty() ? std::nullopt : std::optional(made.at(id));
}

std::optional<ValueId> CallContext::scalar_constant_on_result_device(ValueId id) const {
  return value(id).sizes.empty() ? generated_on_result_device(id) : std::nullopt;
}

std::optional<ValueId> CallContext::on_device_of_result(ValueId id) const {
  return value(id).device == result().device ? std::optional(id) : generated_on_result_device(id);
}

ValueId CallContext::apply_to_number(ScalarOp op, ValueId number, DType dtype) const {
  graph::Value value;
  value.dtype = dtype;
  value.device = result().device;
  return build.append(graph::Elementwise{op}, {number}, std::move(value));
}

ValueId CallContext::in_compute_type(GivenReal number, DType dtype) const {
  const DType compute = compute_type(dtype);
  return compute == this->dtype(number.value) ? number.value : apply_to_number(ScalarOp::Cast, number.value, compute);
}

const Target* CallContext::gpu() const {
  const auto found = environment_.gpus.find(result().device);
  return found == environment_.gpus.end() ? nullptr : &found->second;
}

std::string CallContext::description() const { return describe(graph_, call_); }

std::nullopt_t CallContext::decline(std::string_view reason) const {
  declined_ = reason;
  return std::nullopt;
}

void CallContext::reject(std::string_view reason) const { throw_unsupported("{}: {}", description(), reason); }

const CallValueInfo& CallContext::result(size_t index) const {
  if (index >= call_.results.size()) reject("the reader gave fewer results than the op has");
  return graph_.values[call_.results[index]];
}

const Arg* CallContext::find(size_t position, std::string_view name) const {
  const Arg* found = nullptr;
  if (position < call_.args.size()) {
    found = &call_.args[position];
  } else {
    for (const auto& [key, value] : call_.kwargs) {
      if (key == name) found = &value;
    }
  }
  return found != nullptr && !found->is_none() ? found : nullptr;
}

std::optional<ValueId> CallContext::as_tensor(const Arg& arg) const {
  const OperandRef* ref = arg.as<OperandRef>();
  if (ref == nullptr || ref->operand >= values_.size() || as_given_real(arg)) return std::nullopt;
  return values_[ref->operand];
}

std::optional<GivenReal> CallContext::as_given_real(const Arg& arg) const {
  const OperandRef* ref = arg.as<OperandRef>();
  if (ref == nullptr || graph_.values[ref->operand].kind != CallValueInfo::Kind::SymFloat) return std::nullopt;
  const auto& value = values_[ref->operand];
  return value ? std::optional(GivenReal{*value}) : std::nullopt;
}

std::optional<ValueId> CallContext::optional_tensor(size_t position, std::string_view name) const {
  const Arg* arg = find(position, name);
  return arg == nullptr ? std::nullopt : as_tensor(*arg);
}

ValueId CallContext::tensor(size_t position, std::string_view name) const {
  const auto value = optional_tensor(position, name);
  if (!value) reject(fmt::format("argument '{}' must be a tensor", name));
  return *value;
}

std::vector<ValueId> CallContext::tensors(size_t position, std::string_view name) const {
  const Arg* arg = find(position, name);
  const ArgList* list = arg == nullptr ? nullptr : arg->as<ArgList>();
  if (list == nullptr) reject(fmt::format("argument '{}' must be a list of tensors", name));
  std::vector<ValueId> values;
  for (const Arg& item : *list) {
    const auto value = as_tensor(item);
    if (!value) reject(fmt::format("argument '{}' must be a list of tensors", name));
    values.push_back(*value);
  }
  return values;
}

std::optional<sym::Expr> CallContext::as_expr(const Arg& arg) const {
  if (const auto* value = arg.as<int64_t>()) return sym::Expr(*value);
  if (const auto* value = arg.as<sym::Expr>()) return *value;
  if (const auto* ref = arg.as<OperandRef>(); ref != nullptr && ref->operand < graph_.values.size()) {
    const CallValueInfo& info = graph_.values[ref->operand];
    if (info.kind == CallValueInfo::Kind::SymInt) return info.symbol;
  }
  return std::nullopt;
}

sym::Expr CallContext::expr(size_t position, std::string_view name, sym::Expr otherwise) const {
  const Arg* arg = find(position, name);
  if (arg == nullptr) return otherwise;
  const auto value = as_expr(*arg);
  if (!value) reject(fmt::format("argument '{}' must be an integer, found {}", name, to_string(*arg)));
  return *value;
}

int64_t CallContext::integer(size_t position, std::string_view name, int64_t otherwise) const {
  const sym::Expr value = expr(position, name, otherwise);
  if (!value.is_constant()) reject(fmt::format("argument '{}' must be a constant, found {}", name, to_string(value)));
  return value.constant();
}

bool CallContext::boolean(size_t position, std::string_view name, bool otherwise) const {
  const Arg* arg = find(position, name);
  if (arg == nullptr) return otherwise;
  if (const auto* value = arg->as<bool>()) return *value;
  if (const auto* value = arg->as<int64_t>()) return *value != 0;
  reject(fmt::format("argument '{}' must be a bool, found {}", name, to_string(*arg)));
}

double CallContext::real(size_t position, std::string_view name, double otherwise) const {
  const Arg* arg = find(position, name);
  if (arg == nullptr) return otherwise;
  const auto value = to_scalar_arg(*arg);
  const auto constant = value ? constant_real(*value) : std::nullopt;
  if (!constant) reject(fmt::format("argument '{}' must be a constant number, found {}", name, to_string(*arg)));
  return *constant;
}

std::optional<std::string_view> CallContext::one_of(size_t position, std::string_view name, std::initializer_list<std::string_view> words) const {
  const Arg* arg = find(position, name);
  if (arg == nullptr) return *words.begin();
  const auto* given = arg->as<std::string>();
  if (given == nullptr) reject(fmt::format("argument '{}' must be a string, found {}", name, to_string(*arg)));
  if (const auto found = std::ranges::find(words, *given); found != words.end() && !found->empty()) return *found;
  decline(fmt::format("its {} is '{}'", name, *given));
  return std::nullopt;
}

std::optional<ScalarArg> CallContext::scalar_arg(size_t position, std::string_view name) const {
  const Arg* arg = find(position, name);
  if (arg == nullptr) return std::nullopt;
  if (const auto value = to_scalar_arg(*arg)) return value;
  if (const auto symbol = as_expr(*arg)) return to_scalar_arg(Arg(*symbol));
  if (const auto number = as_given_real(*arg)) return ScalarArg(*number);
  return std::nullopt;
}

Sizes CallContext::exprs(size_t position, std::string_view name) const {
  const Arg* arg = find(position, name);
  Sizes values;
  if (arg == nullptr) return values;
  const ArgList* list = arg->as<ArgList>();
  const std::span<const Arg> items = list != nullptr ? std::span<const Arg>(*list) : std::span<const Arg>(arg, 1);
  for (const Arg& item : items) {
    const auto value = as_expr(item);
    if (!value) reject(fmt::format("argument '{}' must hold integers, found {}", name, to_string(item)));
    values.push_back(*value);
  }
  return values;
}

std::vector<int> CallContext::dims(size_t position, std::string_view name, int rank) const {
  std::vector<int> wrapped;
  for (sym::Expr dim : exprs(position, name)) {
    if (!dim.is_constant()) reject(fmt::format("argument '{}' must hold constants", name));
    const int64_t value = dim.constant() < 0 ? dim.constant() + std::max(rank, 1) : dim.constant();
    if (value < 0 || value >= std::max(rank, 1)) reject(fmt::format("dimension {} of a rank {} tensor", value, rank));
    wrapped.push_back(static_cast<int>(value));
  }
  return wrapped;
}

int CallContext::dim(size_t position, std::string_view name, int64_t otherwise, int rank) const {
  const auto given = dims(position, name, rank);
  if (!given.empty()) return given.front();
  return static_cast<int>(otherwise < 0 ? otherwise + std::max(rank, 1) : otherwise);
}

}  // namespace cxxinductor::frontend
