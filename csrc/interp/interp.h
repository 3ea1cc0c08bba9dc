// The reference evaluator: double and int64, slow, obvious. It is the meaning of each IR, and tests compare everything
// with it: lowering, fusion, planning, both targets' text.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/loops/loops.h"
#include "ir/plan/plan.h"

namespace cxxinductor::interp {

// Dense row-major values; what strides the caller has does not matter here.
struct Tensor {
  DType dtype = DType::F32;
  std::vector<int64_t> sizes;
  std::vector<Scalar> elements;
};
using Symbols = std::map<std::string, int64_t>;
struct Arguments {
  std::vector<Tensor> tensors;  // one for each tensor input, in order
  Symbols symbols;              // every symbol of the graph
};
// Called for extern nodes; the default throws Unsupported. Results in order.
using ExternHandler = std::function<std::vector<Tensor>(const std::string& callee, const std::string& overload,
                                                        const std::vector<Arg>& args, const std::vector<Tensor>& operands)>;

std::vector<Tensor> run(const graph::Graph& graph, const Arguments& arguments, const ExternHandler& externs = {});
std::vector<Tensor> run(const loops::Program& program, const Arguments& arguments, const ExternHandler& externs = {});
std::vector<Tensor> run(const plan::Plan& plan, const Arguments& arguments, const ExternHandler& externs = {});

// Worst difference in units of the tolerance for dtype (0: bit-equal; > 1: different). NaN equals NaN.
double compare(const Tensor& expected, const Tensor& actual, double tolerance_scale = 1.0);

}  // namespace cxxinductor::interp
