// Whether a fused region is one that a kernel mapping can run, and run well: the reason where it is not. Structure
// only; whether fusing pays is score_fusion's business.
#pragma once

#include <optional>
#include <string>

#include "ir/loops/loops.h"
#include "ir/target.h"
#include "schedule/fusion/score_fusion.h"
#include "support/options.h"

namespace cxxinductor::schedule {

std::optional<std::string> fusion_blocker(const loops::Program& program, const loops::Region& region,
                                         const FusionCosts& costs, const Options& options);

}  // namespace cxxinductor::schedule
