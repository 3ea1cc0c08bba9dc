#include "codegen/cuda/block_sums.h"

#include <algorithm>

namespace cxxinductor::codegen {

void declare_blocks(CudaText& text, const kernels::Slot& slot, const std::vector<StmtId>& reduces, bool lanes) {
  for (StmtId id : reduces) {
    const int columns = has_lanes(text.kernel, slot, text.stmt(id).as<loops::Reduce>()->operand) ? slot.width : 1;
    text.out.line("cxxi_blocks<{}> b{}{};", text.state(id), id.index(), lanes ? fmt::format("[{}]", columns) : "");
  }
  if (!reduces.empty()) text.out.line("unsigned int cxxi_turn = 0u;");
}

void put_blocks_aside(CudaText& text, const std::vector<StmtId>& reduces, std::string_view states) {
  if (reduces.empty()) return;
  text.open(fmt::format("if (++cxxi_turn % {}u == 0u) {{", std::max(plan::updates_of_block / unrolled_groups(text.kernel.mapping), 1)));
  for (StmtId id : reduces) text.out.line("cxxi_put_aside({1}{0}, b{0});", id.index(), states);
  text.close();
}

}  // namespace cxxinductor::codegen
