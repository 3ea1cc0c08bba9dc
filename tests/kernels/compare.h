// Inputs made up for a planned program, and the comparison of what two targets make of them.
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "ir/plan/plan.h"
#include "runtime/host.h"
#include "unit/catch.h"

namespace cxxinductor::tests {

using Numbers = std::vector<double>;

inline Numbers some_values(size_t count, uint32_t seed) {
  Numbers numbers;
  uint32_t state = seed * 747796405u + 12345u;
  for (size_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    numbers.push_back(static_cast<double>(static_cast<int32_t>(state >> 16) - 32768) / 16384.0);
  }
  return numbers;
}

inline std::string on_device(std::string text, const std::string& device) {
  for (size_t at = text.find("DEVICE"); at != std::string::npos; at = text.find("DEVICE", at)) text.replace(at, 6, device);
  return text;
}

struct Input {
  DType dtype;
  std::vector<int64_t> sizes, strides;
  Numbers values;
};

inline std::vector<Input> make_inputs(const plan::Plan& plan, const std::map<std::string, int64_t>& symbols) {
  std::vector<Input> inputs;
  const auto value_of = [&](std::string_view name) { return symbols.at(std::string(name)); };
  for (const plan::Input& input : plan.inputs) {
    const plan::Buffer& buffer = plan.buffers[input.buffer];
    Input made{buffer.dtype, {}, {}, {}};
    size_t count = 1;
    for (sym::Expr size : buffer.sizes) made.sizes.push_back(sym::evaluate(size, value_of));
    for (sym::Expr stride : buffer.strides) made.strides.push_back(sym::evaluate(stride, value_of));
    for (int64_t size : made.sizes) count *= static_cast<size_t>(size);
    made.values = some_values(count, static_cast<uint32_t>(inputs.size()) + 1);
    if (!is_float(made.dtype))
      for (double& v : made.values) v = std::floor(std::fabs(v) * 16);
    inputs.push_back(std::move(made));
  }
  return inputs;
}

// Program: CpuProgram or CudaProgram.
template <class Program>
std::vector<Numbers> run_on(Program& program, const std::vector<Input>& inputs) {
  std::vector<runtime::TensorRef> tensors;
  for (const Input& input : inputs) tensors.push_back(program.tensor(input.dtype, input.sizes, input.values, input.strides));
  return program.run(std::move(tensors));
}

inline void check_equal(const std::vector<Numbers>& expected, const std::vector<Numbers>& found, double tolerance) {
  REQUIRE(expected.size() == found.size());
  for (size_t o = 0; o < expected.size(); ++o) {
    REQUIRE(expected[o].size() == found[o].size());
    for (size_t i = 0; i < expected[o].size(); ++i) {
      const double a = expected[o][i], b = found[o][i];
      if ((std::isnan(a) && std::isnan(b)) || a == b || std::fabs(a - b) <= tolerance * (1 + std::fabs(a))) continue;
      INFO("output " << o << ", element " << i << " of " << expected[o].size() << ": expected " << a << ", found " << b);
      REQUIRE(false);
    }
  }
}

}  // namespace cxxinductor::tests
