// A target that a C++ program describes itself: functions that it compiles with it are computed by its launches.
#include <ATen/ATen.h>
#include <cxxinductor/function.h>
#include <cxxinductor/target.h>

#include <atomic>

#include "unit/catch.h"

namespace {

std::atomic<int> launches = 0;

// Its "code" is the kernel's text, and its kernels are all x + 1 for eight floats.
cxxinductor::RegisteredTarget adder() {
  return {.name = "adder",
          .version = "1",
          .compile = [](const cxxinductor::KernelSource& source, const cxxinductor::TargetOptions&) { return source.text; },
          .load = [](const std::string& code, const cxxinductor::TargetOptions&) -> void* { return new std::string(code); },
          .unload = [](void* module) { delete static_cast<std::string*>(module); },
          .launch =
              [](void*, const cxxinductor::KernelLaunch& launch) {
                const float* const from = *static_cast<const float**>(launch.arguments[0]);
                float* const to = *static_cast<float**>(launch.arguments[1]);
                for (int i = 0; i < 8; ++i) to[i] = from[i] + 1;
                ++launches;
              }};
}

}  // namespace

TEST_CASE("a program's own target computes its functions", "[target]") {
  cxxinductor::register_target(adder());
  cxxinductor::register_target(adder());
  cxxinductor::Options options;
  options.cache = "off";
  options.target = "adder";
  const auto function = cxxinductor::compile([](at::Tensor x) { return x + 1; }, options);
  const at::Tensor x = at::randn({8});
  CHECK(at::equal(function(x), x + 1));
  CHECK(launches == 1);
  auto other = adder();
  other.version = "2";
  CHECK_THROWS_WITH(cxxinductor::register_target(other), mentions("expected the version that is registered, '1', found '2'"));
}
