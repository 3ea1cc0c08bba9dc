// Where NVRTC is looked for: folders laid out as PyTorch's packages and CUDA Toolkits are.
#include "targets/cuda/nvrtc_places.h"

#include <fstream>

#include "targets/cuda/nvrtc.h"
#include "support/error.h"
#include "unit/catch.h"
#include "unit/runtime/temporary_folder.h"

namespace {

using namespace cxxinductor;
using namespace cxxinductor::runtime;
using namespace cxxinductor::targets;

using Paths = std::vector<std::string>;

// Empty files under a temporary folder.
struct Machine {
  TemporaryFolder root;
  std::string path(const std::string& name) const { return root.path() + "/" + name; }
  void add(const std::string& name) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name)) << "not a library";
  }
};

const Paths by_name{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};

Paths followed_by_names(Paths paths) {
  paths.insert(paths.end(), by_name.begin(), by_name.end());
  return paths;
}

TEST_CASE("NVRTC is looked for beside LibTorch, in pip's packages, in toolkits, by the loader") {
  const Machine machine;
  machine.add("site/torch/lib/libtorch_cpu.so");
  machine.add("site/nvidia/cu13/lib/libnvrtc.so.13");
  machine.add("site/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  machine.add("cuda-13.1/lib64/libnvrtc.so.13");
  const NvrtcPlaces places{"", machine.path("site/torch/lib"), {machine.path("cuda-13.1"), machine.path("missing")}};
  const Paths expected = followed_by_names({
      machine.path("site/torch/lib/libnvrtc.so.13"),
      machine.path("site/nvidia/cu13/lib/libnvrtc.so.13"),
      machine.path("site/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"),
      machine.path("cuda-13.1/lib64/libnvrtc.so.13"),
      machine.path("cuda-13.1/lib/libnvrtc.so.13"),
      machine.path("missing/lib64/libnvrtc.so.13"),
      machine.path("missing/lib/libnvrtc.so.13"),
  });
  CHECK(nvrtc_candidates(places) == expected);
  CHECK(nvrtc_candidates({}) == by_name);
}

TEST_CASE("a folder's NVRTCs are taken by version, under the names of LibTorch's archives too") {
  const Machine machine;
  for (const char* name : {"libnvrtc.so.12", "libnvrtc-672ee683.so.13", "libnvrtc.so.9.2.148", "libnvrtc-builtins.so.13.0",
                           "libnvrtc.alt.so.13", "libnvrtc-builtins-2f6e.so.13", "libnvrtc.so.x", "libnvrtc.so", "libnvrtc_static.a"})
    machine.add(std::string("lib/") + name);
  CHECK(nvrtc_candidates({machine.path("lib"), "", {}}) ==
        Paths{machine.path("lib/libnvrtc-672ee683.so.13"), machine.path("lib/libnvrtc.so.12"), machine.path("lib/libnvrtc.so.9.2.148")});
}

TEST_CASE("what option nvrtc names is the only place") {
  const Machine machine;
  machine.add("torch/lib/libnvrtc.so.13");
  for (const std::string& library : {machine.path("mine/libnvrtc.so.13"), machine.path("mine/renamed.so"), std::string("libnvrtc.so.12")})
    CHECK(nvrtc_candidates({library, machine.path("torch/lib"), {machine.path("cuda")}}) == Paths{library});
  CHECK(nvrtc_candidates({machine.path("empty"), machine.path("torch/lib"), {}}) == Paths{machine.path("empty/libnvrtc.so.13")});
}

TEST_CASE("the error lists every place where NVRTC was looked for") {
  const Machine machine;
  machine.add("torch/lib/libnvrtc.so.13");
  const NvrtcPlaces places{"", machine.path("torch/lib"), {machine.path("cuda")}};
  Paths candidates = nvrtc_candidates(places);
  candidates.resize(candidates.size() - by_name.size());  // which this machine may have
  std::string message;
  try {
    const Nvrtc nvrtc(candidates);
  } catch (const UserError& error) {
    message = error.what();
  }
  INFO(message);
  CHECK(message.find("option nvrtc, or CXXINDUCTOR_NVRTC") != message.npos);
  CHECK(message.find(machine.path("torch/lib/libnvrtc.so.13") + ": file too short") != message.npos);
  for (const char* place : {"nvidia/cu13/lib/libnvrtc.so.13", "nvidia/cuda_nvrtc/lib/libnvrtc.so.13", "cuda/lib64/libnvrtc.so.13", "cuda/lib/libnvrtc.so.13"})
    CHECK(message.find(machine.path(place) + ": cannot open shared object file") != message.npos);
}

}  // namespace
