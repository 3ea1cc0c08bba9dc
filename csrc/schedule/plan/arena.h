// Assigns offsets in one block of memory to buffers with known live ranges; buffers that are alive together never overlap.
#pragma once

#include <span>
#include <vector>

#include "sym/expr.h"

namespace cxxinductor::schedule {

// Steps are numbered in program order; a buffer is alive in all of [first, last].
struct ArenaRequest {
  sym::Expr bytes;
  int first = 0;
  int last = 0;
};

struct ArenaLayout {
  std::vector<sym::Expr> offsets;  // multiples of arena_alignment, one per request
  sym::Expr bytes;
};

constexpr int64_t arena_alignment = 256;

// Best fit, largest first. Sizes that are constants compete for one part of the arena; symbolic ones share a part
// with those that are multiples of the same product of symbols (all activations of one batch size), or are equal.
ArenaLayout plan_arena(std::span<const ArenaRequest> requests);

}  // namespace cxxinductor::schedule
