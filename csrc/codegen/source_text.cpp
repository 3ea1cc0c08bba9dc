#include "codegen/source_text.h"

#include "codegen/cpu/emit.h"
#include "codegen/cuda/emit.h"
#include "ir/plan/index_width.h"

namespace cxxinductor::codegen {

std::string source_text(const plan::Kernel& kernel, const Target& target, const OriginTable& origins, Templates templates) {
  switch (target.device) {
    case DeviceType::Cpu:
      return emit_cpu({&kernel}, target, origins, templates);
    case DeviceType::Cuda:
      return emit_cuda({&kernel}, {.vectorized = true, .index64 = plan::needs_index64(kernel)}, origins, templates);
  }
  return {};
}

std::string unit_text(const std::vector<const plan::Kernel*>& kernels, const Target& target, const OriginTable& origins) {
  switch (target.device) {
    case DeviceType::Cpu:
      return emit_cpu(kernels, target, origins);
    case DeviceType::Cuda:
      return emit_cuda(kernels, {.vectorized = true, .index64 = false}, origins);
  }
  return {};
}

}  // namespace cxxinductor::codegen
