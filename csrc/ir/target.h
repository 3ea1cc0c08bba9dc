// A target as plain data: all that schedule and codegen know about a device. What is measured of it: machine.h.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ir/dtype.h"
#include "ir/machine.h"

namespace cxxinductor {

struct Target {
  std::string name;  // "cuda", "cpu"
  DeviceType device{};
  std::string arch;       // "sm_90a"; "x86-64-v3", "x86-64-v4"
  int vector_bytes = 32;  // widest load: 16 on CUDA, 16, 32 or 64 on the CPU
  int warp = 1;           // threads that exchange registers: 32 on CUDA
  int max_threads_per_block = 1;
  int multiprocessors = 1;             // SMs; CPU: threads to divide work for
  int threads_per_multiprocessor = 1;  // that are resident at once
  Machine machine;

  bool is_for(Device of) const { return of.type == device; }
  // Of all multiprocessors.
  double bytes_per_second() const { return machine.bytes * multiprocessors; }
  // Of one. 0: wgmma is not there, as in code for sm_90 that is not for sm_90a.
  double warpgroup_flops() const { return arch.ends_with("a") ? machine.wgmma_flops : 0; }
};

// The one distinction between kinds of target that planning makes: kernels are threads in blocks, which exchange registers and hide latency,
// rather than loops over vectors, which few threads share.
inline bool is_simt(const Target& target) { return target.warp > 1; }

// All of it on one line, for keys of caches.
std::string to_string(const Target& target);

Target cuda_target(std::string arch, int multiprocessors);  // sm_80, sm_90a, ...
Target cpu_target(std::string arch, int threads);

// The targets of one graph, by device. The first one is the main device's: where a graph with nothing on any device would run.
class Targets {
 public:
  Targets() = default;  // no device
  // For graphs on the first device of the target's type alone.
  Targets(Target main);  // NOLINT: a target is the set of itself
  Targets(Device device, Target target);
  // Replaces the one that the device has.
  void add(Device device, Target target);
  // Unsupported when the device has none.
  const Target& of(Device device) const;
  const Target& main() const { return of(main_device()); }
  Device main_device() const;
  // Main device first, then in order of devices.
  std::vector<Device> devices() const;

 private:
  std::vector<std::pair<Device, Target>> list_;
};

}  // namespace cxxinductor
