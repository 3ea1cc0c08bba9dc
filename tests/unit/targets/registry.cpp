// Architectures by name, for devices that need not be there.
#include "targets/registry.h"

#include "ir/device_types.h"
#include "unit/catch.h"

using namespace cxxinductor;
using namespace cxxinductor::targets;

namespace {
int four() { return 4; }
void nothing() {}

struct Runtimes {
  Registry registry{{.torch_folder = {}, .threads = &four, .opened_library = &nothing}};
  TargetRuntime& cpu = registry.of(DeviceType::Cpu);
  TargetRuntime& cuda = registry.of(DeviceType::Cuda);
};
}  // namespace

TEST_CASE("each kind of device has a target of its own") {
  Runtimes runtimes;
  CHECK(runtimes.cpu.describe(0).device == DeviceType::Cpu);
  CHECK(runtimes.cpu.describe(0).multiprocessors == 4);
  CHECK(runtimes.cuda.target_of_arch("sm_90a", 132)->device == DeviceType::Cuda);
}

TEST_CASE("names of architectures belong to one kind of device") {
  Runtimes runtimes;
  for (const char* arch : {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"}) {
    INFO(arch);
    CHECK(runtimes.cpu.target_of_arch(arch, std::nullopt)->arch == arch);
    CHECK_FALSE(runtimes.cuda.target_of_arch(arch, std::nullopt));
  }
  for (const char* arch : {"sm_80", "sm_90", "sm_90a", "sm_120"}) {
    INFO(arch);
    CHECK(runtimes.cuda.target_of_arch(arch, std::nullopt)->arch == arch);
    CHECK(runtimes.cuda.target_of_arch(arch, 7)->multiprocessors == 7);
    CHECK_FALSE(runtimes.cpu.target_of_arch(arch, std::nullopt));
  }
  for (const char* arch : {"", "x86-64-v5", "sm_", "sm_9", "sm_90b", "sm_9000", "compute_90"}) {
    INFO(arch);
    CHECK_FALSE(runtimes.cpu.target_of_arch(arch, std::nullopt));
    CHECK_FALSE(runtimes.cuda.target_of_arch(arch, std::nullopt));
  }
}

TEST_CASE("a machine runs code of its own architecture and of older ones") {
  Runtimes runtimes;
  CHECK(runtimes.cpu.describe(0, "x86-64")->arch == "x86-64");
  CHECK(runtimes.cpu.describe(0, runtimes.cpu.describe(0).arch));
  CHECK_FALSE(runtimes.cpu.describe(0, "sm_90"));
  CHECK_FALSE(runtimes.cuda.describe(1023, "sm_90"));  // no such GPU, or no driver
  CHECK(runtimes.cpu.make_stream(0) == nullptr);
  CHECK_FALSE(runtimes.cuda.is_recording(nullptr));  // nobody opened the driver
}
