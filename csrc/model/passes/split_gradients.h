// A graph of a function and its gradients, as two graphs: what a call of the function computes, and what its backward
// pass does, from values that the call keeps.
#pragma once

#include <cstdint>
#include <vector>

#include "model/call_graph.h"
#include "model/schema.h"

namespace cxxinductor::model {

struct SplitGraphs {
  // Where a value that the backward graph reads comes from.
  struct Kept {
    enum class Of : uint8_t { Input, Output };  // of the forward graph
    Of of = Of::Input;
    uint32_t position = 0;
  };

  CallGraph forward;       // outputs: those of the function, then what is kept
  CallGraph backward;      // inputs: the kept ones, then gradients of outputs; outputs: the gradients
  std::vector<Kept> kept;  // in the order of the inputs
};

// joint: functional (model/passes/functionalize.h), whose outputs are `results` of the function, then gradients.
// output_gradients: positions of the inputs that gradients of outputs are.
// What is kept is a minimum cut (values_to_keep.h) of the calls in their recompute forms (decompose.h): never more than eager
// keeps, and of inputs and results only those that eager keeps, since the caller may write to the others before the backward pass runs.
// Unsupported where an input that the function writes to is read after it.
SplitGraphs split_gradients(const CallGraph& joint, size_t results, const std::vector<uint32_t>& output_gradients, const SchemaSource& schemas);

// Of the tensors that are kept, inputs included; symbolic sizes enter as size hints.
int64_t kept_bytes(const SplitGraphs& split);

}  // namespace cxxinductor::model
