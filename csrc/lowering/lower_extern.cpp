// Calls into ATen: operands as strided windows, copies only where strides cannot express the view.
#include <algorithm>

#include "ir/callees.h"
#include "lowering/context.h"
#include "support/error.h"

namespace cxxinductor::lowering {
namespace {

loops::View tensor_operand(Context& context, graph::ValueId id, const graph::Extern& kind) {
  const graph::Value& value = context.value(id);
  const auto as_in_eager = [&](const std::vector<sym::Expr>& strides) {
    return !kind.exact_strides || context.same_strides(value.sizes, strides, value.layout.strides);
  };
  auto window = context.strided_view(id);
  // Memory of its own has no gaps. A view that has some is one of something larger, as it is in eager.
  if (!window && !as_in_eager(context.own_strides(value))) window = context.eager_view(id);
  if (!window || !as_in_eager(window->strides))
    return context.whole(context.materialise(id, value.name + ".copy", context.own_strides(value, kind.exact_strides)));
  // What an extern reads in place keeps its layout.
  loops::Buffer& buffer = context.program.buffers[window->buffer];
  buffer.fixed = buffer.fixed || kind.exact_strides;
  return *window;
}

// What the collective that makes a buffer reads. These buffers are operands of the wait, although no argument names them:
// nothing may write to them, nor free them, before.
std::vector<loops::View> operands_in_flight(const loops::Program& program, loops::BufferId made) {
  std::vector<loops::View> operands;
  for (const loops::Step& step : program.steps) {
    const auto* call = std::get_if<loops::ExternCall>(&step);
    if (!call || !starts_collective(call->callee) || !std::ranges::count(call->results, made)) continue;
    for (const auto& operand : call->operands)
      if (const auto* view = std::get_if<loops::View>(&operand)) operands.push_back(*view);
  }
  return operands;
}

}  // namespace

void lower_extern(Context& context, const graph::Node& node, const graph::Extern& kind) {
  loops::ExternCall call;
  static_cast<Call&>(call) = kind;
  call.ordered = kind.ordered;
  call.origin = node.origin;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    if (const auto* e = std::get_if<sym::Expr>(&node.operands[i])) {
      call.operands.emplace_back(*e);
      continue;
    }
    const auto* id = std::get_if<graph::ValueId>(&node.operands[i]);
    if (!id) throw_internal("operand {} of {} is an immediate; those belong into its arguments", i, kind.callee);
    bool mutated = std::find(kind.mutated_operands.begin(), kind.mutated_operands.end(), i) != kind.mutated_operands.end();
    if (mutated && !context.strided_view(*id))
      throw_unsupported("{} writes into %{}, a view that strides cannot express", kind.callee, context.value(*id).name);
    call.operands.emplace_back(mutated ? *context.strided_view(*id) : tensor_operand(context, *id, kind));
  }
  if (waits_for_collective(call.callee))
    if (const auto* made = std::get_if<loops::View>(&call.operands.front()))
      for (loops::View& view : operands_in_flight(context.program, made->buffer)) call.operands.emplace_back(std::move(view));
  for (graph::ValueId result : node.results) call.results.push_back(context.buffers[result]);
  context.program.steps.emplace_back(std::move(call));
}

}  // namespace cxxinductor::lowering
