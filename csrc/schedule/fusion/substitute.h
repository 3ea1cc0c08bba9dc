// Fusion as substitution: the consumer's loads of what the producer stores become the producer's values, computed at
// the coordinates where the consumer loads them. This file builds the fused body, or
// returns the reason why it cannot; legality and profit are decided elsewhere.
//
// aligned: one substitution serves all loads and runs through the producer's space exactly once; everything that the
// producer does can move into the consumer. Otherwise the producer's values are computed where they are needed
// (inlined), which only a pointwise producer allows.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "ir/loops/loops.h"

namespace cxxinductor::schedule {

struct FusedBody {
  std::optional<loops::Region> region;
  bool aligned = false;
  std::string reason;  // where there is no region
};

using StillNeeded = std::function<bool(loops::BufferId)>;

// producer -> consumer. Aligned: one region that does the work of both; the producer's stores of buffers that are not
// still needed are gone. Not aligned: the consumer with the producer inlined (its stores stay with the producer).
FusedBody substitute_producer(const loops::Program& program, const loops::Region& producer, const loops::Region& consumer, const StillNeeded& still_needed);
// The consumer with the producer's values inlined, whether aligned or not.
FusedBody inline_producer(const loops::Program& program, const loops::Region& producer, const loops::Region& consumer);
// Two regions of equal spaces that load the same elements: one region with both bodies.
FusedBody fuse_siblings(const loops::Program& program, const loops::Region& first, const loops::Region& second);
// The part of a region that computes one stored buffer.
loops::Region slice_for_store(const loops::Program& program, const loops::Region& region, loops::BufferId buffer);

}  // namespace cxxinductor::schedule
