#include "codegen/cpu/emit.h"

#include <algorithm>

#include "codegen/cpu/cpu_text.h"
#include "codegen/cpu/reduction_state.h"
#include "codegen/cpu/spelling.h"
#include "codegen/cpu/units.h"
#include "codegen/registered_sources.h"
#include "codegen/templates.h"
#include "kernels/body/slots.h"
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
  for (const plan::Kernel* kernel : kernels) {
    for (const loops::Stmt& stmt : kernel->region.body) {
      const auto* apply = stmt.as<loops::Apply>();
      if (!apply || info(apply->op).sleef.empty() || !is_float(stmt.dtype)) continue;
      functions.push_back({info(apply->op).sleef, stmt.dtype});
    }
    visit_cpu_state_ops(*kernel, [&](const ScalarOpInfo& op, DType dtype) {
      if (!op.sleef.empty() && is_float(dtype)) functions.push_back({op.sleef, dtype});
    });
  }
  std::sort(functions.begin(), functions.end());
  functions.erase(std::unique(functions.begin(), functions.end()), functions.end());
  return functions;
}

void open_kernel(CpuText& text) {
  const plan::Kernel& kernel = text.kernel;
  text.out.line("extern \"C\" __attribute__((visibility(\"default\"))) void {}(void* const* cxxi_buffers,", kernel.name);
  text.open("    const long long* cxxi_symbols, long long cxxi_begin, long long cxxi_end) {");
  text.out.line("using cxxi::index;");
  for (size_t i = 0; i < kernel.params.size(); ++i) {
    const std::string element = cpu_dtype_tag(kernel.params[i].dtype) + "::element";
    text.out.line("{0}* const p{1} = static_cast<{0}*>(cxxi_buffers[{1}]);", element, i);
  }
  if (kernels::has_checks(kernel)) text.out.line("long long* const cxxi_record = static_cast<long long*>(cxxi_buffers[{}]);", kernel.params.size());
  for (size_t i = 0; i < kernel.symbols.size(); ++i)
    text.out.line("const index {} = cxxi_symbols[{}];", text.expression(sym::Expr::symbol(kernel.symbols[i])), i);
}

void write_kernel(CpuText text) {
  open_kernel(text);
  std::visit(
      [&]<class Shape>(const Shape& shape) {
        if constexpr (!Shape::simt) {
          write_units(text, shape);
        } else {
          throw_internal("kernel {}: the CPU has no mapping {}", text.kernel.name, Shape::keyword);
        }
      },
      text.kernel.mapping.shape);
  text.close();
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

std::string emit_cpu(const std::vector<const plan::Kernel*>& kernels, const Target& target,
                     const OriginTable& origins, Templates templates) {
  TextWriter out;
  add_template(out, "cpu/prelude.h", templates);
  const std::vector<MathFunction> functions = math_functions(kernels);
  out.line("#define CXXI_VECTOR_BYTES {}", target.vector_bytes);
  out.raw_line(
      "#define CXXI_KEEP_SCALAR __asm__ volatile(\"\")  // a tail is short: vectorising it again costs compile time");
  out.raw_line("enum cxxi_slot {");
  for (const MathFunction& f : functions) out.line("  {},", cpu_math_slot(f.sleef, f.dtype));
  out.raw_line("  cxxi_slot_count");
  out.raw_line("};");
  out.raw_line("extern \"C\" __attribute__((visibility(\"default\"))) void* cxxi_math[cxxi_slot_count + 1];");
  out.raw_line("void* cxxi_math[cxxi_slot_count + 1];");
  for (const char* name : {"cpu/vector.h", "cpu/vector_memory.h", "cpu/vector_casts.h", "cpu/vector_checks.h",
                           "cpu/vector_transpose.h", "cpu/reduce.h", "cpu/reduction_states.h", "cpu/vector_math.h",
                           "cpu/vector_ops.h", "cpu/vector_activations.h"})
    add_template(out, name, templates);
  emit_registered_sources(kernels, &ScalarOpInfo::cpu_source, out);
  emit_cpu_states(kernels, out);
  for (const plan::Kernel* kernel : kernels) {
    out.blank();
    out.line("#line 1 \"{}\"", kernel->name);
    write_kernel({*kernel, origins, out});
  }
  return std::move(out).take();
}

}  // namespace cxxinductor::codegen
