// The time that a call spends on checking its inputs: graphs of inputs alone, with the checks of files' models and without them; and the
// patterns that decide which compiled form of a TorchScript region a call takes.
//
//   cmake --build build/release --target input_checks && build/release/tests/input_checks
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "model/text.h"
#include "support/options.h"
#include "torch_bridge/compiled_graph.h"
#include "torch_bridge/record/call_pattern.h"

namespace {

using namespace cxxinductor;
using torch_bridge::CompiledGraph;

// Four dimensions, the first of them the same symbol.
std::string calls_text(int inputs) {
  std::string text = "calls @inputs where 1 <= s0 <= 64 {\n";
  for (int i = 0; i < inputs; ++i) text += fmt::format("  input %x{}: f32[s0, 3, 8, 8] from \"x{}\"\n", i, i);
  return text + "  return\n}\n";
}

// Nanoseconds of a call: the best of several rounds, since others use the machine too.
template <class Call>
double best_time(const Call& call) {
  using Clock = std::chrono::steady_clock;
  constexpr int rounds = 50, calls = 20'000;
  double best = 1e9;
  for (int round = 0; round < rounds; ++round) {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < calls; ++i) call();
    best = std::min(best, std::chrono::duration<double, std::nano>(Clock::now() - start).count() / calls);
  }
  return best;
}

double call_time(const CompiledGraph& graph, const std::vector<c10::IValue>& inputs) {
  return best_time([&] { (void)graph.run(inputs); });
}

// Nanoseconds that it takes to find that a pattern with a symbol holds for the arguments.
double match_time(const std::vector<c10::IValue>& inputs) {
  const std::vector<c10::IValue> others(inputs.size(), at::zeros({5, 3, 8, 8}));
  const auto pattern = torch_bridge::CallPattern(others).generalized(inputs, {});
  return best_time([&] { (void)pattern->match(inputs); });
}

}  // namespace

int main() {
  fmt::print("{:>8}{:>18}{:>18}{:>12}{:>24}\n", "inputs", "checked (ns)", "unchecked (ns)", "checks (ns)", "TorchScript form (ns)");
  for (const int count : {1, 4, 16}) {
    const std::vector<c10::IValue> inputs(static_cast<size_t>(count), at::zeros({4, 3, 8, 8}));
    const double checked = call_time(*CompiledGraph::from_file(model::parse(calls_text(count)), torch_bridge::CompileSettings(), Options()), inputs);
    const double unchecked = call_time(*CompiledGraph::from_calls(model::parse(calls_text(count)), torch_bridge::CompileSettings(), Options()), inputs);
    fmt::print("{:>8}{:>18.0f}{:>18.0f}{:>12.0f}{:>24.0f}\n", count, checked, unchecked, checked - unchecked, match_time(inputs));
  }
  return 0;
}
