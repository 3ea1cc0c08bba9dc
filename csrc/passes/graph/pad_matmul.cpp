// mm(a, b) -> mm(pad(a), pad(b)) cropped, where a row of an operand or of the result is no multiple of 16 bytes.
//
// cuBLAS reads and writes such rows element by element: on an H200, 8192 x 768 x 50257 in bf16 takes 6.7 ms, with 50264
// columns 0.95 ms (benchmarks/matmul_padding.py). Zeros added along the reduced dimension change no sum, columns and rows
// added elsewhere are cropped. Worth it when the time saved exceeds that of the copies: of the padded operands, and of
// the result, which readers get in eager's strides.
#include <array>
#include <optional>

#include "passes/graph/edit.h"
#include "passes/graph/passes.h"

namespace cxxinductor::passes {
namespace {

using graph::ValueId;
using sym::Expr;

constexpr int row_bytes = 16;
// Arithmetic that tensor cores do while memory moves one byte: H200, 650 TFLOP/s dense bf16 as reached, 4.2 TB/s.
constexpr double operations_per_byte = 155;

// How much slower cuBLAS is than with 16-byte rows, by the bytes that a row's length is a multiple of (measured as above).
double slowdown(int64_t bytes) { return bytes % 16 == 0 ? 1 : bytes % 8 == 0 ? 1.2 : bytes % 4 == 0 ? 2.7 : 7; }

struct Product {
  size_t first;  // operand number of the left factor; the right one follows
  bool batched;
  bool bias;  // operand 0 is added
};

std::optional<Product> product_of(const graph::Node& node) {
  const auto* callee = node.as<graph::Extern>();
  if (!callee || !callee->planned_out) return std::nullopt;
  if (callee->callee == "aten::mm" && node.operands.size() == 2) return Product{0, false, false};
  if (callee->callee == "aten::bmm" && node.operands.size() == 2) return Product{0, true, false};
  if (callee->callee == "aten::addmm" && node.operands.size() == 3) return Product{1, false, true};
  return std::nullopt;
}

Expr rounded_up(Expr e, int64_t multiple) { return sym::ceil_div(e, multiple) * multiple; }

class Padder {
 public:
  Padder(graph::Graph& graph, IdVector<ValueId, ValueId>& replacements)
      : graph_(graph), replacements_(replacements), build_(graph) {}

  void visit(graph::NodeId id) {
    const auto product = product_of(graph_.nodes[id]);
    if (!product) return;
    const graph::Value& result = graph_.values[graph_.nodes[id].results[0]];
    if (result.device.type != DeviceType::Cuda || (result.dtype != DType::F16 && result.dtype != DType::BF16)) return;
    const ValueId a = operand(id, product->first), b = operand(id, product->first + 1);
    if (!a.valid() || !b.valid()) return;
    const std::vector<Expr>& left = graph_.values[a].sizes;
    const Expr rows = left[left.size() - 2], depth = left.back(), columns = graph_.values[b].sizes.back();
    const int element = byte_size(result.dtype);
    if (!worth(result, rows, depth, columns, element)) return;
    const int64_t multiple = row_bytes / element;
    const Expr deep = rounded_up(depth, multiple), wide = rounded_up(columns, multiple);
    build_.set_origin(graph_.nodes[id].origin);
    std::vector<graph::Operand> operands = graph_.nodes[id].operands;
    operands[product->first] = padded(a, rows, deep);
    operands[product->first + 1] = padded(b, deep, wide);
    if (product->bias && !pad_bias(operands[0], columns, wide)) return;
    call_padded(id, std::move(operands), columns, wide);
  }

 private:
  ValueId operand(graph::NodeId id, size_t number) const {
    const auto* value = std::get_if<ValueId>(&graph_.nodes[id].operands[number]);
    return value ? replacements_[*value] : ValueId();
  }

  bool worth(const graph::Value& result, Expr rows, Expr depth, Expr columns, int element) const {
    const auto bytes = [&](Expr e) { return sym::known_divisor(e, graph_.facts) * element; };
    const double factor = std::max(slowdown(bytes(depth)), slowdown(bytes(columns)));
    if (factor == 1) return false;
    // Sizes that vary count as their least: small products would lose.
    const auto least = [&](Expr e) { return static_cast<double>(sym::bounds(e, graph_.facts).low); };
    const double m = least(rows), k = least(depth), n = least(columns);
    double batch = 1;
    for (size_t d = 0; d + 2 < result.sizes.size(); ++d) batch *= least(result.sizes[d]);
    const double saved = 2 * batch * m * k * n * (factor - 1) / operations_per_byte;
    const double copied = 2 * element * batch * (k * n + m * n + (bytes(depth) % row_bytes != 0 ? m * k : 0));
    return saved > copied;
  }

  // x with its last two dimensions of these sizes, zeros behind; stored along the dimension that x is stored along.
  ValueId padded(ValueId x, Expr rows, Expr columns) {
    std::vector<Expr> sizes = graph_.values[x].sizes;
    const size_t rank = sizes.size();
    if (sizes[rank - 2] == rows && sizes[rank - 1] == columns) return x;
    const bool turned = graph_.values[x].layout.strides[rank - 2].is_constant(1);
    std::vector<int> swap;
    for (size_t d = 0; d < rank; ++d) swap.push_back(static_cast<int>(d));
    std::swap(swap[rank - 2], swap[rank - 1]);
    if (turned) x = build_.permute(x, swap);
    sizes[rank - 2] = turned ? columns : rows;
    sizes[rank - 1] = turned ? rows : columns;
    const std::vector<Expr> low(rank, 0);
    x = build_.pad(x, low, sizes, Scalar::from_real(graph_.values[x].dtype, 0));
    return turned ? build_.permute(x, swap) : x;
  }

  bool pad_bias(graph::Operand& bias, Expr columns, Expr wide) {
    const auto* value = std::get_if<ValueId>(&bias);
    if (!value || graph_.values[*value].sizes.size() != 1 || !(graph_.values[*value].sizes[0] == columns)) return false;
    const ValueId x = replacements_[*value];
    if (!(columns == wide)) bias = build_.pad(x, {0}, {wide}, Scalar::from_real(graph_.values[x].dtype, 0));
    return true;
  }

  void call_padded(graph::NodeId id, std::vector<graph::Operand> operands, Expr columns, Expr wide) {
    const ValueId old = graph_.nodes[id].results[0];
    graph::Value result;
    result.dtype = graph_.values[old].dtype;
    result.device = graph_.values[old].device;
    result.sizes = graph_.values[old].sizes;
    result.sizes.back() = wide;
    const graph::Extern callee = *graph_.nodes[id].as<graph::Extern>();
    ValueId product = build_.call_extern(callee, std::move(operands), {result})[0];
    if (!(columns == wide)) {
      product = build_.slice(product, static_cast<int>(result.sizes.size()) - 1, 0, columns, 1);
      // A copy, not a view: what reads it may demand eager's strides. It is fused into readers that compute.
      product = build_.elementwise(ScalarOp::Identity, {product});
    }
    graph_.values[product].layout.strides = graph_.values[old].layout.strides;
    replacements_[old] = product;
  }

  graph::Graph& graph_;
  IdVector<ValueId, ValueId>& replacements_;
  graph::Builder build_;
};

}  // namespace

bool pad_matmuls(graph::Graph& graph, const Options&) {
  auto replacements = no_replacements(graph);
  const graph::NodeId end(graph.nodes.size());
  Padder padder(graph, replacements);
  for (size_t n = 0; n < end.index(); ++n) padder.visit(graph::NodeId(n));
  if (graph.nodes.size() == end.index()) return false;
  replace_values(graph, replacements, end);
  sort_nodes(graph);
  return true;
}

}  // namespace cxxinductor::passes
