// A compiled graph. Immutable and re-entrant: several threads may call run at once, each call has its own state.
//
// The constructor does all that does not depend on a call: expressions become one flat program, steps become tables of
// slots and buffer numbers, externs are resolved. run() evaluates the program, walks the steps and builds the outputs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/plan/plan.h"
#include "runtime/host.h"
#include "runtime/observer.h"
#include "support/interrupt.h"

namespace cxxinductor::runtime {

// Arguments of one launch of a grouped launch, as LoadedKernel::launch takes them.
struct GroupedLaunchItem {
  std::span<void* const> buffers;
  std::span<const int64_t> symbols;
  int64_t grid_x = 0;
};

// A loaded kernel: runs on the stream or threads of its device.
class LoadedKernel {
 public:
  virtual ~LoadedKernel() = default;
  // buffers: base addresses in the order of params; grid as in plan::Launch. Throws Error when the launch fails.
  virtual void launch(Host& host, std::span<void* const> buffers, std::span<const int64_t> symbols, int64_t grid_x,
                      int64_t grid_y, void* stream) const = 0;
  // A kernel with Kernel::max_grouped > 1: all of them, in as few launches as the device has for them. Here: one by one.
  virtual void launch_grouped(Host& host, std::span<const GroupedLaunchItem> items, void* stream) const {
    for (const GroupedLaunchItem& item : items) launch(host, item.buffers, item.symbols, item.grid_x, 1, stream);
  }
};

// Gives kernels: compiles on first demand or reads a cache. Thread-safe. Implemented by runtime/cpu and runtime/cuda.
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
};

struct CallOptions {
  // Checks dtype, device, rank, sizes, strides and the ranges of symbols: on wherever no Python guards have checked them. An
  // input whose strides are not those that the plan declares is a UserError: a silent copy would lose writes to a
  // mutated input and hide the cost for the others.
  bool check_inputs = true;
  StepObserver* observer = nullptr;  // must outlive the call
  // Where an exception of the host's leaves run unchanged: gets the names of the inputs that had been written by then.
  std::string* written = nullptr;
};

// A call that runs in parts. Destroying it drops what it computed; what its steps wrote to inputs stays.
class PartialCall {
 public:
  virtual ~PartialCall() = default;
  // The tensor of an input that had no memory when the call began. Before the first step that uses it.
  virtual void supply(size_t input, TensorRef tensor) = 0;
  // Runs the steps before `end` that have not run. Errors are those of Executable::run.
  virtual void advance(size_t end) = 0;
  // Runs all other steps. Once.
  virtual std::vector<Value> finish() = 0;
};

class Executable {
 public:
  // `host` resolves the externs; run may be given another host of the same kind.
  Executable(plan::Plan plan, std::shared_ptr<KernelProvider> kernels, Host& host);
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;
  // inputs: one for each plan input, moved from: the last use of an input releases it. Errors of this library raised after
  // the first step name the inputs that had been written by then.
  std::vector<Value> run(Host& host, std::vector<Value> inputs, const CallOptions& options = {}) const;
  // run() in parts, without checks of inputs. Those that are to be supplied later have their sizes, and any address. Both the executable and
  // the host outlive the call, which runs on the streams that are current now.
  std::unique_ptr<PartialCall> begin(Host& host, std::vector<Value> inputs) const;
  const plan::Plan& plan() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cxxinductor::runtime
