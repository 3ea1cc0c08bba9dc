// Random words of elements, as ATen's CUDA kernels assign them: a row of ops.def applied to the state of torch's generator, an
// element's position and ATen's mapping of elements to threads. random.cpp turns words into numbers of a distribution.
//
// The call cxxinductor::philox_state takes the state. It keeps its order among calls that draw, and advances the generator as
// ATen's kernel would. All functions here build nodes: an importer decides before.
#pragma once

#include "frontend/importer.h"

namespace cxxinductor::frontend {

// One word per element in row-major order, below 2^32 (i64), drawn as vectors of `width` neighbours: width / 4 calls per
// vector.
ValueId words_of_neighbours(CallContext& context, const Sizes& sizes, int64_t width);

// Dimensions of the call's result from the outermost in memory to the innermost; none unless its elements are proven to
// be dense in memory. It is the order in which ATen's iterators number them.
std::optional<std::vector<int>> memory_order(const CallContext& context);

// The random words of the call's elements where each thread makes calls of `numbers` numbers (4, or 2 of two words each) and
// assigns them to elements that are as far apart as there are threads
// (distribution_elementwise_grid_stride_kernel in ATen/native/cuda/DistributionTemplates.h, torch 2.11).
class GridStrideSampler {
 public:
  // order: from memory_order.
  GridStrideSampler(CallContext& context, const std::vector<int>& order, int numbers);

  ValueId word();                   // u32, of calls of four numbers
  ValueId pair();                   // i64: the pair of words that the element's number is in, the first in the upper half
  ValueId pair_of_call(int which);  // i64: the first (0) or second (1) pair of the element's call
  ValueId is_odd();                 // bool: whether the element takes an odd number of its call

 private:
  ValueId draw(Operand pair);

  graph::Builder& build_;
  const int numbers_;
  ValueId seed_, call_, thread_, number_;  // i64, i64, i64, u32
};

}  // namespace cxxinductor::frontend
