#include "codegen/cpu/emit.h"

#include <algorithm>

#include "codegen/cpu/cpu_text.h"
#include "codegen/cpu/spelling.h"
#include "codegen/registered_sources.h"
#include "codegen/render_template.h"
#include "codegen/statement_text.h"
#include "codegen/templates.h"
#include "support/error.h"
#include "support/text_writer.h"

namespace cxxinductor::codegen {
namespace {

// A function that ops of some kernel call on vectors: the row's `sleef` name and the element type.
struct MathFunction {
  std::string_view sleef;
  DType dtype;
  friend auto operator<=>(const MathFunction&, const MathFunction&) = default;
};

// Sorted: the slots of a unit depend on the set of its ops alone.
std::vector<MathFunction> math_functions(const std::vector<const plan::Kernel*>& kernels) {
  // Those that ops composed of several functions use (vector_ops.h, vector_activations.h) have slots in every unit.
  std::vector<MathFunction> functions;
  for (std::string_view name : {"exp_u10", "expm1_u10", "log1p_u10", "tanh_u10", "erf_u10"}) {
    functions.push_back({name, DType::F32});
    functions.push_back({name, DType::F64});
  }
  for (const plan::Kernel* kernel : kernels)
    visit_ops(*kernel, [&](ScalarOp op, DType dtype) {
      if (!info(op).sleef.empty() && is_float(dtype)) functions.push_back({info(op).sleef, dtype});
    });
  std::sort(functions.begin(), functions.end());
  functions.erase(std::unique(functions.begin(), functions.end()), functions.end());
  return functions;
}

}  // namespace

std::vector<std::string> cpu_math_symbols(const std::vector<const plan::Kernel*>& kernels, const Target& target) {
  std::vector<std::string> names;
  for (const MathFunction& f : math_functions(kernels)) {
    const size_t split = f.sleef.find('_');
    const std::string_view base = f.sleef.substr(0, split);
    const std::string_view accuracy = split == std::string_view::npos ? "" : f.sleef.substr(split);
    const char letter = f.dtype == DType::F64 ? 'd' : 'f';
    names.push_back(fmt::format("Sleef_{}{}{}{}", base, letter, target.vector_bytes / byte_size(f.dtype), accuracy));
  }
  return names;
}

std::string emit_cpu(const std::vector<const plan::Kernel*>& kernels, const Target& target, const OriginTable& origins, Templates templates) {
  TextWriter out;
  add_template(out, "cpu/prelude.h", templates);
  std::vector<kernels::Values> slots;
  for (const MathFunction& f : math_functions(kernels)) slots.push_back({{"slot", cpu_math_slot(f.sleef, f.dtype)}});
  out.raw_line(render_template_file("cpu/unit.h", {{"vector_bytes", target.vector_bytes}, {"slots", std::move(slots)}}, spell_plain));
  for (const char* name : {"cpu/vector.h", "cpu/vector_memory.h", "cpu/vector_casts.h", "cpu/vector_checks.h", "cpu/vector_transpose.h", "cpu/reduce.h",
                           "cpu/reduction_states.h", "cpu/vector_math.h", "cpu/vector_ops.h", "cpu/vector_activations.h"})
    add_template(out, name, templates);
  emit_registered_sources(kernels, &ScalarOpInfo::cpu_source, &ScalarOpInfo::cpu_real, out);
  emit_cpu_states(kernels, out);
  for (const plan::Kernel* kernel : kernels) {
    out.blank();
    out.line("#line 1 \"{}\"", kernel->name);
    if (is_simt(kernel->mapping)) throw_internal("kernel {} is mapped for threads in blocks", kernel->name);
    out.raw_line(render_kernel({*kernel, origins}));
  }
  return std::move(out).take();
}

}  // namespace cxxinductor::codegen
