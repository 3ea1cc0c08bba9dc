#include <cxxinductor/extend.h>

#include "ir/registered_ops.h"
#include "torch_bridge/process_check.h"

namespace cxxinductor {

void register_op(const RegisteredOp& op) {
  torch_bridge::check_process();
  add_scalar_op(op);
}

void register_reduction(const RegisteredReduction& reduction) {
  torch_bridge::check_process();
  add_reduction(reduction);
}

}  // namespace cxxinductor
