// The recorded device of this program.
#pragma once

#include <c10/core/Device.h>
#include <cxxinductor/device.h>

// Registers it at the first call: PyTorch's slot is taken once in a process. Runs wait for the compiler, so that what is tested is compiled.
inline c10::Device recorded_device() {
  static const bool registered = (cxxinductor::register_device("cxxi", c10::kCPU, cxxinductor::Options()), true);
  (void)registered;
  return c10::Device("cxxi:0");
}
