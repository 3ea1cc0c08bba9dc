#include <cxxinductor/extend.h>

#include "ir/registered_ops.h"
#include "torch_bridge/process_check.h"
#include "torch_bridge/text_passes.h"

namespace cxxinductor {

void register_op(const RegisteredOp& op) {
  torch_bridge::check_process();
  add_scalar_op(op);
}

void register_reduction(const RegisteredReduction& reduction) {
  torch_bridge::check_process();
  add_reduction(reduction);
}

void register_graph_pass(const RegisteredPass& pass) {
  torch_bridge::check_process();
  torch_bridge::add_text_pass({pass.name, pass.stage, pass.version, pass.function});
}

void unregister_graph_pass(const std::string& name) {
  torch_bridge::check_process();
  torch_bridge::remove_text_pass(name);
}

}  // namespace cxxinductor
