// Kernels from the templates of kernels_templates/cuda: values of an instance in CUDA C++.
#include <fmt/ranges.h>

#include "codegen/cuda/cuda_text.h"
#include "codegen/cuda/spelling.h"
#include "codegen/render_template.h"
#include "ir/plan/grouped_launch.h"
#include "kernels/body/slots.h"
#include "support/overloaded.h"

namespace cxxinductor::codegen {
namespace {

using kernels::Values;
using kernels::when;

std::string symbol(const CudaText& text, size_t number) { return text.expression(sym::Expr::symbol(text.kernel.symbols[number])); }
std::string symbol_argument(const CudaText& text, size_t number) { return "a" + symbol(text, number).substr(1); }
std::string table_name(const CudaText& text) { return "cxxi_table_" + text.kernel.name; }

std::string parameters(const CudaText& text) {
  const plan::Kernel& kernel = text.kernel;
  std::vector<std::string> parameters;
  if (kernel.max_grouped > 1) {
    parameters.push_back(fmt::format("const __grid_constant__ {} cxxi_table", table_name(text)));
  } else {
    for (size_t i = 0; i < kernel.params.size(); ++i) {
      const plan::Param& param = kernel.params[i];
      const std::string_view type = cuda_type(param.dtype);
      parameters.push_back(param.by_value ? fmt::format("const {} h{}", type, i)
                                          : fmt::format("{}{}* __restrict__ p{}", param.written ? "" : "const ", type, i));
    }
    for (size_t j = 0; j < kernel.symbols.size(); ++j) parameters.push_back("long long " + symbol_argument(text, j));
  }
  if (kernels::has_checks(kernel)) parameters.emplace_back("int* cxxi_record");
  return fmt::format("{}", fmt::join(parameters, ",\n"));
}

// A kernel looks for its launch in the table by strides that halve.
std::vector<Values> grouped_launch(const CudaText& text) {
  const int64_t launches = text.kernel.max_grouped;
  if (launches == 1) return {};
  int64_t stride = 1;
  while (stride * 2 < launches) stride *= 2;
  std::vector<Values> strides;
  for (; stride > 0; stride /= 2) strides.push_back({{"stride", stride}});
  const auto bytes = static_cast<int64_t>(plan::GroupedLaunchLayout(text.kernel).bytes());
  return {{{"table", table_name(text)}, {"launches", launches}, {"bytes", bytes}, {"strides", std::move(strides)}}};
}

// Values of what every template of a kernel begins with: its name, its parameters, cuda/launch_table.cuh and cuda/arguments.cuh.
Values signature(const CudaText& text) {
  const plan::Kernel& kernel = text.kernel;
  std::vector<Values> arguments, symbols;
  for (size_t i = 0; i < kernel.params.size(); ++i) {
    const plan::Param& param = kernel.params[i];
    arguments.push_back({{"type", fmt::format("{}{}", param.written || param.by_value ? "" : "const ", cuda_type(param.dtype))},
                         {"p", fmt::format("p{}", i)},
                         {"h", fmt::format("h{}", i)},
                         {"is_value", when(param.by_value)},
                         {"is_address", when(!param.by_value)}});
  }
  for (size_t j = 0; j < kernel.symbols.size(); ++j)
    symbols.push_back({{"symbol", symbol(text, j)}, {"argument", symbol_argument(text, j)}, {"entry", fmt::format("s{}", j)}});
  return {{"name", kernel.name},
          {"parameters", parameters(text)},
          {"grouped", grouped_launch(text)},
          {"in_table", when(kernel.max_grouped > 1)},
          {"arguments", std::move(arguments)},
          {"symbols", std::move(symbols)}};
}

std::string spell(const CudaText& text, const kernels::Value& value) {
  return std::visit(Overloaded{
                        [&](sym::Expr e) { return text.expression(e); },
                        [&](DType dtype) { return std::string(cuda_type(dtype)); },
                        [&](VarId v) { return text.variable(v); },
                        [&](kernels::Unsigned number) { return fmt::format("{}u", number.value); },
                        [&](kernels::StateType state) { return text.state(state.reduce); },
                        [&](kernels::FragmentType of) { return text.fragment_type(of); },
                        [&](kernels::Address address) { return text.address(address.access); },
                        [&](kernels::OriginComment comment) { return text.origin_comment(comment.stmt); },
                        [&](kernels::BlockNumber) { return std::string(text.kernel.max_grouped > 1 ? "cxxi_block" : "blockIdx.x"); },
                        [&](const kernels::Coordinates& coordinates) { return text.coordinates(coordinates); },
                        [&](kernels::Lanes lanes) { return text.lanes(lanes); },
                        [&](const kernels::PointNumber& point) { return text.point_number(point.vars); },
                        [&](const kernels::Steps& steps) { return print_steps(text, steps); },
                        [&](const auto&) { return spell_plain(value); },
                    },
                    value);
}

}  // namespace

std::string render_kernel(const CudaText& text) {
  kernels::Instance instance = kernels::instantiate(text.kernel, text.variant);
  instance.values.merge(signature(text));
  return render_template_file(fmt::format("cuda/{}.cuh", instance.name), instance.values, [&](const kernels::Value& value) { return spell(text, value); });
}

}  // namespace cxxinductor::codegen
