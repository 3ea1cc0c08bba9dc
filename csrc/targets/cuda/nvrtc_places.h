// Where NVRTC may lie on a machine, in the order of looking.
#pragma once

#include <string>
#include <vector>

namespace cxxinductor::targets {

struct NvrtcPlaces {
  // Option nvrtc: the library, or a folder that holds it. Where it is set, nothing else is looked at.
  std::string given;
  // The folder of LibTorch's libraries; empty: unknown. An unpacked LibTorch has NVRTC in that folder, a wheel of PyTorch in the
  // neighbouring packages nvidia/cu13 (CUDA 13) and nvidia/cuda_nvrtc (CUDA 12).
  std::string torch_folder;
  std::vector<std::string> toolkits;  // folders of CUDA Toolkits
};

// What to open, best first. The last ones are names without a folder, which the system's loader looks up. Each place has at least one
// path, so that the error of Nvrtc, which lists all that it tried, lists the places where nothing was found too.
std::vector<std::string> nvrtc_candidates(const NvrtcPlaces& places);

}  // namespace cxxinductor::targets
