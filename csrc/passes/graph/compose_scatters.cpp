// Composes a scatter into a window of a tensor (slices, selections), put back into that tensor, into one scatter:
//   %w = slice(%x); %v = scatter(%w, %s, ..); %y = scatter(%x, %v, the same window)   ->   %y = scatter(%x, %s, ..)
// Writes through views arrive in the first form: x[1:3][:, 2] = s, cache[layer][:, :, i] = s. A window put back as it
// was (what x[1:3] += s ends with) changes nothing.
#include <algorithm>

#include "passes/graph/edit.h"
#include "passes/graph/passes.h"

namespace cxxinductor::passes {
namespace {

using graph::ValueId;
using sym::Expr;

// Where the coordinates of a window lie in the tensor: dimension d of the tensor is start + step * coordinate `dim` of
// the window, or start alone.
struct Place {
  int dim = -1;
  Expr start = 0, step = 1;
};
using Window = std::vector<Place>;

class ScatterComposer {
 public:
  explicit ScatterComposer(graph::Graph& graph)
      : graph_(graph), uses_(graph.values.size(), 0), escaping_(escaping_values(graph)), replacements_(no_replacements(graph)) {
    for (const graph::Node& node : graph.nodes)
      for (const graph::Operand& operand : node.operands)
        if (const auto* id = std::get_if<ValueId>(&operand)) ++uses_[*id];
    for (const graph::Output& output : graph.outputs)
      if (output.kind == graph::Output::Kind::Tensor) ++uses_[output.value];
    for (const graph::Mutation& mutation : graph.mutations) ++uses_[mutation.value];
  }

  bool run() {
    bool changed = false;
    const size_t count = graph_.nodes.size();
    for (size_t n = 0; n < count; ++n) {
      for (graph::Operand& operand : graph_.nodes[graph::NodeId(n)].operands)
        if (auto* id = std::get_if<ValueId>(&operand)) *id = replacements_[*id];
      changed = compose(graph::NodeId(n)) || changed;
    }
    if (changed) {
      replace_values(graph_, replacements_);
      sort_nodes(graph_);
    }
    return changed;
  }

 private:
  const graph::Value& value(ValueId id) const { return graph_.values[id]; }
  static ValueId operand(const graph::Node& node, size_t i) { return std::get<ValueId>(node.operands.at(i)); }
  const graph::Node* producer(ValueId id) const { return value(id).producer.valid() ? &graph_.nodes[value(id).producer] : nullptr; }

  Window whole(ValueId id) const {
    Window window(value(id).sizes.size());
    for (size_t d = 0; d < window.size(); ++d) window[d].dim = static_cast<int>(d);
    return window;
  }

  // For a reshape that adds or drops dimensions of size 1 alone: operand dimension of each result dimension, -1 for
  // those added. Nothing for others.
  std::optional<std::vector<int>> unit_reshape(ValueId from, ValueId to) const {
    const auto &a = value(from).sizes, &b = value(to).sizes;
    std::vector<int> source(b.size(), -1);
    size_t d = 0;
    for (size_t r = 0; r < b.size(); ++r) {
      const bool unit = b[r].is_constant(1);
      while (!unit && d < a.size() && a[d].is_constant(1)) ++d;
      const bool same = d < a.size() && (a[d] == b[r] || prove_equal(a[d], b[r], graph_.assumptions));
      if (!same && !unit) return std::nullopt;
      if (same) source[r] = static_cast<int>(d++);
    }
    for (; d < a.size(); ++d)
      if (!a[d].is_constant(1)) return std::nullopt;
    return source;
  }

  // The window of `tensor` that the value is, where views say so.
  std::optional<Window> window_on(ValueId tensor, ValueId id) const {
    if (id == tensor) return whole(tensor);
    const graph::Node* node = producer(id);
    if (!node || !graph::is_view(node->kind)) return std::nullopt;
    const ValueId below = operand(*node, 0);
    auto window = window_on(tensor, below);
    if (!window) return std::nullopt;
    if (const auto* slice = node->as<graph::Slice>()) {
      for (Place& place : *window) {
        if (place.dim != slice->dim) continue;
        place.start = place.start + place.step * slice->start;
        place.step = place.step * slice->step;
      }
    } else if (const auto* permute = node->as<graph::Permute>()) {
      for (Place& place : *window)
        for (size_t r = 0; r < permute->dims.size(); ++r)
          if (place.dim >= 0 && permute->dims[r] == place.dim) {
            place.dim = static_cast<int>(r);
            break;
          }
    } else if (node->as<graph::Reshape>()) {
      const auto source = unit_reshape(below, id);
      if (!source) return std::nullopt;
      for (Place& place : *window) {
        if (place.dim < 0) continue;
        int now = -1;
        for (size_t r = 0; r < source->size(); ++r)
          if ((*source)[r] == place.dim) now = static_cast<int>(r);
        place.dim = now;  // a dimension of size 1: its only coordinate is 0
      }
    } else {
      return std::nullopt;
    }
    return window;
  }

  // The window of its base that an overwriting scatter without indices writes, in coordinates of `id`, which its source
  // is, or a reshape of it by dimensions of size 1.
  std::optional<Window> written_window(const graph::Scatter& outer, ValueId source, ValueId id) const {
    const auto dims = unit_reshape(id, source);
    if (!dims) return std::nullopt;
    Window window(outer.target.size());
    for (size_t d = 0; d < window.size(); ++d) window[d] = {(*dims)[static_cast<size_t>(outer.target[d])], outer.start[d], outer.step[d]};
    return window;
  }

  bool same_window(const Window& read, const Window& written, const std::vector<Expr>& sizes) const {
    for (size_t d = 0; d < read.size(); ++d) {
      const int dim = written[d].dim;
      if (!same_place(read[d], written[d], dim < 0 ? Expr(1) : sizes[static_cast<size_t>(dim)])) return false;
    }
    return true;
  }
  bool same_place(const Place& a, const Place& b, Expr size) const {
    const auto same = [&](Expr x, Expr y) { return x == y || prove_equal(x, y, graph_.assumptions); };
    if (!same(a.start, b.start)) return false;
    if (a.dim < 0 || b.dim < 0 || size.is_constant(1)) return (a.dim < 0) == (b.dim < 0) || size.is_constant(1);
    return a.dim == b.dim && same(a.step, b.step);
  }

  bool compose(graph::NodeId id) {
    const graph::Node outer_node = graph_.nodes[id];
    const auto* outer = outer_node.as<graph::Scatter>();
    if (!outer || outer_node.operands.size() > 2 || outer->combine != Combine::Overwrite || outer->inplace) return false;
    const ValueId tensor = operand(outer_node, 0), source = operand(outer_node, 1);
    if (const auto read = window_on(tensor, unlike_copies(source)); read && drop_if_nothing_changes(outer_node, *read, *outer)) return true;
    // Through at most one reshape, none of them read by anybody else.
    ValueId made = source;
    const graph::Node* inner_node = producer(made);
    if (inner_node && inner_node->as<graph::Reshape>() && uses_[made] == 1) {
      made = operand(*inner_node, 0);
      inner_node = producer(made);
    }
    if (!inner_node || uses_[made] != 1) return false;
    const auto* inner = inner_node->as<graph::Scatter>();
    if (!inner || inner->inplace) return false;
    const auto read = window_on(tensor, operand(*inner_node, 0)), written = written_window(*outer, source, made);
    if (!read || !written) return false;
    if (!same_window(*read, *written, value(made).sizes)) return false;
    if (!rewrite(id, tensor, graph::Node(*inner_node), *written)) return false;
    // Nobody reads it any more, and its checks are made where it went.
    graph_.nodes[value(made).producer].as<graph::Scatter>()->check = false;
    return true;
  }

  // What copies made for their own storage alone hold.
  ValueId unlike_copies(ValueId id) const {
    while (const graph::Node* node = producer(id)) {
      const auto* elementwise = node->as<graph::Elementwise>();
      if (!elementwise || elementwise->op != ScalarOp::Identity) break;
      id = operand(*node, 0);
    }
    return id;
  }

  // The tensor gets back what it holds: the result is the tensor, unless both leave the graph, each with its own
  // storage.
  bool drop_if_nothing_changes(const graph::Node& outer_node, const Window& read, const graph::Scatter& outer) {
    const ValueId tensor = operand(outer_node, 0), source = operand(outer_node, 1), result = outer_node.results[0];
    const auto written = written_window(outer, source, source);
    if (!written || !same_window(read, *written, value(source).sizes)) return false;
    const bool own = value(tensor).producer.valid() && !graph::is_view(producer(tensor)->kind) && !escaping_[tensor];
    if (escaping_[result] && !own) return false;
    if (value(tensor).layout.strides != value(result).layout.strides) return false;
    if (value(result).layout.kind == graph::Layout::Kind::Fixed) graph_.values[tensor].layout = value(result).layout;
    if (escaping_[result]) escaping_[tensor] = 1;
    uses_[tensor] += uses_[result] - 1;
    replacements_[result] = tensor;
    return true;
  }

  // The inner scatter on the whole tensor. Dimensions where the window is one place get source dimensions of size 1.
  bool rewrite(graph::NodeId id, ValueId tensor, const graph::Node& inner_node, const Window& window) {
    const graph::Scatter& inner = *inner_node.as<graph::Scatter>();
    graph::Scatter composed = inner;
    composed.target.clear();
    composed.start.clear();
    composed.step.clear();
    const auto added = static_cast<int>(std::count_if(window.begin(), window.end(), [](const Place& p) { return p.dim < 0; }));
    int next_unit = 0;
    std::vector<bool> covered(inner.target.size(), false);
    for (size_t d = 0; d < window.size(); ++d) {
      const Place& place = window[d];
      if (place.dim < 0) {
        composed.target.push_back(next_unit++);
        composed.start.push_back(place.start);
        composed.step.push_back(1);
        continue;
      }
      const auto i = static_cast<size_t>(place.dim);
      covered[i] = true;
      if (inner.target[i] >= 0) {
        composed.target.push_back(inner.target[i] + added);
        composed.start.push_back(place.start + place.step * inner.start[i]);
        composed.step.push_back(place.step * inner.step[i]);
        continue;
      }
      // Indices count in the window: only where that is the tensor's whole dimension are they indices of the tensor.
      const bool all = place.start.is_constant(0) && place.step.is_constant(1) &&
                       prove_equal(value(operand(inner_node, 0)).sizes[i], value(tensor).sizes[d], graph_.assumptions);
      if (!all) return false;
      composed.target.push_back(inner.target[i]);
      composed.start.push_back(0);
      composed.step.push_back(1);
    }
    if (std::find(covered.begin(), covered.end(), false) != covered.end()) return false;
    for (int& d : composed.index_dims) d += added;
    graph::Builder build(graph_);
    build.set_origin(inner_node.origin);
    ValueId source = operand(inner_node, 1);
    if (added > 0) {
      std::vector<Expr> sizes(static_cast<size_t>(added), Expr(1));
      sizes.insert(sizes.end(), value(source).sizes.begin(), value(source).sizes.end());
      source = build.reshape(source, sizes);
    }
    std::vector<graph::Operand> operands{tensor, source};
    operands.insert(operands.end(), inner_node.operands.begin() + 2, inner_node.operands.end());
    graph::Node& node = graph_.nodes[id];
    node.kind = std::move(composed);
    node.operands = std::move(operands);
    return true;
  }

  graph::Graph& graph_;
  IdVector<ValueId, int> uses_;
  IdVector<ValueId, char> escaping_;
  IdVector<ValueId, ValueId> replacements_;
};

}  // namespace

bool compose_scatters(graph::Graph& graph, const Options&) { return ScatterComposer(graph).run(); }

}  // namespace cxxinductor::passes
