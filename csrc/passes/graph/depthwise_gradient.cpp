// Takes the input's gradient of a depthwise convolution by a convolution with the kernels turned around, on CUDA in 16 bits.
//
// With stride 1 the two are the same sums. cuDNN's kernels for the forward direction take 0.6 of the time of those for this gradient
// (dgrad2d_c1_k1_nhwc: 73 us a layer of ConvNeXt-B at batch 32 on an H100, conv2d_c1_k1_nhwc 42; benchmarks/graphs.py --kernels 45), and write where the plan
// says.
#include <array>
#include <optional>
#include <utility>

#include "ir/device_types.h"
#include "passes/graph/edit.h"
#include "passes/graph/passes.h"

namespace cxxinductor::passes {
namespace {

using graph::ValueId;

constexpr size_t input_gradient = 0;
constexpr size_t spatial = 2;

std::optional<std::array<int64_t, spatial>> pair_of(const Arg* arg) {
  const auto* list = arg ? arg->as<ArgList>() : nullptr;
  if (!list || list->size() != spatial) return std::nullopt;
  const auto *first = (*list)[0].as<int64_t>(), *second = (*list)[1].as<int64_t>();
  if (!first || !second) return std::nullopt;
  return std::array{*first, *second};
}

struct Gradient {
  ValueId of_output, weight;
  std::array<int64_t, spatial> padding, dilation;
};

std::optional<Gradient> gradient_of(const graph::Graph& graph, const graph::Node& node) {
  if (!makes_gradient(node, input_gradient)) return std::nullopt;
  const auto& callee = *node.as<graph::Extern>();
  const auto argument = [&](ArgRole role) { return find_argument(callee, role); };
  const ValueId *of_output = value_argument(node, ArgRole::OutputGradient), *weight = value_argument(node, ArgRole::Weight);
  if (!of_output || !weight) return std::nullopt;
  const graph::Value &value = graph.values[*of_output], &kernels = graph.values[*weight];
  if (!eager(value.device).slow_depthwise_gradients || (value.dtype != DType::F16 && value.dtype != DType::BF16) || value.sizes.size() != image_rank)
    return std::nullopt;
  const auto* groups = argument(ArgRole::Groups)->as<int64_t>();
  const bool is_depthwise =
      groups && *groups > 1 && kernels.sizes[0].is_constant(*groups) && kernels.sizes[1].is_constant(1) && value.sizes[1].is_constant(*groups);
  const auto* transposed = argument(ArgRole::Transposed)->as<bool>();
  if (!is_depthwise || !transposed || *transposed) return std::nullopt;
  const auto stride = pair_of(argument(ArgRole::Stride)), padding = pair_of(argument(ArgRole::Padding)), dilation = pair_of(argument(ArgRole::Dilation));
  if (!stride || !padding || !dilation || *stride != std::array<int64_t, spatial>{1, 1}) return std::nullopt;
  Gradient gradient{*of_output, *weight, {}, *dilation};
  for (size_t d = 0; d < spatial; ++d) {
    const sym::Expr window = kernels.sizes[2 + d];
    if (!window.is_constant()) return std::nullopt;
    gradient.padding[d] = (window.constant() - 1) * (*dilation)[d] - (*padding)[d];
    if (gradient.padding[d] < 0) return std::nullopt;
  }
  return gradient;
}

Arg list_of(const std::array<int64_t, spatial>& values) { return Arg(ArgList{Arg(values[0]), Arg(values[1])}); }

// old: what convolution_backward gave.
ValueId convolve(graph::Builder& build, const Gradient& gradient, ValueId of_output, ValueId weight, ValueId old) {
  graph::Graph& graph = build.graph();
  const ValueId turned = build.elementwise(ScalarOp::Identity, {build.flip(weight, {2, 3})});
  graph::Extern callee{make_call(only_op(OpFamily::Convolution), {{ArgRole::Input, Arg(OperandRef{0})},
                                                                  {ArgRole::Weight, Arg(OperandRef{1})},
                                                                  {ArgRole::Bias, Arg(None{})},
                                                                  {ArgRole::Stride, list_of({1, 1})},
                                                                  {ArgRole::Padding, list_of(gradient.padding)},
                                                                  {ArgRole::Dilation, list_of(gradient.dilation)},
                                                                  {ArgRole::Transposed, Arg(false)},
                                                                  {ArgRole::OutputPadding, list_of({0, 0})},
                                                                  {ArgRole::Groups, Arg(graph.values[weight].sizes[0].constant())}})};
  callee.alias_of = {-1};
  callee.planned_out = true;
  graph::Value result;
  result.dtype = graph.values[old].dtype;
  result.device = graph.values[old].device;
  result.sizes = graph.values[old].sizes;
  result.layout = graph.values[old].layout;
  return build.call_extern(std::move(callee), {of_output, turned}, {result})[0];
}

}  // namespace

bool turn_depthwise_gradients(graph::Graph& graph, const Options&) {
  auto replacements = no_replacements(graph);
  const graph::NodeId end(graph.nodes.size());
  graph::Builder build(graph);
  for (size_t n = 0; n < end.index(); ++n) {
    const graph::NodeId id(n);
    const auto gradient = gradient_of(graph, graph.nodes[id]);
    if (!gradient) continue;
    build.set_origin(graph.nodes[id].origin);
    const ValueId old = graph.nodes[id].results[input_gradient];
    const ValueId found = convolve(build, *gradient, replacements[gradient->of_output], replacements[gradient->weight], old);
    std::swap(graph.values[found].name, graph.values[old].name);
    replacements[old] = found;
    leave_out_gradient(graph, graph.nodes[id], input_gradient);
  }
  if (graph.nodes.size() == end.index()) return false;
  replace_values(graph, replacements, end);
  sort_nodes(graph);
  return true;
}

}  // namespace cxxinductor::passes
