// Where tests look for NVRTC: the environment variable CXXINDUCTOR_NVRTC, else the source folder's .venv.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "runtime/cuda/nvrtc.h"
#include "support/error.h"
#include "unit/catch.h"

namespace cxxinductor::runtime {

inline std::vector<std::string> nvrtc_places() {
  if (const char* named = std::getenv("CXXINDUCTOR_NVRTC")) return {named};
  std::vector<std::string> found;
  const std::filesystem::path root = std::filesystem::path(CXXINDUCTOR_SOURCE_DIR) / ".venv/lib";
  std::error_code missing;
  for (const auto& python : std::filesystem::directory_iterator(root, missing)) {
    const auto library = python.path() / "site-packages/nvidia/cu13/lib/libnvrtc.so.13";
    if (std::filesystem::exists(library)) found.push_back(library);
  }
  return found;
}

// Null, with a word in the test's output, where NVRTC is not installed.
inline std::unique_ptr<Nvrtc> find_nvrtc() {
  try {
    return std::make_unique<Nvrtc>(nvrtc_places());
  } catch (const UserError& error) {
    WARN("skipped: " << error.what());
    return nullptr;
  }
}

}  // namespace cxxinductor::runtime
