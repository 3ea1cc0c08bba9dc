// Compiles a saved graph text and runs it on at::Tensors: no Python anywhere. Usage: run_graph FILE [cpu|cuda]
#include <ATen/ATen.h>

#include <fstream>
#include <iostream>
#include <sstream>

#include "torch_bridge/compiled_graph.h"

namespace bridge = cxxinductor::torch_bridge;

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::cerr << "usage: run_graph FILE\n";
    return 2;
  }
  std::ifstream file(argv[1]);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) throw std::runtime_error(std::string("cannot read ") + argv[1]);

  const auto graph = bridge::CompiledGraph::from_text(text.str(), {});
  std::cout << "compiled into " << graph->plan()->kernels.size() << " kernel(s)\n";

  // The example graph is softmax(x + b): see softmax.graph beside this file.
  at::manual_seed(0);
  const at::Tensor x = at::randn({8, 100}), b = at::randn({100});
  const at::Tensor ours = graph->run({x, b}).at(0).toTensor();
  const double difference = (ours - (x + b).softmax(1)).abs().max().item<double>();
  std::cout << "largest difference from ATen: " << difference << "\n";

  // Inputs are checked before anything runs.
  try {
    graph->run({x.to(at::kDouble), b});
    std::cerr << "a wrong dtype was not refused\n";
    return 1;
  } catch (const std::exception& error) {
    std::cout << "refused, as it should be: " << error.what() << "\n";
  }
  return difference < 1e-6 ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
