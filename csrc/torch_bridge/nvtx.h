// Ranges of NVTX, the interface of NVIDIA's tools (Nsight Systems) to a program. A tool is a library that
// NVTX_INJECTION64_PATH names; without one a range costs a load and a branch.
#pragma once

#include <string>

namespace cxxinductor::torch_bridge {

// From construction to destruction, on the thread of both. Ranges of a thread nest.
class NvtxRange {
 public:
  explicit NvtxRange(const std::string& name);
  ~NvtxRange();
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;
};

}  // namespace cxxinductor::torch_bridge
