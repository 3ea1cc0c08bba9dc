#include "schedule/fusion/score_fusion.h"

#include <algorithm>
#include <cmath>

#include "ir/loops/stmt_properties.h"
#include "ir/target.h"
#include "schedule/fusion/dependencies.h"

namespace cxxinductor::schedule {
namespace {

// Work and memory traffic add up on a CPU core and overlap on a GPU, where thousands of threads wait for memory.
constexpr double overlap_exponent = 4;
constexpr double strided_load_factor = 2, strided_store_factor = 4;
constexpr double long_row = 16384;

const std::vector<sym::Expr>* coords_of(const loops::Stmt& stmt, loops::BufferId* buffer) {
  if (const auto* load = stmt.as<loops::Load>()) {
    *buffer = load->buffer;
    return &load->coords;
  }
  if (const auto* store = stmt.as<loops::Store>()) {
    *buffer = store->buffer;
    return &store->coords;
  }
  return nullptr;
}

// Of a size that is symbolic at least 1: what others leave of a sum may come out as nothing or less where each has its
// own hint.
double count_hint(sym::Expr size, const sym::Assumptions& assumptions) {
  return size.is_constant() ? static_cast<double>(size.constant()) : std::max(1.0, size_hint(size, assumptions));
}

}  // namespace

double launch_cost(const Target& target) { return target.machine.launch_bytes; }

double joint_cost(double moved, double worked, const Target& target) {
  if (!is_simt(target)) return moved + worked;
  return std::pow(std::pow(moved, overlap_exponent) + std::pow(worked, overlap_exponent), 1 / overlap_exponent);
}

double size_hint(sym::Expr e, const sym::Assumptions& assumptions) {
  if (e.is_constant()) return static_cast<double>(e.constant());
  if (e.is_symbol()) return static_cast<double>(sym::estimate(e, assumptions));
  double value = size_hint(e.operands()[0], assumptions);
  for (size_t i = 1; i < e.operands().size(); ++i) {
    double next = size_hint(e.operands()[i], assumptions);
    switch (e.kind()) {
      case sym::Kind::Constant:
      case sym::Kind::Symbol:
        break;
      case sym::Kind::Add:
        value += next;
        break;
      case sym::Kind::Mul:
        value *= next;
        break;
      case sym::Kind::FloorDiv:
        value = next == 0 ? 0 : std::floor(value / next);
        break;
      case sym::Kind::Mod:
        value = next == 0 ? 0 : value - next * std::floor(value / next);
        break;
      case sym::Kind::Min:
        value = std::min(value, next);
        break;
      case sym::Kind::Max:
        value = std::max(value, next);
        break;
    }
  }
  return value;
}

int access_stride(const loops::Program& program, const loops::Region& region, const loops::Stmt& stmt, loops::VarId var) {
  loops::BufferId buffer;
  const auto* coords = coords_of(stmt, &buffer);
  if (!coords || !stmt.vars.contains(var)) return 0;
  const sym::Expr symbol = region.symbol(var);
  int stride = 0;
  for (size_t d = 0; d < coords->size(); ++d) {
    sym::Expr e = (*coords)[d], coefficient = 1, rest;
    if (!e.depends_on(symbol)) continue;
    if (e != symbol && !sym::split_linear(e, symbol, &coefficient, &rest)) return -1;
    sym::Expr step = coefficient * program.buffers[buffer].strides[d];
    if (step.is_constant(0)) continue;
    if (!step.is_constant(1) || stride != 0) return -1;
    stride = 1;
  }
  return stride;
}

bool reduces_across_columns(const loops::Program& program, const loops::Region& region) {
  const loops::VarSet reduced = loops::reduced_vars(region);
  double along = 0, across = 0;
  for (const loops::Stmt& stmt : region.body) {
    if (!stmt.as<loops::Load>() || (stmt.vars & reduced).empty() || stmt.vars.subset_of(reduced)) continue;
    for (size_t v = 0; v < region.vars.size(); ++v)
      if (access_stride(program, region, stmt, loops::VarId(v)) == 1) (reduced.contains(loops::VarId(v)) ? along : across) += byte_size(stmt.dtype);
  }
  return across > along;
}

std::vector<bool> depend_on_reductions(const loops::Region& region) {
  std::vector<bool> late(region.body.size(), false);
  for (size_t s = 0; s < region.body.size(); ++s)
    for (loops::StmtId operand : loops::operands(region.body[loops::StmtId(s)]))
      if (late[operand.index()] || is_known_after_row(region.body[operand])) late[s] = true;
  return late;
}

bool reductions_come_last(const loops::Region& region) {
  const loops::VarSet reduced = loops::reduced_vars(region);
  const std::vector<bool> late = depend_on_reductions(region);
  for (size_t s = 0; s < region.body.size(); ++s) {
    const loops::Stmt& stmt = region.body[loops::StmtId(s)];
    const auto state = row_state(stmt);
    if (late[s] && (state || !(stmt.vars & reduced).empty())) return false;
    if (state && (!is_known_after_row(stmt) || partials_of(state->reduction) == Partials::None)) return false;
  }
  return true;
}

double FusionCosts::buffer_bytes(loops::BufferId buffer) const {
  const loops::Buffer& b = program_.buffers[buffer];
  double bytes = byte_size(b.dtype);
  for (sym::Expr size : b.sizes) bytes *= count_hint(size, program_.assumptions);
  return bytes;
}

double FusionCosts::points(const loops::Region& region, loops::VarSet vars) const {
  double count = 1;
  for (size_t v = 0; v < region.vars.size(); ++v)
    if (vars.contains(loops::VarId(v))) count *= count_hint(region.vars[loops::VarId(v)].extent, program_.assumptions);
  return count;
}

bool FusionCosts::few_long_rows(const loops::Region& region) const {
  const loops::VarSet reduced = loops::reduced_vars(region);
  if (reduced.empty()) return false;
  return points(region, loops::all_vars(region) - reduced) < targets_.of(region.device).multiprocessors && points(region, reduced) > long_row;
}

double FusionCosts::access_cost(const loops::Region& region, const loops::Stmt& stmt, loops::VarId vector_var) const {
  loops::BufferId buffer;
  if (!coords_of(stmt, &buffer)) return 0;
  double bytes = points(region, stmt.vars) * byte_size(program_.buffers[buffer].dtype);
  const bool load = stmt.as<loops::Load>() != nullptr;
  if (load) bytes = std::min(bytes, buffer_bytes(buffer));
  if (vector_var.valid() && access_stride(program_, region, stmt, vector_var) < 0) bytes *= load ? strided_load_factor : strided_store_factor;
  return bytes;
}

double FusionCosts::region_cost(const loops::Region& region) const {
  const RegionSummary summary = summarize(region);
  // The variable that neighbouring threads run along: the contiguous one of the widest store (of a load, if reduced).
  const bool columns = !summary.reduced.empty() && reduces_across_columns(program_, region);
  loops::VarId vector_var;
  for (const loops::Stmt& stmt : region.body) {
    if (summary.reduced.empty() ? !stmt.as<loops::Store>() : !stmt.as<loops::Load>()) continue;
    if (!summary.reduced.empty() && (stmt.vars & summary.reduced).empty()) continue;
    for (size_t v = 0; v < region.vars.size() && !vector_var.valid(); ++v)
      if (access_stride(program_, region, stmt, loops::VarId(v)) == 1 && (summary.reduced.empty() || summary.reduced.contains(loops::VarId(v)) != columns))
        vector_var = loops::VarId(v);
  }
  double moved = 0, worked = 0;
  for (const loops::Stmt& stmt : region.body) {
    moved += access_cost(region, stmt, vector_var);
    const auto* apply = stmt.as<loops::Apply>();
    if (!apply) continue;
    // Without rows, what varies over fewer variables is computed again at every point.
    double evaluations = points(region, summary.reduced.empty() ? summary.all : stmt.vars);
    worked += evaluations * (info(apply->op).traits.transcendental ? bytes_per_transcendental : bytes_per_op);
  }
  const Target& target = targets_.of(region.device);
  double cost = joint_cost(moved, worked, target);
  if (few_long_rows(region) && !reductions_come_last(region))
    cost *= std::min(32.0, target.multiprocessors / std::max(1.0, points(region, summary.all - summary.reduced)));
  return cost;
}

}  // namespace cxxinductor::schedule
