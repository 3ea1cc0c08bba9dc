#include "codegen/cuda/emit.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/cuda/cuda_text.h"
#include "codegen/registered_sources.h"
#include "codegen/templates.h"
#include "ir/loops/stmt_properties.h"
#include "kernels/body/slots.h"
#include "kernels/family.h"
#include "support/error.h"
#include "support/text_writer.h"

namespace cxxinductor::codegen {

namespace {

// The templates that the kernels call, in the order in which they build on one another.
std::vector<std::string_view> called_templates(const std::vector<const plan::Kernel*>& kernels) {
  std::vector<std::string_view> of_families;
  bool reduces = false, combines = false;
  for (const plan::Kernel* kernel : kernels) {
    const kernels::KernelFamily& family = kernels::family_of(kernel->mapping);
    if (family.library)
      for (std::string_view name : family.library(*kernel))
        if (std::ranges::find(of_families, name) == of_families.end()) of_families.push_back(name);
    for (const loops::Stmt& stmt : kernel->region.body) {
      const auto* store = stmt.as<loops::Store>();
      combines |= store && store->combine != Combine::Overwrite;
      reduces |= !family.library && row_state(stmt).has_value();
    }
  }
  std::vector<std::string_view> names{"prelude", "group"};
  if (reduces) names.insert(names.end(), {"reduce", "join"});
  if (combines) names.emplace_back("combine");
  names.insert(names.end(), of_families.begin(), of_families.end());
  return names;
}

}  // namespace

std::string emit_cuda(const std::vector<const plan::Kernel*>& kernels, plan::Variant variant, const OriginTable& origins, Templates templates) {
  TextWriter out;
  for (std::string_view name : called_templates(kernels)) add_template(out, fmt::format("cuda/{}.cuh", name), templates);
  out.line("typedef {} cxxi_index;", variant.index64 ? "long long" : "int");
  out.line("typedef unsigned {} cxxi_uint;", variant.index64 ? "long long" : "int");
  emit_registered_sources(kernels, &ScalarOpInfo::cuda_source, &ScalarOpInfo::cuda_real, out);
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
