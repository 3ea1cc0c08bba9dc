#include <c10/util/Exception.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>

#include "cli/inputs.h"
#include "support/error.h"

namespace cxxinductor::cli {
namespace {

void write_outputs(const std::string& path, std::vector<c10::IValue> outputs) {
  const std::vector<char> bytes = torch::jit::pickle_save(c10::ivalue::Tuple::create(std::move(outputs)));
  std::ofstream file(path, std::ios::binary);
  if (!file.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush()) throw_user_error("--outputs: {}: {}", path, std::strerror(errno));
}

void print_summary(const c10::IValue& output) {
  std::cout << "  " << value_text(output);
  if (output.isTensor() && output.toTensor().numel() > 0 && at::isFloatingType(output.toTensor().scalar_type())) {
    const at::Tensor numbers = output.toTensor().to(at::kDouble);
    std::cout << fmt::format(": {:.6g} to {:.6g}, mean {:.6g}", numbers.min().item<double>(), numbers.max().item<double>(), numbers.mean().item<double>());
  }
  std::cout << "\n";
}

}  // namespace

void print_outputs(const std::vector<c10::IValue>& outputs, const Arguments& arguments) {
  std::cout << "outputs\n";
  for (const c10::IValue& output : outputs) print_summary(output);
  if (!arguments.outputs.empty()) write_outputs(arguments.outputs, outputs);
}

int run(const Arguments& arguments) {
  const ModelFile file = read_model(arguments.file);
  const Model model = load(arguments.file, library_options(arguments));
  const Inputs inputs = choose_inputs(file, arguments);
  std::cout << "inputs: " << inputs.origin << "\n";
  for (const c10::IValue& input : inputs.values) std::cout << "  " << value_text(input) << "\n";
  print_outputs(model.run(inputs.values), arguments);
  return success;
}

}  // namespace cxxinductor::cli
