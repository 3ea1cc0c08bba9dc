#include "codegen/cuda/emit.h"

#include <algorithm>

#include "codegen/cuda/cuda_text.h"
#include "codegen/cuda/reduction_state.h"
#include "codegen/cuda/signature.h"
#include "codegen/cuda/threads.h"
#include "codegen/registered_sources.h"
#include "codegen/templates.h"
#include "ir/plan/matmul.h"
#include "kernels/body/slots.h"
#include "support/error.h"
#include "support/text_writer.h"

namespace cxxinductor::codegen {
namespace {

void write_kernel(CudaText text) {
  std::visit(
      [&]<class Shape>(const Shape& shape) {
        if constexpr (std::is_same_v<Shape, plan::Matmul>) {
          write_matmul(text, shape);
        } else if constexpr (Shape::simt) {
          open_kernel(text);
          write_threads(text, shape);
          text.close();
        } else {
          throw_internal("kernel {}: a GPU has no mapping {}", text.kernel.name, Shape::keyword);
        }
      },
      text.kernel.mapping.shape);
}

}  // namespace

std::string emit_cuda(const std::vector<const plan::Kernel*>& kernels, plan::Variant variant,
                      const OriginTable& origins, Templates templates) {
  TextWriter out;
  add_template(out, "cuda/prelude.cuh", templates);
  add_template(out, "cuda/group.cuh", templates);
  const auto any = [&](auto&& wanted) {
    return std::any_of(kernels.begin(), kernels.end(), [&](const plan::Kernel* kernel) {
      return std::any_of(kernel->region.body.begin(), kernel->region.body.end(), wanted);
    });
  };
  const auto is_matmul = [](const plan::Kernel* kernel) { return kernel->mapping.as<plan::Matmul>() != nullptr; };
  if (any([](const loops::Stmt& stmt) { return stmt.as<loops::Reduce>() != nullptr; }) &&
      !std::all_of(kernels.begin(), kernels.end(), is_matmul)) {
    add_template(out, "cuda/reduce.cuh", templates);
    add_template(out, "cuda/join.cuh", templates);
  }
  const auto combines = [](const loops::Stmt& stmt) {
    const auto* store = stmt.as<loops::Store>();
    return store && store->combine != Combine::Overwrite;
  };
  if (any(combines)) add_template(out, "cuda/combine.cuh", templates);
  if (std::any_of(kernels.begin(), kernels.end(), is_matmul)) {
    add_template(out, "cuda/tensor_core.cuh", templates);
    add_template(out, "cuda/matmul.cuh", templates);
  }
  const auto uses_warpgroups = [](const plan::Kernel* kernel) {
    const auto* matmul = kernel->mapping.as<plan::Matmul>();
    return matmul && matmul->warpgroups;
  };
  if (std::any_of(kernels.begin(), kernels.end(), uses_warpgroups)) {
    add_template(out, "cuda/warpgroup.cuh", templates);
    add_template(out, "cuda/warpgroup_matmul.cuh", templates);
  }
  out.line("typedef {} cxxi_index;", variant.index64 ? "long long" : "int");
  out.line("typedef unsigned {} cxxi_uint;", variant.index64 ? "long long" : "int");
  emit_registered_sources(kernels, &ScalarOpInfo::cuda_source, out);
  emit_cuda_states(kernels, out);
  for (const plan::Kernel* kernel : kernels) {
    out.blank();
    out.line("#line 1 \"{}.cu\"", kernel->name);
    write_kernel({*kernel, variant, origins, out});
  }
  return std::move(out).take();
}

bool cuda_has_checks(const plan::Kernel& kernel) { return kernels::has_checks(kernel); }

}  // namespace cxxinductor::codegen
