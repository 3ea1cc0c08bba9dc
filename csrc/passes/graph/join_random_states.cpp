// Takes the states of torch's generator for several draws in one call: each call copies what it returns to the GPU.
//
// Draws keep their order among calls with side effects, because those may draw too.
#include <utility>
#include <vector>

#include "ir/library_ops.h"
#include "passes/graph/edit.h"
#include "passes/graph/passes.h"

namespace cxxinductor::passes {
namespace {

using graph::NodeId;
using graph::ValueId;

constexpr int64_t numbers_of_state = 3;

const graph::Extern* as_draw(const graph::Node& node) {
  const auto* call = node.as<graph::Extern>();
  return call && is_call_of(*call, OpFamily::RandomState) ? call : nullptr;
}

template <class Call>
auto& argument_of(Call& draw, ArgRole role) {
  return *find_argument(draw, role);
}

const ArgList& list_of(const graph::Extern& draw, ArgRole role) { return std::get<ArgList>(argument_of(draw, role).value); }

int64_t states_of(const graph::Extern& draw) { return static_cast<int64_t>(list_of(draw, ArgRole::Counts).size()); }

// Draws that may be one, the first one's place being that of all.
std::vector<std::vector<NodeId>> find_groups(const graph::Graph& graph) {
  const IdVector<ValueId, char> escaping = escaping_values(graph);
  std::vector<std::vector<NodeId>> groups;
  bool is_open = false;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const graph::Node& node = graph.nodes[NodeId(n)];
    const auto* call = node.as<graph::Extern>();
    if (!call) continue;
    if (!as_draw(node) || escaping[node.results[0]]) {
      // Later counts may be sizes that the call defines.
      is_open = is_open && !call->ordered && call->defines.empty();
      continue;
    }
    const auto has_device = [&](NodeId other) { return argument_of(*as_draw(graph.nodes[other]), ArgRole::Device) == argument_of(*call, ArgRole::Device); };
    if (!is_open || !has_device(groups.back().front())) groups.emplace_back();
    groups.back().emplace_back(n);
    is_open = true;
  }
  std::erase_if(groups, [](const auto& group) { return group.size() == 1; });
  return groups;
}

}  // namespace

bool join_random_states(graph::Graph& graph, const Options&) {
  const std::vector<std::vector<NodeId>> groups = find_groups(graph);
  if (groups.empty()) return false;
  auto replacements = no_replacements(graph);
  const NodeId end(graph.nodes.size());
  graph::Builder build(graph);
  std::vector<ValueId> joined;
  for (const std::vector<NodeId>& group : groups) {
    graph::Extern call = *as_draw(graph.nodes[group.front()]);
    graph::Value states = graph.values[graph.nodes[group.front()].results[0]];
    ArgList counts, numbers;
    for (const NodeId id : group) {
      const graph::Extern& draw = *as_draw(graph.nodes[id]);
      for (const Arg& count : list_of(draw, ArgRole::Counts)) counts.push_back(count);
      for (const Arg& number : list_of(draw, ArgRole::Numbers)) numbers.push_back(number);
    }
    states.name.clear();
    states.sizes = {numbers_of_state * static_cast<int64_t>(counts.size())};
    argument_of(call, ArgRole::Counts) = std::move(counts);
    argument_of(call, ArgRole::Numbers) = std::move(numbers);
    build.set_origin(graph.nodes[group.front()].origin);
    const ValueId all = build.call_extern(std::move(call), {}, {states}).front();
    int64_t first = 0;
    for (const NodeId id : group) {
      const int64_t size = numbers_of_state * states_of(*as_draw(graph.nodes[id]));
      const ValueId state = graph.nodes[id].results[0];
      build.set_origin(graph.nodes[id].origin);
      replacements[state] = build.slice(all, 0, std::exchange(first, first + size), size, 1);
      joined.push_back(state);
    }
  }
  replace_values(graph, replacements, end);
  sort_nodes(graph, &replacements);
  std::vector<bool> keep(graph.nodes.size(), true);
  for (const ValueId state : joined) keep[graph.values[state].producer.index()] = false;
  keep_nodes(graph, keep);
  return true;
}

}  // namespace cxxinductor::passes
