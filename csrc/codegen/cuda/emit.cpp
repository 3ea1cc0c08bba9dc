#include "codegen/cuda/emit.h"

#include "codegen/cuda/cuda_text.h"
#include "codegen/registered_sources.h"
#include "codegen/templates.h"
#include "ir/loops/stmt_properties.h"
#include "ir/plan/matmul.h"
#include "kernels/body/slots.h"
#include "support/error.h"
#include "support/text_writer.h"

namespace cxxinductor::codegen {

namespace {

// The templates that the kernels call, in the order in which they build on one another.
std::vector<std::string_view> called_templates(const std::vector<const plan::Kernel*>& kernels) {
  bool reduces = false, combines = false, multiplies = false, has_warpgroups = false, has_others = false;
  for (const plan::Kernel* kernel : kernels) {
    const auto* matmul = kernel->mapping.as<plan::Matmul>();
    multiplies |= matmul != nullptr;
    has_others |= !matmul;
    has_warpgroups |= matmul && matmul->warpgroups;
    for (const loops::Stmt& stmt : kernel->region.body) {
      const auto* store = stmt.as<loops::Store>();
      combines |= store && store->combine != Combine::Overwrite;
      reduces |= row_state(stmt).has_value();
    }
  }
  std::vector<std::string_view> names{"cuda/prelude.cuh", "cuda/group.cuh"};
  if (reduces && has_others) names.insert(names.end(), {"cuda/reduce.cuh", "cuda/join.cuh"});
  if (combines) names.push_back("cuda/combine.cuh");
  if (multiplies) names.insert(names.end(), {"cuda/tensor_core.cuh", "cuda/matmul.cuh"});
  if (has_warpgroups) names.insert(names.end(), {"cuda/warpgroup.cuh", "cuda/warpgroup_matmul.cuh"});
  return names;
}

}  // namespace

std::string emit_cuda(const std::vector<const plan::Kernel*>& kernels, plan::Variant variant, const OriginTable& origins, Templates templates) {
  TextWriter out;
  for (std::string_view name : called_templates(kernels)) add_template(out, name, templates);
  out.line("typedef {} cxxi_index;", variant.index64 ? "long long" : "int");
  out.line("typedef unsigned {} cxxi_uint;", variant.index64 ? "long long" : "int");
  emit_registered_sources(kernels, &ScalarOpInfo::cuda_source, out);
  emit_cuda_states(kernels, out);
  for (const plan::Kernel* kernel : kernels) {
    out.blank();
    out.line("#line 1 \"{}.cu\"", kernel->name);
    if (!is_simt(kernel->mapping)) throw_internal("kernel {} is mapped for the CPU", kernel->name);
    out.raw_line(render_kernel({*kernel, variant, origins}));
  }
  return std::move(out).take();
}

bool cuda_has_checks(const plan::Kernel& kernel) { return kernels::has_checks(kernel); }

}  // namespace cxxinductor::codegen
