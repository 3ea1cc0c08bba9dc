// Kernels from the templates of kernels_templates/cpu: values of an instance in C++.
#include "codegen/cpu/cpu_text.h"
#include "codegen/cpu/spelling.h"
#include "codegen/render_template.h"
#include "kernels/body/slots.h"
#include "support/overloaded.h"

namespace cxxinductor::codegen {
namespace {

using kernels::Values;
using kernels::when;

// What every template of a kernel has: its name, cpu/arguments.h, and how it calls its body, which returns whether all checks succeeded.
Values signature(const CpuText& text) {
  const plan::Kernel& kernel = text.kernel;
  const bool checked = kernels::has_checks(kernel);
  std::vector<Values> buffers, record, symbols;
  for (size_t i = 0; i < kernel.params.size(); ++i)
    buffers.push_back({{"dtype", kernel.params[i].dtype}, {"p", fmt::format("p{}", i)}, {"number", int64_t(i)}});
  if (checked) record.push_back({{"number", int64_t(kernel.params.size())}});
  for (size_t i = 0; i < kernel.symbols.size(); ++i) symbols.push_back({{"symbol", sym::Expr::symbol(kernel.symbols[i])}, {"number", int64_t(i)}});
  return {{"name", kernel.name},
          {"buffers", std::move(buffers)},
          {"record", std::move(record)},
          {"symbols", std::move(symbols)},
          {"checked", when(checked)},
          {"call", checked ? "if (!body(" : "body("},
          {"called", checked ? ")) return;  // a check failed: the record says which" : ");"}};
}

std::string spell(const CpuText& text, const kernels::Value& value) {
  return std::visit(Overloaded{
                        [&](sym::Expr e) { return text.expression(e); },
                        [&](DType dtype) { return cpu_dtype_tag(dtype); },
                        [&](VarId v) { return text.variable(v); },
                        [&](kernels::StateType state) { return text.state(state.reduce); },
                        [&](const kernels::Coordinates& coordinates) { return text.coordinates(coordinates); },
                        [&](const kernels::Steps& steps) { return print_steps(text, steps); },
                        [&](const auto&) { return spell_plain(value); },
                    },
                    value);
}

}  // namespace

std::string render_kernel(const CpuText& text) {
  kernels::Instance instance = kernels::instantiate(text.kernel, {});
  instance.values.merge(signature(text));
  return render_template_file(fmt::format("cpu/{}.h", instance.name), instance.values, [&](const kernels::Value& value) { return spell(text, value); });
}

}  // namespace cxxinductor::codegen
