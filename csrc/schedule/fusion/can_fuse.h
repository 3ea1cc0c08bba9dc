// Legality of a fused region: whether a kernel mapping can run it well, or the reason why not. Looks at structure only;
// score_fusion decides whether fusion pays.
#pragma once

#include <optional>
#include <string>

#include "ir/loops/loops.h"
#include "ir/target.h"
#include "schedule/fusion/score_fusion.h"
#include "support/options.h"

namespace cxxinductor::schedule {

inline constexpr size_t max_variables = 16;  // of a fused region

std::optional<std::string> fusion_blocker(const loops::Program& program, const loops::Region& region, const FusionCosts& costs, const Options& options);

}  // namespace cxxinductor::schedule
