// Starts of slices.
#pragma once

#include "frontend/importer.h"

namespace cxxinductor::frontend {

// A start or index among `size` elements: negative counts from the end, then clamped into [0, size], as eager slices.
// None: its sign is known at run time alone.
std::optional<sym::Expr> wrapped_start(const CallContext& context, sym::Expr start, sym::Expr size);

}  // namespace cxxinductor::frontend
