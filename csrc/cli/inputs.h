// Inputs for a model: from files, from the samples in its archive, or random.
#pragma once

#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

#include "cli/model_file.h"

namespace cxxinductor::cli {

struct Inputs {
  std::vector<c10::IValue> values;  // as Model::run takes them
  std::string origin;               // "random, seed 0"
};

// Those that the arguments ask for: of files; else, unless sizes or random ones are asked for, the file's samples; else random ones.
Inputs choose_inputs(const ModelFile& file, const Arguments& arguments);

// The same values in other memory: a run may update its inputs.
std::vector<c10::IValue> copies(const std::vector<c10::IValue>& values);

// What torch.save wrote, read by LibTorch's unpickler, which knows tensors and plain containers and runs no code. UserError.
c10::IValue read_saved(std::span<const std::byte> bytes, const std::string& what);
// The leaves of saved (args, kwargs) in the order of the signature. UserError where it does not fit.
std::vector<c10::IValue> read_samples(const ModelFile& file);
// Values of files of torch.save: the items of a tuple or list, or the value itself.
std::vector<c10::IValue> read_files(const std::vector<std::string>& paths);
// Of "f32[1, 3, 224, 224]", "i64[2, 7] on cuda:0", or a number, True, False or None as it is. UserError for another text.
c10::IValue make_random_input(const std::string& text);
// Tensors of normal numbers, of integers 0 and 1 (which index any table), of booleans; sizes are given ("s0=8") or chosen in their ranges.
std::vector<c10::IValue> make_random_inputs(const readers::Program& program, const std::vector<std::string>& sizes, int64_t seed);

}  // namespace cxxinductor::cli
