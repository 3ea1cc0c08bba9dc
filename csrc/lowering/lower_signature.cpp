// Outputs and mutations. Outputs alias what they alias in eager: an input itself, a view of a buffer if the demanded strides
// are the view's, else a buffer without other owners. Mutated inputs are written last.
#include <algorithm>
#include <map>

#include "ir/loops/region_rewrite.h"
#include "lowering/context.h"
#include "support/error.h"

namespace cxxinductor::lowering {
namespace {

bool is_mutated(const Context& context, graph::ValueId input) {
  const auto& mutations = context.graph.mutations;
  return std::any_of(mutations.begin(), mutations.end(), [&](const graph::Mutation& m) { return context.graph.inputs[m.input].value == input; });
}

bool is_input(const Context& context, graph::ValueId id) { return !context.value(id).producer.valid(); }

// The result of a scatter in place is the storage of its base, if the strides are those demanded.
graph::ValueId unless_other_strides(const Context& context, graph::ValueId id) {
  const graph::ValueId stored = context.unscattered(id);
  if (!context.buffers[stored].valid()) return id;
  const loops::Buffer& buffer = context.program.buffers[context.buffers[stored]];
  return context.same_strides(buffer.sizes, buffer.strides, context.value(id).layout.strides) ? stored : id;
}

// The value is the input's storage at the input's coordinates: scatters in place already wrote it there.
bool ends_in_place(const Context& context, graph::ValueId id, graph::ValueId input) {
  if (context.base_of(id) != input) return false;
  loops::Space space(context.graph.assumptions);
  std::vector<sym::Expr> coords;
  for (size_t d = 0; d < context.value(id).sizes.size(); ++d) {
    coords.push_back(sym::Expr::symbol(fmt::format("i{}", d)));
    space.add(coords.back(), context.value(id).sizes[d]);
  }
  const std::vector<sym::Expr> found = context.locate(id, coords, space).coords;
  for (size_t d = 0; d < coords.size(); ++d)
    if (found[d] != coords[d] && !context.value(id).sizes[d].is_constant(1)) return false;
  return true;
}

// The value views what the input holds when the call ends.
bool views_last_version(const Context& context, graph::ValueId id, graph::ValueId input) {
  const auto& mutations = context.graph.mutations;
  return std::any_of(mutations.begin(), mutations.end(), [&](const graph::Mutation& m) {
    return context.graph.inputs[m.input].value == input && graph::is_last_version(context.graph, m) && context.version_of(m.value) == context.version_of(id) &&
           ends_in_place(context, m.value, input);
  });
}

loops::ProgramOutput tensor_output(Context& context, graph::ValueId id, bool flexible_strides, std::map<graph::ValueId, loops::BufferId>& copies) {
  loops::ProgramOutput output;
  id = unless_other_strides(context, id);
  const graph::ValueId base = context.base_of(id);
  // The old value of an input that will be overwritten must be copied; everything else may be returned as it is.
  const bool overwritten = is_input(context, base) && is_mutated(context, base) && !views_last_version(context, id, base);
  if (id == base && !overwritten) {
    output.buffer = context.buffers[id];
    loops::Buffer& buffer = context.program.buffers[output.buffer];
    if (buffer.role != loops::Buffer::Role::Input) buffer.role = loops::Buffer::Role::Output;
    buffer.fixed = true;
    return output;
  }
  auto window = overwritten ? std::nullopt : context.strided_view(id);
  if (window && (flexible_strides || context.same_strides(context.value(id).sizes, window->strides, context.value(id).layout.strides))) {
    output.kind = loops::ProgramOutput::Kind::View;
    loops::Buffer& buffer = context.program.buffers[window->buffer];
    if (buffer.role != loops::Buffer::Role::Input) buffer.role = loops::Buffer::Role::Output;
    buffer.fixed = true;
    output.view = *window;
    return output;
  }
  auto [copy, fresh] = copies.try_emplace(id);
  if (fresh) copy->second = context.materialise(id, context.value(id).name + ".out");
  output.buffer = copy->second;
  context.program.buffers[output.buffer].role = loops::Buffer::Role::Output;
  return output;
}

// The new value of each mutated input, in a buffer that no other mutation overwrites before it is read.
void lower_mutations(Context& context) {
  struct Final {
    graph::ValueId value;
    loops::BufferId source, target;  // source: invalid to read the value itself
  };
  std::vector<Final> finals;
  for (const graph::Mutation& mutation : context.graph.mutations) {
    const graph::ValueId input = context.graph.inputs[mutation.input].value;
    if (mutation.value == input || !graph::is_last_version(context.graph, mutation) || ends_in_place(context, mutation.value, input) ||
        context.written_inputs.contains(mutation.input))
      continue;
    const graph::ValueId base = context.base_of(mutation.value);
    Final final{mutation.value, {}, context.buffers[input]};
    if (is_input(context, base) && is_mutated(context, base)) final.source = context.materialise(mutation.value, context.value(input).name + ".new");
    finals.push_back(final);
  }
  for (const Final& final : finals) {
    const loops::Buffer input = context.program.buffers[final.target];
    if (!final.source.valid()) {
      context.append_copy(final.value, final.target, "m_" + input.name);
      continue;
    }
    RegionWriter writer(context, "m_" + input.name, input.device, {});
    std::vector<sym::Expr> coords = writer.vars(input.sizes);
    loops::StmtId loaded = writer.builder().load(context.program, final.source, coords);
    writer.builder().store(context.program, final.target, coords, loaded);
    writer.finish();
  }
}

}  // namespace

EarlyMutations::EarlyMutations(const graph::Graph& graph) {
  std::optional<size_t> last_raise;
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    if (graph::may_raise(graph, graph.nodes[graph::NodeId(n)])) last_raise = n;
  if (!last_raise || graph.mutations.empty()) return;
  // What needs the old version of an input: the last node that reads it, or something after all nodes.
  std::map<graph::ValueId, size_t> needed;
  for (const graph::Input& input : graph.inputs)
    if (input.kind == graph::Input::Kind::Tensor) needed[input.value] = 0;
  const auto note = [&](graph::ValueId id, size_t when) {
    if (const auto found = needed.find(graph::storage_of(graph, id)); found != needed.end()) found->second = when;
  };
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    for (const graph::Operand& operand : graph.nodes[graph::NodeId(n)].operands)
      if (const auto* id = std::get_if<graph::ValueId>(&operand)) note(*id, n);
  for (const graph::Output& output : graph.outputs)
    if (output.kind == graph::Output::Kind::Tensor) note(output.value, graph.nodes.size());
  for (const graph::Mutation& mutation : graph.mutations) note(mutation.value, graph.nodes.size());
  // A value is made by its producer, or by the last call that writes its storage.
  std::map<graph::ValueId, size_t> written;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const graph::Node& node = graph.nodes[graph::NodeId(n)];
    const auto* call = node.as<graph::Extern>();
    if (!call) continue;
    for (uint32_t i : call->mutated_operands)
      if (const auto* id = std::get_if<graph::ValueId>(&node.operands[i])) written[graph::storage_of(graph, *id)] = n;
  }
  for (const graph::Mutation& mutation : graph.mutations) {
    const graph::NodeId producer = graph.value(mutation.value).producer;
    if (!producer.valid()) continue;
    const size_t maker = std::max<size_t>(producer.index(), written[graph::storage_of(graph, mutation.value)]);
    if (maker < *last_raise && needed.at(graph.inputs[mutation.input].value) <= maker) after_[graph::NodeId(maker)].push_back(&mutation);
  }
}

void EarlyMutations::lower_after(Context& context, graph::NodeId node) const {
  const auto found = after_.find(node);
  if (found == after_.end()) return;
  for (const graph::Mutation* mutation : found->second) {
    const graph::ValueId input = context.graph.inputs[mutation->input].value;
    context.append_copy(mutation->value, context.buffers[input], fmt::format("m_{}_{}", context.value(input).name, context.value(mutation->value).name));
    if (graph::is_last_version(context.graph, *mutation)) context.written_inputs.insert(mutation->input);
  }
}

void lower_signature(Context& context) {
  std::map<graph::ValueId, loops::BufferId> copies;
  for (const graph::Output& output : context.graph.outputs) {
    loops::ProgramOutput lowered;
    switch (output.kind) {
      case graph::Output::Kind::Tensor:
        lowered = tensor_output(context, output.value, output.flexible_strides, copies);
        break;
      case graph::Output::Kind::Symbol:
        lowered.kind = loops::ProgramOutput::Kind::Symbol;
        lowered.symbol = output.symbol;
        break;
      case graph::Output::Kind::None:
        lowered.kind = loops::ProgramOutput::Kind::None;
        break;
    }
    context.program.outputs.push_back(std::move(lowered));
  }
  lower_mutations(context);
}

}  // namespace cxxinductor::lowering
