#include "torch_bridge/record/specializations.h"

#include <c10/util/Exception.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <numeric>
#include <set>
#include <shared_mutex>
#include <tuple>
#include <utility>

#include "model/effects.h"
#include "support/error.h"
#include "torch_bridge/compiled_graph.h"
#include "torch_bridge/dispatcher_schemas.h"
#include "torch_bridge/providers.h"
#include "torch_bridge/shared_memory.h"

namespace cxxinductor::torch_bridge {
namespace {

// Beyond this many forms calls run as they are: something that differs in each of them is part of the pattern.
constexpr size_t most_forms = 16;

// The machine may refuse the package's code.
std::shared_ptr<CompiledGraph> compile_trace(model::CallGraph calls, const std::optional<PackagedPlan>& plan, const CompileSettings& settings,
                                             const Options& options, const InterruptCheck& interrupted) {
  if (plan) {
    try {
      return CompiledGraph::from_packaged_trace(calls, *plan, options);
    } catch (const Error&) {
    }
  }
  return CompiledGraph::from_trace(std::move(calls), settings, options, interrupted);
}

// Whether the guard leaves the symbol one value, as far as can be told by trying others, where the other symbols keep theirs.
bool fixes(const model::SizeGuard& guard, size_t symbol, const CallPattern& pattern, bool is_solved) {
  static constexpr std::array<int64_t, 12> steps{-1, 1, 2, 3, 4, 5, 7, 8, 12, 16, 64, 1024};
  bool is_alone = true;
  const bool holds_elsewhere = std::any_of(steps.begin(), steps.end(), [&](int64_t step) {
    return model::holds(guard, [&](std::string_view name) {
      const size_t number = symbol_number(name);
      is_alone = is_alone && number == symbol;
      return pattern.hint(number) + (number == symbol ? step : 0);
    });
  });
  return !holds_elsewhere && (is_alone || !is_solved);
}

// An argument shares memory with another one or with what is captured, and a write may go there: it is seen through both, as the function
// itself shows it.
bool writes_shared_memory(const Specializations::Form& form, std::vector<c10::IValue> arguments) {
  if (!form.writes) return false;
  std::vector<uint32_t> positions(arguments.size());
  std::iota(positions.begin(), positions.end(), 0);
  arguments.insert(arguments.end(), form.captured.begin(), form.captured.end());
  return any_share_memory(arguments, positions);
}

// Those that have to be numbers: with the number in their place the compiler knows it.
std::vector<bool> fixed_symbols(const CallPattern& pattern, const TracedForm& traced) {
  std::vector<bool> fixed(pattern.symbol_count());
  for (size_t symbol = 0; symbol < fixed.size(); ++symbol)
    fixed[symbol] = std::any_of(traced.guards.begin(), traced.guards.end(),
                                [&](const model::SizeGuard& guard) { return fixes(guard, symbol, pattern, traced.has_solved_guards); });
  return fixed;
}

}  // namespace

Tracer inference_tracer(std::string name, TracedFunction function, Options options, PlanFinder find_plan) {
  return [name = std::move(name), function = std::move(function), options = std::move(options), find_plan = std::move(find_plan)](const CallPattern& pattern) {
    auto traced = std::make_shared<Trace>(trace(name, function, pattern));
    TracedForm form;
    form.guards = std::move(traced->guards);
    form.writes = !model::written_inputs(traced->calls, DispatcherSchemas()).empty();
    form.captured = traced->captured;
    auto plan = find_plan ? find_plan(traced->calls) : std::nullopt;
    form.is_packaged = plan.has_value();
    form.compile = [traced, options, plan = std::move(plan)](const CompileSettings& settings, const InterruptCheck& interrupted) {
      const auto graph = compile_trace(std::move(traced->calls), plan, settings, options, interrupted);
      graph->set_constants(std::move(traced->captured));
      return CompiledForm{[graph](std::vector<c10::IValue> inputs) { return graph->run(std::move(inputs)); },
                          [graph](std::string_view title) { return graph->describe(title); }, graph->fallback_reason()};
    };
    return form;
  };
}

Specializations::Specializations(std::string name, const Options& options, SpecializationPolicy policy, PatternFinder find_packaged)
    : name_(std::move(name)), find_packaged_(std::move(find_packaged)), options_(options), policy_(policy) {}

// A compile that has begun is interrupted.
Specializations::~Specializations() {
  if (!options_.wait) graph_compiles(options_).cancel(this);
}

bool Specializations::holds(const Form& form, const std::vector<c10::IValue>& arguments) {
  if (form.settings != CompileSettings::current()) return false;
  const auto symbols = form.pattern.match(arguments);
  if (!symbols) return false;
  const auto value_of = [&](std::string_view name) { return symbols->at(symbol_number(name)); };
  return std::all_of(form.guards.begin(), form.guards.end(), [&](const model::SizeGuard& guard) { return model::holds(guard, value_of); });
}

std::shared_ptr<const Specializations::Form> Specializations::find(const std::vector<c10::IValue>& arguments) const {
  const std::shared_lock lock(mutex_);
  const auto found = std::find_if(forms_.rbegin(), forms_.rend(), [&](const auto& form) { return holds(*form, arguments); });
  return found == forms_.rend() ? nullptr : *found;
}

// The newest form that differs in numbers alone has most inputs for them.
CallPattern Specializations::pattern_for(const std::vector<c10::IValue>& arguments) const {
  const CompileSettings settings = CompileSettings::current();
  const std::shared_lock lock(mutex_);
  std::optional<CallPattern> with_numbers, with_symbols;
  std::set<std::vector<int64_t>> sets_of_sizes;
  for (auto form = forms_.rbegin(); form != forms_.rend(); ++form) {
    if ((*form)->settings != settings || ((*form)->is_ready && !(*form)->compiled.run)) continue;
    const CallPattern& pattern = (*form)->pattern;
    auto other_numbers = pattern.generalized(arguments, {.sizes = false, .reals = policy_.reals});
    if (!other_numbers) continue;
    sets_of_sizes.insert(pattern.numbers());
    if (!with_numbers) with_numbers = std::move(other_numbers);
    if (!with_symbols) with_symbols = pattern.generalized(arguments, {.sizes = true, .reals = policy_.reals});
  }
  if (with_symbols && sets_of_sizes.size() >= policy_.sets_of_sizes) return std::move(*with_symbols);
  return with_numbers ? std::move(*with_numbers) : CallPattern(arguments);
}

// Of a pattern that has a package's form, else of the most general one at hand.
std::pair<CallPattern, TracedForm> Specializations::trace(const std::vector<c10::IValue>& arguments, const Tracer& tracer) const {
  for (CallPattern& packaged : find_packaged_ ? find_packaged_(arguments) : std::vector<CallPattern>()) {
    try {
      if (TracedForm traced = tracer(packaged); traced.is_packaged) return {std::move(packaged), std::move(traced)};
    } catch (const Unsupported&) {
    } catch (const UserError&) {
    }
  }
  CallPattern pattern = pattern_for(arguments);
  TracedForm traced = tracer(pattern);
  const std::vector<bool> fixed = fixed_symbols(pattern, traced);
  if (std::find(fixed.begin(), fixed.end(), true) == fixed.end()) return {std::move(pattern), std::move(traced)};
  CallPattern with_numbers = pattern.with_numbers(fixed);
  traced = tracer(with_numbers);
  return {std::move(with_numbers), std::move(traced)};
}

std::shared_ptr<const Specializations::Form> Specializations::make(const std::vector<c10::IValue>& arguments, const Tracer& tracer) {
  const std::lock_guard lock(tracing_);
  if (auto found = find(arguments)) return found;
  {
    const std::shared_lock reading(mutex_);
    if (forms_.size() >= most_forms) return nullptr;
  }
  const auto form = std::make_shared<Form>(pattern_for(arguments), CompileSettings::current());
  std::function<CompiledForm(const CompileSettings&, const InterruptCheck&)> compile;
  bool is_packaged = false;
  const auto take = [&](const auto& trace_form) {
    try {
      if (form->settings.default_dtype != c10::ScalarType::Float)
        throw_unsupported("PyTorch's default dtype is {}; what is recorded knows Float", c10::toString(form->settings.default_dtype));
      TracedForm traced;
      std::tie(form->pattern, traced) = trace_form();
      is_packaged = traced.is_packaged;
      form->guards = std::move(traced.guards);
      form->writes = traced.writes;
      form->captured.assign(traced.captured.begin(), traced.captured.end());
      compile = std::move(traced.compile);
    } catch (const Unsupported& error) {
      form->compiled.reason = error.what();
    } catch (const UserError& error) {  // eager raises the error of its own
      form->compiled.reason = error.what();
    }
  };
  take([&] { return trace(arguments, tracer); });
  if (!compile && form->pattern.is_general()) {  // something has to be a number
    form->pattern = CallPattern(arguments);
    form->compiled.reason.clear();
    take([&] { return std::pair(form->pattern, tracer(form->pattern)); });
  }
  const auto finish = [form, compile = std::move(compile), name = policy_.warns ? name_ : ""](const InterruptCheck& interrupted) {
    CompiledForm compiled = form->compiled;
    try {
      if (compile) compiled = compile(form->settings, interrupted);
    } catch (const Interrupted&) {  // by who needs it no more
      return;
    } catch (const std::exception& error) {
      compiled.reason = error.what();
    }
    if (!name.empty() && !compiled.reason.empty())
      TORCH_WARN("cxxinductor: ", name, " runs ", compiled.run ? "op by op through ATen" : "as it is", ": ", compiled.reason);
    const ForkGuard guard(ForkLock::Leaf);  // a child finds all of this or nothing
    std::swap(form->compiled, compiled);
    form->is_ready = true;
  };
  if (options_.wait || is_packaged) {
    finish({});
  } else {
    graph_compiles(options_).run_in_background(this, {name_, 1, finish});
  }
  add(form);
  return form;
}

void Specializations::add(const std::shared_ptr<const Form>& form) {
  const std::unique_lock writing(mutex_);
  const ForkGuard guard(ForkLock::Leaf);
  forms_.push_back(form);
}

std::shared_ptr<const Specializations::Form> Specializations::form_for(const std::vector<c10::IValue>& arguments, const Tracer& tracer) {
  std::shared_ptr<const Form> form = find(arguments);
  if (!form) {
    try {
      form = make(arguments, tracer);
    } catch (const Unsupported& error) {  // of arguments that no pattern states
      std::string reason = error.what();
      const std::unique_lock writing(mutex_);
      const ForkGuard guard(ForkLock::Leaf);
      refused_.insert(std::move(reason));
    }
  }
  if (!form || !form->is_ready || !form->compiled.run || writes_shared_memory(*form, arguments)) return nullptr;
  return form;
}

std::optional<std::vector<c10::IValue>> Specializations::run(std::vector<c10::IValue>&& arguments, const Tracer& tracer) {
  const std::shared_ptr<const Form> form = form_for(arguments, tracer);
  if (!form) return std::nullopt;
  return form->compiled.run(form->pattern.take_inputs(arguments));
}

std::vector<CallPattern> Specializations::patterns() const {
  const std::shared_lock lock(mutex_);
  std::vector<CallPattern> patterns;
  for (const auto& form : forms_)
    if (form->is_ready && form->compiled.run && form->compiled.reason.empty()) patterns.push_back(form->pattern);
  return patterns;
}

std::string Specializations::reasons() const {
  const std::shared_lock lock(mutex_);
  std::set<std::string> reasons = refused_;
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
  for (const std::string& reason : refused_) text += fmt::format("{}: not compiled: {}\n", name_, reason);
  if (forms_.size() >= most_forms) text += fmt::format("{}: calls that none of these {} forms fits are not compiled\n", name_, most_forms);
  return text;
}

}  // namespace cxxinductor::torch_bridge
