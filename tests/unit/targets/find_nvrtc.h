// Where tests look for NVRTC: the environment variable CXXINDUCTOR_NVRTC, else the source folder's .venv.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "support/error.h"
#include "targets/cuda/nvrtc.h"
#include "targets/cuda/nvrtc_places.h"
#include "unit/catch.h"

namespace cxxinductor::targets {

inline NvrtcPlaces nvrtc_places() {
  NvrtcPlaces places;
  if (const char* named = std::getenv("CXXINDUCTOR_NVRTC")) places.given = named;
  std::error_code missing;
  for (const auto& python : std::filesystem::directory_iterator(CXXINDUCTOR_SOURCE_DIR "/.venv/lib", missing))
    places.torch_folder = python.path() / "site-packages/torch/lib";
  return places;
}

// Null, with a word in the test's output, where NVRTC is not installed.
inline std::unique_ptr<Nvrtc> find_nvrtc() {
  try {
    return std::make_unique<Nvrtc>(nvrtc_candidates(nvrtc_places()));
  } catch (const UserError& error) {
    WARN("skipped: " << error.what());
    return nullptr;
  }
}

}  // namespace cxxinductor::targets
