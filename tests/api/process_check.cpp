// What a process of another PyTorch is told. tests/python/test_one_library.py has two libraries in one process.
#include "torch_bridge/process_check.h"

#include <torch/headeronly/version.h>

#include "unit/catch.h"

namespace {

using cxxinductor::torch_bridge::check_process;
using cxxinductor::torch_bridge::torch_version_error;

constexpr uint64_t version(uint64_t major, uint64_t minor, uint64_t patch) { return major << 56 | minor << 48 | patch << 40; }

TEST_CASE("PyTorch has to be of the version that the library was built for") {
  CHECK(torch_version_error(version(2, 11, 0), version(2, 11, 0)).empty());
  CHECK(torch_version_error(version(2, 11, 0), version(2, 11, 1)).empty());
  CHECK(torch_version_error(version(2, 11, 0), version(2, 12, 0)).find("built for PyTorch 2.11.0, but this process has loaded 2.12.0;") != std::string::npos);
  CHECK_FALSE(torch_version_error(version(2, 11, 0), version(3, 11, 0)).empty());
  CHECK(torch_version_error(version(2, 11, 0), 0).find("an unknown version") != std::string::npos);
  CHECK(torch_version_error(TORCH_ABI_VERSION, TORCH_ABI_VERSION).empty());
  CHECK_NOTHROW(check_process());
}

}  // namespace
