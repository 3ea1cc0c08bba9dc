// The subcommands of the program `cxxinductor`: what the command line says, and a function for each. main.cpp alone knows how
// arguments are spelled.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cxxinductor::cli {

struct Arguments {
  std::string file;                  // the model
  std::vector<std::string> options;  // of the library: "name=value"
  std::vector<std::string> inputs;   // files of tensors; none: the model's sample inputs, or random ones
  std::vector<std::string> shapes;   // of a TorchScript model's arguments, for random inputs: "f32[1, 3, 224, 224]"
  std::vector<std::string> sizes;    // "symbol=value", for random inputs
  bool random = false;               // random inputs even where the model has sample inputs
  int64_t seed = 0;
  std::string outputs;              // where run writes its results; "": a summary alone
  std::optional<double> tolerance;  // of verify; none: by dtype
  int64_t samples = 30;             // of bench
  std::string package;              // what compile writes
  std::vector<std::string> archs;   // that it compiles for; none: the machine's
  std::string weights = "inside";   // or "beside"
  std::string signing_key;          // a file; "": not signed
};

// Exit statuses.
constexpr int success = 0, failure = 1, wrong_use = 2;

// A file of torch.jit.save.
bool is_torchscript(const std::string& path);

// Each prints to standard output, returns an exit status, and throws what the library throws.
int compile(const Arguments& arguments);
int inspect(const Arguments& arguments);
int explain(const Arguments& arguments);
int run(const Arguments& arguments);
int bench(const Arguments& arguments);
int verify(const Arguments& arguments);

// The same for TorchScript files, whose signatures have no sizes: arguments of the command line give them. The code in such files is a
// program of PyTorch's ops, which runs without an allow-list.
namespace torchscript {
int compile(const Arguments& arguments);
int inspect(const Arguments& arguments);
int explain(const Arguments& arguments);
int run(const Arguments& arguments);
int bench(const Arguments& arguments);
int verify(const Arguments& arguments);
}  // namespace torchscript

}  // namespace cxxinductor::cli
