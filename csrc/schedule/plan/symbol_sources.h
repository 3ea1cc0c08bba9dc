// Finds the inputs from which a plan's symbols get their values at run time.
#pragma once

#include <vector>

#include "ir/plan/plan.h"

namespace cxxinductor::schedule {

// One source for each symbol that buffers, steps and outputs use: an input that is the symbol, else an input with it as a
// size or stride. Unsupported if there is none.
std::vector<plan::SymbolSource> find_symbol_sources(const plan::Plan& plan);

}  // namespace cxxinductor::schedule
