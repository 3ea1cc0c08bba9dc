// Graph texts through lowering and fusion, for the tests of fusion.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "interp/interp.h"
#include "ir/graph/text.h"
#include "ir/loops/text.h"
#include "ir/loops/verify.h"
#include "lowering/lower.h"
#include "schedule/schedule.h"

namespace fusion_tests {

using namespace cxxinductor;

struct Fused {
  graph::Graph graph;
  loops::Program lowered, fused;
  std::vector<plan::MissedFusion> missed_fusions;
};

inline Fused fuse_graph(graph::Graph graph, const Target& target = cuda_target("sm_90a", 132), const Options& options = {}) {
  Fused result;
  result.graph = std::move(graph);
  result.lowered = lowering::lower(result.graph);
  loops::verify_or_throw(result.lowered, "lower");
  result.fused = schedule::fuse(result.lowered, target, options, &result.missed_fusions);
  loops::verify_or_throw(result.fused, "fuse");
  return result;
}

inline Fused fuse_text(std::string_view text, const Target& target = cuda_target("sm_90a", 132), const Options& options = {}) {
  return fuse_graph(graph::parse(text), target, options);
}

inline std::vector<const loops::Region*> regions(const loops::Program& program) {
  std::vector<const loops::Region*> found;
  for (const loops::Step& step : program.steps)
    if (const auto* region = std::get_if<loops::Region>(&step)) found.push_back(region);
  return found;
}

inline int count_stores(const loops::Region& region) {
  int count = 0;
  for (const loops::Stmt& stmt : region.body) count += stmt.as<loops::Store>() != nullptr;
  return count;
}

inline bool has_buffer(const loops::Program& program, std::string_view name) {
  for (const loops::Buffer& buffer : program.buffers)
    if (buffer.name == name) return true;
  return false;
}

// Small deterministic numbers; integers are valid indices of dimensions of 4 and more.
inline interp::Arguments arguments_for(const graph::Graph& graph, const interp::Symbols& symbols, uint64_t seed = 1) {
  interp::Arguments arguments;
  arguments.symbols = symbols;
  auto next = [&seed] {
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<int64_t>(seed >> 40);
  };
  for (const graph::Input& input : graph.inputs) {
    if (input.kind != graph::Input::Kind::Tensor) continue;
    const graph::Value& value = graph.values[input.value];
    interp::Tensor tensor;
    tensor.dtype = value.dtype;
    int64_t count = 1;
    for (sym::Expr size : value.sizes) {
      tensor.sizes.push_back(sym::evaluate(size, [&](std::string_view name) { return symbols.at(std::string(name)); }));
      count *= tensor.sizes.back();
    }
    for (int64_t i = 0; i < count; ++i)
      tensor.elements.push_back(is_float(value.dtype) ? Scalar::from_real(value.dtype, static_cast<double>(next() % 2001 - 1000) / 500.0)
                                                      : Scalar::from_integer(value.dtype, next() % 4));
    arguments.tensors.push_back(std::move(tensor));
  }
  return arguments;
}

// The one extern of these tests: twice its first operand.
inline std::vector<interp::Tensor> run_extern(const std::string&, const std::string&, const std::vector<Arg>&, const std::vector<interp::Tensor>& operands) {
  interp::Tensor result = operands.at(0);
  for (Scalar& element : result.elements) element = Scalar::from_real(result.dtype, 2 * element.as_real());
  return {result};
}

// Worst difference of the fused and the lowered program from the graph, in units of tolerance.
inline double worst_difference(const Fused& fused, const interp::Arguments& arguments) {
  const auto expected = interp::run(fused.graph, arguments, run_extern);
  double worst = 0;
  for (const loops::Program* program : {&fused.lowered, &fused.fused}) {
    const auto actual = interp::run(*program, arguments, run_extern);
    if (actual.size() != expected.size()) return 1e9;
    for (size_t i = 0; i < expected.size(); ++i) worst = std::max(worst, interp::compare(expected[i], actual[i]));
  }
  return worst;
}

}  // namespace fusion_tests
