// What the device does on its backing tensors is below autograd, not cast by autocast, and gives tensors that may be
// written to later, whatever the thread's modes are.
#pragma once

#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/InferenceMode.h>

namespace cxxinductor::torch_bridge {

struct BackingGuard {
  c10::InferenceMode no_inference{false};
  at::AutoDispatchBelowADInplaceOrView below_autograd;
  c10::impl::ExcludeDispatchKeyGuard no_autocast{c10::autocast_dispatch_keyset};
};

}  // namespace cxxinductor::torch_bridge
