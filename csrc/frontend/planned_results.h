// Which calls write their results into memory that the plan provides, and are no allocation of ATen's: the one place
// that decides it.
#pragma once

#include "frontend/importer.h"

namespace cxxinductor::frontend {

// Where the answer is true and the call turns out to have no such form when it runs, the result is computed elsewhere
// and copied: right, but slower than a result of ATen's own. Calls of which that is known here are not planned.
bool is_result_planned(const CallContext& context, const Schema& schema);

}  // namespace cxxinductor::frontend
