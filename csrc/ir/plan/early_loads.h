// Loads of a GPU's kernel that wait for nothing, so that threads may make them before the statements ahead of them. Functions of the plan,
// for the scheduler that counts their registers and the families that move them.
#pragma once

#include <vector>

#include "ir/plan/plan.h"

namespace cxxinductor::plan {

// Loads that a kernel makes once, at its start: states of random generators, each the same value for all threads.
std::vector<StmtId> uniform_loads(const Kernel& kernel);

// Of the statements: loads without a mask whose addresses follow from variables and symbols alone. Not those that are Staged or uniform.
std::vector<StmtId> early_loads(const Kernel& kernel, const std::vector<StmtId>& stmts);

// The same of a kernel mapped as SerialRows. Persistent ones that vary over the serial variable are made while the row before is computed;
// the others once, ahead of all rows. So are, per row, the loads of PerRow segments that vary over the serial variable.
std::vector<StmtId> persistent_loads_of_row(const Kernel& kernel);
std::vector<StmtId> persistent_loads_of_block(const Kernel& kernel);
std::vector<StmtId> row_loads_ahead(const Kernel& kernel);

// Early loads of a row loop that its threads make in the loop: not the persistent ones of serial rows, which are there.
std::vector<StmtId> early_loads_of_row_loop(const Kernel& kernel, const Segment& segment);

// 32-bit registers that the loads of one group take.
int registers_of(const Kernel& kernel, const std::vector<StmtId>& loads);

}  // namespace cxxinductor::plan
