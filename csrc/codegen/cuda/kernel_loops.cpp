// Signature, and the threads of Pointwise kernels.
#include <algorithm>

#include "codegen/cuda/kernel_emitter.h"
#include "ir/plan/early_loads.h"
#include "ir/plan/grouped_launch.h"
#include "support/error.h"
#include "support/overloaded.h"

namespace cxxinductor::codegen {
CudaKernelEmitter::CudaKernelEmitter(const plan::Kernel& kernel, plan::Variant variant, const OriginTable& origins,
                                     TextWriter& out)
    : kernel_(kernel), variant_(variant), origins_(origins), out_(out) {
  vector_var_ = vector_variable(kernel.mapping);
  width_ = vector_var_.valid() ? kernel.mapping.vector_width : 1;
  columns_ = kernel.mapping.as<plan::Columns>() != nullptr;
}

bool CudaKernelEmitter::has_checks(const plan::Kernel& kernel) {
  return std::any_of(kernel.region.body.begin(), kernel.region.body.end(),
                     [](const Stmt& s) { return s.as<loops::Check>() != nullptr; });
}

void CudaKernelEmitter::emit() {
  const auto around = [this](void (CudaKernelEmitter::*emit_threads)()) {
    emit_signature();
    emit_uniform_loads();
    (this->*emit_threads)();
    close();
  };
  const auto refuse = [this](std::string_view shape) { throw_internal("kernel {}: a GPU has no mapping {}", kernel_.name, shape); };
  std::visit(Overloaded{[&](const plan::Pointwise&) { around(&CudaKernelEmitter::emit_pointwise); },
                        [&](const plan::Rows&) { around(&CudaKernelEmitter::emit_rows); },
                        [&](const plan::SerialRows&) { around(&CudaKernelEmitter::emit_serial_rows); },
                        [&](const plan::Columns&) { around(&CudaKernelEmitter::emit_columns); },
                        [&](const plan::Tiles&) { around(&CudaKernelEmitter::emit_tiles); },
                        [&](const plan::Matmul&) { emit_matmul(); },
                        [&](const plan::CpuPointwise& cpu) { refuse(cpu.keyword); },
                        [&](const plan::CpuRows& cpu) { refuse(cpu.keyword); },
                        [&](const plan::CpuColumns& cpu) { refuse(cpu.keyword); },
                        [&](const plan::CpuTiles& cpu) { refuse(cpu.keyword); }},
             kernel_.mapping.shape);
}

std::vector<std::string> CudaKernelEmitter::parameters() const {
  std::vector<std::string> arguments;
  for (size_t i = 0; i < kernel_.params.size(); ++i) {
    const plan::Param& param = kernel_.params[i];
    if (param.by_value) {
      arguments.push_back(fmt::format("const {} h{}", cuda_type(param.dtype), i));
      continue;
    }
    arguments.push_back(
        fmt::format("{}{}* __restrict__ p{}", param.written ? "" : "const ", cuda_type(param.dtype), i));
  }
  for (const std::string& symbol : kernel_.symbols)
    arguments.push_back("long long a" + expression(sym::Expr::symbol(symbol), false).substr(1));
  if (has_checks(kernel_)) arguments.push_back("int* cxxi_record");
  return arguments;
}

// The shape of serial rows needs all registers that one block per multiprocessor leaves each thread.
std::string CudaKernelEmitter::launch_bounds() const {
  return fmt::format("{}{}", block_threads(kernel_.mapping), is_serial() ? ", 1" : "");
}

void CudaKernelEmitter::emit_signature() {
  if (kernel_.max_grouped > 1) return emit_grouped_signature();
  const std::vector<std::string> arguments = parameters();
  out_.line("extern \"C\" __global__ void __launch_bounds__({}) {}(", launch_bounds(), kernel_.name);
  for (size_t i = 0; i < arguments.size(); ++i)
    out_.line("    {}{}", arguments[i], i + 1 < arguments.size() ? "," : ") {");
  if (arguments.empty()) out_.line("    ) {{");
  out_.indent();
  declare_symbols();
}

void CudaKernelEmitter::declare_symbols() {
  for (size_t i = 0; i < kernel_.params.size(); ++i)
    if (kernel_.params[i].by_value) out_.line("const {0}* const p{1} = &h{1};", cuda_type(kernel_.params[i].dtype), i);
  for (const std::string& symbol : kernel_.symbols) {
    const std::string name = expression(sym::Expr::symbol(symbol), false);
    out_.line("const cxxi_index {} = cxxi_index(a{});", name, name.substr(1));
  }
}

// The state of a generator is uniform over all threads, so values that follow from it alone need no vector instructions.
void CudaKernelEmitter::emit_uniform_loads() {
  for (StmtId id : plan::uniform_loads(kernel_)) {
    made_.insert(id.index());
    out_.line("const long long v{} = cxxi_uniform(*({}));", id.index(), address(id, false));
  }
}

// The kernel takes the table of ir/plan/grouped_launch.h and finds its launch by its block.
void CudaKernelEmitter::emit_grouped_signature() {
  const size_t entries = static_cast<size_t>(kernel_.max_grouped);
  open(fmt::format("struct cxxi_table_{} {{", kernel_.name));
  for (size_t i = 0; i < kernel_.params.size(); ++i) {
    const std::string_view type = cuda_type(kernel_.params[i].dtype);
    if (kernel_.params[i].by_value)
      out_.line("struct {{ alignas(8) {} value; }} p{}[{}];", type, i, entries);
    else
      out_.line("{}{}* p{}[{}];", kernel_.params[i].written ? "" : "const ", type, i, entries);
  }
  for (size_t j = 0; j < kernel_.symbols.size(); ++j) out_.line("long long s{}[{}];", j, entries);
  out_.line("unsigned int first[{}];", entries);
  close("};");
  out_.line("static_assert(sizeof(cxxi_table_{}) == {});", kernel_.name, plan::GroupedLaunchLayout(kernel_).bytes());
  out_.line("extern \"C\" __global__ void __launch_bounds__({}) {}(", launch_bounds(), kernel_.name);
  out_.line("    const __grid_constant__ cxxi_table_{} cxxi_table{}", kernel_.name,
            has_checks(kernel_) ? ", int* cxxi_record) {" : ") {");
  out_.indent();
  emit_grouped_arguments();
}

void CudaKernelEmitter::emit_grouped_arguments() {
  int step = 1;
  while (step * 2 < kernel_.max_grouped) step *= 2;
  out_.line("int cxxi_entry = 0;  // the last one whose first block is not past this one");
  for (; step > 0; step /= 2)
    out_.line("if (cxxi_entry + {0} < {1} && cxxi_table.first[cxxi_entry + {0}] <= blockIdx.x) cxxi_entry += {0};",
              step, kernel_.max_grouped);
  block_ = "cxxi_block";
  out_.line("const unsigned int {} = blockIdx.x - cxxi_table.first[cxxi_entry];", block_);
  for (size_t i = 0; i < kernel_.params.size(); ++i) {
    const plan::Param& param = kernel_.params[i];
    if (param.by_value) {
      out_.line("const {0} h{1} = cxxi_table.p{1}[cxxi_entry].value;", cuda_type(param.dtype), i);
      out_.line("const {0}* const p{1} = &h{1};", cuda_type(param.dtype), i);
      continue;
    }
    out_.line("{0}{1}* const __restrict__ p{2} = cxxi_table.p{2}[cxxi_entry];", param.written ? "" : "const ",
              cuda_type(param.dtype), i);
  }
  for (size_t j = 0; j < kernel_.symbols.size(); ++j) {
    const std::string name = expression(sym::Expr::symbol(kernel_.symbols[j]), false);
    out_.line("const long long a{} = cxxi_table.s{}[cxxi_entry];", name.substr(1), j);
    out_.line("const cxxi_index {} = cxxi_index(a{});", name, name.substr(1));
  }
}

sym::Expr CudaKernelEmitter::group_count(const std::vector<VarId>& vars, int width) const {
  sym::Expr count = 1;
  for (size_t d = 0; d < vars.size(); ++d) {
    const sym::Expr size = kernel_.region.vars[vars[d]].extent;
    count = count * (d + 1 == vars.size() ? sym::ceil_div(size, width) : size);
  }
  return sym::simplify(count, kernel_.assumptions);
}

std::string CudaKernelEmitter::count_text(const std::vector<VarId>& vars, int width) const {
  return fmt::format("cxxi_uint({})", expression(group_count(vars, width), false));
}

void CudaKernelEmitter::decode(std::string_view number, const std::vector<VarId>& vars, int width) {
  if (vars.empty()) return;
  std::string rest(number);
  for (size_t d = vars.size(); d-- > 0;) {
    const bool last = d + 1 == vars.size();
    const std::string times = last && width > 1 ? fmt::format(" * {}", width) : "";
    if (d == 0) {
      out_.line("const cxxi_index {} = cxxi_index({}){};", variable(vars[0]), rest, times);
      break;
    }
    sym::Expr size = kernel_.region.vars[vars[d]].extent;
    if (last) size = sym::simplify(sym::ceil_div(size, width), kernel_.assumptions);
    const std::string size_text = fmt::format("cxxi_uint({})", expression(size, false));
    out_.line("const cxxi_index {} = cxxi_index({} % {}){};", variable(vars[d]), rest, size_text, times);
    const std::string name = fmt::format("{}_{}", number, d);
    out_.line("const cxxi_uint {} = {} / {};", name, rest, size_text);
    rest = name;
  }
}

bool CudaKernelEmitter::proven_multiple(sym::Expr e, int64_t divisor) const {
  return sym::prove_divides(divisor, e, kernel_.assumptions);
}

// ---- Pointwise --------------------------------------------------------------------------------------------------

void CudaKernelEmitter::emit_pointwise() {
  const plan::Mapping& mapping = kernel_.mapping;
  const plan::Segment& segment = kernel_.segments.at(0);
  Body body;
  body.lanes = width_ > 1;
  for (VarId v : mapping.space) body.running |= loops::VarSet::of(v);
  if (!whole_groups()) body.count = "cxxi_lanes";
  const auto& shape = mapping.get<plan::Pointwise>();
  const int unroll = shape.unroll;
  // Blocks without a tail that draw random words: one straight body, in which the compiler shares the keys of all groups of a thread.
  // Without keys to share it would only raise register pressure: gelu lost a seventh of its speed.
  const bool draws = std::any_of(kernel_.region.body.begin(), kernel_.region.body.end(), [](const Stmt& s) {
    const auto* apply = s.as<loops::Apply>();
    return apply && info(apply->op).traits.random;
  });
  const bool even = draws && proven_multiple(group_count(mapping.space, width_), int64_t{shape.block_threads} * unroll);
  if (!even) out_.line("const cxxi_uint cxxi_groups = {};", count_text(mapping.space, width_));
  const auto enter = [&] {
    const std::string block =
        unroll > 1 ? fmt::format("(cxxi_uint({}) * {} + u)", block_, unroll) : fmt::format("cxxi_uint({})", block_);
    out_.line("const cxxi_uint cxxi_linear = {} * {} + threadIdx.x;", block, shape.block_threads);
    open(even ? "{" : "if (cxxi_linear < cxxi_groups) {");
    decode("cxxi_linear", mapping.space, width_);
    if (!body.count.empty())
      out_.line("const int cxxi_lanes = int(cxxi_min_int({} - {}, {}));", extent(vector_var_), variable(vector_var_),
                integer(width_));
  };
  if (unroll == 1) {
    enter();
    emit_body(segment.stmts, body);
    close();
    return;
  }
  const std::vector<StmtId> early = plan::early_loads(kernel_, segment.stmts);
  body.slot = "[u]";
  for (StmtId id : early) out_.line("{} g{}[{}] = {{}};", storage(id), id.index(), unroll);
  const std::string loop = fmt::format("for (int u = 0; u < {}; ++u) {{", unroll);
  if (!early.empty()) {
    out_.line("#pragma unroll");
    open(loop);
    enter();
    emit_early_loads(early, body);
    close();
    close();
  }
  for (StmtId id : early) early_.insert(id.index());
  out_.line("#pragma unroll");
  open(loop);
  enter();
  emit_body(segment.stmts, body);
  close();
  close();
}

}  // namespace cxxinductor::codegen
