// Kernels of the CUDA target: one unit of source text per kernel and variant, compiled by NVRTC, cached as machine code,
// loaded into the device's primary context. The caller passes the emitter: the runtime knows no code generator.
//
// A failing check of a kernel (an index out of bounds) leaves a record in host memory, which raise_failed_checks turns into an error.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/plan/launch_shape.h"
#include "ir/target.h"
#include "runtime/compile_pool.h"
#include "runtime/disk_cache.h"
#include "runtime/executable.h"
#include "runtime/packaged_code.h"
#include "targets/cuda/driver.h"
#include "targets/cuda/graph.h"
#include "targets/cuda/nvrtc_source.h"

namespace cxxinductor::targets {

// What codegen/cuda/emit.h makes of one kernel.
struct CudaUnitSource {
  std::string text;
  plan::LaunchShape shape;
  bool has_checks = false;  // the last argument is the record of failed checks
};
using CudaEmitter = std::function<CudaUnitSource(const plan::Kernel&, plan::Variant, const OriginTable&)>;

// Machine code for one unit, from the cache (which may be null) when it has it. Needs no GPU.
struct CompiledCubin {
  std::string cubin;  // empty where another process is compiling it and there is no patience to wait
  bool from_cache = false;
};
// rebuild: what the cache holds is not read, but replaced. patience: as in DiskCache::claim.
CompiledCubin compile_cuda_unit(NvrtcSource& nvrtc, const std::string& source, const std::string& arch, const std::string& what, runtime::DiskCache* cache,
                                bool rebuild = false, const InterruptCheck& interrupted = {},
                                std::chrono::milliseconds patience = runtime::DiskCache::kPatience);

// All that the plan's kernels on the device may need, for packages. Needs no GPU.
runtime::CodeByHash compile_cuda_for_package(const plan::Plan& plan, Device device, const Target& target, const CudaEmitter& emitter, NvrtcSource& nvrtc,
                                             runtime::CompilePool& pool, runtime::DiskCache* cache);

class CudaKernelProvider : public runtime::KernelProvider {
 public:
  // For the plan's kernels on the GPU with the ordinal `device`. All references must outlive the provider. cache may be null.
  CudaKernelProvider(Target target, int device, CudaEmitter emitter, NvrtcSource& nvrtc, CudaDriver& driver, runtime::CompilePool& pool,
                     runtime::DiskCache* cache, runtime::PackagedCode packaged = {}, NodeUpdateSource updates = {});
  ~CudaKernelProvider() override;

  // Compiles and loads the variants that aligned inputs of ordinary size need, but no specializations. Called once, before
  // get. The plan may go away afterwards.
  void prepare(const plan::Plan& plan, const InterruptCheck& interrupted = {}) override;
  // Compiles a variant that prepare did not foresee, on the calling thread.
  const runtime::LoadedKernel& get(plan::KernelId kernel, plan::Variant variant) override;
  const runtime::LoadedKernel* find(plan::KernelId kernel, plan::Variant variant) override;
  void raise_failed_checks() const override;
  uint64_t loads() const override { return static_cast<uint64_t>(late_.load(std::memory_order_acquire)); }
  runtime::GraphDevice* graphs(Device device) override;

  struct Counters {
    int compiled = 0, from_cache = 0, from_package = 0;
    int late = 0, failed = 0;  // of those that find requested: loaded, and failed
  };
  Counters counters() const;

 private:
  class Kernel;
  struct Unit;

  void compile_unit(Unit& unit, bool rebuild, const InterruptCheck& interrupted = {}, std::chrono::milliseconds patience = runtime::DiskCache::kPatience);
  bool find_packaged(Unit& unit);
  const Kernel& load_late(plan::KernelId kernel, plan::Variant variant, const InterruptCheck& interrupted);
  // Loads it; compiles it anew where the driver refuses what the cache or the package holds. Takes locks of compiles.
  std::unique_ptr<Kernel> make_kernel(Unit& unit, const InterruptCheck& interrupted);

  Target target_;
  Device device_;
  CudaEmitter emitter_;
  NvrtcSource& nvrtc_;
  runtime::CompilePool& pool_;
  runtime::DiskCache* cache_;
  runtime::PackagedCode packaged_;
  CudaContext context_;
  CudaGraphDevice graphs_;
  IdVector<plan::KernelId, plan::Kernel> plan_kernels_;
  OriginTable origins_;
  CudaContext::Mapped records_;                           // eight ints per kernel; null if no kernel has checks
  std::vector<uint32_t> checking_;                        // kernels with records
  std::unique_ptr<std::atomic<const Kernel*>[]> loaded_;  // kernel * runtime::kVariants + variant
  std::unique_ptr<std::atomic<bool>[]> asked_;            // the same: find has requested it
  std::vector<std::unique_ptr<Kernel>> kernels_;          // late ones are added under ForkLock::Kernels
  std::atomic<int> compiled_ = 0, from_cache_ = 0, from_package_ = 0, late_ = 0, failed_ = 0;
};

}  // namespace cxxinductor::targets
