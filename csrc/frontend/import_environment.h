// Facts about the machine and the process, by which the same calls are imported differently.
#pragma once

#include <map>

#include "ir/dtype.h"
#include "ir/target.h"

namespace cxxinductor::frontend {

struct ImportEnvironment {
  std::map<Device, Target> gpus;  // that run the graph, where they are known
  // Whether kernels on tensors in the host's memory are threads in blocks, as a registered target (cxxinductor/target.h) may have it.
  bool simt_on_host = false;
  // Whether kernels can be compiled for the CPU. If not, a graph on a GPU calls ATen for what it computes on the CPU.
  bool cpu_kernels = true;
  // torch.use_deterministic_algorithms: two runs give the same bits. Scatters on CUDA that eager then makes reproducible,
  // or refuses, stay calls.
  bool deterministic = false;
  // Sums may change from run to run also where eager's do not (numerics=fast).
  bool any_order = false;
};

}  // namespace cxxinductor::frontend
