#include "frontend/externs.h"

#include <algorithm>
#include <map>

#include "frontend/planned_results.h"
#include "ir/strides.h"
#include "model/effects.h"
#include "support/error.h"
#include "sym/simplify.h"

namespace cxxinductor::frontend {
namespace {

// Translates an argument tree: operand references name operands of the node instead of values of the call graph.
class OperandCollector {
 public:
  OperandCollector(const CallContext& context, const CallGraph& graph) : context_(context), graph_(graph) {}

  Arg translate(const Arg& arg) {
    if (const OperandRef* ref = arg.as<OperandRef>()) return translate_ref(*ref);
    if (const ArgList* list = arg.as<ArgList>()) {
      ArgList items;
      for (const Arg& item : *list) items.push_back(translate(item));
      return Arg(std::move(items));
    }
    if (const auto* e = arg.as<sym::Expr>()) return e->is_constant() ? Arg(e->constant()) : operand_ref_for(*e);
    return arg;
  }

  std::vector<Operand>& operands() { return operands_; }

 private:
  // An input that comes in other strides than the call was recorded with, in the recorded ones: the callee's result may
  // depend on them. Passes that know the callee take the input itself.
  ValueId as_recorded(ValueId value, const CallValueInfo& info) {
    graph::Builder& build = context_.build;
    const graph::Value& found = build.graph().value(value);
    const sym::Assumptions elements = assume_nonempty(info.sizes, context_.assumptions());
    const auto equal = [&](sym::Expr a, sym::Expr b) { return sym::prove_equal(a, b, elements); };
    if (found.producer.valid() || std::ranges::equal(found.layout.strides, info.strides, equal)) return value;
    auto [copy, fresh] = copies_.try_emplace(value);
    if (fresh) {
      copy->second = build.elementwise(ScalarOp::Identity, {value});
      build.graph().values[copy->second].layout = {graph::Layout::Kind::Fixed, info.strides};
    }
    return copy->second;
  }

  Arg translate_ref(OperandRef ref) {
    const CallValueInfo& info = graph_.values.at(ref.operand);
    if (info.kind == CallValueInfo::Kind::SymInt) return translate(Arg(info.symbol));
    if (info.kind == CallValueInfo::Kind::None) return Arg(None{});
    if (const auto number = context_.as_given_real(Arg(ref))) return operand_ref_for(number->value);
    auto value = context_.as_tensor(Arg(ref));
    if (!value) context_.reject(fmt::format("argument %{} is neither a tensor nor an integer", info.name));
    return operand_ref_for(as_recorded(*value, info));
  }

  // Values that are known only at run time are operands.
  Arg operand_ref_for(const Operand& operand) {
    const auto found = std::find(operands_.begin(), operands_.end(), operand);
    const auto index = static_cast<uint32_t>(found - operands_.begin());
    if (found == operands_.end()) operands_.push_back(operand);
    return Arg(OperandRef{index});
  }

  const CallContext& context_;
  const CallGraph& graph_;
  std::vector<Operand> operands_;
  std::map<ValueId, ValueId> copies_;
};

graph::Value result_value(const CallContext& context, const CallValueInfo& info) {
  graph::Value value;
  value.layout.kind = graph::Layout::Kind::Fixed;
  if (info.kind == CallValueInfo::Kind::Tensor) {
    value.dtype = info.dtype;
    value.device = info.device;
    value.sizes = info.sizes;
    value.layout.strides = info.strides;
    return value;
  }
  if (info.kind == CallValueInfo::Kind::Opaque) context.reject("has a result without tensor metadata");
  value.dtype = DType::U8;
  value.sizes = {sym::Expr(0)};
  value.layout.strides = {sym::Expr(1)};
  return value;
}

}  // namespace

namespace {

// A copy that a call writes is not the value that it was made of any more: as a call itself it is nothing that passes look
// through, unite with its like or leave out. The last pass makes a kernel of it, or none (passes/graph/reinplace_calls.cpp).
void hide_copy(graph::Graph& graph, ValueId written) {
  const ValueId copy = graph::storage_of(graph, written);
  if (!graph.values[copy].producer.valid()) return;
  graph::Node& node = graph.nodes[graph.values[copy].producer];
  const auto* elementwise = node.as<graph::Elementwise>();
  if (!elementwise || elementwise->op != ScalarOp::Identity) return;
  graph::Extern clone;
  clone.callee = "aten::clone";
  clone.args = {Arg(OperandRef{0})};
  clone.alias_of = {-1};
  node.kind = std::move(clone);
  graph.values[copy].layout.kind = graph::Layout::Kind::Fixed;
}

// Strides of the call's views of it follow from those of the storage, which only a fixed layout has where they leave gaps.
void fix_strides(const CallContext& context, ValueId shown) {
  graph::Graph& graph = context.build.graph();
  graph::Value& storage = graph.values[graph::storage_of(graph, shown)];
  const auto& strides = storage.layout.strides;
  if (!storage.producer.valid() || are_dense(storage.sizes, strides, context.assumptions())) return;
  if (!are_distinct(storage.sizes, strides, context.assumptions())) context.reject("returns a view of a value whose strides have gaps that depend on symbols");
  storage.layout.kind = graph::Layout::Kind::Fixed;
}

}  // namespace

void import_scalar_read(CallContext& context, const std::string& symbol) {
  graph::Extern callee;
  callee.callee = context.call().callee;
  callee.overload = context.call().overload;
  callee.args.emplace_back(OperandRef{0});
  callee.defines.push_back({.symbol = symbol});
  callee.exact_strides = false;
  context.build.call_extern(std::move(callee), {context.tensor(0, "self")}, {});
}

std::vector<ValueId> import_extern(CallContext& context, const CallGraph& graph, const SchemaSource& schemas) {
  const Call& call = context.call();
  const auto schema = schemas.find(call.callee, call.overload);
  if (!schema) context.reject("no schema of that name is registered with the dispatcher: import what registers it");
  graph::Extern callee;
  callee.callee = call.callee;
  callee.overload = call.overload;
  OperandCollector collector(context, graph);
  for (const Arg& arg : call.args) callee.args.push_back(collector.translate(arg));
  for (const auto& [name, arg] : call.kwargs) callee.kwargs.emplace_back(name, collector.translate(arg));
  model::CallEffects effects = model::effects_of_call(callee.args, callee.kwargs, *schema, call.results.size());
  callee.alias_of = std::move(effects.alias_of);
  callee.mutated_operands = std::move(effects.mutated_operands);
  std::vector<graph::Value> results;
  size_t tensors = 0;
  for (size_t i = 0; i < call.results.size(); ++i) {
    const CallValueInfo& info = context.result(i);
    results.push_back(result_value(context, info));
    tensors += info.kind == CallValueInfo::Kind::Tensor ? 1 : 0;
  }
  callee.ordered = call.ordered || model::must_be_ordered(call.callee, *schema) || tensors == 0;
  callee.planned_out = is_result_planned(context, *schema);
  callee.exact_strides = schema->planned_form != model::PlannedForm::Structured || !callee.planned_out;
  for (uint32_t i : callee.mutated_operands)
    if (const auto* written = std::get_if<ValueId>(&collector.operands()[i])) hide_copy(context.build.graph(), *written);
  for (int32_t i : callee.alias_of)
    if (const auto* shown = i < 0 ? nullptr : std::get_if<ValueId>(&collector.operands()[static_cast<size_t>(i)])) fix_strides(context, *shown);
  return context.build.call_extern(std::move(callee), std::move(collector.operands()), std::move(results));
}

ValueId copied_to_device(graph::Builder& build, ValueId value, Device device) {
  constexpr int contiguous_format = 0;
  graph::Extern callee;
  callee.callee = "aten::_to_copy";
  callee.args = {Arg(OperandRef{0})};
  callee.kwargs = {{"device", Arg(device)}, {"memory_format", Arg(MemoryFormatArg{contiguous_format})}};
  callee.alias_of = {-1};
  graph::Value result;
  const graph::Value& from = build.graph().value(value);
  result.dtype = from.dtype;
  result.device = device;
  result.sizes = from.sizes;
  return build.call_extern(std::move(callee), {value}, {result}).front();
}

}  // namespace cxxinductor::frontend
