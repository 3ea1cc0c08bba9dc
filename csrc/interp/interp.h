// The reference evaluator: double and int64, slow and simple. It defines the meaning of each IR. Tests compare lowering, fusion,
// planning and both targets' kernels with it.
//
// Every op rounds as its row states; reductions whose order matters accumulate in f64 and round once, so that two forms of
// a program that sum in different orders agree. Memory that nothing has written reads as NaN, -1 or true. An access
// outside its buffer is an InternalError, a failing check and a wrong argument a UserError.
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

// Dense row-major values, whatever strides the caller's tensor has.
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
// Called for extern nodes; the default throws Unsupported. Operand references in `args` are positions in `operands`, where a symbolic
// operand is an i64 of rank 0; expressions in `args` come as integers. Gives the results in order, then the new contents
// of each mutated operand in the order of mutated_operands.
using ExternHandler = std::function<std::vector<Tensor>(const std::string& callee, const std::string& overload, const std::vector<Arg>& args,
                                                        const std::vector<Tensor>& operands)>;

// One tensor per output (a symbol as an i64 of rank 0, none as 0), then the new value of each mutated input, in the order
// of the inputs.
std::vector<Tensor> run(const graph::Graph& graph, const Arguments& arguments, const ExternHandler& externs = {});
std::vector<Tensor> run(const loops::Program& program, const Arguments& arguments, const ExternHandler& externs = {});
std::vector<Tensor> run(const plan::Plan& plan, const Arguments& arguments, const ExternHandler& externs = {});

// Worst difference in units of the tolerance for dtype (0: bit-equal; > 1: different). NaN equals NaN; zeros of different
// sign are half a tolerance apart; integers are equal or infinitely different, as are tensors of different type or sizes.
double compare(const Tensor& expected, const Tensor& actual, double tolerance_scale = 1.0);

}  // namespace cxxinductor::interp
