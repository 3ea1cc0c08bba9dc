// One extern op of a plan, made ready: the schema looked up, constant arguments converted once, the rest patched in.
#pragma once

#include <memory>

#include "runtime/host.h"

namespace cxxinductor::torch_bridge {

std::unique_ptr<runtime::ExternCallee> make_extern_callee(const plan::CallExtern& call);

}  // namespace cxxinductor::torch_bridge
