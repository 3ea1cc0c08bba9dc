// Splits convolution(x, w, bias) into convolution(x, w, none) + bias, and the gradient of the bias off convolution_backward, on CUDA.
//
// ATen calls cuDNN without the bias and adds it in place by a kernel of its own (ATen/native/Convolution.cpp and
// cudnn/ConvShared.cpp: `output.add_(reshape_bias(...))`), so the sum rounds twice in eager as it does here; apart, the
// addition is fused into what reads the result. On the CPU oneDNN adds the bias inside, in f32: left alone. So are depthwise
// convolutions that ATen computes itself. The gradient of the bias is a sum of the result's gradient, which ATen takes by a kernel of its own
// too; apart, it is fused into what makes that gradient.
#include <utility>

#include "ir/device_types.h"
#include "passes/graph/edit.h"
#include "passes/graph/passes.h"

namespace cxxinductor::passes {
namespace {

using graph::ValueId;

constexpr size_t bias_gradient = 2;  // of the three that convolution_backward makes

// ATen's own kernels start each sum from the bias. cuDNN takes what is channels-last (ATen/native/Convolution.cpp:
// use_cudnn_depthwise, cudnn_conv_suggest_memory_format), and some others, which is not known before the call.
bool may_start_from_bias(const graph::Graph& graph, const graph::Node& node, const graph::Value& result) {
  const auto& callee = *node.as<graph::Extern>();
  const Arg* argument = find_argument(callee, ArgRole::Groups);
  const Arg groups = argument ? *argument : Arg(int64_t{1});
  const sym::Expr number = groups.as<sym::Expr>() ? *groups.as<sym::Expr>() : groups.as<int64_t>() ? sym::Expr(*groups.as<int64_t>()) : sym::Expr(1);
  const ValueId* x = value_argument(node, ArgRole::Input);
  const bool is_depthwise = x && graph.values[*x].sizes.size() == result.sizes.size() && graph.values[*x].sizes[1] == number && !number.is_constant(1);
  if (!is_depthwise) return false;
  if (result.sizes.size() != image_rank || result.dtype == DType::F64) return true;
  const sym::Expr channels = result.sizes[1], height = result.sizes[2], width = result.sizes[3];
  return result.layout.strides != std::vector<sym::Expr>{height * width * channels, 1, width * channels, channels};
}

// The operand that only the bias argument names; -1 when there is none.
int bias_operand(const graph::Graph& graph, const graph::Node& node) {
  const auto* callee = node.as<graph::Extern>();
  if (!callee || !is_call_of(*callee, OpFamily::Convolution)) return -1;
  const graph::Value& result = graph.values[node.results.at(0)];
  if (!eager(result.device).convolutions_add_bias_apart || result.sizes.size() < 3 || !is_float(result.dtype)) return -1;
  const OperandRef* ref = find_operand_ref(*callee, ArgRole::Bias);
  if (!ref || ref->operand + 1 != node.operands.size()) return -1;  // x, w, bias: the bias comes last
  const auto* bias = std::get_if<ValueId>(&node.operands[ref->operand]);
  if (!bias || graph.values[*bias].dtype != result.dtype || may_start_from_bias(graph, node, result)) return -1;
  return static_cast<int>(ref->operand);
}

// The result's gradient, of which that of the bias is the sum; null where the node makes none.
const ValueId* summed_for_bias(const graph::Graph& graph, const graph::Node& node) {
  if (!makes_gradient(node, bias_gradient)) return nullptr;
  const ValueId* gradient = value_argument(node, ArgRole::OutputGradient);
  const bool sums = gradient && eager(graph.values[*gradient].device).convolutions_add_bias_apart && is_float(graph.values[*gradient].dtype);
  return sums ? gradient : nullptr;
}

ValueId sum_for_bias(graph::Builder& build, ValueId gradient) {
  const graph::Value& value = build.graph().value(gradient);
  const DType dtype = value.dtype;
  std::vector<int> dims{0};
  for (size_t d = 2; d < value.sizes.size(); ++d) dims.push_back(static_cast<int>(d));
  return build.cast(build.reduce(Reduction::Sum, build.cast(gradient, compute_type(dtype)), dims, false).front(), dtype);
}

}  // namespace

bool split_convolution_bias(graph::Graph& graph, const Options&) {
  auto replacements = no_replacements(graph);
  const graph::NodeId end(graph.nodes.size());
  graph::Builder build(graph);
  for (size_t n = 0; n < end.index(); ++n) {
    const graph::NodeId id(n);
    if (const ValueId* gradient = summed_for_bias(graph, graph.nodes[id])) {
      build.set_origin(graph.nodes[id].origin);
      const ValueId old = graph.nodes[id].results.at(bias_gradient);
      const ValueId sum = sum_for_bias(build, replacements[*gradient]);
      leave_out_gradient(graph, graph.nodes[id], bias_gradient);
      std::swap(graph.values[sum].name, graph.values[old].name);
      replacements[old] = sum;
      continue;
    }
    const int operand = bias_operand(graph, graph.nodes[id]);
    if (operand < 0) continue;
    const ValueId raw = graph.nodes[id].results[0];
    const ValueId bias = replacements[std::get<ValueId>(graph.nodes[id].operands[static_cast<size_t>(operand)])];
    auto& callee = *graph.nodes[id].as<graph::Extern>();
    *find_argument(callee, ArgRole::Bias) = Arg(None{});
    graph.nodes[id].operands.pop_back();
    build.set_origin(graph.nodes[id].origin);
    std::vector<sym::Expr> sizes(graph.values[raw].sizes.size() - 1, 1);
    sizes[0] = graph.values[raw].sizes[1];
    const ValueId sum = build.elementwise(ScalarOp::Add, {raw, build.reshape(bias, sizes)});
    graph.values[sum].layout.strides = graph.values[raw].layout.strides;
    // A name stands for one value of the model, which check=eager compares with ATen's: the sum now.
    std::swap(graph.values[sum].name, graph.values[raw].name);
    replacements[raw] = sum;
  }
  if (graph.nodes.size() == end.index()) return false;
  replace_values(graph, replacements, end);
  sort_nodes(graph);
  return true;
}

}  // namespace cxxinductor::passes
