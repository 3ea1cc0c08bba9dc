#include "torch_bridge/device/known_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/effects.h"
#include "torch_bridge/compiled_graph.h"
#include "torch_bridge/device/general_calls.h"
#include "torch_bridge/dispatcher_schemas.h"

namespace cxxinductor::torch_bridge {

KnownCalls::KnownCalls(RecordedCalls recorded, const ContextSettings& made_under, std::vector<int64_t> results, std::shared_ptr<Specializations> forms,
                       std::shared_ptr<std::atomic<int64_t>> compiled)
    : calls(std::move(recorded)),
      settings(made_under),
      results_(std::move(results)),
      integers_(integer_arguments(calls.code)),
      forms_(std::move(forms)),
      compiled_(std::move(compiled)) {}

model::CallGraph KnownCalls::graph_for(const CallPattern& pattern, std::vector<model::SizeGuard>* guards) const {
  GeneralCalls general = general_calls(calls, pattern);
  const auto end = std::find(results_.begin(), results_.end(), -1);
  for (auto value = results_.begin(); value != end; ++value) general.graph.outputs.emplace_back(OperandRef{static_cast<uint32_t>(*value)});
  for (auto input = end + 1; input != results_.end(); ++input) general.graph.donated.insert(static_cast<uint32_t>(*input));
  if (guards != nullptr) *guards = std::move(general.guards);
  return std::move(general.graph);
}

Tracer KnownCalls::tracer(const Options& options, bool keeps_late_apart) const {
  return [this, &options, keeps_late_apart](const CallPattern& pattern) {
    TracedForm form;
    auto graph = std::make_shared<model::CallGraph>(graph_for(pattern, &form.guards));
    graph->name = fmt::format("recorded_{}", compiled_->load());
    form.has_solved_guards = true;
    form.writes = !model::written_inputs(*graph, DispatcherSchemas()).empty();
    std::vector<uint32_t> late;
    if (keeps_late_apart) late = late_inputs(known_after(pattern, calls, integers_.size()), calls.ends.size());
    form.compile = [graph, options, late = std::move(late), compiled = compiled_](const CompileSettings& made_under, const InterruptCheck& interrupted) {
      const auto made = CompiledGraph::from_trace(std::move(*graph), made_under, options, interrupted, late);
      compiled->fetch_add(1);
      return CompiledForm{[made](std::vector<c10::IValue> inputs) { return made->run(std::move(inputs)); },
                          [made](std::string_view title) { return made->describe(title); }, made->fallback_reason(), made};
    };
    return form;
  };
}

KnownCalls::Results KnownCalls::run(std::vector<c10::IValue> inputs, const std::vector<double>& reals, const Options& options, EarlyStart& early) {
  std::vector<c10::IValue> arguments = std::move(inputs);
  for (const size_t position : integers_) arguments.emplace_back(calls.code.numbers[position]);
  for (const double real : reals) arguments.emplace_back(real);
  if (const auto form = forms_->form_for(arguments, tracer(options, early.is_on()))) {
    if (!early_form_ || early_form_->form != form) early_form_ = std::make_shared<EarlyForm>(form, calls, integers_);
    std::vector<c10::IValue> given = form->pattern.take_inputs(arguments);
    arguments.clear();
    const bool is_compiled = form->compiled.reason.empty();
    return {early.holds_for(*form) ? early.finish(std::move(given)) : form->compiled.run(std::move(given)), is_compiled};
  }
  early.drop();
  if (!uncompiled_) {
    uncompiled_pattern_ = CallPattern(arguments).with_given_reals();
    uncompiled_ = std::make_unique<AtenExecutor>(graph_for(*uncompiled_pattern_, nullptr));
  }
  return {uncompiled_->run(uncompiled_pattern_->take_inputs(arguments)), false};
}

}  // namespace cxxinductor::torch_bridge
