#include "codegen/source_text.h"

#include "codegen/cpu/emit.h"
#include "codegen/cuda/emit.h"
#include "ir/plan/index_width.h"

namespace cxxinductor::codegen {

std::string source_text(const plan::Kernel& kernel, const Target& target, const OriginTable& origins, Templates templates) {
  if (!is_simt(target)) return emit_cpu({&kernel}, target, origins, templates);
  return emit_cuda({&kernel}, {.vectorized = true, .index64 = plan::needs_index64(kernel)}, origins, templates);
}

std::string unit_text(const std::vector<const plan::Kernel*>& kernels, const Target& target, const OriginTable& origins) {
  if (!is_simt(target)) return emit_cpu(kernels, target, origins);
  return emit_cuda(kernels, {.vectorized = true, .index64 = false}, origins);
}

}  // namespace cxxinductor::codegen
