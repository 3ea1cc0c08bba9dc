// Rewrites calls on complex tensors as calls on their real and imaginary parts, so that importers, fusion and code
// generation see real tensors only.
//
// A complex value of the call graph is a pair of real values of its sizes. Ops that move elements run once per part,
// arithmetic follows ATen's formulas (complex_ops.cpp has a row per overload). Where a call without a row, a graph
// input or a graph output needs the interleaved form, the pair is packed (`stack`, `view_as_complex`) or unpacked
// (`view_as_real`, `select`): these views cost no copy of what is interleaved already. A view of a complex value, in that
// form, is the same view of the interleaved value, so that results share memory and have strides as in eager. Conjugate and
// negative bits are resolved in the parts; a tensor that the caller must receive with its conjugate bit set gets it from `_conj`.
//
// Not for the ATen executor: it runs the calls as they were recorded.
#pragma once

#include "model/call_graph.h"
#include "model/schema.h"

namespace cxxinductor::frontend {

// A tensor of complex dtype.
bool is_complex_value(const model::CallValueInfo& info);

// Whether a tensor of the graph has a complex dtype, or a conjugate or negative bit.
bool has_complex(const model::CallGraph& calls);

// The same graph without arithmetic on complex values; itself where has_complex finds none. Values keep their numbers; new
// ones follow.
model::CallGraph lower_complex(model::CallGraph calls, const model::SchemaSource& schemas);

}  // namespace cxxinductor::frontend
