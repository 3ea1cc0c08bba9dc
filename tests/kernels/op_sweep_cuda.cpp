// The op and cast sweeps on the CUDA target: its text under emulation, and on a GPU where there is one.
#include "kernels/cuda_program.h"
#include "kernels/op_sweep.h"

using namespace cxxinductor;
using namespace cxxinductor::tests;

namespace {

int64_t blocks(int64_t count, const plan::Mapping& mapping) {
  const int64_t groups = (count + mapping.vector_width - 1) / mapping.vector_width;
  return (groups + block_threads(mapping) - 1) / block_threads(mapping);
}

// The kernels that the sweeps make, as a GPU wants them.
std::vector<plan::Kernel> on_cuda(const std::vector<const plan::Kernel*>& kernels) {
  std::vector<plan::Kernel> changed;
  for (const plan::Kernel* kernel : kernels) {
    changed.push_back(*kernel);
    changed.back().device = changed.back().region.device = {DeviceType::Cuda, 0};
    changed.back().mapping.vector_width = 4;
    changed.back().mapping.vector_tail = true;
    changed.back().mapping.shape = plan::Pointwise{.block_threads = 64};
  }
  return changed;
}

RunKernel emulated(const std::vector<const plan::Kernel*>& given) {
  const std::vector<plan::Kernel> kernels = on_cuda(given);
  std::vector<const plan::Kernel*> pointers;
  std::vector<plan::Mapping> mappings;
  for (const plan::Kernel& kernel : kernels) {
    pointers.push_back(&kernel);
    mappings.push_back(kernel.mapping);
  }
  const auto unit = std::make_shared<EmulatedUnit>(pointers, plan::Variant{false, false}, OriginTable(), "sweep");
  return [unit, mappings](size_t kernel, const std::vector<void*>& buffers, int64_t count) {
    unit->run(kernel, buffers, std::vector<int64_t>{count}, blocks(count, mappings[kernel]));
  };
}

}  // namespace

TEST_CASE("op sweep in CUDA text", "[cuda][sweep]") {
  for (DType dtype : compute_dtypes) sweep_ops(dtype, 4, emulated);
}

TEST_CASE("every cast between dtypes in CUDA text", "[cuda][sweep]") { sweep_casts(emulated); }
