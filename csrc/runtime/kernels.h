// Kernels of a plan as the runtime sees them: what loads them and what launches them. Implemented by targets/.
#pragma once

#include <cstdint>
#include <span>

#include "ir/plan/plan.h"
#include "runtime/host.h"
#include "support/interrupt.h"

namespace cxxinductor::runtime {

class GraphDevice;

// Blocks, or (CPU) units that threads divide.
struct Grid {
  int64_t x = 0, y = 1, z = 1;
};

// All that differs between the launches of a kernel. What does not, its provider knows (plan::LaunchShape).
struct LaunchArgs {
  std::span<void* const> buffers;    // base addresses in the order of params
  std::span<const int64_t> symbols;  // in the order of plan::Kernel::symbols
  Grid grid;
};

// A loaded kernel: runs on the stream or threads of its device.
class LoadedKernel {
 public:
  virtual ~LoadedKernel() = default;
  // Throws Error when the launch fails.
  virtual void launch(Host& host, const LaunchArgs& args, void* stream) const = 0;
  // A kernel with Kernel::max_grouped > 1: all of them, in as few launches as the device has for them. Here: one by one.
  virtual void launch_grouped(Host& host, std::span<const LaunchArgs> all, void* stream) const {
    for (const LaunchArgs& args : all) launch(host, args, stream);
  }
};

// Gives kernels: compiles on first demand or reads a cache. Thread-safe.
class KernelProvider {
 public:
  virtual ~KernelProvider() = default;
  // Compiles (in parallel) the variants that a first call will need, of the launches' own kernels; throws Error naming the
  // kernel and the log, Interrupted when the check says so.
  virtual void prepare(const plan::Plan& plan, const InterruptCheck& interrupted = {}) = 0;
  // The reference stays valid as long as the provider; Executable asks once for each kernel and variant.
  virtual const LoadedKernel& get(plan::KernelId kernel, plan::Variant variant) = 0;
  // The kernel if it is loaded. Otherwise returns null at once and has another thread compile it; the launch uses another kernel
  // meanwhile. Null for ever if it cannot be compiled.
  virtual const LoadedKernel* find(plan::KernelId kernel, plan::Variant variant) { return &get(kernel, variant); }
  // Raises what checks inside of kernels found since the last time. Each call that launches kernels asks once, before the first.
  virtual void raise_failed_checks() const {}
  // Rises when find has become able to give a kernel that it did not give before.
  virtual uint64_t loads() const { return 0; }
  // Records work of the device for replays; null where the device has no such thing.
  virtual GraphDevice* graphs(Device) { return nullptr; }
};

}  // namespace cxxinductor::runtime
