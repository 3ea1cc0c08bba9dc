#include "model/call_graph.h"

#include <fmt/format.h>

namespace cxxinductor::model {

CallGraph::CallGraph() = default;
CallGraph::CallGraph(const CallGraph&) = default;
CallGraph::CallGraph(CallGraph&&) noexcept = default;
CallGraph& CallGraph::operator=(const CallGraph&) = default;
CallGraph& CallGraph::operator=(CallGraph&&) noexcept = default;
CallGraph::~CallGraph() = default;

std::string full_name(const Call& call) {
  if (call.overload.empty() || call.overload == "default") return call.callee;
  return call.callee + "." + call.overload;
}

std::string describe(const CallGraph& graph, const Call& call) {
  std::string text = full_name(call);
  if (!call.origin.valid() || !graph.origins.contains(call.origin)) return text;
  const Origin& origin = graph.origins[call.origin];
  if (!origin.file.empty()) text += fmt::format(" ({}:{})", origin.file, origin.line);
  return text;
}

bool is_higher_order(const Call& call) { return call.callee.starts_with("higher_order::"); }

void for_each_subgraph(const Call& call, const std::function<void(const std::string& name)>& visit) {
  if (!is_higher_order(call)) return;
  for (const Arg& arg : call.args)
    if (const auto* name = arg.as<std::string>()) visit(*name);
}

}  // namespace cxxinductor::model
