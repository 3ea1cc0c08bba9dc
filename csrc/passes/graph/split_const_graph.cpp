#include "passes/graph/split_const_graph.h"

#include <algorithm>

#include "passes/graph/edit.h"
#include "passes/graph/passes.h"

namespace cxxinductor::passes {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

// A folded value may take as many bytes as the frozen inputs that it depends on, and this much more: padded rows, tables
// computed from a few numbers.
constexpr double padding = 1.25;
constexpr int64_t small_bytes = 64 << 10;

int64_t bytes(const graph::Value& value) {
  int64_t count = byte_size(value.dtype);
  for (sym::Expr size : value.sizes) count *= size.constant();
  return count;
}

class Splitter {
 public:
  explicit Splitter(Graph& graph)
      : graph_(graph), fixed_(graph.values.size(), 0), shared_(graph.values.size(), 0), too_large_(graph.values.size(), 0), sources_(graph.values.size()) {}

  std::optional<ConstGraph> run() {
    find_shared();
    do find_fixed();
    while (!collect_folded());
    if (folded_.empty()) return std::nullopt;
    ConstGraph found = extract();
    take_as_inputs();
    return found;
  }

 private:
  const graph::Value& value(ValueId id) const { return graph_.values[id]; }

  void find_shared() {
    for (const graph::Output& output : graph_.outputs)
      if (output.kind == graph::Output::Kind::Tensor) shared_[storage_of(graph_, output.value)] = leaves;
    for (const graph::Mutation& mutation : graph_.mutations) {
      shared_[storage_of(graph_, mutation.value)] = written;
      shared_[graph_.inputs[mutation.input].value] = written;
    }
    for (const Node& node : graph_.nodes) {
      if (const auto* scatter = node.as<graph::Scatter>(); scatter && scatter->inplace)
        shared_[storage_of(graph_, std::get<ValueId>(node.operands[0]))] = written;
      if (const auto* callee = node.as<graph::Extern>())
        for (uint32_t operand : callee->mutated_operands) shared_[storage_of(graph_, std::get<ValueId>(node.operands[operand]))] = written;
    }
  }

  // Same values in every call, and known sizes.
  void find_fixed() {
    fixed_ = IdVector<ValueId, char>(graph_.values.size(), 0);
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      const graph::Input& input = graph_.inputs[i];
      if (!input.frozen || shared_[input.value] == written || !known_sizes(input.value)) continue;
      fixed_[input.value] = 1;
      sources_[input.value] = {static_cast<uint32_t>(i)};
    }
    for (const Node& node : graph_.nodes) {
      if (!may_fold(node)) continue;
      std::vector<uint32_t> sources;
      for (const graph::Operand& operand : node.operands)
        if (const auto* id = std::get_if<ValueId>(&operand)) {
          std::vector<uint32_t> both;
          std::set_union(sources.begin(), sources.end(), sources_[*id].begin(), sources_[*id].end(), std::back_inserter(both));
          sources = std::move(both);
        }
      for (ValueId result : node.results) {
        fixed_[result] = 1;
        sources_[result] = sources;
      }
    }
  }

  bool may_fold(const Node& node) const {
    if (const auto* callee = node.as<graph::Extern>()) {
      const bool aliases = std::any_of(callee->alias_of.begin(), callee->alias_of.end(), [](int of) { return of >= 0; });
      if (callee->ordered || aliases || !callee->mutated_operands.empty() || !callee->defines.empty()) return false;
    }
    // Checks of indices raise in the call that they belong to.
    if (const auto* gather = node.as<graph::Gather>(); gather && gather->check) return false;
    if (node.as<graph::Scatter>()) return false;
    const bool operands = std::all_of(node.operands.begin(), node.operands.end(), [&](const graph::Operand& operand) {
      if (const auto* id = std::get_if<ValueId>(&operand)) return fixed_[*id] != 0;
      const auto* size = std::get_if<sym::Expr>(&operand);
      return !size || size->is_constant();
    });
    return operands && std::all_of(node.results.begin(), node.results.end(),
                                   [&](ValueId result) { return known_sizes(result) && !shared_[storage_of(graph_, result)] && !too_large_[result]; });
  }

  bool known_sizes(ValueId id) const {
    const auto constant = [](sym::Expr e) { return e.is_constant(); };
    return std::all_of(value(id).sizes.begin(), value(id).sizes.end(), constant) &&
           std::all_of(value(id).layout.strides.begin(), value(id).layout.strides.end(), constant);
  }

  // False when some are too large: then they, and what depends on them, stay.
  bool collect_folded() {
    IdVector<ValueId, char> wanted(graph_.values.size(), 0);
    for (const Node& node : graph_.nodes) {
      if (node.results.empty() || !fixed_[node.results[0]])
        for (const graph::Operand& operand : node.operands)
          if (const auto* id = std::get_if<ValueId>(&operand)) want(*id, !node.as<graph::Extern>(), wanted);
    }
    folded_.clear();
    bool small = true;
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      const ValueId id(v);
      if (!wanted[id]) continue;
      int64_t sources = 0;
      for (uint32_t input : sources_[id]) sources += bytes(value(graph_.inputs[input].value));
      if (static_cast<double>(bytes(value(id))) > padding * static_cast<double>(sources) + small_bytes) {
        too_large_[id] = 1;
        small = false;
      }
      folded_.push_back(id);
    }
    return small;
  }

  // A view's base, since the view costs nothing in a call; nothing where that is an input, or depends on none. What a
  // kernel reads it widens itself: the wider value would be more to load.
  void want(ValueId id, bool by_kernel, IdVector<ValueId, char>& wanted) const {
    while (true) {
      if (const auto base = shares_storage_with(graph_, id))
        id = *base;
      else if (const auto narrow = by_kernel ? widened(id) : std::nullopt)
        id = *narrow;
      else
        break;
    }
    if (fixed_[id] && value(id).producer.valid() && !sources_[id].empty()) wanted[id] = 1;
  }

  std::optional<ValueId> widened(ValueId id) const {
    if (!value(id).producer.valid()) return std::nullopt;
    const Node& node = graph_.nodes[value(id).producer];
    const auto* elementwise = node.as<graph::Elementwise>();
    if (!elementwise || elementwise->op != ScalarOp::Cast) return std::nullopt;
    const auto* operand = std::get_if<ValueId>(&node.operands[0]);
    const bool wider = operand && byte_size(value(id).dtype) > byte_size(value(*operand).dtype);
    return wider ? std::optional(*operand) : std::nullopt;
  }

  ConstGraph extract() const {
    ConstGraph found;
    found.graph = graph_;
    found.graph.name += "_const";
    found.graph.mutations.clear();
    found.graph.outputs.clear();
    for (ValueId id : folded_) found.graph.outputs.push_back({.value = id});
    std::vector<bool> keep(graph_.nodes.size(), false);
    IdVector<ValueId, char> needed(graph_.values.size(), 0);
    for (ValueId id : folded_) needed[id] = 1;
    for (size_t n = graph_.nodes.size(); n-- > 0;) {
      const Node& node = graph_.nodes[NodeId(n)];
      keep[n] = std::any_of(node.results.begin(), node.results.end(), [&](ValueId result) { return needed[result]; });
      if (!keep[n]) continue;
      for (const graph::Operand& operand : node.operands)
        if (const auto* id = std::get_if<ValueId>(&operand)) needed[*id] = 1;
    }
    found.graph.inputs.clear();
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      if (graph_.inputs[i].kind != graph::Input::Kind::Tensor || !needed[graph_.inputs[i].value]) continue;
      found.graph.inputs.push_back(graph_.inputs[i]);
      found.graph.inputs.back().frozen = false;
      found.inputs.push_back(static_cast<uint32_t>(i));
    }
    keep_nodes(found.graph, keep);
    return found;
  }

  void take_as_inputs() {
    auto replacements = no_replacements(graph_);
    std::vector<ValueId> taken;
    for (ValueId id : folded_) {
      graph::Value input = value(id);
      input.producer = {};
      input.result_index = 0;
      input.layout.kind = graph::Layout::Kind::Fixed;
      graph_.values[id].name += "_";  // which goes with its node
      taken.push_back(graph_.values.push_back(std::move(input)));
      replacements[id] = taken.back();
      graph_.inputs.push_back({.value = taken.back(), .source = "prepared " + value(taken.back()).name});
    }
    replace_values(graph_, replacements);
    remove_dead_code(graph_, {});
  }

  static constexpr char leaves = 1, written = 2;

  Graph& graph_;
  IdVector<ValueId, char> fixed_;                     // by value: the same in every call
  IdVector<ValueId, char> shared_;                    // by storage: `leaves` the graph or is `written`
  IdVector<ValueId, char> too_large_;                 // by value
  IdVector<ValueId, std::vector<uint32_t>> sources_;  // of fixed values: the frozen inputs that they depend on
  std::vector<ValueId> folded_;
};

}  // namespace

std::optional<ConstGraph> split_const_graph(Graph& graph) { return Splitter(graph).run(); }

}  // namespace cxxinductor::passes
