// The kinds of devices, one row each: all that tells them apart outside of codegen/ and targets/.
#pragma once

#include <span>
#include <string_view>

#include "ir/dtype.h"

namespace cxxinductor {

struct DeviceTypeInfo {
  DeviceType type;
  std::string_view text;
  int torch_device_type;              // c10::DeviceType's number
  bool has_streams;                   // work is queued on streams, in memory of the device's own, beside the host
  std::string_view source_extension;  // of generated sources
  std::string_view torch_library;     // LibTorch's own for these devices, beside that for the CPU
  // Numerics beside eager's on the same kind of device.
  bool scatters_in_order;     // several additions to one element are in eager's order
  bool functions_bit_equal;   // transcendental functions give eager's bits; otherwise they are within a unit or two of the last one
};

std::span<const DeviceTypeInfo> device_types();
const DeviceTypeInfo& info(DeviceType type);
inline bool has_streams(Device device) { return info(device.type).has_streams; }

}  // namespace cxxinductor
