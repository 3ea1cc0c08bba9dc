// The calls of a model as ATen's composites make them: "aten::linear" becomes views and an "aten::addmm", by the
// kernels that eager runs through, on tensors without memory. What the compiler knows whole stays one call.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/call_graph.h"
#include "model/size_guards.h"

namespace cxxinductor::torch_bridge {

struct Replayed {
  model::CallGraph calls;
  // The calls are those of eager wherever these hold: what composites asked of symbolic sizes and ranges leave open.
  std::vector<model::SizeGuard> guards;
  // Composites that stay one call, by name, with what kept them from being taken apart.
  std::map<std::string, std::string> kept;
};

// The result has the inputs and outputs of `read`. Of a call that is replayed the metadata is that of model/infer,
// which is eager's: what a file states may be wrong. UserError where eager would raise. hints: of the symbols, where
// there are any.
Replayed replay(const model::CallGraph& read, model::SizeHints hints = {});

// Unsupported where a guard is on a symbol that no input has: callers cannot tell whether it holds.
void require_guards_on_inputs(const Replayed& replayed);

// What the importer reads of a model's own calls: those of `replayed` without writes, decomposed; right where its guards hold.
model::CallGraph functional_calls(const Replayed& replayed);

}  // namespace cxxinductor::torch_bridge
