#include "torch_bridge/record/compiled_function.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <mutex>
#include <utility>

#include "model/text.h"
#include "support/error.h"
#include "torch_bridge/record/gradient_form.h"

namespace cxxinductor::torch_bridge {
namespace {

bool is_autocast_on() { return at::autocast::is_autocast_enabled(at::kCPU) || at::autocast::is_autocast_enabled(at::kCUDA); }

}  // namespace

CompiledFunction::CompiledFunction(std::string name, TracedFunction function, const Options& options)
    : name_(std::move(name)), function_(std::move(function)), options_(options) {}

CompiledFunction::NeedGradients CompiledFunction::need_gradients(const std::vector<c10::IValue>& arguments) {
  NeedGradients found;
  if (!at::GradMode::is_enabled()) return found;
  for (const c10::IValue& argument : arguments) found.push_back(argument.isTensor() && argument.toTensor().defined() && argument.toTensor().requires_grad());
  return found;
}

CompiledFunction::Traced& CompiledFunction::traced(const NeedGradients& arguments) {
  const std::lock_guard lock(mutex_);
  if (const auto found = traced_.find(arguments); found != traced_.end()) return *found->second;
  Tracer tracer = arguments.empty() ? inference_tracer(name_, function_, options_) : gradient_tracer(name_, function_, arguments, options_);
  std::unique_ptr<Traced> made(new Traced{std::move(tracer), {name_, options_, {.warns = true}}});
  const ForkGuard guard(ForkLock::Leaf);
  return *traced_.emplace(arguments, std::move(made)).first->second;
}

std::vector<c10::IValue> CompiledFunction::run(const std::vector<c10::IValue>& arguments) {
  calls_ += 1;
  if (!is_autocast_on()) {
    Traced& found = traced(need_gradients(arguments));
    if (auto results = found.forms.run(std::vector(arguments), found.tracer)) return std::move(*results);
  }
  uncompiled_calls_ += 1;
  return function_(arguments);
}

std::string CompiledFunction::describe() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const auto& [arguments, traced] : traced_) text += traced->forms.describe();
  if (uncompiled_calls_ > 0)
    text += fmt::format("{}: {} of {} calls ran as they are: autocast was on, a compile was under way, or a reason above\n", name_, uncompiled_calls_.load(),
                        calls_.load());
  return text.empty() ? fmt::format("{}: has not been called\n", name_) : text;
}

}  // namespace cxxinductor::torch_bridge
