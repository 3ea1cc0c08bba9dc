#include <cxxinductor/function.h>

#include <utility>

#include "support/error.h"
#include "support/options.h"
#include "torch_bridge/process_check.h"
#include "torch_bridge/record/compiled_function.h"

namespace cxxinductor {
namespace {

std::vector<c10::IValue> to_ivalues(Tensors tensors) { return {std::make_move_iterator(tensors.begin()), std::make_move_iterator(tensors.end())}; }

Tensors to_tensors(const std::vector<c10::IValue>& values) {
  Tensors tensors;
  for (const c10::IValue& value : values) tensors.push_back(value.isNone() ? at::Tensor() : value.toTensor());
  return tensors;
}

}  // namespace

class Function::Impl {
 public:
  Impl(std::function<Tensors(Tensors)> function, const Options& options)
      : compiled_(
            "function", [function = std::move(function)](const std::vector<c10::IValue>& arguments) { return to_ivalues(function(to_tensors(arguments))); },
            options) {}
  torch_bridge::CompiledFunction compiled_;
};

Function::Function(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

Tensors Function::operator()(Tensors arguments) const { return to_tensors(impl_->compiled_.run(to_ivalues(std::move(arguments)))); }
std::string Function::explain() const { return impl_->compiled_.describe(); }

Function compile(std::function<Tensors(Tensors)> function, const Options& options) {
  torch_bridge::check_process();
  check_options(options);
  if (!function) throw_user_error("compile: expected a function, found none");
  return Function(std::make_shared<Function::Impl>(std::move(function), options));
}

}  // namespace cxxinductor
