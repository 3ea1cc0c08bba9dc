// A loops program planned for a GPU whose kernels run on the host under emulation: text -> plan -> CUDA text -> the
// host compiler -> Executable. The plan's buffers are moved to the CPU, so that the plain host can hold them.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "codegen/cuda/emit.h"
#include "emulation/host_text.h"
#include "ir/loops/text.h"
#include "ir/plan/launch_shape.h"
#include "runtime/executable.h"
#include "runtime/plain_host.h"
#include "schedule/schedule.h"
#include "support/error.h"
#include "targets/grouped_launch_table.h"

namespace cxxinductor::tests {

inline constexpr plan::Variant kVector32{true, false}, kScalar32{false, false}, kVector64{true, true};

inline Target gpu_target() { return cuda_target("sm_90a", 132); }

// A unit of kernels in one variant, compiled for the host.
class EmulatedUnit {
 public:
  EmulatedUnit(const std::vector<const plan::Kernel*>& kernels, plan::Variant variant, const OriginTable& origins, const std::string& name);
  // Each launch of each text has a seed of its own, always the same. InternalError where threads race, or a barrier is not met by all of them;
  // UserError where a check fails.
  void run(size_t kernel, std::span<void* const> buffers, std::span<const int64_t> symbols, int64_t grid) const;
  void run_grouped(size_t kernel, std::span<const runtime::LaunchArgs> items) const;
  const std::string& source() const { return source_; }

 private:
  struct Kernel {
    std::string name;
    int threads;
    bool checks;
    plan::GroupedLaunchLayout batch;
  };
  void run(size_t number, std::vector<void*> args, int64_t grid) const;
  std::string source_;
  std::unique_ptr<HostText> text_;
  std::vector<Kernel> kernels_;
  mutable uint64_t launches_ = 0;
};

// All kernels of a plan in one variant.
class EmulatedKernels : public runtime::KernelProvider {
 public:
  EmulatedKernels(const plan::Plan& plan, plan::Variant variant);
  void prepare(const plan::Plan&, const InterruptCheck&) override {}
  const runtime::LoadedKernel& get(plan::KernelId kernel, plan::Variant) override { return *kernels_.at(kernel.index()); }
  const std::string& source() const { return unit_->source(); }

 private:
  std::shared_ptr<EmulatedUnit> unit_;
  std::vector<std::unique_ptr<runtime::LoadedKernel>> kernels_;
};

// Every launch with its own kernel, whatever the sizes.
plan::Plan without_specializations(plan::Plan plan);

// As CpuProgram (cpu_program.h), so that the two can be compared.
class CudaProgram {
 public:
  explicit CudaProgram(const std::string& text, plan::Variant variant = {}, const Target& target = gpu_target())
      : CudaProgram(loops::parse(text), variant, target) {}
  CudaProgram(const loops::Program& program, plan::Variant variant, const Target& target, runtime::PlainHost::ExternFunction externs = {});
  CudaProgram(plan::Plan plan, plan::Variant variant, runtime::PlainHost::ExternFunction externs = {});

  runtime::TensorRef tensor(DType dtype, std::vector<int64_t> sizes, const std::vector<double>& numbers, std::vector<int64_t> strides = {});
  std::vector<std::vector<double>> run(std::vector<runtime::TensorRef> inputs);
  const plan::Kernel& kernel(size_t i = 0) const { return executable->plan().kernels[plan::KernelId(i)]; }
  const std::string& source() const { return kernels_->source(); }

  runtime::PlainHost host;
  std::unique_ptr<runtime::Executable> executable;

 private:
  std::shared_ptr<EmulatedKernels> kernels_;
};

}  // namespace cxxinductor::tests
