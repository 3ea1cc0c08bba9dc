// Where the compiler meets this machine: targets, kernel providers, cache folder, where NVRTC lies beside torch.
#pragma once

#include <memory>

#include "ir/target.h"
#include "runtime/executable.h"
#include "support/options.h"

namespace cxxinductor::torch_bridge {

// The GPU's architecture and size, or this CPU's. UserError when the driver cannot be asked.
Target target_for(Device device);
std::shared_ptr<runtime::KernelProvider> make_provider(const plan::Plan& plan, const Target& target,
                                                       const Options& options, runtime::Host& host);

}  // namespace cxxinductor::torch_bridge
