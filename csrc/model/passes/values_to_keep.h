// What a backward pass gets from the forward pass, and what it computes again: a minimum cut between the two.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "model/call_graph.h"
#include "model/schema.h"

namespace cxxinductor::model {

// Calls of a function and of its gradients.
struct JointCalls {
  static constexpr size_t no_call = static_cast<size_t>(-1);

  const CallGraph& graph;
  const SchemaSource& schemas;
  std::vector<size_t> producers;    // by value: its call, or no_call
  std::vector<bool> dependent;      // by value: on the gradients of outputs
  std::set<size_t> forward_calls;   // that results of the function need
  std::set<size_t> backward_calls;  // of dependent values that the gradients need
  std::set<CallValue> read;         // values that are not dependent, but are read by those calls or are gradients
  std::set<CallValue> exposed;      // that the caller may write to before the backward pass runs: not to be kept
};

// Whether all results show the memory of operands.
bool is_view(const Call& call, const SchemaSource& schemas);
// By value: whose memory it shows, through views of views; itself where it has its own.
std::vector<CallValue> bases_of(const CallGraph& graph, const SchemaSource& schemas);

// The values to keep, of the fewest bytes read and written. Everything in `read` follows from them through calls that
// may be repeated: views, and what costs no pass over memory of its own (RecomputeCost::Free). Random ops and others
// with an order are never repeated, and neither is, but for positions, what memory holds anyway: what the forward pass
// reads again after a library call, and what a library call of the backward pass reads.
std::set<CallValue> values_to_keep(const JointCalls& joint);

}  // namespace cxxinductor::model
