// CUDA graphs on a driver that keeps the arguments of recorded kernels: words in ranges, their exchange, errors.
#include "targets/cuda/graph.h"

#include <array>

#include "support/error.h"
#include "targets/cuda/dynamic_library.h"
#include "unit/catch.h"
#include "unit/targets/fake_cuda/fake_driver.h"

using namespace cxxinductor;
using namespace cxxinductor::runtime;
using namespace cxxinductor::targets;

namespace {

struct Recording {
  DynamicLibrary library{{CXXINDUCTOR_FAKE_CUDA_DRIVER}, "the driver of the tests is not built"};
  decltype(&fake_cuda_graph_word) word = reinterpret_cast<decltype(&fake_cuda_graph_word)>(library.find("fake_cuda_graph_word"));
  decltype(&fake_cuda_fail) fail = reinterpret_cast<decltype(&fake_cuda_fail)>(library.find("fake_cuda_fail"));
  decltype(&fake_cuda_calls) calls = reinterpret_cast<decltype(&fake_cuda_calls)>(library.find("fake_cuda_calls"));
  CudaDriver driver{{CXXINDUCTOR_FAKE_CUDA_DRIVER}};
  CudaContext context{driver, 0};
  CudaGraphDevice device{context};

  std::array<char, 256> first{}, second{}, own{};

  // A graph of one kernel with an address in `memory` and a number.
  std::unique_ptr<DeviceGraph> record(std::array<char, 256>& memory, uint64_t number) {
    const auto recorder = device.record(context.create_stream(), [this](const void* address) { return address == own.data(); });
    void* address = memory.data() + 16;
    std::array<void*, 2> arguments{&address, &number};
    context.launch(nullptr, 1, 1, 32, 1, 0, nullptr, arguments.data(), "kernel");
    const MemoryRange range{memory.data(), 256};
    recorder->note({&range, 1}, {});
    return recorder->finish();
  }
};

}  // namespace

TEST_CASE("a replay at another address exchanges the words that lie in the range", "[cuda]") {
  Recording recording;
  const auto graph = recording.record(recording.first, 7);
  REQUIRE(graph->nodes() == 1);
  void* begin = recording.first.data();
  CHECK(graph->launch({&begin, 1}, nullptr) == 1);  // the first launch writes all arguments
  CHECK(graph->launch({&begin, 1}, nullptr) == 0);
  begin = recording.second.data();
  CHECK(graph->launch({&begin, 1}, nullptr) == 1);
  CHECK(recording.word(0, 0) == reinterpret_cast<uintptr_t>(recording.second.data() + 16));
  CHECK(recording.word(0, 1) == 7);
  CHECK(recording.calls("cuGraphLaunch") == 3);
}

TEST_CASE("recordings are the same work if they differ in ranges alone", "[cuda]") {
  Recording recording;
  const auto graph = recording.record(recording.first, 7);
  CHECK(recording.record(recording.second, 7)->is_same_work(*graph));
  CHECK_FALSE(recording.record(recording.second, 8)->is_same_work(*graph));
}

TEST_CASE("a recording that CUDA ends is not supported, a replay that fails is an error", "[cuda]") {
  Recording recording;
  recording.fail("cuStreamEndCapture", 0);
  CHECK_THROWS_AS(recording.record(recording.first, 7), Unsupported);
  const auto graph = recording.record(recording.first, 7);
  void* begin = recording.first.data();
  recording.fail("cuGraphLaunch", 0);
  CHECK_THROWS_AS(graph->launch({&begin, 1}, nullptr), InternalError);
  CHECK_NOTHROW(graph->launch({&begin, 1}, nullptr));
}
