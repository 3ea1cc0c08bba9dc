// What a call does besides computing its results: aliases, writes, order.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/call_args.h"
#include "model/call_graph.h"
#include "model/schema.h"

namespace cxxinductor::model {

// What a schema states of a call: operand numbers, of each result the one that it may alias or -1, and those that it writes.
struct CallEffects {
  std::vector<int> alias_of;
  std::vector<uint32_t> mutated_operands;
};
CallEffects effects_of_call(const std::vector<Arg>& args, const std::vector<std::pair<std::string, Arg>>& kwargs, const Schema& schema, size_t results);
// "aten::add_" -> "aten::add"; the name itself where it is not that of an op in place.
std::string_view functional_callee(std::string_view callee);
// Positions of inputs that the graph writes: its mutations, and inputs whose storage a call writes to, where storages are known.
std::set<uint32_t> written_inputs(const CallGraph& calls, const SchemaSource& schemas);
// Of ops in place that change what their argument shows of its memory: sizes, strides, or the memory itself.
bool changes_metadata(std::string_view callee);
// Of one memory: that the two tensors are the same.
bool show_the_same(const CallValueInfo& a, const CallValueInfo& b);
// Calls with effects, and random ones, keep their place among each other.
bool must_be_ordered(std::string_view callee, const Schema& schema);

}  // namespace cxxinductor::model
