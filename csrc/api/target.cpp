#include <cxxinductor/target.h>

#include "torch_bridge/process_check.h"
#include "torch_bridge/providers.h"

namespace cxxinductor {

void register_target(const RegisteredTarget& target) {
  torch_bridge::check_process();
  torch_bridge::add_target(target);
}

std::string load_target(const std::string& path) {
  torch_bridge::check_process();
  return torch_bridge::load_target(path);
}

}  // namespace cxxinductor
