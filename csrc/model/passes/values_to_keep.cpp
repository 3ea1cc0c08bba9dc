#include "model/passes/values_to_keep.h"

#include <algorithm>

#include "model/effects.h"
#include "model/infer/table.h"
#include "support/error.h"
#include "support/max_flow.h"

namespace cxxinductor::model {
namespace {

std::vector<CallValue> operands_of(const Call& call) {
  std::vector<CallValue> operands;
  for_each_operand_ref(call, [&](const OperandRef& ref) { operands.push_back(ref.operand); });
  return operands;
}

// Of each result, the operand whose memory it may show, or -1.
std::vector<int> aliases_of(const Call& call, const SchemaSource& schemas) {
  const auto schema = schemas.find(call.callee, call.overload);
  if (!schema) return std::vector<int>(call.results.size(), -1);
  return effects_of_call(call.args, call.kwargs, *schema, call.results.size()).alias_of;
}

class Cut {
 public:
  explicit Cut(const JointCalls& joint) : joint_(joint), bases_(bases_of(joint.graph, joint.schemas)), values_(joint.graph.values.size()) {}

  std::set<CallValue> run() {
    for (CallValue input : joint_.graph.inputs) values_[input].is_stored = true;
    for (size_t c = 0; c < joint_.graph.calls.size(); ++c) describe(c);
    for (const Arg& output : joint_.graph.outputs) for_each_operand_ref(output, [this](const OperandRef& ref) { base_of(ref.operand).is_stored = true; });
    return cut();
  }

 private:
  struct Value {
    size_t depth = 0;  // library calls on the longest way to it
    bool is_view = false;
    bool is_repeatable = false;    // its call may run again
    bool is_position = false;      // made of constants and sizes alone, by calls that may run again
    bool is_stored = false;        // in memory in any case
    bool is_stored_later = false;  // where the backward pass, or a later part of the forward pass, reads it
  };

  Value& base_of(CallValue value) { return values_[bases_[value]]; }

  void describe(size_t c) {
    const Call& call = joint_.graph.calls[c];
    const std::vector<CallValue> operands = operands_of(call);
    const bool all_view = is_view(call, joint_.schemas);
    const RecomputeCost cost = recompute_cost(full_name(call));
    const bool is_library = cost == RecomputeCost::Library && !all_view;
    size_t depth = 0;
    for (CallValue operand : operands) depth = std::max(depth, values_[operand].depth);
    if (!all_view) read(c, operands, depth, is_library);
    const bool is_repeatable = all_view || (cost == RecomputeCost::Free && may_repeat(call));
    for (CallValue result : call.results) {
      Value& value = values_[result];
      value.is_view = all_view;
      value.depth = depth + (is_library ? 1 : 0);
      value.is_repeatable = is_repeatable;
      value.is_position = is_repeatable && std::all_of(operands.begin(), operands.end(), [this](CallValue v) { return values_[v].is_position; });
      value.is_stored = cost != RecomputeCost::Free && !all_view;
    }
  }

  // Positions are cheaper to make again wherever they are read, whatever reads them.
  void read(size_t c, const std::vector<CallValue>& operands, size_t depth, bool is_library) {
    const bool is_forward = joint_.forward_calls.contains(c), is_backward = joint_.backward_calls.contains(c);
    for (CallValue operand : operands) {
      Value& base = base_of(operand);
      if (is_forward && is_library) base.is_stored = true;
      if ((is_forward && depth > base.depth) || (is_backward && is_library && is_made_forward(operand))) base.is_stored = base.is_stored_later = true;
    }
  }

  bool is_made_forward(CallValue value) const {
    const size_t producer = joint_.producers[bases_[value]];
    return producer != JointCalls::no_call && joint_.forward_calls.contains(producer);
  }

  bool may_repeat(const Call& call) const {
    const auto schema = joint_.schemas.find(call.callee, call.overload);
    return schema && !call.ordered && !must_be_ordered(call.callee, *schema);
  }

  // Written once and read once; what is in memory in any case is read alone.
  int64_t cost_of_keeping(CallValue id) const {
    constexpr int64_t most_bytes = int64_t{1} << 42;
    const CallValueInfo& info = joint_.graph.values[id];
    if (info.kind != CallValueInfo::Kind::Tensor) return 1;
    const int64_t bytes = sym::estimate(sym::product(info.sizes) * byte_size(info.dtype), joint_.graph.assumptions);
    return std::clamp<int64_t>(bytes, 1, most_bytes) * (values_[id].is_stored ? 1 : 2);
  }

  bool may_keep(CallValue id) const { return !values_[id].is_view && !joint_.exposed.contains(id); }

  // A value is two nodes: where it is made, and where it is read. The edge between them is cut where it is kept.
  std::set<CallValue> cut() const {
    FlowNetwork network;
    const size_t source = network.add_node(), sink = network.add_node();
    for (size_t i = 0; i < 2 * values_.size(); ++i) network.add_node();
    const auto made = [](CallValue id) { return size_t{2} + 2 * id; };
    const auto used = [&](CallValue id) { return made(id) + 1; };
    for (CallValue id = 0; id < values_.size(); ++id) {
      if (joint_.dependent[id]) continue;
      const Value& value = values_[id];
      network.add_edge(made(id), used(id), may_keep(id) ? cost_of_keeping(id) : FlowNetwork::unlimited);
      if (joint_.read.contains(id)) network.add_edge(used(id), sink, FlowNetwork::unlimited);
      if (value.is_repeatable && (!value.is_stored_later || value.is_position || value.is_view)) {
        for (CallValue operand : operands_of(joint_.graph.calls[joint_.producers[id]])) network.add_edge(used(operand), made(id), FlowNetwork::unlimited);
      } else {
        network.add_edge(source, made(id), FlowNetwork::unlimited);
      }
    }
    const std::vector<bool> is_backward = network.sink_side(source, sink);
    if (network.flow() >= FlowNetwork::unlimited) throw_unsupported("the backward pass reads what the caller may write to, and eager's does not");
    std::set<CallValue> kept;
    for (CallValue id = 0; id < values_.size(); ++id)
      if (!joint_.dependent[id] && !is_backward[made(id)] && is_backward[used(id)]) kept.insert(id);
    return kept;
  }

  const JointCalls& joint_;
  const std::vector<CallValue> bases_;
  std::vector<Value> values_;
};

}  // namespace

bool is_view(const Call& call, const SchemaSource& schemas) {
  const std::vector<int> aliases = aliases_of(call, schemas);
  return !aliases.empty() && std::all_of(aliases.begin(), aliases.end(), [](int alias) { return alias >= 0; });
}

std::vector<CallValue> bases_of(const CallGraph& graph, const SchemaSource& schemas) {
  std::vector<CallValue> bases(graph.values.size());
  for (CallValue id = 0; id < bases.size(); ++id) bases[id] = id;
  for (const Call& call : graph.calls) {
    if (!is_view(call, schemas)) continue;
    const std::vector<int> aliases = aliases_of(call, schemas);
    for (size_t r = 0; r < call.results.size(); ++r) bases[call.results[r]] = bases[static_cast<CallValue>(aliases[r])];
  }
  return bases;
}

std::set<CallValue> values_to_keep(const JointCalls& joint) { return Cut(joint).run(); }

}  // namespace cxxinductor::model
