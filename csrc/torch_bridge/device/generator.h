// Generators of the recorded device: those of the backing device, so that random numbers are eager's.
#pragma once

#include <ATen/core/Generator.h>

namespace cxxinductor::torch_bridge {

class LazyDevice;

// The default one of an index: the backing device's, after what is recorded has drawn its numbers.
at::Generator make_default_generator(LazyDevice& device, c10::DeviceIndex index);
// A new one. Calls that draw from it are not recorded.
at::Generator make_generator(LazyDevice& device, c10::DeviceIndex index);

// Whether calls may draw from the backing device's default generator instead.
bool is_default_generator(const at::Generator& generator);
// The generator itself where it is another device's.
at::Generator backing_generator(const at::Generator& generator);

// Of a device's default generator, under its lock.
at::Tensor generator_state(c10::Device device);
void set_generator_state(c10::Device device, const at::Tensor& state);

}  // namespace cxxinductor::torch_bridge
