// Passes on the loops IR, listed in pipelines.cpp; they run on fused programs.
#pragma once

#include "ir/loops/loops.h"
#include "support/options.h"

namespace cxxinductor::passes {

bool fold_indices(loops::Program& program, const Options& options);
bool one_hot_to_select(loops::Program& program, const Options& options);
bool narrow_integers(loops::Program& program, const Options& options);
bool elide_rounding_casts(loops::Program& program, const Options& options);
bool remove_dead_statements(loops::Program& program, const Options& options);

}  // namespace cxxinductor::passes
