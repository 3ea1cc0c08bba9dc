#include "torch_bridge/registered_ops.h"

#include "torch_bridge/process_check.h"

namespace cxxinductor::torch_bridge {

RegisteredOps::RegisteredOps(void (*define)(torch::Library&)) {
  if (!other_copies().empty()) return;
  library_.emplace(torch::Library::FRAGMENT, "cxxinductor", std::nullopt, __FILE__, __LINE__);
  define(*library_);
}

}  // namespace cxxinductor::torch_bridge
