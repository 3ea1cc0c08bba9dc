// Pointwise: each thread takes some groups, the loads of which it makes first.
#include <algorithm>

#include "codegen/cuda/body_printer.h"
#include "codegen/cuda/threads.h"
#include "kernels/body/lower_body.h"

namespace cxxinductor::codegen {

void write_threads(CudaText& text, const plan::Pointwise& shape) {
  const plan::Kernel& kernel = text.kernel;
  const kernels::Body body = kernels::lower_segment(kernel, 0);
  const std::vector<VarId>& space = kernel.mapping.space;
  // Blocks without a tail that draw random words: one straight body, in which the compiler shares the keys of all groups of a thread.
  // Without keys to share it would only raise register pressure: gelu lost a seventh of its speed.
  const bool draws = std::any_of(kernel.region.body.begin(), kernel.region.body.end(), [](const loops::Stmt& s) {
    const auto* apply = s.as<loops::Apply>();
    return apply && info(apply->op).traits.random;
  });
  const bool several = shape.unroll > 1;
  const bool even = draws && text.proven_multiple(text.group_count(space, body.slot.width), int64_t{shape.block_threads} * shape.unroll);
  if (!even) text.out.line("const cxxi_uint cxxi_groups = {};", text.count_text(space, body.slot.width));
  const std::string block = several ? fmt::format("(cxxi_uint({}) * {} + u)", text.block(), shape.unroll) : fmt::format("cxxi_uint({})", text.block());
  print_fragments(text, body, {.item = "", .group = "[u]", .position = ""}, shape.unroll, [&](bool, auto inside) {
    if (several) text.open_unrolled(fmt::format("for (int u = 0; u < {}; ++u) {{", shape.unroll));
    text.out.line("const cxxi_uint cxxi_linear = {} * {} + threadIdx.x;", block, shape.block_threads);
    text.open(even ? "{" : "if (cxxi_linear < cxxi_groups) {");
    text.decode("cxxi_linear", space, body.slot.width);
    text.declare_lanes(body.slot);
    inside();
    text.close();
    if (several) text.close();
  });
}

}  // namespace cxxinductor::codegen
