// When an access, check or update of a slot happens.
#pragma once

#include "kernels/body/body.h"

namespace cxxinductor::kernels {

// Of a Load, Store, Check or Reduce.
Guard guard_of(const plan::Kernel& kernel, const Slot& slot, StmtId id);

}  // namespace cxxinductor::kernels
