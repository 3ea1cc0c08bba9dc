// The tensors of a model's file.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "api/mapped_file.h"
#include "readers/pt2/read_pt2.h"

namespace cxxinductor::api {

// One for each weight of the program. On the CPU they lie in `file`, which they keep; on other devices they are copies. Weights
// that share storage in the file share it here.
std::vector<at::Tensor> make_weights(const readers::Program& program, const Bytes& file);

// All bytes of a tensor's storage, on the CPU.
at::Tensor storage_bytes(const at::Tensor& tensor);

}  // namespace cxxinductor::api
