// A serving host that knows TorchScript and nothing of this library: it links LibTorch alone. Under LD_PRELOAD of libcxxinductor it runs
// modules that were optimized.
//
//   torchscript_host MODEL.pt INPUTS.pt OUTPUTS.pt CALLS      INPUTS: a tuple or list; OUTPUTS: the last call's
#include <ATen/core/grad_mode.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>

namespace {

// A pickle does not say what dictionaries are of.
c10::IValue as_type(const c10::IValue& value, const c10::Type& type) {
  const auto* dict_type = type.castRaw<c10::DictType>();
  if (dict_type == nullptr) return value;
  c10::impl::GenericDict dict(dict_type->getKeyType(), dict_type->getValueType());
  for (const auto& entry : value.toGenericDict()) dict.insert(entry.key(), entry.value());
  return dict;
}

std::vector<c10::IValue> read_inputs(const char* path) {
  std::ifstream file(path, std::ios::binary);
  const c10::IValue value = torch::jit::pickle_load({std::istreambuf_iterator<char>(file), {}});
  return value.isTuple() ? value.toTupleRef().elements().vec() : value.toListRef().vec();
}

}  // namespace

int main(int count, char** arguments) try {
  if (count != 5) return 2;
  const c10::InferenceMode inference;
  torch::jit::Module module = torch::jit::load(arguments[1]);
  std::vector<c10::IValue> inputs = read_inputs(arguments[2]);
  const auto& expected = module.get_method("forward").function().getSchema().arguments();  // the module first
  for (size_t i = 0; i < inputs.size() && i + 1 < expected.size(); ++i) inputs[i] = as_type(inputs[i], *expected[i + 1].type());
  c10::IValue output;
  for (int call = std::atoi(arguments[4]); call > 0; --call) output = module.forward(inputs);
  const std::vector<char> bytes = torch::jit::pickle_save(output);
  std::ofstream(arguments[3], std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
