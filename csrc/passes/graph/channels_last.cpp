// Gives convolutions channels-last operands and results (on CUDA those of 16-bit floats); values between them keep that layout.
//
// Tensor cores read channels-last: cuDNN converts every other operand and converts the result back (nchwToNhwc, nhwcToNchw: a
// quarter of ResNet-50's time on an H200). So does oneDNN on the CPU, whose own layouts are blocks of channels. Here a network is
// converted once, at its ends, by kernels that exist anyway. Decided for the whole graph by the bytes of copies: each convolution
// saves its own, each value that must leave in eager's strides (outputs, operands of other calls) costs one. Strides that a user
// sees never change. What a forward graph saves for its backward does, and the backward graph is compiled for it.
#include <algorithm>
#include <map>
#include <vector>

#include "ir/device_types.h"
#include "ir/library_ops.h"
#include "passes/graph/edit.h"
#include "passes/graph/passes.h"

namespace cxxinductor::passes {
namespace {

using graph::NodeId;
using graph::ValueId;
using sym::Expr;

std::vector<Expr> channels_last_strides(const std::vector<Expr>& sizes) {
  const Expr c = sizes[1], h = sizes[2], w = sizes[3];
  return {h * w * c, 1, w * c, c};
}

class ChannelsLast {
 public:
  explicit ChannelsLast(graph::Graph& graph) : graph_(graph), turned_(graph.values.size(), 0), escapes_(escaping_values(graph, false)) {}

  bool run() {
    if (std::none_of(graph_.nodes.begin(), graph_.nodes.end(), [&](const graph::Node& n) { return is_convolution(n); })) return false;
    mark_values();
    if (bytes_saved() <= 0) return false;
    const NodeId end(graph_.nodes.size());
    auto replacements = no_replacements(graph_);
    for (size_t n = 0; n < end.index(); ++n) turn(NodeId(n), replacements);
    replace_values(graph_, replacements, NodeId(0));  // outputs and mutations only
    sort_nodes(graph_);
    return true;
  }

 private:
  const graph::Value& value(ValueId id) const { return graph_.values[id]; }

  bool is_escaping(ValueId id) const { return id.index() < escapes_.size() && escapes_[id]; }

  // Of a convolution or its gradient the operands that are images and, as the last one, the weight; none of other nodes.
  std::vector<uint32_t> convolved_operands(const graph::Node& node) const {
    const auto* callee = node.as<graph::Extern>();
    const LibraryOp* op = callee ? library_op(*callee) : nullptr;
    if (!op || op->layout != LayoutPreference::ChannelsLast) return {};
    const Arg* transposed = find_argument(*callee, ArgRole::Transposed);
    if (!transposed || !(*transposed == Arg(false))) return {};
    std::vector<uint32_t> operands;
    for (ArgRole role : {ArgRole::OutputGradient, ArgRole::Input, ArgRole::Weight}) {
      if (!op->find(role)) continue;
      const OperandRef* ref = find_operand_ref(*callee, role);
      if (!ref || !is_image(std::get<ValueId>(node.operands[ref->operand]))) return {};
      operands.push_back(ref->operand);
    }
    return operands;
  }

  bool is_convolution(const graph::Node& node) const { return !convolved_operands(node).empty(); }

  bool is_image(ValueId id) const {
    const graph::Value& x = value(id);
    const auto& dtypes = eager(x.device).channels_last_dtypes;
    return std::ranges::find(dtypes, x.dtype) != dtypes.end() && x.sizes.size() == image_rank;
  }

  bool is_follower(const graph::Node& node) const {
    const auto* callee = node.as<graph::Extern>();
    const LibraryOp* op = callee ? library_op(*callee) : nullptr;
    return op && op->layout == LayoutPreference::FollowsInput;
  }

  // A library call other than a convolution, which is asked about first. Random numbers are drawn in the order of memory, and results are laid
  // out as operands are.
  bool wants_eager_strides(const graph::Node& node) const {
    const auto* callee = node.as<graph::Extern>();
    return callee && callee->exact_strides && !is_follower(node);
  }

  // In channels-last strides, as they will be.
  bool is_turned(const graph::Operand& operand) const {
    const auto* id = std::get_if<ValueId>(&operand);
    if (!id || value(*id).sizes.size() != image_rank) return false;
    return turned_[root(*id)] || value(*id).layout.strides == channels_last_strides(value(*id).sizes);
  }

  // Whether its strides may be chosen: computed by a generated kernel, and not visible outside of the graph.
  bool is_free(ValueId id) const {
    if (!id.valid() || !value(id).producer.valid() || is_escaping(id)) return false;
    return is_pointwise(graph_.nodes[value(id).producer]) && value(id).sizes.size() == image_rank && value(id).layout.kind == graph::Layout::Kind::Flexible;
  }

  static bool is_pointwise(const graph::Node& node) { return node.as<graph::Elementwise>() || node.as<graph::Pad>() || node.as<graph::Gather>(); }

  // Windows of a value are laid out as it is.
  ValueId root(ValueId id) const {
    while (value(id).producer.valid()) {
      const graph::Node& node = graph_.nodes[value(id).producer];
      if (!node.as<graph::Slice>()) break;
      id = std::get<ValueId>(node.operands[0]);
    }
    return id;
  }

  // The input that was copied into the strides of the recorded call, or the value itself.
  ValueId as_it_came(ValueId id) const {
    if (!value(id).producer.valid() || value(id).layout.kind != graph::Layout::Kind::Fixed) return id;
    const graph::Node& node = graph_.nodes[value(id).producer];
    const auto* copy = node.as<graph::Elementwise>();
    if (!copy || copy->op != ScalarOp::Identity) return id;
    const auto* source = std::get_if<ValueId>(&node.operands[0]);
    return source && !value(*source).producer.valid() && is_turned(*source) ? *source : id;
  }

  void mark_values() {
    for (const graph::Node& node : graph_.nodes) {
      if (const std::vector<uint32_t> convolved = convolved_operands(node); !convolved.empty()) {
        for (ValueId result : node.results)
          if (value(result).sizes.size() == image_rank) turned_[result] = 1;
        // The kernels that make the operands write them turned.
        for (uint32_t i : convolved)
          if (const auto x = std::get<ValueId>(node.operands[i]); is_free(x)) turned_[x] = 1;
      } else if (const ValueId* followed = is_follower(node) ? value_argument(node, ArgRole::Input) : nullptr; followed && is_turned(*followed)) {
        for (ValueId result : node.results) turned_[result] = 1;
      } else if (is_pointwise(node) && is_free(node.results[0])) {
        turned_[node.results[0]] = std::any_of(node.operands.begin(), node.operands.end(), [&](const auto& o) { return is_turned(o); });
      }
    }
  }

  double bytes(ValueId id) const {
    double count = byte_size(value(id).dtype);
    for (Expr size : value(id).sizes) count *= static_cast<double>(std::max<int64_t>(1, bounds(size, graph_.assumptions).low));
    return count;
  }

  // By copies: 2 bytes move for each byte copied, on both sides, so they are left out.
  double bytes_saved() const {
    double saved = 0;
    for (const graph::Node& node : graph_.nodes) {
      if (const std::vector<uint32_t> convolved = convolved_operands(node); !convolved.empty()) {
        saved += convolution_saves(node, convolved);
      } else if (wants_eager_strides(node)) {
        for (const graph::Operand& operand : node.operands)
          if (const auto* id = std::get_if<ValueId>(&operand); id && turned_[*id]) saved -= bytes(*id);
      }
    }
    for (size_t i = 0; i < escapes_.size(); ++i)
      if (const ValueId id(i); escapes_[id] && turned_[id]) saved -= bytes(id);
    return saved;
  }

  // Weights are small: only images count. The library converts all operands and results if one is not channels-last.
  double convolution_saves(const graph::Node& node, const std::vector<uint32_t>& convolved) const {
    double library = 0, ours = 0;
    bool turns = false;
    for (size_t i = 0; i + 1 < convolved.size(); ++i) {
      const ValueId x = as_it_came(std::get<ValueId>(node.operands[convolved[i]]));
      library += bytes(x);
      turns = turns || value(x).layout.strides != channels_last_strides(value(x).sizes);
      if (!is_turned(x)) ours += bytes(x);
    }
    if (value(node.results[0]).sizes.size() == image_rank) library += bytes(node.results[0]);
    return (turns ? library : 0) - ours;
  }

  // A copy of x in the strides given, made where x is.
  ValueId copy(ValueId x, std::vector<Expr> strides) {
    graph::Builder build(graph_);
    if (value(x).producer.valid()) build.set_origin(graph_.nodes[value(x).producer].origin);
    const ValueId copied = build.elementwise(ScalarOp::Identity, {x});
    graph_.values[copied].layout.strides = std::move(strides);
    return copied;
  }

  void turn_operand(NodeId id, size_t number) {
    const auto x = as_it_came(std::get<ValueId>(graph_.nodes[id].operands[number]));
    graph_.nodes[id].operands[number] = x;
    const std::vector<Expr>& sizes = value(x).sizes;
    const bool same = sizes[1].is_constant(1) || (sizes[2].is_constant(1) && sizes[3].is_constant(1));  // as layouts
    if (is_turned(x) || same) return;
    const ValueId turned = copy(x, channels_last_strides(sizes));
    graph_.nodes[id].operands[number] = turned;
  }

  void turn_back_operands(NodeId id) {
    const std::vector<uint32_t> mutated = graph_.nodes[id].as<graph::Extern>()->mutated_operands;
    for (uint32_t i = 0; i < graph_.nodes[id].operands.size(); ++i) {
      const auto* x = std::get_if<ValueId>(&graph_.nodes[id].operands[i]);
      const auto eager = x ? eager_strides_.find(*x) : eager_strides_.end();
      if (eager == eager_strides_.end() || std::ranges::find(mutated, i) != mutated.end()) continue;
      const ValueId copied = copy(*x, eager->second);
      graph_.nodes[id].operands[i] = copied;
    }
  }

  void turn(NodeId id, IdVector<ValueId, ValueId>& replacements) {
    const std::vector<uint32_t> convolved = convolved_operands(graph_.nodes[id]);
    const bool makes = !convolved.empty() || is_follower(graph_.nodes[id]);
    const bool turns_back = convolved.empty() && wants_eager_strides(graph_.nodes[id]);
    for (uint32_t i : convolved) turn_operand(id, i);
    if (turns_back) turn_back_operands(id);
    const std::vector<ValueId> results = graph_.nodes[id].results;
    for (ValueId result : results) {
      if (!turned_[result]) continue;
      const std::vector<Expr> eager = value(result).layout.strides;
      eager_strides_.emplace(result, eager);
      graph_.values[result].layout.strides = channels_last_strides(value(result).sizes);
      if (makes && is_escaping(result)) replacements[result] = copy(result, eager);
    }
  }

  graph::Graph& graph_;
  IdVector<ValueId, char> turned_;                      // by value: will be in channels-last strides
  std::map<ValueId, std::vector<Expr>> eager_strides_;  // of values that were turned
  IdVector<ValueId, char> escapes_;                     // by value: somebody outside sees its strides
};

}  // namespace

bool use_channels_last(graph::Graph& graph, const Options&) { return ChannelsLast(graph).run(); }

}  // namespace cxxinductor::passes
