#include "interp/kernel_interp.h"

#include <map>

#include "ir/loops/stmt_traits.h"
#include "support/error.h"

namespace cxxinductor::interp {

void run_kernel(const plan::Kernel& kernel, const Symbols& symbols, const RegionMemory& memory) {
  RegionRun run(kernel.region, symbols, memory);
  for (const plan::Segment& segment : kernel.segments) {
    std::map<plan::StmtId, size_t> last_use;  // values that live here alone go as soon as they can: they are large
    for (size_t i = 0; i < segment.stmts.size(); ++i) {
      last_use[segment.stmts[i]] = i;
      for (plan::StmtId operand : loops::operands(kernel.region.body[segment.stmts[i]])) last_use[operand] = i;
    }
    for (size_t i = 0; i < segment.stmts.size(); ++i) {
      const plan::StmtId id = segment.stmts[i];
      run.execute(id);
      const auto forget = [&](plan::StmtId value) {
        if (kernel.memory_spaces[value] == plan::MemorySpace::Local && last_use[value] == i) run.forget(value);
      };
      for (plan::StmtId operand : loops::operands(kernel.region.body[id])) forget(operand);
      forget(id);
    }
  }
}

plan::Kernel part_of(const plan::Kernel& kernel, plan::VarId var, int64_t begin, int64_t count) {
  CXXI_CHECK(!loops::reduced_vars(kernel.region).contains(var), "variable {} of {} is reduced over", kernel.region.vars[var].name, kernel.name);
  plan::Kernel part = kernel;
  part.region.vars[var].extent = count;
  const sym::Substitution shift{{kernel.region.vars[var].name, kernel.region.symbol(var) + begin}};
  for (size_t s = 0; s < part.region.body.size(); ++s) {
    loops::Stmt& stmt = part.region.body[plan::StmtId(s)];
    rewrite_expressions(stmt, [&](sym::Expr e) { return sym::substitute(e, shift); });
    if (stmt.as<loops::Load>() || stmt.as<loops::Store>()) {
      sym::Expr& offset = part.offsets[plan::StmtId(s)];
      offset = sym::substitute(offset, shift);
    }
  }
  return part;
}

}  // namespace cxxinductor::interp
