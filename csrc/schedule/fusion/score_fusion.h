// Cost of a region, in bytes of memory traffic; no legality. Fusion pays if the fused region costs less than its parts and
// their launches.
//
// Symbolic sizes enter as size hints. Costs are heuristics: correctness does not depend on them.
#pragma once

#include "ir/loops/loops.h"
#include "ir/target.h"

namespace cxxinductor::schedule {

// As sym::estimate, in floating point: products of sizes may be beyond int64.
double size_hint(sym::Expr e, const sym::Assumptions& assumptions);

// The unit of costs is the bytes that memory moves in the same time.
inline constexpr double bytes_per_op = 0.05, bytes_per_transcendental = 2;
double launch_cost(const Target& target);
// Of memory traffic and arithmetic together.
double joint_cost(double moved, double worked, const Target& target);

class FusionCosts {
 public:
  FusionCosts(const loops::Program& program, const Targets& targets) : program_(program), targets_(targets) {}
  double buffer_bytes(loops::BufferId buffer) const;
  double points(const loops::Region& region, loops::VarSet vars) const;
  // Traffic with its access pattern, arithmetic, and what too few rows cost.
  double region_cost(const loops::Region& region) const;
  double launch_cost(Device device) const { return schedule::launch_cost(targets_.of(device)); }
  // Too few rows to occupy the device with one block (thread) each, and each of them is long.
  bool few_long_rows(const loops::Region& region) const;

 private:
  double access_cost(const loops::Region& region, const loops::Stmt& stmt, loops::VarId vector_var) const;

  const loops::Program& program_;
  const Targets& targets_;
};

// Whether a region with reductions reads memory along its rows, or across neighbouring columns.
bool reduces_across_columns(const loops::Program& program, const loops::Region& region);
// Elements between neighbours along var in the buffer of a Load or Store: 0, 1, or -1 for anything else.
int access_stride(const loops::Program& program, const loops::Region& region, const loops::Stmt& stmt, loops::VarId var);
// For each statement: whether it needs the result of a reduction.
std::vector<bool> depend_on_reductions(const loops::Region& region);
// The reductions have partials that can be joined (ir/reduction.h), and nothing that varies over the reduced variables depends on their results.
bool reductions_come_last(const loops::Region& region);

}  // namespace cxxinductor::schedule
