// Where NVRTC is looked for: folders laid out as PyTorch's packages and CUDA Toolkits are.
#include "targets/cuda/nvrtc_places.h"

#include <fstream>

#include "support/error.h"
#include "targets/cuda/nvrtc.h"
#include "unit/catch.h"
#include "unit/runtime/temporary_folder.h"

namespace {

using namespace cxxinductor;
using namespace cxxinductor::runtime;
using namespace cxxinductor::targets;

using Paths = std::vector<std::string>;

// Empty files under a temporary folder.
struct EmptyFiles {
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
  const EmptyFiles files;
  files.add("site/torch/lib/libtorch_cpu.so");
  files.add("site/nvidia/cu13/lib/libnvrtc.so.13");
  files.add("site/nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  files.add("cuda-13.1/lib64/libnvrtc.so.13");
  const NvrtcPlaces places{"", files.path("site/torch/lib"), {files.path("cuda-13.1"), files.path("missing")}};
  const Paths expected = followed_by_names({
      files.path("site/torch/lib/libnvrtc.so.13"),
      files.path("site/nvidia/cu13/lib/libnvrtc.so.13"),
      files.path("site/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"),
      files.path("cuda-13.1/lib64/libnvrtc.so.13"),
      files.path("cuda-13.1/lib/libnvrtc.so.13"),
      files.path("missing/lib64/libnvrtc.so.13"),
      files.path("missing/lib/libnvrtc.so.13"),
  });
  CHECK(nvrtc_candidates(places) == expected);
  CHECK(nvrtc_candidates({}) == by_name);
}

TEST_CASE("a folder's NVRTCs are taken by version, under the names of LibTorch's archives too") {
  const EmptyFiles files;
  for (const char* name : {"libnvrtc.so.12", "libnvrtc-672ee683.so.13", "libnvrtc.so.9.2.148", "libnvrtc-builtins.so.13.0", "libnvrtc.alt.so.13",
                           "libnvrtc-builtins-2f6e.so.13", "libnvrtc.so.x", "libnvrtc.so", "libnvrtc_static.a"})
    files.add(std::string("lib/") + name);
  CHECK(nvrtc_candidates({files.path("lib"), "", {}}) ==
        Paths{files.path("lib/libnvrtc-672ee683.so.13"), files.path("lib/libnvrtc.so.12"), files.path("lib/libnvrtc.so.9.2.148")});
}

TEST_CASE("what option nvrtc names is the only place") {
  const EmptyFiles files;
  files.add("torch/lib/libnvrtc.so.13");
  for (const std::string& library : {files.path("mine/libnvrtc.so.13"), files.path("mine/renamed.so"), std::string("libnvrtc.so.12")})
    CHECK(nvrtc_candidates({library, files.path("torch/lib"), {files.path("cuda")}}) == Paths{library});
  CHECK(nvrtc_candidates({files.path("empty"), files.path("torch/lib"), {}}) == Paths{files.path("empty/libnvrtc.so.13")});
}

TEST_CASE("the error lists every place where NVRTC was looked for") {
  const EmptyFiles files;
  files.add("torch/lib/libnvrtc.so.13");
  const NvrtcPlaces places{"", files.path("torch/lib"), {files.path("cuda")}};
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
  CHECK(message.find(files.path("torch/lib/libnvrtc.so.13") + ": file too short") != message.npos);
  for (const char* place : {"nvidia/cu13/lib/libnvrtc.so.13", "nvidia/cuda_nvrtc/lib/libnvrtc.so.13", "cuda/lib64/libnvrtc.so.13", "cuda/lib/libnvrtc.so.13"})
    CHECK(message.find(files.path(place) + ": cannot open shared object file") != message.npos);
}

}  // namespace
