#include "ir/plan/early_loads.h"

#include <algorithm>

namespace cxxinductor::plan {
namespace {

// Statements in the order of the body.
std::vector<StmtId> persistent_loads(const Kernel& kernel, bool of_row) {
  const VarId serial = serial_variable(kernel.mapping);
  std::vector<StmtId> found;
  for (const Segment& segment : kernel.segments) {
    if (!serial.valid() || segment.kind != Segment::Kind::RowLoop) continue;
    for (StmtId id : early_loads(kernel, segment.stmts))
      if (kernel.memory_spaces[id] == MemorySpace::Persistent && kernel.region.body[id].vars.contains(serial) == of_row) found.push_back(id);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace

std::vector<StmtId> uniform_loads(const Kernel& kernel) {
  std::vector<StmtId> found;
  for (const loops::Stmt& stmt : kernel.region.body) {
    const auto* draw = stmt.as<loops::Apply>();
    if (!draw || !info(draw->op).traits.random) continue;
    for (StmtId operand : draw->operands) {
      const auto* load = kernel.region.body[operand].as<loops::Load>();
      const bool same = load && !load->mask.valid() && kernel.region.body[operand].vars.empty() && kernel.offsets[operand].is_constant();
      if (!same || kernel.params[load->buffer.index()].written) continue;
      if (std::find(found.begin(), found.end(), operand) == found.end()) found.push_back(operand);
    }
  }
  return found;
}

std::vector<StmtId> early_loads(const Kernel& kernel, const std::vector<StmtId>& stmts) {
  const std::vector<StmtId> uniform = uniform_loads(kernel);
  std::vector<StmtId> loads;
  for (StmtId id : stmts) {
    const auto* load = kernel.region.body[id].as<loops::Load>();
    if (!load || load->mask.valid() || kernel.access[id] == AccessKind::Staged) continue;
    if (std::find(uniform.begin(), uniform.end(), id) != uniform.end()) continue;
    if (!loops::depends_on_data(kernel.offsets[id])) loads.push_back(id);
  }
  return loads;
}

std::vector<StmtId> persistent_loads_of_row(const Kernel& kernel) { return persistent_loads(kernel, true); }
std::vector<StmtId> persistent_loads_of_block(const Kernel& kernel) { return persistent_loads(kernel, false); }

std::vector<StmtId> row_loads_ahead(const Kernel& kernel) {
  const VarId serial = serial_variable(kernel.mapping);
  std::vector<StmtId> found;
  for (const Segment& segment : kernel.segments) {
    if (!serial.valid() || segment.kind != Segment::Kind::PerRow) continue;
    for (StmtId id : early_loads(kernel, segment.stmts))
      if (kernel.region.body[id].vars.contains(serial)) found.push_back(id);
  }
  return found;
}

std::vector<StmtId> early_loads_of_row_loop(const Kernel& kernel, const Segment& segment) {
  std::vector<StmtId> loads = early_loads(kernel, segment.stmts);
  for (const std::vector<StmtId>& made : {persistent_loads_of_block(kernel), persistent_loads_of_row(kernel)})
    std::erase_if(loads, [&](StmtId id) { return std::find(made.begin(), made.end(), id) != made.end(); });
  return loads;
}

int registers_of(const Kernel& kernel, const std::vector<StmtId>& loads) {
  const VarId vector_var = vector_variable(kernel.mapping);
  int registers = 0;
  for (StmtId id : loads) {
    const loops::Stmt& stmt = kernel.region.body[id];
    const bool lanes = vector_var.valid() && stmt.vars.contains(vector_var);
    registers += std::max(1, (lanes ? kernel.mapping.vector_width : 1) * byte_size(stmt.dtype) / 4);
  }
  return registers;
}

}  // namespace cxxinductor::plan
