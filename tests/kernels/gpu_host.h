// A runtime host on GPU memory, through the CUDA driver alone, for tests and measurements on a machine with a GPU.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ir/loops/text.h"
#include "runtime/compile_pool.h"
#include "runtime/executable.h"
#include "runtime/plain_host.h"
#include "targets/cuda/cuda_kernels.h"

namespace cxxinductor::tests {

// Null where there is no GPU; the reason goes to `why`.
class GpuMachine;
std::shared_ptr<GpuMachine> find_gpu(std::string* why);

class GpuMachine {
 public:
  GpuMachine();
  ~GpuMachine();
  void* allocate(int64_t bytes);
  void free(void* memory);
  void to_device(void* device, const void* host, int64_t bytes);
  void to_host(void* host, const void* device, int64_t bytes);
  void copy_async(void* to, const void* from, int64_t bytes);
  void synchronize();
  // Milliseconds of the GPU's time between the start and the end of what `work` queues.
  double time(const std::function<void()>& work);

  targets::CudaDriver driver;
  targets::NvrtcSource nvrtc;
  Target target;

 private:
  struct Calls;
  std::unique_ptr<Calls> calls_;
};

class GpuHost : public runtime::PlainHost {
 public:
  explicit GpuHost(std::shared_ptr<GpuMachine> machine) : machine_(std::move(machine)) {}
  runtime::Owner allocate(Device device, int64_t bytes, void** data) override;
  runtime::TensorRef empty_strided(DType dtype, Device device, std::span<const int64_t> sizes, std::span<const int64_t> strides) override;
  runtime::TensorRef upload(DType dtype, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides, const std::vector<double>& values);
  std::vector<double> download(const runtime::TensorRef& tensor);

 private:
  std::shared_ptr<GpuMachine> machine_;
};

// As CpuProgram and CudaProgram, on the GPU itself.
class GpuProgram {
 public:
  GpuProgram(const std::string& text, std::shared_ptr<GpuMachine> machine);
  GpuProgram(plan::Plan planned, std::shared_ptr<GpuMachine> machine);
  std::vector<std::vector<double>> run(std::vector<runtime::TensorRef> inputs);

 private:
  runtime::CompilePool pool_{0};  // before the provider, whose end takes its tasks back

 public:
  GpuHost host;
  plan::Plan plan;
  std::shared_ptr<targets::CudaKernelProvider> provider;
  std::unique_ptr<runtime::Executable> executable;
};

}  // namespace cxxinductor::tests
