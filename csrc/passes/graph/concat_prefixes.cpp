// cat(a, b, c) -> cat(cat(a, b), c), where cat(a, b) is an output of the graph.
//
// The layers of a dense block concatenate the results of all layers before them, and a training graph saves each of these
// concatenations. Reading the last one instead of its operands moves as many bytes. It ends the lives of the operands
// earlier, and makes the kernels of all layers alike: two operands, whatever the layer's number. A concatenation that is
// not an output is left alone: it may be fused into its readers and never be in memory.
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "passes/graph/edit.h"
#include "passes/graph/passes.h"

namespace cxxinductor::passes {
namespace {

using graph::ValueId;

constexpr size_t least_operands = 2;

std::set<ValueId> output_values(const graph::Graph& graph) {
  std::set<ValueId> found;
  for (const graph::Output& output : graph.outputs)
    if (output.kind == graph::Output::Kind::Tensor) found.insert(output.value);
  return found;
}

}  // namespace

bool share_concat_prefixes(graph::Graph& graph, const Options&) {
  const std::set<ValueId> outputs = output_values(graph);
  std::map<std::pair<int, std::vector<ValueId>>, ValueId> stored;  // by dim and operands
  bool changed = false;
  for (graph::Node& node : graph.nodes) {
    const auto* cat = node.as<graph::Cat>();
    if (!cat || node.operands.size() < least_operands) continue;
    std::vector<ValueId> operands;
    for (const graph::Operand& operand : node.operands) operands.push_back(std::get<ValueId>(operand));
    std::vector<ValueId> prefix = operands;
    for (size_t length = operands.size() - 1; length >= least_operands; --length) {
      prefix.pop_back();
      const auto found = stored.find({cat->dim, prefix});
      if (found == stored.end()) continue;
      node.operands.erase(node.operands.begin(), node.operands.begin() + static_cast<std::ptrdiff_t>(length - 1));
      node.operands.front() = found->second;
      changed = true;
      break;
    }
    if (outputs.contains(node.results[0])) stored.try_emplace({cat->dim, std::move(operands)}, node.results[0]);
  }
  return changed;
}

}  // namespace cxxinductor::passes
