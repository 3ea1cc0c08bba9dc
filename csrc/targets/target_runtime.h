// What a kind of device gives to the rest of the library on this machine: its properties, kernels, streams. One implementation for each
// row of ir/device_types.h, in a folder of its own; nothing outside of targets/ asks which it is.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "ir/target.h"
#include "runtime/compile_pool.h"
#include "runtime/disk_cache.h"
#include "runtime/host.h"
#include "runtime/kernels.h"
#include "runtime/packaged_code.h"
#include "support/options.h"

namespace cxxinductor::targets {

// What the targets know of the program that they are part of. Plain functions: they are called for as long as the process lives.
struct Surroundings {
  std::string torch_folder;            // of LibTorch's libraries; empty: unknown
  int (*threads)() = nullptr;          // that kernels on the host divide their work for
  void (*opened_library)() = nullptr;  // a library was opened that tasks of compile pools use: they must end before it is torn down
};

// What compiles of the process share. All of it outlives the providers.
struct CompileResources {
  runtime::CompilePool& pool;
  runtime::DiskCache* cache;  // null: none
  const Options& options;     // copied where it is kept
  runtime::Host& host;
};

class TargetRuntime {
 public:
  virtual ~TargetRuntime() = default;

  // The target of a device of this machine. UserError where it is not there, or cannot be asked.
  virtual Target describe(int index) = 0;
  // The same for code of this architecture, which may be older than the device's own; none where the device does not run it, or is not there.
  virtual std::optional<Target> describe(int index, std::string_view arch) = 0;
  // A target with this architecture, of a device that need not be there; none where it is no name of an architecture. multiprocessors: as
  // Target has them; none: a number that is usual for the architecture.
  virtual std::optional<Target> target_of_arch(std::string_view arch, std::optional<int> multiprocessors) = 0;
  // What names of architectures look like, for errors: "x86-64, x86-64-v2 ...".
  virtual std::string_view known_archs() const = 0;

  // source: in the place of the text that codegen would emit, for plans of one kernel. packaged: code of this plan.
  virtual std::shared_ptr<runtime::KernelProvider> make_provider(Device device, const Target& target, const CompileResources& resources,
                                                                 const std::optional<std::string>& source, const runtime::PackagedCode& packaged) = 0;
  // All code that the plan's kernels on the device may need; the device need not be there.
  virtual runtime::CodeByHash compile_for_package(const plan::Plan& plan, Device device, const Target& target, const CompileResources& resources) = 0;
  // Kernels for the target are going to be compiled: what the compiler needs to start may be done in the background by then.
  virtual void start_compiler(const Target&, const CompileResources&) {}
  // Whether this machine has what compiles the target's sources.
  virtual bool has_compiler(const CompileResources& resources) = 0;

  // A stream that nobody else uses; it lives as long as the process. Null where devices have no streams.
  virtual void* make_stream(int) { return nullptr; }
  // Whether what is queued on the stream is recorded (a CUDA graph), not run.
  virtual bool is_recording(void*) const { return false; }
};

}  // namespace cxxinductor::targets
