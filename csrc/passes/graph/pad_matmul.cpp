// mm(a, b) -> mm(pad(a), pad(b)) cropped, where a row of an operand or of the result is no multiple of 16 bytes.
//
// cuBLAS reads and writes such rows element by element: on an H200, 8192 x 768 x 50257 in bf16 takes 6.7 ms, with 50264
// columns 0.95 ms, and its backward products 4.3 to 4.5 ms against 0.7 to 0.8 (benchmarks/matmul_padding.py). Rows whose
// stride alone is padded do not help where the length is the reduced dimension. Zeros added along the reduced dimension
// change no sum, columns and rows added elsewhere are cropped. Worth it when the time saved exceeds that of the copies, of the
// padded operands and of a result that leaves the graph or goes to a call (other readers read the padded one in place), and
// when what is there beside the product leaves room for them within eager's peak: for all rows of the left factor, or for some
// after the other. Two products share a padded operand.
#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "ir/device_types.h"
#include "ir/graph/memory.h"
#include "ir/library_ops.h"
#include "ir/live_ranges.h"
#include "ir/matmul_rows.h"
#include "passes/graph/edit.h"
#include "passes/graph/passes.h"

namespace cxxinductor::passes {
namespace {

using graph::ValueId;
using sym::Expr;

// Arithmetic that tensor cores do while memory moves one byte: H200, 650 TFLOP/s dense bf16 as reached, 4.2 TB/s.
constexpr double operations_per_byte = 155;

// Operands of a product, by number.
struct Product {
  uint32_t left, right;
  std::optional<uint32_t> bias;
  bool batched;
};

std::optional<Product> product_of(const graph::Graph& graph, const graph::Node& node) {
  const auto* callee = node.as<graph::Extern>();
  if (!callee || !callee->planned_out || !is_call_of(*callee, OpFamily::Matmul)) return std::nullopt;
  const OperandRef *left = find_operand_ref(*callee, ArgRole::Left), *right = find_operand_ref(*callee, ArgRole::Right);
  const OperandRef* bias = find_operand_ref(*callee, ArgRole::Addend);
  const bool batched = graph.values[node.results.at(0)].sizes.size() > 2;
  if (!left || !right || left->operand == right->operand || (bias && (batched || node.operands.size() != 3))) return std::nullopt;
  return Product{left->operand, right->operand, bias ? std::optional(bias->operand) : std::nullopt, batched};
}

Expr rounded_up(Expr e, int64_t multiple) { return sym::ceil_div(e, multiple) * multiple; }

class Padder {
 public:
  Padder(graph::Graph& graph, IdVector<ValueId, ValueId>& replacements)
      : graph_(graph),
        replacements_(replacements),
        build_(graph),
        memory_(graph::eager_memory(graph)),
        copied_(escaping_values(graph, /*flexible_strides=*/false)) {
    for (const graph::Node& node : graph.nodes)
      if (node.as<graph::Extern>())
        for (const graph::Operand& operand : node.operands)
          if (const auto* value = std::get_if<ValueId>(&operand)) copied_[graph::storage_of(graph, *value)] = 1;
  }

  void visit(graph::NodeId id) {
    const auto product = product_of(graph_, graph_.nodes[id]);
    if (!product) return;
    const graph::Value& result = graph_.values[graph_.nodes[id].results[0]];
    if (!eager(result.device).fast_aligned_products || (result.dtype != DType::F16 && result.dtype != DType::BF16)) return;
    const ValueId a = operand(id, product->left), b = operand(id, product->right);
    if (!a.valid() || !b.valid()) return;
    const std::vector<Expr>& left = graph_.values[a].sizes;
    const Expr rows = left[left.size() - 2], depth = left.back(), columns = graph_.values[b].sizes.back();
    // A left factor that is stored along its rows has their number as the length that must be aligned.
    const bool along_rows = is_turned(a) && !product->bias;
    const int element = byte_size(result.dtype);
    if (!worth(id, {rows, depth, columns, along_rows}, element)) return;
    const int64_t multiple = matmul_row_bytes / element;
    const Expr deep = rounded_up(depth, multiple), wide = rounded_up(columns, multiple);
    const Expr high = along_rows ? rounded_up(rows, multiple) : rows;
    build_.set_origin(graph_.nodes[id].origin);
    if (!has_room(id, {a, high, deep}, {b, deep, wide}, high * wide)) {
      if (!product->batched && !product->bias) multiply_in_parts(id, {a, rows, deep}, {b, deep, wide}, along_rows);
      return;
    }
    std::vector<graph::Operand> operands = graph_.nodes[id].operands;
    operands[product->left] = padded(a, high, deep);
    operands[product->right] = padded(b, deep, wide);
    if (product->bias && !pad_bias(operands[*product->bias], columns, wide)) return;
    call_padded(id, std::move(operands), high, wide);
  }

 private:
  ValueId operand(graph::NodeId id, size_t number) const {
    const auto* value = std::get_if<ValueId>(&graph_.nodes[id].operands[number]);
    return value ? replacements_[*value] : ValueId();
  }

  struct Shape {
    Expr rows, depth, columns;
    bool along_rows;
  };

  ValueId result_of(graph::NodeId id) const { return graph_.nodes[id].results[0]; }

  bool worth(graph::NodeId id, const Shape& shape, int element) const {
    const graph::Value& result = graph_.values[result_of(id)];
    const auto bytes = [&](Expr e) { return sym::known_divisor(e, graph_.assumptions) * element; };
    const double high = shape.along_rows ? unaligned_slowdown(bytes(shape.rows)) : 1;
    const double factor = std::max({unaligned_slowdown(bytes(shape.depth)), unaligned_slowdown(bytes(shape.columns)), high});
    if (factor == 1) return false;
    const auto hint = [&](Expr e) { return static_cast<double>(sym::estimate(e, graph_.assumptions)); };
    const double m = hint(shape.rows), k = hint(shape.depth), n = hint(shape.columns);
    double batch = 1;
    for (size_t d = 0; d + 2 < result.sizes.size(); ++d) batch *= hint(result.sizes[d]);
    const double saved = 2 * batch * m * k * n * (factor - 1) / operations_per_byte;
    const bool left = bytes(shape.depth) % matmul_row_bytes != 0 || high > 1;
    const double copied = 2 * element * batch * (k * n + (copied_[result_of(id)] ? m * n : 0) + (left ? m * k : 0));
    return saved > copied;
  }

  struct PaddedFactor {
    ValueId x;
    Expr rows, columns;
  };

  // Within eager's peak, beside what is there while the product runs?
  bool has_room(graph::NodeId id, const PaddedFactor& left, const PaddedFactor& right, Expr padded_result) const {
    const graph::Value& result = graph_.values[result_of(id)];
    const auto bytes = [&](const std::vector<Expr>& sizes, Expr last_two) {
      Expr count = last_two * byte_size(result.dtype);
      for (size_t d = 0; d + 2 < sizes.size(); ++d) count = count * sizes[d];
      return bytes_hint(count, graph_.assumptions);
    };
    int64_t more = bytes(result.sizes, padded_result);
    if (!copied_[result_of(id)]) more -= bytes(result.sizes, result.sizes[result.sizes.size() - 2] * result.sizes.back());
    for (const PaddedFactor& factor : {left, right})
      if (!has_sizes(factor.x, factor.rows, factor.columns)) more += bytes(graph_.values[factor.x].sizes, factor.rows * factor.columns);
    const graph::MemoryUse& memory = memory_.at(result.device);
    return memory.at[id.index()] + more <= memory.peak;
  }

  // Products of so many rows of the left factor, one after the other, that the padded ones have room within eager's peak.
  void multiply_in_parts(graph::NodeId id, const PaddedFactor& left, const PaddedFactor& right, bool along_rows) {
    if (!left.rows.is_constant()) return;
    const int64_t rows = left.rows.constant();
    const std::optional<int64_t> count = rows_with_room(id, rows, left, right, along_rows);
    if (!count) return;
    const graph::Value result = graph_.values[result_of(id)];
    const graph::Extern callee = *graph_.nodes[id].as<graph::Extern>();
    const ValueId factor = padded(right.x, right.rows, right.columns);
    std::vector<ValueId> parts;
    for (int64_t start = 0; start < rows; start += *count) {
      const int64_t some = std::min(*count, rows - start);
      graph::Value padded_result;
      padded_result.dtype = result.dtype;
      padded_result.device = result.device;
      padded_result.sizes = {along_rows ? rounded_up(some, aligned_elements(result)) : some, right.columns};
      const ValueId x = copied_rows(left.x, start, some, {padded_result.sizes[0], left.columns});
      ValueId part = build_.call_extern(callee, {x, factor}, {padded_result})[0];
      if (!(padded_result.sizes[0] == some)) part = build_.slice(part, 0, 0, some, 1);
      if (!(right.columns == result.sizes[1])) part = build_.slice(part, 1, 0, result.sizes[1], 1);
      parts.push_back(part);
    }
    const ValueId product = build_.cat(parts, 0);
    graph_.values[product].layout.strides = result.layout.strides;
    replacements_[result_of(id)] = product;
  }

  std::optional<int64_t> rows_with_room(graph::NodeId id, int64_t rows, const PaddedFactor& left, const PaddedFactor& right, bool along_rows) const {
    constexpr int64_t most_parts = 16;
    const graph::Value& result = graph_.values[result_of(id)];
    const auto bytes = [&](Expr count) { return bytes_hint(count * byte_size(result.dtype), graph_.assumptions); };
    const bool cropped = along_rows || !(right.columns == result.sizes[1]);
    int64_t more = cropped ? bytes(left.rows * right.columns) : 0;  // parts are written where the result lies, or copied there
    if (!has_sizes(right.x, right.rows, right.columns)) more += bytes(right.rows * right.columns);
    const graph::MemoryUse& memory = memory_.at(result.device);
    for (int64_t parts = 2; parts <= most_parts; parts *= 2) {
      const int64_t unit = parts * aligned_elements(result), count = (rows + unit - 1) / unit * aligned_elements(result);
      if (memory.at[id.index()] + more + bytes(count * left.columns) <= memory.peak) return count;
    }
    return std::nullopt;
  }

  static int64_t aligned_elements(const graph::Value& value) { return matmul_row_bytes / byte_size(value.dtype); }

  // Some rows of a matrix with zeros behind, copied where theirs are unaligned; stored along the dimension that it is stored along.
  ValueId copied_rows(ValueId x, int64_t start, int64_t count, std::vector<Expr> sizes) {
    const bool turned = is_turned(x);
    if (turned) {
      x = swapped(x);
      std::swap(sizes[0], sizes[1]);
    }
    const ValueId rows = build_.slice(x, turned ? 1 : 0, start, count, 1);
    if (!turned && graph_.values[rows].sizes == sizes) return rows;
    const ValueId copy = graph_.values[rows].sizes == sizes ? build_.elementwise(ScalarOp::Identity, {rows})
                                                            : build_.pad(rows, {0, 0}, sizes, Scalar::from_real(graph_.values[x].dtype, 0));
    return turned ? swapped(copy) : copy;
  }

  bool has_sizes(ValueId x, Expr rows, Expr columns) const {
    const std::vector<Expr>& sizes = graph_.values[x].sizes;
    return sizes[sizes.size() - 2] == rows && sizes.back() == columns;
  }

  bool is_turned(ValueId x) const {
    const std::vector<Expr>& strides = graph_.values[x].layout.strides;
    return strides[strides.size() - 2].is_constant(1) && !strides.back().is_constant(1);
  }

  // x with its last two dimensions of these sizes, zeros behind; stored along the dimension that x is stored along.
  ValueId padded(ValueId x, Expr rows, Expr columns) {
    if (has_sizes(x, rows, columns)) return x;
    std::vector<Expr> sizes = graph_.values[x].sizes;
    const size_t rank = sizes.size();
    const bool turned = is_turned(x);
    if (turned) x = swapped(x);
    sizes[rank - 2] = turned ? columns : rows;
    sizes[rank - 1] = turned ? rows : columns;
    std::vector<ValueId>& pads = pads_[x];
    auto same = std::find_if(pads.begin(), pads.end(), [&](ValueId pad) { return graph_.values[pad].sizes == sizes; });
    if (same == pads.end()) {
      const std::vector<Expr> low(rank, 0);
      same = pads.insert(same, build_.pad(x, low, sizes, Scalar::from_real(graph_.values[x].dtype, 0)));
    }
    return turned ? swapped(*same) : *same;
  }

  // With the last two dimensions exchanged: what x is such a view of, or a new view.
  ValueId swapped(ValueId x) {
    std::vector<int> swap;
    for (size_t d = 0; d < graph_.values[x].sizes.size(); ++d) swap.push_back(static_cast<int>(d));
    std::swap(swap[swap.size() - 2], swap.back());
    if (const graph::NodeId producer = graph_.values[x].producer; producer.valid()) {
      const auto* permute = graph_.nodes[producer].as<graph::Permute>();
      if (permute && permute->dims == swap) return replacements_[std::get<ValueId>(graph_.nodes[producer].operands[0])];
    }
    return build_.permute(x, swap);
  }

  bool pad_bias(graph::Operand& bias, Expr columns, Expr wide) {
    const auto* value = std::get_if<ValueId>(&bias);
    if (!value || graph_.values[*value].sizes.size() != 1 || !(graph_.values[*value].sizes[0] == columns)) return false;
    const ValueId x = replacements_[*value];
    if (!(columns == wide)) bias = build_.pad(x, {0}, {wide}, Scalar::from_real(graph_.values[x].dtype, 0));
    return true;
  }

  void call_padded(graph::NodeId id, std::vector<graph::Operand> operands, Expr rows, Expr columns) {
    const ValueId old = graph_.nodes[id].results[0];
    const std::vector<Expr> sizes = graph_.values[old].sizes;
    const size_t rank = sizes.size();
    graph::Value result;
    result.dtype = graph_.values[old].dtype;
    result.device = graph_.values[old].device;
    result.sizes = sizes;
    result.sizes[rank - 2] = rows;
    result.sizes[rank - 1] = columns;
    const graph::Extern callee = *graph_.nodes[id].as<graph::Extern>();
    ValueId product = build_.call_extern(callee, std::move(operands), {result})[0];
    const bool cropped = !(result.sizes == sizes);
    for (size_t d = rank - 2; d < rank; ++d)
      if (!(result.sizes[d] == sizes[d])) product = build_.slice(product, static_cast<int>(d), 0, sizes[d], 1);
    // A copy, not a view: what reads it may demand eager's strides. Readers that compute take it in and read the padded one.
    if (cropped) product = build_.elementwise(ScalarOp::Identity, {product});
    graph_.values[product].layout.strides = graph_.values[old].layout.strides;
    replacements_[old] = product;
  }

  graph::Graph& graph_;
  IdVector<ValueId, ValueId>& replacements_;
  graph::Builder build_;
  const std::map<Device, graph::MemoryUse> memory_;  // of the graph as it came
  IdVector<ValueId, char> copied_;                   // values that somebody wants in eager's strides
  std::map<ValueId, std::vector<ValueId>> pads_;     // by what was padded
};

}  // namespace

bool pad_matmuls(graph::Graph& graph, const Options&) {
  auto replacements = no_replacements(graph);
  const graph::NodeId end(graph.nodes.size());
  Padder padder(graph, replacements);
  for (size_t n = 0; n < end.index(); ++n) padder.visit(graph::NodeId(n));
  if (graph.nodes.size() == end.index()) return false;
  replace_values(graph, replacements, end);
  sort_nodes(graph, &replacements);  // gradients of weights have late readers; what they are computed from lives until then
  return true;
}

}  // namespace cxxinductor::passes
