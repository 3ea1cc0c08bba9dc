// Lets calls write the inputs that they mutate, instead of copies that the inputs get afterwards.
//
// A functional graph hands a call that mutates its operand a copy made for it (frontend/externs.h), which is the next
// version of an input. Where nobody needs what the input held, the call gets the input itself. Besides two copies that
// saves, an input then holds what a call had written when it raised, as in eager. A copy of a computed value is written
// into the input.
#include <algorithm>

#include "ir/library_ops.h"
#include "passes/graph/edit.h"
#include "passes/graph/passes.h"

namespace cxxinductor::passes {
namespace {

using graph::NodeId;
using graph::ValueId;

class CallReinplacer {
 public:
  explicit CallReinplacer(graph::Graph& graph) : graph_(graph) {}

  bool run() {
    bool changed = false;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (!is_copy(NodeId(n))) continue;
      const ValueId copy = graph_.nodes[NodeId(n)].results[0];
      const auto input = input_of(copy);
      if (!input || !write_input(NodeId(n), *input)) graph_.nodes[NodeId(n)].kind = graph::Elementwise{ScalarOp::Identity};
      changed = true;
    }
    if (changed) drop_written_versions();
    return changed;
  }

 private:
  const graph::Value& value(ValueId id) const { return graph_.values[id]; }
  ValueId storage_of(ValueId id) const { return graph::storage_of(graph_, id); }
  ValueId copied(NodeId copy) const { return std::get<ValueId>(graph_.nodes[copy].operands[0]); }

  // A copy that was made for a call which writes it.
  bool is_copy(NodeId id) const {
    const auto* call = graph_.nodes[id].as<graph::Extern>();
    return call && is_call_of(*call, OpFamily::Clone) && graph_.nodes[id].results.size() == 1 && first_write(graph_.nodes[id].results[0]).has_value();
  }

  // The first call that writes the storage of the value.
  std::optional<size_t> first_write(ValueId id) const {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const graph::Node& node = graph_.nodes[NodeId(n)];
      const auto* call = node.as<graph::Extern>();
      if (!call) continue;
      for (uint32_t i : call->mutated_operands)
        if (const auto* operand = std::get_if<ValueId>(&node.operands[i]); operand && storage_of(*operand) == id) return n;
    }
    return std::nullopt;
  }

  // The input that the copy is a version of, if it is laid out as the input.
  std::optional<uint32_t> input_of(ValueId copy) const {
    for (const graph::Mutation& mutation : graph_.mutations) {
      if (mutation.value != copy) continue;
      const graph::Value &to = value(graph_.inputs[mutation.input].value), &from = value(copy);
      const bool alike = from.dtype == to.dtype && from.device == to.device && from.sizes == to.sizes && from.layout.strides == to.layout.strides;
      return alike ? std::optional(mutation.input) : std::nullopt;
    }
    return std::nullopt;
  }

  bool write_input(NodeId node, uint32_t position) {
    const ValueId input = graph_.inputs[position].value, copy = graph_.nodes[node].results[0];
    if (storage_of(copied(node)) == input && is_whole(copied(node), input)) {
      if (is_needed(position, copy, *first_write(copy))) return false;
      auto replacements = no_replacements(graph_);
      replacements[copy] = copied(node);
      replace_values(graph_, replacements);  // what is left of the copy is dead: see drop_written_versions
      return true;
    }
    if (storage_of(copied(node)) == input || is_needed(position, copy, node.index() + 1)) return false;
    graph::Scatter all{.inplace = true};
    for (size_t d = 0; d < value(copy).sizes.size(); ++d) {
      all.target.push_back(static_cast<int>(d));
      all.start.emplace_back(0);
      all.step.emplace_back(1);
    }
    graph_.nodes[node].operands.insert(graph_.nodes[node].operands.begin(), latest(input, node));
    graph_.nodes[node].kind = std::move(all);
    return true;
  }

  // All of the input's storage, in its own coordinates: the input, or what scatters made of it in place.
  bool is_whole(ValueId id, ValueId input) const {
    for (; id != input; id = std::get<ValueId>(graph_.nodes[value(id).producer].operands[0])) {
      const auto* scatter = graph_.nodes[value(id).producer].as<graph::Scatter>();
      if (!scatter || !scatter->inplace) return false;
    }
    return true;
  }

  // The version of the input that its storage holds at the node.
  ValueId latest(ValueId input, NodeId node) const {
    ValueId found = input;
    for (size_t n = 0; n < node.index(); ++n) {
      const graph::Node& earlier = graph_.nodes[NodeId(n)];
      const auto* scatter = earlier.as<graph::Scatter>();
      if (scatter && scatter->inplace && storage_of(earlier.results[0]) == input) found = earlier.results[0];
    }
    return found;
  }

  // Something reads the input's storage, for what it held before the copy was written, from the node numbered `from`
  // on.
  bool is_needed(uint32_t position, ValueId copy, size_t from) const {
    const ValueId input = graph_.inputs[position].value;
    const auto is_old = [&](ValueId id) { return storage_of(id) == input; };
    for (const graph::Output& output : graph_.outputs)
      if (output.kind == graph::Output::Kind::Tensor && (is_old(output.value) || storage_of(output.value) == copy)) return true;
    for (const graph::Mutation& mutation : graph_.mutations)
      if (mutation.input != position && (is_old(mutation.value) || storage_of(mutation.value) == copy)) return true;
    for (size_t n = from; n < graph_.nodes.size(); ++n) {
      const graph::Node& node = graph_.nodes[NodeId(n)];
      if (graph::is_view(node.kind)) continue;
      for (const graph::Operand& operand : node.operands)
        if (const auto* id = std::get_if<ValueId>(&operand); id && is_old(*id)) return true;
    }
    return false;
  }

  // Removes copies that nothing reads, and versions of an input that are in its storage once they are made.
  void drop_written_versions() {
    std::vector<graph::Mutation> kept;
    for (const graph::Mutation& mutation : graph_.mutations)
      if (storage_of(mutation.value) != graph_.inputs[mutation.input].value || graph::is_last_version(graph_, mutation)) kept.push_back(mutation);
    graph_.mutations = std::move(kept);
    std::vector<bool> keep(graph_.nodes.size(), true);
    for (size_t n = 0; n < keep.size(); ++n)
      if (const auto* call = graph_.nodes[NodeId(n)].as<graph::Extern>(); call && is_call_of(*call, OpFamily::Clone))
        keep[n] = is_read(graph_.nodes[NodeId(n)].results[0]);
    keep_nodes(graph_, keep);
  }

  bool is_read(ValueId id) const {
    return is_signature_value(graph_, id) || std::any_of(graph_.nodes.begin(), graph_.nodes.end(), [&](const graph::Node& node) {
             return std::find(node.operands.begin(), node.operands.end(), graph::Operand(id)) != node.operands.end();
           });
  }

  graph::Graph& graph_;
};

}  // namespace

bool reinplace_calls(graph::Graph& graph, const Options&) { return CallReinplacer(graph).run(); }

}  // namespace cxxinductor::passes
