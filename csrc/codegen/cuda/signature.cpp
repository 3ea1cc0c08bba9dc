#include "codegen/cuda/signature.h"

#include "codegen/cuda/spelling.h"
#include "ir/plan/early_loads.h"
#include "ir/plan/grouped_launch.h"
#include "kernels/body/slots.h"

namespace cxxinductor::codegen {
namespace {

// The shape of serial rows needs all registers that one block per multiprocessor leaves each thread.
std::string launch_bounds(const plan::Kernel& kernel) {
  return fmt::format("{}{}", block_threads(kernel.mapping), kernel.mapping.as<plan::SerialRows>() ? ", 1" : "");
}

void open_single(CudaText& text) {
  const std::vector<std::string> arguments = parameters(text);
  text.out.line("extern \"C\" __global__ void __launch_bounds__({}) {}(", launch_bounds(text.kernel), text.kernel.name);
  for (size_t i = 0; i < arguments.size(); ++i) text.out.line("    {}{}", arguments[i], i + 1 < arguments.size() ? "," : ") {");
  if (arguments.empty()) text.out.line("    ) {{");
  text.out.indent();
  declare_symbols(text);
}

void read_table(CudaText& text) {
  const plan::Kernel& kernel = text.kernel;
  int step = 1;
  while (step * 2 < kernel.max_grouped) step *= 2;
  text.out.line("int cxxi_entry = 0;  // the last one whose first block is not past this one");
  for (; step > 0; step /= 2)
    text.out.line("if (cxxi_entry + {0} < {1} && cxxi_table.first[cxxi_entry + {0}] <= blockIdx.x) cxxi_entry += {0};", step, kernel.max_grouped);
  text.out.line("const unsigned int {} = blockIdx.x - cxxi_table.first[cxxi_entry];", text.block());
  for (size_t i = 0; i < kernel.params.size(); ++i) {
    const plan::Param& param = kernel.params[i];
    if (param.by_value) {
      text.out.line("const {0} h{1} = cxxi_table.p{1}[cxxi_entry].value;", cuda_type(param.dtype), i);
      text.out.line("const {0}* const p{1} = &h{1};", cuda_type(param.dtype), i);
      continue;
    }
    text.out.line("{0}{1}* const __restrict__ p{2} = cxxi_table.p{2}[cxxi_entry];", param.written ? "" : "const ", cuda_type(param.dtype), i);
  }
  for (size_t j = 0; j < kernel.symbols.size(); ++j) {
    const std::string name = text.expression(sym::Expr::symbol(kernel.symbols[j]));
    text.out.line("const long long a{} = cxxi_table.s{}[cxxi_entry];", name.substr(1), j);
    text.out.line("const cxxi_index {} = cxxi_index(a{});", name, name.substr(1));
  }
}

// The kernel takes the table of ir/plan/grouped_launch.h and finds its launch by its block.
void open_grouped(CudaText& text) {
  const plan::Kernel& kernel = text.kernel;
  const size_t entries = static_cast<size_t>(kernel.max_grouped);
  text.open(fmt::format("struct cxxi_table_{} {{", kernel.name));
  for (size_t i = 0; i < kernel.params.size(); ++i) {
    const std::string_view type = cuda_type(kernel.params[i].dtype);
    if (kernel.params[i].by_value)
      text.out.line("struct {{ alignas(8) {} value; }} p{}[{}];", type, i, entries);
    else
      text.out.line("{}{}* p{}[{}];", kernel.params[i].written ? "" : "const ", type, i, entries);
  }
  for (size_t j = 0; j < kernel.symbols.size(); ++j) text.out.line("long long s{}[{}];", j, entries);
  text.out.line("unsigned int first[{}];", entries);
  text.close("};");
  text.out.line("static_assert(sizeof(cxxi_table_{}) == {});", kernel.name, plan::GroupedLaunchLayout(kernel).bytes());
  text.out.line("extern \"C\" __global__ void __launch_bounds__({}) {}(", launch_bounds(kernel), kernel.name);
  text.out.line("    const __grid_constant__ cxxi_table_{} cxxi_table{}", kernel.name, kernels::has_checks(kernel) ? ", int* cxxi_record) {" : ") {");
  text.out.indent();
  read_table(text);
}

}  // namespace

std::vector<std::string> parameters(const CudaText& text) {
  std::vector<std::string> arguments;
  for (size_t i = 0; i < text.kernel.params.size(); ++i) {
    const plan::Param& param = text.kernel.params[i];
    if (param.by_value) {
      arguments.push_back(fmt::format("const {} h{}", cuda_type(param.dtype), i));
      continue;
    }
    arguments.push_back(fmt::format("{}{}* __restrict__ p{}", param.written ? "" : "const ", cuda_type(param.dtype), i));
  }
  for (const std::string& symbol : text.kernel.symbols)
    arguments.push_back("long long a" + text.expression(sym::Expr::symbol(symbol)).substr(1));
  if (kernels::has_checks(text.kernel)) arguments.push_back("int* cxxi_record");
  return arguments;
}

void declare_symbols(CudaText& text) {
  const plan::Kernel& kernel = text.kernel;
  for (size_t i = 0; i < kernel.params.size(); ++i)
    if (kernel.params[i].by_value) text.out.line("const {0}* const p{1} = &h{1};", cuda_type(kernel.params[i].dtype), i);
  for (const std::string& symbol : kernel.symbols) {
    const std::string name = text.expression(sym::Expr::symbol(symbol));
    text.out.line("const cxxi_index {} = cxxi_index(a{});", name, name.substr(1));
  }
}

void open_kernel(CudaText& text) {
  text.kernel.max_grouped > 1 ? open_grouped(text) : open_single(text);
  // The state of a generator is uniform over all threads, so values that follow from it alone need no vector instructions.
  for (StmtId id : plan::uniform_loads(text.kernel)) text.out.line("const long long v{} = cxxi_uniform(*({}));", id.index(), text.address(id));
}

}  // namespace cxxinductor::codegen
