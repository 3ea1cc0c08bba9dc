// Graphs: one dense tensor per value, node by node.
#include <algorithm>

#include "interp/calls.h"
#include "ir/graph/infer.h"

namespace cxxinductor::interp {
namespace {

using Coords = std::vector<int64_t>;

int64_t linear(const Coords& coords, const std::vector<int64_t>& sizes) {
  CXXI_CHECK(coords.size() == sizes.size(), "{} coordinates for rank {}", coords.size(), sizes.size());
  int64_t position = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    CXXI_CHECK(coords[d] >= 0 && coords[d] < sizes[d], "coordinate {} of dimension {}, which has size {}", coords[d], d, sizes[d]);
    position = position * sizes[d] + coords[d];
  }
  return position;
}

const Scalar& element(const Tensor& tensor, const Coords& coords) { return tensor.elements[static_cast<size_t>(linear(coords, tensor.sizes))]; }

class GraphRun {
 public:
  GraphRun(const graph::Graph& graph, const Arguments& arguments, const ExternHandler& externs)
      : graph_(graph), symbols_(arguments.symbols), externs_(externs), tensors_(graph.values.size()), touched_(graph.values.size(), false) {
    size_t next = 0;
    for (const graph::Input& input : graph.inputs) {
      if (input.kind != graph::Input::Kind::Tensor) continue;
      if (next == arguments.tensors.size()) throw_user_error("expected more than {} tensor arguments", next);
      const graph::Value& value = graph.value(input.value);
      const Tensor& argument = arguments.tensors[next++];
      check_argument(argument, value.name, value.dtype, evaluate(value.sizes, symbols_));
      tensors_[input.value] = argument;
    }
  }

  std::vector<Tensor> run() {
    for (const graph::Node& node : graph_.nodes) std::visit([&](const auto& kind) { compute(node, kind); }, node.kind);
    std::vector<Tensor> results;
    for (const graph::Output& output : graph_.outputs) {
      if (output.kind == graph::Output::Kind::Tensor) results.push_back(tensors_[output.value]);
      if (output.kind == graph::Output::Kind::Symbol) results.push_back(integer_tensor(evaluate(output.symbol, symbols_)));
      if (output.kind == graph::Output::Kind::None) results.push_back(integer_tensor(0));
    }
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      const graph::Input& input = graph_.inputs[i];
      if (input.kind != graph::Input::Kind::Tensor) continue;
      const auto mutation = std::find_if(graph_.mutations.rbegin(), graph_.mutations.rend(), [&](const graph::Mutation& m) { return m.input == i; });
      const graph::ValueId last = mutation == graph_.mutations.rend() ? input.value : mutation->value;
      if (last != input.value || touched_[input.value.index()]) results.push_back(tensors_[last]);
    }
    return results;
  }

 private:
  const Tensor& operand(const graph::Node& node, size_t i) const {
    const auto* id = std::get_if<graph::ValueId>(&node.operands.at(i));
    CXXI_CHECK(id != nullptr, "operand {} is no tensor", i);
    return tensors_[*id];
  }
  // The result with its type and elements to be filled in.
  Tensor& result(const graph::Node& node, size_t r = 0) {
    const graph::Value& value = graph_.value(node.results.at(r));
    Tensor& tensor = tensors_[node.results[r]];
    tensor = {value.dtype, evaluate(value.sizes, symbols_), {}};
    tensor.elements.resize(static_cast<size_t>(element_count(tensor.sizes)));
    return tensor;
  }
  Scalar scalar_operand(const graph::Node& node, size_t i, DType dtype) const {
    if (const auto* scalar = std::get_if<Scalar>(&node.operands.at(i))) return cast(*scalar, dtype);
    const sym::Expr e = std::get<sym::Expr>(node.operands[i]);
    return cast(Scalar::from_integer(DType::I64, evaluate(e, symbols_)), dtype);
  }
  // A result whose element at r is the operand's at source(r); `source` may change a copy of r in place.
  template <class Source>
  void move(const graph::Node& node, Source source) {
    const Tensor& from = operand(node, 0);
    Tensor& to = result(node);
    Coords coords;
    for_each_point(to.sizes, [&](const Coords& at, int64_t point) {
      coords = at;
      source(coords, point);
      to.elements[static_cast<size_t>(point)] = element(from, coords);
    });
  }

  void compute(const graph::Node& node, const graph::Elementwise& kind) {
    const ScalarOpInfo& row = info(kind.op);
    const DType type = graph::operand_dtype(graph_, kind.op, node.operands);
    const bool converts = row.rule == TypeRule::Cast || row.rule == TypeRule::Identity;
    Tensor& to = result(node);
    std::vector<const Tensor*> tensors(node.operands.size(), nullptr);
    std::vector<DType> dtypes(node.operands.size(), converts ? type : compute_type(type));
    std::vector<Scalar> operands(node.operands.size());
    if (row.rule == TypeRule::Select) dtypes[0] = DType::Bool;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (std::holds_alternative<graph::ValueId>(node.operands[i]))
        tensors[i] = &operand(node, i);
      else
        operands[i] = scalar_operand(node, i, dtypes[i]);
    }
    for (size_t e = 0; e < to.elements.size(); ++e) {
      for (size_t i = 0; i < operands.size(); ++i)
        if (tensors[i]) operands[i] = cast(tensors[i]->elements.at(tensors[i]->sizes.empty() ? 0 : e), dtypes[i]);
      to.elements[e] = cast(evaluate(kind.op, operands, to.dtype), to.dtype);
    }
  }

  void compute(const graph::Node& node, const graph::Reduce& kind) {
    const Tensor& from = operand(node, 0);
    const ReductionInfo& row = info(kind.reduction);
    const ReductionForm& meaning = form(kind.reduction);
    const DType wide = row.order_matters && is_float(from.dtype) ? DType::F64 : from.dtype;
    std::vector<bool> reduced(from.sizes.size(), kind.dims.empty());
    for (int d : kind.dims) reduced[static_cast<size_t>(d)] = true;
    std::vector<Tensor*> results;
    for (size_t r = 0; r < node.results.size(); ++r) results.push_back(&result(node, r));
    std::vector<std::vector<Scalar>> states(results[0]->elements.size(), meaning.initial_state(wide));
    for_each_point(from.sizes, [&](const Coords& at, int64_t point) {
      Coords to;
      int64_t position = 0;
      for (size_t d = 0; d < at.size(); ++d) {
        if (reduced[d]) position = position * from.sizes[d] + at[d];
        if (!reduced[d] || kind.keepdim) to.push_back(reduced[d] ? 0 : at[d]);
      }
      meaning.update(states[static_cast<size_t>(linear(to, results[0]->sizes))], cast(from.elements[static_cast<size_t>(point)], wide), position);
    });
    for (size_t i = 0; i < states.size(); ++i) {
      const std::vector<Scalar> finished = meaning.finished(states[i]);
      for (size_t r = 0; r < results.size(); ++r) results[r]->elements[i] = cast(finished.at(r), results[r]->dtype);
    }
  }

  void compute(const graph::Node& node, const graph::Full&) {
    Tensor& to = result(node);
    std::fill(to.elements.begin(), to.elements.end(), scalar_operand(node, 0, to.dtype));
  }
  void compute(const graph::Node& node, const graph::Iota& kind) {
    Tensor& to = result(node);
    const int64_t start = evaluate(kind.start, symbols_), step = evaluate(kind.step, symbols_);
    for (size_t i = 0; i < to.elements.size(); ++i) to.elements[i] = cast(Scalar::from_integer(DType::I64, start + step * static_cast<int64_t>(i)), to.dtype);
  }
  void compute(const graph::Node& node, const graph::Permute& kind) {
    move(node, [&](Coords& coords, int64_t) {
      const Coords at = coords;
      for (size_t d = 0; d < at.size(); ++d) coords[static_cast<size_t>(kind.dims[d])] = at[d];
    });
  }
  void compute(const graph::Node& node, const graph::Reshape&) {
    const Tensor& from = operand(node, 0);
    Tensor& to = result(node);
    CXXI_CHECK(from.elements.size() == to.elements.size(), "reshape of {} elements into {}", from.elements.size(), to.elements.size());
    to.elements = from.elements;
  }
  void compute(const graph::Node& node, const graph::Expand&) {
    const std::vector<int64_t>& sizes = operand(node, 0).sizes;
    move(node, [&](Coords& coords, int64_t) {
      coords.erase(coords.begin(), coords.end() - static_cast<std::ptrdiff_t>(sizes.size()));
      for (size_t d = 0; d < sizes.size(); ++d)
        if (sizes[d] == 1) coords[d] = 0;
    });
  }
  void compute(const graph::Node& node, const graph::Slice& kind) {
    const int64_t start = evaluate(kind.start, symbols_), step = evaluate(kind.step, symbols_);
    const auto dim = static_cast<size_t>(kind.dim);
    move(node, [&](Coords& coords, int64_t) { coords[dim] = start + step * coords[dim]; });
  }
  void compute(const graph::Node& node, const graph::Flip& kind) {
    const std::vector<int64_t>& sizes = operand(node, 0).sizes;
    move(node, [&](Coords& coords, int64_t) {
      for (int d : kind.dims) coords[static_cast<size_t>(d)] = sizes[static_cast<size_t>(d)] - 1 - coords[static_cast<size_t>(d)];
    });
  }
  void compute(const graph::Node& node, const graph::Pad& kind) {
    const Tensor& from = operand(node, 0);
    const std::vector<int64_t> low = evaluate(kind.low, symbols_);
    Tensor& to = result(node);
    for_each_point(to.sizes, [&](const Coords& at, int64_t point) {
      Coords coords = at;
      bool inside = true;
      for (size_t d = 0; d < at.size(); ++d) {
        coords[d] -= low[d];
        inside = inside && coords[d] >= 0 && coords[d] < from.sizes[d];
      }
      to.elements[static_cast<size_t>(point)] = inside ? element(from, coords) : cast(kind.fill, to.dtype);
    });
  }
  void compute(const graph::Node& node, const graph::Cat& kind) {
    Tensor& to = result(node);
    const auto dim = static_cast<size_t>(kind.dim);
    int64_t offset = 0;
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const Tensor& from = operand(node, i);
      for_each_point(from.sizes, [&](const Coords& at, int64_t point) {
        Coords coords = at;
        coords[dim] += offset;
        to.elements[static_cast<size_t>(linear(coords, to.sizes))] = from.elements[static_cast<size_t>(point)];
      });
      offset += from.sizes[dim];
    }
    CXXI_CHECK(offset == to.sizes[dim], "cat of {} into {}", offset, to.sizes[dim]);
  }
  // The coordinate in dimension d of the operand for a point of the result.
  int64_t gathered(const graph::Node& node, const graph::Gather& kind, size_t d, const Coords& at) const {
    if (kind.source[d] >= 0) return at[static_cast<size_t>(kind.source[d])];
    Coords index_at;
    for (int r : kind.index_dims) index_at.push_back(at[static_cast<size_t>(r)]);
    const int64_t index = element(operand(node, static_cast<size_t>(-kind.source[d])), index_at).integer();
    const int64_t size = operand(node, 0).sizes[d], wrapped = kind.wrap && index < 0 ? index + size : index;
    if (kind.check && (wrapped < 0 || wrapped >= size)) throw_user_error("index {} is out of bounds for dimension {} of size {}", index, d, size);
    return wrapped;
  }
  void compute(const graph::Node& node, const graph::Gather& kind) {
    const Tensor& from = operand(node, 0);
    Tensor& to = result(node);
    for_each_point(to.sizes, [&](const Coords& at, int64_t point) {
      Coords coords;
      for (size_t d = 0; d < from.sizes.size(); ++d) coords.push_back(gathered(node, kind, d, at));
      to.elements[static_cast<size_t>(point)] = element(from, coords);
    });
  }

  // The coordinate in dimension d of the base for a point of the source.
  int64_t scattered(const graph::Node& node, const graph::Scatter& kind, size_t d, const Coords& at) const {
    const int from = kind.target[d];
    if (from >= 0) return evaluate(kind.start[d], symbols_) + evaluate(kind.step[d], symbols_) * at[static_cast<size_t>(from)];
    Coords index_at;
    for (int r : kind.index_dims) index_at.push_back(at[static_cast<size_t>(r)]);
    const int64_t index = element(operand(node, static_cast<size_t>(1 - from)), index_at).integer();
    const int64_t size = operand(node, 0).sizes[d], wrapped = kind.wrap && index < 0 ? index + size : index;
    if (kind.check && (wrapped < 0 || wrapped >= size)) throw_user_error("index {} is out of bounds for dimension {} of size {}", index, d, size);
    return wrapped;
  }
  void compute(const graph::Node& node, const graph::Scatter& kind) {
    const Tensor &base = operand(node, 0), &source = operand(node, 1);
    Tensor& to = result(node);
    to.elements = base.elements;
    for_each_point(source.sizes, [&](const Coords& at, int64_t point) {
      Coords coords;
      for (size_t d = 0; d < base.sizes.size(); ++d) coords.push_back(scattered(node, kind, d, at));
      Scalar& place = to.elements[static_cast<size_t>(linear(coords, to.sizes))];
      place = combined(kind.combine, place, source.elements[static_cast<size_t>(point)]);
    });
  }

  void compute(const graph::Node& node, const graph::Extern& kind) {
    std::vector<Tensor> operands;
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const auto* e = std::get_if<sym::Expr>(&node.operands[i]);
      operands.push_back(e ? integer_tensor(evaluate(*e, symbols_)) : operand(node, i));
    }
    const std::vector<Tensor> found = call_extern(externs_, kind, operands, symbols_, node.results.size());
    define(kind.defines, graph_.assumptions, found, symbols_);
    for (size_t r = 0; r < node.results.size(); ++r) {
      const graph::Value& value = graph_.value(node.results[r]);
      check_argument(found[r], fmt::format("{} (result of {})", value.name, kind.callee), value.dtype, evaluate(value.sizes, symbols_));
      tensors_[node.results[r]] = found[r];
    }
    for (size_t m = 0; m < kind.mutated_operands.size(); ++m)
      overwrite(std::get<graph::ValueId>(node.operands[kind.mutated_operands[m]]), found[node.results.size() + m]);
  }

  // Values have no storage here, so that a change of one cannot be seen through another.
  void overwrite(graph::ValueId id, const Tensor& contents) {
    for (const graph::Node& node : graph_.nodes) {
      if (!graph::is_view(node.kind)) continue;
      if (node.results[0] == id || std::get<graph::ValueId>(node.operands[0]) == id)
        throw_unsupported("%{} is a view or has views, and an extern writes into it", graph_.value(id).name);
    }
    check_argument(contents, graph_.value(id).name, tensors_[id].dtype, tensors_[id].sizes);
    tensors_[id] = contents;
    touched_[id.index()] = true;
  }

  const graph::Graph& graph_;
  Symbols symbols_;  // those that calls have defined so far, too
  const ExternHandler& externs_;
  IdVector<graph::ValueId, Tensor> tensors_;
  std::vector<bool> touched_;  // written by an extern
};

}  // namespace

std::vector<Tensor> run(const graph::Graph& graph, const Arguments& arguments, const ExternHandler& externs) {
  return GraphRun(graph, arguments, externs).run();
}

}  // namespace cxxinductor::interp
