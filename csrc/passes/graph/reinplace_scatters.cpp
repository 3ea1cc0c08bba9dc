// Turns scatters into their consuming form, which writes into the base's storage.
//
// That is legal on storage that a node of the graph made, or that is an input which the graph mutates, once nobody
// reads the old values any more: readers that stand after the scatter and do not need it are moved before it. Where old
// values are needed later, the scatter gets a copy to consume. A scatter whose places are known without data (a slice)
// has another form, one kernel that chooses every element from base and source: it keeps that instead of a copy, and
// where its base is about to be computed and few parts of it are replaced, since all of that is then one kernel.
#include <algorithm>

#include "ir/callees.h"
#include "ir/graph/symbols.h"
#include "passes/graph/edit.h"
#include "passes/graph/passes.h"

namespace cxxinductor::passes {
namespace {

using graph::NodeId;
using graph::ValueId;

// Slices of one tensor replaced in turn that are still chosen in one kernel.
constexpr int most_choices = 8;

class ScatterReinplacer {
 public:
  explicit ScatterReinplacer(graph::Graph& graph) : graph_(graph) {}

  bool run() {
    std::vector<ValueId> results;
    for (const graph::Node& node : graph_.nodes)
      if (const auto* scatter = node.as<graph::Scatter>(); scatter && !scatter->inplace) results.push_back(node.results[0]);
    bool changed = false;
    for (ValueId result : results) changed = consider(result) || changed;
    return changed;
  }

 private:
  const graph::Value& value(ValueId id) const { return graph_.values[id]; }
  const graph::Node& node_of(ValueId id) const { return graph_.nodes[value(id).producer]; }
  static ValueId operand(const graph::Node& node, size_t i) { return std::get<ValueId>(node.operands.at(i)); }

  // As graph::storage_of, for all values at once.
  ValueId root_of(ValueId id) {
    if (roots_.size() != graph_.values.size()) {
      roots_.resize(graph_.values.size());
      for (const graph::Input& input : graph_.inputs)
        if (input.kind == graph::Input::Kind::Tensor) roots_[input.value] = input.value;
      for (const graph::Node& node : graph_.nodes)
        for (ValueId result : node.results) {
          const auto below = graph::shares_storage_with(graph_, result);
          roots_[result] = below ? roots_[*below] : result;
        }
    }
    return roots_[id];
  }
  void forget_roots() { roots_ = {}; }

  bool consider(ValueId result) {
    const bool by_data = node_of(result).operands.size() > 2;
    if (!by_data && is_computed_with_base(result)) return false;
    const bool free = is_storage_to_take(operand(node_of(result), 0)) && nobody_reads_later(result);
    if (!free && !by_data) return false;
    if (!free) set_operand(result, 0, copy_of(operand(node_of(result), 0), result));
    const ValueId root = root_of(operand(node_of(result), 0));
    for (size_t i = 1; i < node_of(result).operands.size(); ++i)
      if (const ValueId id = operand(node_of(result), i); root_of(id) == root) set_operand(result, i, copy_of(id, id));
    graph::Node& node = graph_.nodes[value(result).producer];
    node.as<graph::Scatter>()->inplace = true;
    forget_roots();
    keep_strides(node);
    return true;
  }

  void set_operand(ValueId result, size_t i, ValueId now) {
    graph_.nodes[value(result).producer].operands[i] = now;
    sort_nodes(graph_);
    forget_roots();
  }

  // A value of its own with the elements of `id`, laid out as `like`.
  ValueId copy_of(ValueId id, ValueId like) {
    graph::Builder build(graph_);
    build.set_origin(value(like).producer.valid() ? node_of(like).origin : OriginId());
    const bool made_again = value(id).producer.valid() && node_of(id).as<graph::Full>();
    const ValueId copy =
        made_again ? build.full(node_of(id).operands[0], value(id).dtype, value(id).device, value(id).sizes) : build.elementwise(ScalarOp::Identity, {id});
    graph_.values[copy].layout = value(like).layout;
    return copy;
  }

  // What the caller asks of the result's strides is asked of the storage, where that is still free.
  void keep_strides(const graph::Node& node) {
    const graph::Layout& wanted = value(node.results[0]).layout;
    ValueId id = operand(node, 0);
    while (value(id).producer.valid() && node_of(id).as<graph::Scatter>() && node_of(id).as<graph::Scatter>()->inplace) {
      if (value(id).layout.kind == graph::Layout::Kind::Fixed) return;
      id = operand(node_of(id), 0);
    }
    if (wanted.kind != graph::Layout::Kind::Fixed || value(id).layout.kind == graph::Layout::Kind::Fixed) return;
    if (!value(id).producer.valid() || graph::is_view(node_of(id).kind) || node_of(id).as<graph::Extern>()) return;
    graph_.values[id].layout = wanted;
  }

  // ---- Slices ------------------------------------------------------------------------------------------------------

  bool is_slice_scatter(ValueId id) const {
    if (!value(id).producer.valid()) return false;
    const auto* scatter = node_of(id).as<graph::Scatter>();
    return scatter && !scatter->inplace && node_of(id).operands.size() == 2;
  }

  // The only reader of a value, if that is a scatter of a slice into it.
  std::optional<ValueId> next_in_chain(ValueId id) const {
    std::optional<ValueId> found;
    for (const graph::Node& node : graph_.nodes)
      for (size_t i = 0; i < node.operands.size(); ++i) {
        if (node.operands[i] != graph::Operand(id)) continue;
        if (found || i != 0 || !is_slice_scatter(node.results[0])) return std::nullopt;
        found = node.results[0];
      }
    return found;
  }

  // The base of the chain of slice scatters is computed by a kernel that can replace the parts right away.
  bool is_computed_with_base(ValueId result) const {
    int length = 1;
    ValueId base = operand(node_of(result), 0);
    for (; is_slice_scatter(base); ++length) base = operand(node_of(base), 0);
    if (!value(base).producer.valid() || node_of(base).as<graph::Extern>() || node_of(base).as<graph::Scatter>() || graph::is_view(node_of(base).kind))
      return false;
    for (auto next = next_in_chain(result); next && length <= most_choices; next = next_in_chain(*next)) ++length;
    return length <= most_choices;
  }

  // ---- Legality ----------------------------------------------------------------------------------------------------

  bool is_storage_to_take(ValueId base) {
    const ValueId root = root_of(base);
    for (ValueId at = base; at != root; at = operand(node_of(at), 0)) {
      const graph::Node& node = node_of(at);
      const bool whole = node.as<graph::Permute>() || node.as<graph::Reshape>() || node.as<graph::Flip>();
      if (!whole && !node.as<graph::Scatter>()) return false;
    }
    // Calls may keep or hand out what aliases their operands; opaque ones may keep what they take and give,
    // and an input of the caller's is written to in eager, too.
    for (const graph::Node& node : graph_.nodes) {
      const auto* callee = node.as<graph::Extern>();
      if (!callee) continue;
      const auto touches = [&](size_t i) {
        const auto* id = std::get_if<ValueId>(&node.operands[i]);
        return id && root_of(*id) == root;
      };
      if (value(root).producer.valid() && is_opaque_callee(callee->callee)) {
        for (size_t i = 0; i < node.operands.size(); ++i)
          if (touches(i)) return false;
        for (ValueId made : node.results)
          if (root_of(made) == root) return false;
      }
      for (int i : callee->alias_of)
        if (i >= 0 && touches(static_cast<size_t>(i))) return false;
      for (uint32_t i : callee->mutated_operands)
        if (touches(i)) return false;
    }
    if (value(root).producer.valid()) return true;
    return std::any_of(graph_.mutations.begin(), graph_.mutations.end(),
                       [&](const graph::Mutation& mutation) { return graph_.inputs[mutation.input].value == root; });
  }

  bool reads(const graph::Node& node, ValueId root) {
    if (graph::is_view(node.kind)) return false;
    return std::any_of(node.operands.begin(), node.operands.end(), [&](const graph::Operand& operand) {
      const auto* id = std::get_if<ValueId>(&operand);
      return id && root_of(*id) == root;
    });
  }

  bool nobody_reads_later(ValueId result) {
    const ValueId root = root_of(operand(node_of(result), 0));
    const auto is_old = [&](ValueId id) { return root_of(id) == root; };
    for (const graph::Output& output : graph_.outputs)
      if (output.kind == graph::Output::Kind::Tensor && is_old(output.value)) return false;
    // Earlier versions of an input are read when they are made.
    for (const graph::Mutation& mutation : graph_.mutations)
      if (is_old(mutation.value) && graph::is_last_version(graph_, mutation)) return false;
    const size_t at = value(result).producer.index();
    std::vector<size_t> late;
    for (size_t n = at + 1; n < graph_.nodes.size(); ++n)
      if (reads(graph_.nodes[NodeId(n)], root)) late.push_back(n);
    return late.empty() || move_before(at, late);
  }

  // Moves nodes and what they need before node `at`; false where one needs that node or has a place of its own.
  bool move_before(size_t at, const std::vector<size_t>& late) {
    std::vector<bool> moves(graph_.nodes.size(), false);
    const graph::Definers definers = graph::find_definers(graph_);
    for (size_t n : late) moves[n] = true;
    for (size_t n = graph_.nodes.size(); n-- > at + 1;) {
      if (!moves[n]) continue;
      const graph::Node& node = graph_.nodes[NodeId(n)];
      const auto* callee = node.as<graph::Extern>();
      const auto* scatter = node.as<graph::Scatter>();
      if (callee && (callee->ordered || !callee->mutated_operands.empty())) return false;
      if (scatter && scatter->inplace) return false;
      for (const graph::Operand& operand : node.operands)
        if (const auto* id = std::get_if<ValueId>(&operand); id && value(*id).producer.valid()) {
          if (value(*id).producer.index() == at) return false;
          moves[value(*id).producer.index()] = true;
        }
      bool needs_it = false;
      graph::for_each_definer(graph_, definers, NodeId(n), [&](NodeId definer) {
        needs_it = needs_it || definer.index() == at;
        moves[definer.index()] = true;
      });
      if (needs_it) return false;
    }
    std::vector<graph::Node> order;
    const auto take = [&](auto wanted) {
      for (size_t n = at; n < graph_.nodes.size(); ++n)
        if (wanted(n)) order.push_back(std::move(graph_.nodes[NodeId(n)]));
    };
    take([&](size_t n) { return moves[n]; });
    take([&](size_t n) { return !moves[n]; });
    for (size_t i = 0; i < order.size(); ++i) {
      for (ValueId id : order[i].results) graph_.values[id].producer = NodeId(at + i);
      graph_.nodes[NodeId(at + i)] = std::move(order[i]);
    }
    return true;
  }

  graph::Graph& graph_;
  IdVector<ValueId, ValueId> roots_;  // empty: not known
};

}  // namespace

bool reinplace_scatters(graph::Graph& graph, const Options&) { return ScatterReinplacer(graph).run(); }

}  // namespace cxxinductor::passes
