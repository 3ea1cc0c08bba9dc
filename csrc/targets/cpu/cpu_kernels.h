// Kernels of the CPU target: units of source text compiled by the host compiler, cached, loaded, and run over the
// host's threads. The caller passes the emitter: the runtime knows no code generator.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/target.h"
#include "runtime/compile_pool.h"
#include "runtime/disk_cache.h"
#include "runtime/executable.h"
#include "runtime/packaged_code.h"
#include "targets/cpu/host_compiler.h"
#include "targets/cpu/shared_object.h"

namespace cxxinductor::targets {

// A translation unit as codegen::emit_cpu makes it; math_symbols: what to put into its cxxi_math, in slot order.
struct CpuUnitSource {
  std::string text;
  std::vector<std::string> math_symbols;
};
using CpuEmitter = std::function<CpuUnitSource(const std::vector<const plan::Kernel*>&)>;

// Compiler flags for a target; part of the cache key.
std::vector<std::string> cpu_compile_flags(const Target& target);

class CpuKernelProvider : public runtime::KernelProvider {
 public:
  // All references must outlive the provider. cache may be null. compile_timeout: of each run of the compiler. packaged: of this
  // plan, as compile_for_package makes it.
  CpuKernelProvider(Target target, CpuEmitter emitter, HostCompiler& compiler, runtime::CompilePool& pool, runtime::DiskCache* cache, runtime::Host& host,
                    std::chrono::seconds compile_timeout = std::chrono::seconds(300), runtime::PackagedCode packaged = {});
  ~CpuKernelProvider() override;
  // Compiles and loads the plan's CPU kernels, several units at once when there is work for them. Called once, before
  // get. UserError when the machine has no compiler, or it takes too long: the caller falls back.
  void prepare(const plan::Plan& plan, const InterruptCheck& interrupted = {}) override;
  const runtime::LoadedKernel& get(plan::KernelId kernel, plan::Variant variant) override;
  // The code that prepare would look for in a package. Loads nothing.
  runtime::CodeByHash compile_for_package(const plan::Plan& plan, const InterruptCheck& interrupted = {}) const;

  struct Counters {
    int units = 0, compiled = 0, from_cache = 0, from_package = 0;
  };
  const Counters& counters() const { return counters_; }

 private:
  struct Unit;
  std::vector<Unit> units_of(const plan::Plan& plan, size_t most) const;
  void emit(Unit& unit) const;
  std::vector<std::string> object_folders() const;
  std::unique_ptr<SharedObject> load_if_possible(std::string_view bytes) const;
  void load_packaged(Unit& unit) const;
  // UserError where text that users registered may be why it fails.
  std::string compile(const Unit& unit, const ProcessLimits& limits) const;
  // Without an object where another process is compiling it and there is no patience to wait.
  void load_unit(Unit& unit, const std::string& compiler_identity, const ProcessLimits& limits, std::chrono::milliseconds patience) const;
  template <class Work>
  void run_on_pool(const std::vector<Unit*>& units, const InterruptCheck& interrupted, const Work& work) const;
  void take(Unit& unit, const plan::Plan& plan);

  Target target_;
  CpuEmitter emitter_;
  HostCompiler& compiler_;
  runtime::CompilePool& pool_;
  runtime::DiskCache* cache_;
  runtime::Host& host_;
  std::chrono::seconds compile_timeout_;
  runtime::PackagedCode packaged_;
  std::vector<std::unique_ptr<SharedObject>> objects_;
  std::vector<std::unique_ptr<runtime::LoadedKernel>> kernels_;  // for each kernel of the plan; null for other devices
  Counters counters_;
};

}  // namespace cxxinductor::targets
