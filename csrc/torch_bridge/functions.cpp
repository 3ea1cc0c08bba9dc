#include "torch_bridge/functions.h"

#include <ATen/core/List.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <map>

#include "support/error.h"
#include "support/fork_locks.h"
#include "torch_bridge/registered_ops.h"

namespace cxxinductor::torch_bridge {
namespace {

class FunctionTable {
 public:
  RegisteredFunction add(Function function) {
    const auto shared = std::make_shared<const Function>(std::move(function));
    const ForkGuard guard(ForkLock::Leaf);
    const uint32_t number = next_++;
    functions_[number] = shared;
    // The entry goes with the last owner.
    return {number, std::shared_ptr<const void>(shared.get(), [this, number, shared](const void*) { remove(number); })};
  }

  // Null where no graph owns a function of that number.
  std::shared_ptr<const Function> find(int64_t number) {
    const ForkGuard guard(ForkLock::Leaf);
    const auto found = functions_.find(number);
    return found == functions_.end() ? nullptr : found->second.lock();
  }

 private:
  void remove(uint32_t number) {
    const ForkGuard guard(ForkLock::Leaf);
    functions_.erase(number);
  }

  uint32_t next_ = 0;
  std::map<int64_t, std::weak_ptr<const Function>> functions_;
};

// Owners may outlive static destruction.
constinit MadeOnce<FunctionTable, ForkLock::Tables> made_table;
FunctionTable& table() {
  return made_table.get([] { return FunctionTable(); });
}

std::vector<at::Tensor> call_function(int64_t number, const c10::List<std::optional<at::Tensor>>& tensors, at::IntArrayRef integers) {
  const auto function = table().find(number);
  if (function == nullptr) throw_user_error("call_function: expected the number of a registered function, found {}", number);
  std::vector<at::Tensor> given;
  given.reserve(tensors.size());
  for (const std::optional<at::Tensor>& tensor : tensors) given.push_back(tensor.value_or(at::Tensor()));
  // As a program would call it: graphs run below autograd, transforms such as vmap start above it.
  const c10::AutoGradMode no_grad(false);
  const c10::impl::ForceDispatchKeyGuard keys(c10::default_included_set, c10::default_excluded_set);
  return (*function)(std::move(given), integers.vec());
}

const RegisteredOps function_ops([](torch::Library& library) {
  // Random: what the function does is not known, so calls keep their order and are made once each.
  library.def("call_function(int function, Tensor?[] tensors, int[] integers) -> Tensor[]", {at::Tag::nondeterministic_seeded});
  library.impl("call_function", c10::DispatchKey::CompositeExplicitAutograd, call_function);
  // Says what an input holds at a point of a traced program (cxxinductor/input_versions.py).
  library.def("input_version(Tensor version, int chain) -> ()");
  library.impl("input_version", c10::DispatchKey::CompositeExplicitAutograd, [](const at::Tensor&, int64_t) {});
});

}  // namespace

RegisteredFunction register_function(Function function) { return table().add(std::move(function)); }

}  // namespace cxxinductor::torch_bridge
