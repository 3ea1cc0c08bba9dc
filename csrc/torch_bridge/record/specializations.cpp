#include "torch_bridge/record/specializations.h"

#include <c10/util/Exception.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "support/error.h"

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

Specializations::Specializations(std::string name, TracedFunction function, Options options)
    : name_(std::move(name)), function_(std::move(function)), options_(std::move(options)) {}

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
    if (auto general = (*form)->pattern.generalized(arguments); general && (*form)->graph) return std::move(*general);
  return CallPattern(arguments);
}

std::shared_ptr<const Specializations::Form> Specializations::make(const std::vector<c10::IValue>& arguments) {
  const std::lock_guard lock(compiling_);
  if (auto found = find(arguments)) return found;
  {
    const std::shared_lock reading(mutex_);
    if (forms_.size() >= most_forms) return nullptr;
  }
  auto form = std::make_shared<Form>(Form{pattern_for(arguments), {}, false, nullptr, {}});
  try {
    Trace traced = trace(name_, function_, form->pattern);
    form->guards = std::move(traced.guards);
    form->graph = CompiledGraph::from_trace(std::move(traced.calls), options_);
    form->graph->set_constants(std::move(traced.captured));
    form->writes = form->graph->writes_inputs();
    form->reason = form->graph->fallback_reason();
  } catch (const Unsupported& error) {
    form->reason = error.what();
  } catch (const UserError& error) {  // eager raises the error of its own
    form->reason = error.what();
  }
  const std::unique_lock writing(mutex_);
  forms_.push_back(form);
  return form;
}

std::optional<std::vector<c10::IValue>> Specializations::run(const std::vector<c10::IValue>& arguments) {
  std::shared_ptr<const Form> form = find(arguments);
  if (!form) form = make(arguments);
  if (!form || !form->graph || (form->writes && share_memory(arguments))) return std::nullopt;
  std::vector<c10::IValue> inputs;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (form->pattern.arguments()[i].kind != ArgumentPattern::Kind::Constant) inputs.push_back(arguments[i]);
  return form->graph->run(std::move(inputs));
}

std::string Specializations::reasons() const {
  const std::shared_lock lock(mutex_);
  std::set<std::string> reasons;
  for (const auto& form : forms_)
    if (!form->reason.empty()) reasons.insert(form->reason);
  return fmt::format("{}", fmt::join(reasons, "; "));
}

std::string Specializations::describe() const {
  const std::shared_lock lock(mutex_);
  std::string text;
  for (const auto& form : forms_)
    text += form->graph ? form->graph->describe(name_) : fmt::format("{}: not compiled: {}\n", name_, form->reason);
  return text;
}

}  // namespace cxxinductor::torch_bridge
