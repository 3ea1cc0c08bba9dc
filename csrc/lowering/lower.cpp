#include "lowering/lower.h"

#include "ir/graph/node_traits.h"
#include "lowering/context.h"
#include "support/error.h"

namespace cxxinductor::lowering {
namespace {

struct LowerNode {
  Context& context;
  const graph::Node& node;
  void operator()(const graph::Elementwise& kind) const { lower_elementwise(context, node, kind); }
  void operator()(const graph::Reduce& kind) const { lower_reduce(context, node, kind); }
  void operator()(const graph::Full&) const { lower_full(context, node); }
  void operator()(const graph::Iota& kind) const { lower_iota(context, node, kind); }
  template <class View>
  requires graph::NodeTraits<View>::is_view void operator()(const View&) const {}  // their readers compose coordinates
  void operator()(const graph::Pad& kind) const { lower_pad(context, node, kind); }
  void operator()(const graph::Cat& kind) const { lower_cat(context, node, kind); }
  void operator()(const graph::Gather& kind) const { lower_gather(context, node, kind); }
  void operator()(const graph::Scatter& kind) const { lower_scatter(context, node, kind); }
  void operator()(const graph::Extern& kind) const { lower_extern(context, node, kind); }
};

void add_inputs(Context& context) {
  for (const graph::Input& input : context.graph.inputs) {
    loops::ProgramInput lowered;
    lowered.source = input.source;
    lowered.donated = input.donated;
    switch (input.kind) {
      case graph::Input::Kind::Tensor: {
        const graph::Value& value = context.value(input.value);
        lowered.buffer = context.add_buffer(value, value.name, value.layout.strides, loops::Buffer::Role::Input, true);
        context.buffers[input.value] = lowered.buffer;
        break;
      }
      case graph::Input::Kind::Symbol:
        lowered.kind = loops::ProgramInput::Kind::Symbol;
        lowered.symbol = input.symbol;
        break;
      case graph::Input::Kind::Opaque:
        lowered.kind = loops::ProgramInput::Kind::Opaque;
        break;
    }
    context.program.inputs.push_back(std::move(lowered));
  }
}

// Loop variables are named i0, i1, ...; a symbol of such a name could not be told from one.
void check_symbol_names(const graph::Graph& graph) {
  for (const auto& [symbol, range] : graph.assumptions.ranges())
    if (symbol.size() > 1 && symbol[0] == 'i' && symbol.find_first_not_of("0123456789", 1) == std::string::npos)
      throw_unsupported("the symbol {} has the name of a loop variable", symbol);
}

}  // namespace

loops::Program lower(const graph::Graph& graph) {
  check_symbol_names(graph);
  Context context(graph);
  add_inputs(context);
  const EarlyMutations mutations(graph);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const graph::Node& node = graph.nodes[graph::NodeId(n)];
    const bool is_extern = node.as<graph::Extern>() != nullptr;
    const auto* scatter = node.as<graph::Scatter>();
    if (!graph::is_view(node.kind) && !(scatter && scatter->inplace))
      for (graph::ValueId result : node.results) {
        const graph::Value& value = context.value(result);
        // An extern's results come as the callee makes them.
        context.buffers[result] =
            context.add_buffer(value, value.name, is_extern ? value.layout.strides : context.own_strides(value), loops::Buffer::Role::Temporary, is_extern);
      }
    std::visit(LowerNode{context, node}, node.kind);
    mutations.lower_after(context, graph::NodeId(n));
  }
  lower_signature(context);
  return std::move(context.program);
}

}  // namespace cxxinductor::lowering
