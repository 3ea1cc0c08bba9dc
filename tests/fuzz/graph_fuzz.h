// Random well-formed graphs, values for them, and the comparison of ways to run them.
//
// An Executor is any way to run a graph; the reference is interp on the graph itself. To add one (compiled code,
// another target), pass it to find_mismatch beside ir_executors().
//
// Graphs are built so that a difference is a bug: sums are over small integers held in floats, exact in any order, and
// discontinuous ops (comparisons, rounding, conversions to integers, indices) read exact values only. What is not
// exact, because order or a transcendental function may differ, is compared with a tolerance relative to the largest
// inexact intermediate value.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "interp/interp.h"
#include "ir/graph/graph.h"

namespace cxxinductor::fuzz {

struct RandomGraph {
  graph::Graph graph;
  std::vector<bool> exact;  // for each value of the graph
  interp::Symbols symbols;  // values within the graph's ranges
};
struct Shape {
  int steps = 18;       // about as many nodes as this, helpers not counted
  bool externs = true;  // calls of fuzz::twice
  DeviceType device = DeviceType::Cpu;
};
RandomGraph random_graph(uint64_t seed, const Shape& shape);

RandomGraph live_part(const RandomGraph& random);  // without the nodes that no output needs

// Every tensor input depends on the seed and its own name alone, so that it survives shrinking.
interp::Arguments random_arguments(const graph::Graph& graph, const interp::Symbols& symbols, uint64_t seed);
// fuzz::twice(x): twice its operand.
std::vector<interp::Tensor> call_extern(const std::string& callee, const std::string& overload, const std::vector<Arg>& args,
                                        const std::vector<interp::Tensor>& operands);

struct Executor {
  std::string name;
  std::function<std::vector<interp::Tensor>(const graph::Graph&, const interp::Arguments&)> run;
};
// The interpreter on the graph after passes, on loops, fused loops, and the plan, for the target of the graph's device.
std::vector<Executor> ir_executors();
// The interpreter on the text that each stage leaves. Throws where the stages after it make another source of the text than they do without.
Executor text_executor();

struct Mismatch {
  std::string executor, reason;
};
// The first executor that differs from the reference or throws where the reference does not.
std::optional<Mismatch> find_mismatch(const RandomGraph& random, const interp::Arguments& arguments, const std::vector<Executor>& executors);
// A smaller graph on which the same executor still fails: drops outputs, bypasses nodes, turns nodes into inputs.
RandomGraph shrink(RandomGraph random, uint64_t seed, const Executor& executor);
// A file's worth of text to start debugging from.
std::string describe(const RandomGraph& random, uint64_t seed, const Mismatch& mismatch);

}  // namespace cxxinductor::fuzz
