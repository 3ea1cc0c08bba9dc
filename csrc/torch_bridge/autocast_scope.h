// The mixed precision that a call of a model is made under.
#pragma once

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#include <vector>

#include "model/call_graph.h"

namespace cxxinductor::torch_bridge {

// While it lives, this thread's ops are cast as the mode says; then as before.
class AutocastScope {
 public:
  explicit AutocastScope(const model::Autocast& autocast);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  struct Before {
    c10::DeviceType device;
    c10::ScalarType dtype;
    bool on;
  };
  std::vector<Before> before_;
};

}  // namespace cxxinductor::torch_bridge
