#include "torch_bridge/jit/region_group.h"

#include <fmt/format.h>
#include <torch/csrc/jit/runtime/custom_operator.h>
#include <torch/custom_class.h>

#include <optional>
#include <utility>

#include "torch_bridge/jit/regions.h"
#include "torch_bridge/process_check.h"

namespace cxxinductor::torch_bridge {
namespace {

using torch::jit::Node;
using torch::jit::Stack;

constexpr const char* group_op = "cxxinductor::region_group";
constexpr const char* region_attribute = "attr::region";

torch::jit::Operation operation_of(const Node* node) {
  const auto region = node->ival(c10::Symbol::fromQualString(region_attribute)).toCustomClass<Region>();
  return [region, count = node->inputs().size()](Stack& stack) {
    std::vector<c10::IValue> results = region->run(torch::jit::pop(stack, count));
    stack.insert(stack.end(), std::make_move_iterator(results.begin()), std::make_move_iterator(results.end()));
  };
}

struct RegisteredGroups {
  RegisteredGroups() {
    if (!other_copies().empty()) return;
    const torch::class_<Region> region("cxxinductor", "Region");  // an attribute of nodes, which are printed
    operators.emplace(std::vector<std::optional<torch::jit::Operator>>{
        torch::jit::Operator(c10::Symbol::fromQualString(group_op), operation_of, c10::AliasAnalysisKind::CONSERVATIVE)});
  }
  std::optional<torch::jit::RegisterOperators> operators;
};
const RegisteredGroups registered_groups;

}  // namespace

std::vector<c10::intrusive_ptr<Region>> group_regions(const std::shared_ptr<torch::jit::Graph>& graph, const std::string& name, const Options& options,
                                                      const NodeSet& excluded, const std::shared_ptr<const SavedForms>& saved) {
  std::vector<c10::intrusive_ptr<Region>> regions;
  const auto insert = [&](const JitRegion& found) {
    const std::string own = fmt::format("{}_{}", name, regions.size());
    regions.push_back(c10::make_intrusive<Region>(own, found.body, options, saved));
    const auto results = found.body->outputs().at(0)->node()->inputs();
    Node* node = graph->insertNode(graph->create(c10::Symbol::fromQualString(group_op), found.inputs, results.size()));
    node->ival_(c10::Symbol::fromQualString(region_attribute), c10::IValue(regions.back()));
    return node->outputs().vec();
  };
  replace_regions(graph, insert, excluded);
  return regions;
}

}  // namespace cxxinductor::torch_bridge
