// Compiles an exported model and runs it: no Python anywhere. Usage: run_model MODEL.pt2 INPUTS.pt [OUTPUTS.pt]
//
// In Python: torch.export.save(torch.export.export(model, args), "MODEL.pt2") and torch.save(list(args), "INPUTS.pt").
#include <cxxinductor/cxxinductor.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <fstream>
#include <iostream>
#include <iterator>

std::vector<char> read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(std::string("cannot read ") + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

int main(int argc, char** argv) try {
  if (argc < 3) {
    std::cerr << "usage: run_model MODEL.pt2 INPUTS.pt [OUTPUTS.pt]\n";
    return 2;
  }
  const cxxinductor::Model model = cxxinductor::load(argv[1], cxxinductor::options_from_environment());
  for (const std::string& type : model.input_types()) std::cout << "input " << type << "\n";

  const c10::IValue given = torch::jit::pickle_load(read_file(argv[2]));
  const c10::List<c10::IValue> list = given.toList();
  const std::vector<c10::IValue> outputs = model.run({list.begin(), list.end()});
  for (const c10::IValue& output : outputs)
    if (output.isTensor()) std::cout << "output " << output.toTensor().toString() << output.toTensor().sizes() << "\n";

  if (argc > 3) {
    const std::vector<char> bytes = torch::jit::pickle_save(c10::ivalue::Tuple::create(outputs));
    std::ofstream(argv[3], std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  return 0;
} catch (const cxxinductor::Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
} catch (const std::exception& error) {
  std::cerr << "PyTorch: " << error.what() << "\n";
  return 1;
}
