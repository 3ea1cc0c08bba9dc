#include "targets/registry.h"

#include "targets/cpu/cpu_runtime.h"
#include "targets/cuda/cuda_runtime.h"

namespace cxxinductor::targets {

Registry::Registry(const Surroundings& surroundings)
    : runtimes_{std::make_unique<CpuRuntime>(surroundings), std::make_unique<CudaRuntime>(surroundings)} {}

}  // namespace cxxinductor::targets
