#include "torch_bridge/record/specializations.h"

#include <c10/util/Exception.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "model/effects.h"
#include "support/error.h"
#include "torch_bridge/compiled_graph.h"
#include "torch_bridge/dispatcher_schemas.h"
#include "torch_bridge/providers.h"

namespace cxxinductor::torch_bridge {
namespace {

// Beyond this many forms calls run as they are: something that differs in each of them is part of the pattern.
constexpr size_t most_forms = 16;

// A write to one argument could be seen through another.
bool share_memory(const std::vector<c10::IValue>& arguments) {
  std::set<const void*> storages;
  for (const c10::IValue& argument : arguments)
    if (argument.isTensor() && argument.toTensor().defined() && argument.toTensor().numel() > 0 &&
        !storages.insert(argument.toTensor().storage().unsafeGetStorageImpl()).second)
      return true;
  return false;
}

}  // namespace

Tracer inference_tracer(std::string name, TracedFunction function, Options options) {
  return [name = std::move(name), function = std::move(function), options = std::move(options)](const CallPattern& pattern) {
    auto traced = std::make_shared<Trace>(trace(name, function, pattern));
    TracedForm form;
    form.guards = std::move(traced->guards);
    form.writes = !model::written_inputs(traced->calls, DispatcherSchemas()).empty();
    form.compile = [traced, options](const InterruptCheck& interrupted) {
      const auto graph = CompiledGraph::from_trace(std::move(traced->calls), options, interrupted);
      graph->set_constants(std::move(traced->captured));
      return CompiledForm{[graph](std::vector<c10::IValue> inputs) { return graph->run(std::move(inputs)); },
                          [graph](std::string_view title) { return graph->describe(title); }, graph->fallback_reason()};
    };
    return form;
  };
}

Specializations::Specializations(std::string name, Tracer tracer, const Options& options)
    : name_(std::move(name)), tracer_(std::move(tracer)), options_(options) {}

// A compile that has begun is interrupted.
Specializations::~Specializations() { if (!options_.wait) graph_compiles(options_).cancel(this); }

bool Specializations::holds(const Form& form, const std::vector<c10::IValue>& arguments) {
  const auto symbols = form.pattern.match(arguments);
  if (!symbols) return false;
  const auto value_of = [&](std::string_view name) {
    for (size_t symbol = 0; symbol < symbols->size(); ++symbol)
      if (symbol_name(symbol) == name) return (*symbols)[symbol];
    throw_internal("the symbol {} has no value", name);
  };
  return std::all_of(form.guards.begin(), form.guards.end(),
                     [&](const model::SizeGuard& guard) { return model::holds(guard, value_of); }) &&
         !(form.writes && share_memory(arguments));
}

std::shared_ptr<const Specializations::Form> Specializations::find(const std::vector<c10::IValue>& arguments) const {
  const std::shared_lock lock(mutex_);
  const auto found =
      std::find_if(forms_.begin(), forms_.end(), [&](const auto& form) { return holds(*form, arguments); });
  return found == forms_.end() ? nullptr : *found;
}

// The newest form that differs in sizes alone has most symbols.
CallPattern Specializations::pattern_for(const std::vector<c10::IValue>& arguments) const {
  const std::shared_lock lock(mutex_);
  for (auto form = forms_.rbegin(); form != forms_.rend(); ++form)
    if (auto general = (*form)->pattern.generalized(arguments); general && (!(*form)->is_ready || (*form)->compiled.run)) return std::move(*general);
  return CallPattern(arguments);
}

std::shared_ptr<const Specializations::Form> Specializations::make(const std::vector<c10::IValue>& arguments) {
  const std::lock_guard lock(tracing_);
  if (auto found = find(arguments)) return found;
  {
    const std::shared_lock reading(mutex_);
    if (forms_.size() >= most_forms) return nullptr;
  }
  const auto form = std::make_shared<Form>(pattern_for(arguments));
  std::function<CompiledForm(const InterruptCheck&)> compile;
  try {
    TracedForm traced = tracer_(form->pattern);
    form->guards = std::move(traced.guards);
    form->writes = traced.writes;
    compile = std::move(traced.compile);
  } catch (const Unsupported& error) {
    form->compiled.reason = error.what();
  } catch (const UserError& error) {  // eager raises the error of its own
    form->compiled.reason = error.what();
  }
  const auto finish = [form, compile = std::move(compile)](const InterruptCheck& interrupted) {
    try {
      if (compile) form->compiled = compile(interrupted);
    } catch (const Interrupted&) {  // by who needs it no more
      return;
    } catch (const Error& error) {
      form->compiled.reason = error.what();
    }
    form->is_ready = true;
  };
  if (options_.wait) {
    finish({});
  } else {
    graph_compiles(options_).run_in_background(this, {name_, 1, finish});
  }
  const std::unique_lock writing(mutex_);
  forms_.push_back(form);
  return form;
}

std::optional<std::vector<c10::IValue>> Specializations::run(const std::vector<c10::IValue>& arguments) {
  std::shared_ptr<const Form> form = find(arguments);
  if (!form) form = make(arguments);
  if (!form || !form->is_ready || !form->compiled.run || (form->writes && share_memory(arguments))) return std::nullopt;
  std::vector<c10::IValue> inputs;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (form->pattern.arguments()[i].kind != ArgumentPattern::Kind::Constant) inputs.push_back(arguments[i]);
  return form->compiled.run(std::move(inputs));
}

std::string Specializations::reasons() const {
  const std::shared_lock lock(mutex_);
  std::set<std::string> reasons;
  for (const auto& form : forms_)
    if (form->is_ready && !form->compiled.reason.empty()) reasons.insert(form->compiled.reason);
  return fmt::format("{}", fmt::join(reasons, "; "));
}

std::string Specializations::describe() const {
  const std::shared_lock lock(mutex_);
  std::string text;
  for (const auto& form : forms_) {
    if (!form->is_ready)
      text += fmt::format("{}: is being compiled\n", name_);
    else if (form->compiled.run)
      text += form->compiled.describe(name_) + "\n";
    else
      text += fmt::format("{}: not compiled: {}\n", name_, form->compiled.reason);
  }
  return text;
}

}  // namespace cxxinductor::torch_bridge
