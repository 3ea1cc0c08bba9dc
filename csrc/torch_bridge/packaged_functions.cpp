#include "torch_bridge/packaged_functions.h"

#include <algorithm>
#include <variant>

#include "frontend/check_calls.h"
#include "ir/plan/text.h"
#include "support/error.h"

namespace cxxinductor::torch_bridge {
namespace {

std::string replace_functions(const std::string& text, const std::vector<Handle>& old, const std::vector<Handle>& functions) {
  if (functions.empty()) return text;
  plan::Plan plan = plan::parse(text);
  for (plan::Step& step : plan.steps) {
    auto* call = std::get_if<plan::CallExtern>(&step);
    if (!call || call->callee != frontend::function_callee || call->args.empty()) continue;
    const auto* handle = call->args.front().as<Handle>();
    const auto found = handle ? std::find(old.begin(), old.end(), *handle) : old.end();
    if (found == old.end()) throw_user_error("package: the plan calls a function that the calls do not have");
    call->args.front() = functions.at(static_cast<size_t>(found - old.begin()));
  }
  return plan::print(plan);
}

std::vector<Handle> numbered(size_t count) {
  std::vector<Handle> functions;
  for (uint32_t i = 0; i < count; ++i) functions.push_back(Handle{i});
  return functions;
}

}  // namespace

std::vector<Handle> functions_of(const model::CallGraph& calls) {
  std::vector<Handle> functions;
  for (const model::Call& call : calls.calls)
    if (call.callee == frontend::function_callee) functions.push_back(*call.args.at(0).as<Handle>());
  return functions;
}

std::string pack_functions(const std::string& plan, const std::vector<Handle>& functions) {
  return replace_functions(plan, functions, numbered(functions.size()));
}

std::string unpack_functions(const std::string& plan, const std::vector<Handle>& functions) {
  return replace_functions(plan, numbered(functions.size()), functions);
}

}  // namespace cxxinductor::torch_bridge
