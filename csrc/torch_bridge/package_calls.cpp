// The plans and machine code of packages.
#include <utility>

#include "frontend/check_calls.h"
#include "ir/plan/text.h"
#include "model/effects.h"
#include "support/error.h"
#include "torch_bridge/compiled_graph.h"
#include "torch_bridge/dispatcher_schemas.h"
#include "torch_bridge/packaged_functions.h"
#include "torch_bridge/providers.h"
#include "torch_bridge/replay/replay.h"
#include "torch_bridge/replay/views_of_inputs.h"
#include "torch_bridge/text_passes.h"

namespace cxxinductor::torch_bridge {
namespace {

PlanForPackage package_replayed(const Replayed& replayed, const Targets& targets, const Options& options) {
  model::CallGraph functional = functional_calls(replayed);
  const ViewsOfInputs shown(replayed.calls);
  for (const ViewsOfInputs::View& view : shown.views()) functional.outputs[view.output] = None();
  driver::Report report = plan_calls(std::move(functional), targets, options);
  PlanForPackage out;
  const std::string& plan = report.texts.at("fit-memory");
  out.code = compile_for_package(plan::parse(plan), targets, options);
  out.plan = pack_functions(plan, functions_of(replayed.calls));
  out.sources = std::move(report.kernel_sources);
  out.needs_calls = !replayed.guards.empty() || !model::written_inputs(replayed.calls, DispatcherSchemas()).empty();
  return out;
}

}  // namespace

PlanForPackage package_calls(const model::CallGraph& calls, const Targets& targets, const Options& options) {
  check_pass_names(options);
  const Replayed replayed = replay(with_derived_symbols(calls));
  frontend::check_calls(replayed.calls, DispatcherSchemas(), list_items(options.allow_ops));
  require_guards_on_inputs(replayed);
  return package_replayed(replayed, targets, options);
}

PlanForPackage package_trace(const model::CallGraph& calls, const Targets& targets, const Options& options) {
  if (!calls.objects.empty()) throw_unsupported("calls with objects of this process, as generators are, cannot be packaged");
  return package_replayed(Replayed{calls, {}, {}}, targets, options);
}

}  // namespace cxxinductor::torch_bridge
