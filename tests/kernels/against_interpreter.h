// Compiled programs against the interpreter: made-up arguments, and the comparison of all results.
#pragma once

#include <string>
#include <vector>

#include "interp/interp.h"
#include "ir/loops/text.h"
#include "kernels/compare.h"
#include "kernels/cpu_fuzz.h"
#include "kernels/cuda_program.h"
#include "unit/catch.h"

namespace cxxinductor::tests {

inline interp::Arguments arguments_of(const loops::Program& program, const interp::Symbols& symbols) {
  interp::Arguments arguments{{}, symbols};
  uint32_t seed = 1;
  for (const loops::ProgramInput& input : program.inputs) {
    const loops::Buffer& buffer = program.buffers[input.buffer];
    interp::Tensor tensor{buffer.dtype, {}, {}};
    size_t count = 1;
    for (sym::Expr size : buffer.sizes) {
      tensor.sizes.push_back(sym::evaluate(size, [&](std::string_view name) { return symbols.at(std::string(name)); }));
      count *= static_cast<size_t>(tensor.sizes.back());
    }
    for (double value : some_values(count, seed++))
      tensor.elements.push_back(is_float(buffer.dtype) ? Scalar::from_real(buffer.dtype, value)
                                                       : Scalar::from_integer(buffer.dtype, static_cast<int64_t>(value * 100)));
    arguments.tensors.push_back(std::move(tensor));
  }
  return arguments;
}

inline void check_against(const std::vector<interp::Tensor>& expected, const std::vector<interp::Tensor>& found, double tolerance_scale) {
  REQUIRE(expected.size() == found.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    INFO("output " << i);
    CHECK(interp::compare(expected[i], found[i], tolerance_scale) <= 1);
  }
}

}  // namespace cxxinductor::tests
