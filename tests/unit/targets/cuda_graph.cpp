// CUDA graphs on a driver that keeps the arguments of recorded kernels: words in ranges, their exchange, errors.
#include "targets/cuda/graph.h"

#include <array>
#include <set>

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
  decltype(&fake_cuda_graph_edge) edge = reinterpret_cast<decltype(&fake_cuda_graph_edge)>(library.find("fake_cuda_graph_edge"));
  decltype(&fake_cuda_graph_edges) edges = reinterpret_cast<decltype(&fake_cuda_graph_edges)>(library.find("fake_cuda_graph_edges"));
  decltype(&fake_cuda_fail) fail = reinterpret_cast<decltype(&fake_cuda_fail)>(library.find("fake_cuda_fail"));
  decltype(&fake_cuda_calls) calls = reinterpret_cast<decltype(&fake_cuda_calls)>(library.find("fake_cuda_calls"));
  CudaDriver driver{{CXXINDUCTOR_FAKE_CUDA_DRIVER}};
  CudaContext context{driver, 0};
  CudaGraphDevice device{context, 1e12};

  std::array<char, 256> first{}, second{}, own{};

  // A graph of one kernel with an address in `memory` and a number.
  std::unique_ptr<DeviceGraph> record(std::array<char, 256>& memory, uint64_t number) {
    const auto recorder = device.record(context.create_stream(), [this](const void* address) { return address == own.data(); });
    void* address = memory.data() + 16;
    std::array<void*, 2> arguments{&address, &number};
    context.launch(nullptr, {1}, {.block_x = 32}, nullptr, arguments.data(), "kernel");
    const MemoryRange range{memory.data(), 256};
    recorder->note({&range, 1}, {});
    return recorder->finish(nullptr);
  }
};

// Steps of these numbers of kernels; those of `own` use the recording's own memory.
std::unique_ptr<DeviceGraph> record_steps(Recording& recording, const std::vector<int>& kernels, const std::set<size_t>& own, const Dependencies& order) {
  const auto recorder = recording.device.record(recording.context.create_stream(), [&](const void* address) { return address == recording.own.data(); });
  for (size_t step = 0; step < kernels.size(); ++step) {
    void* address = own.contains(step) ? recording.own.data() : nullptr;
    uint64_t number = step;
    std::array<void*, 2> arguments{&address, &number};
    for (int k = 0; k < kernels[step]; ++k) recording.context.launch(nullptr, {1}, {.block_x = 32}, nullptr, arguments.data(), "kernel");
    recorder->note({}, {});
  }
  return recorder->finish(&order);
}

}  // namespace

TEST_CASE("steps wait for those of their order alone", "[cuda]") {
  Recording recording;
  // 0 -> 1, 2 -> 3, one kernel each.
  const auto graph = record_steps(recording, {1, 1, 1, 1}, {}, {{}, {0}, {0}, {1, 2}});
  CHECK(recording.edges() == 4);
  CHECK((recording.edge(0, 1) && recording.edge(0, 2) && recording.edge(1, 3) && recording.edge(2, 3)));
  CHECK(graph->is_same_work(*graph));
  CHECK_FALSE(record_steps(recording, {1, 1, 1, 1}, {}, {{}, {0}, {1}, {2}})->is_same_work(*graph));
}

TEST_CASE("the kernels of one step keep their order, and steps without kernels pass on what they wait for", "[cuda]") {
  Recording recording;
  // Kernels 0, then 1 and 2 of step 1, none of step 2, then 3.
  record_steps(recording, {1, 2, 0, 1}, {}, {{}, {}, {0}, {2}});
  CHECK(recording.edges() == 2);
  CHECK((recording.edge(1, 2) && recording.edge(0, 3)));
}

TEST_CASE("steps that use the recording's own memory run one after the other", "[cuda]") {
  Recording recording;
  record_steps(recording, {1, 1, 1, 1}, {1, 3}, {{}, {}, {}, {}});
  CHECK(recording.edges() == 1);
  CHECK(recording.edge(1, 3));
  record_steps(recording, {1, 1}, {0, 1}, {{}, {0}});
  CHECK(recording.edges() == 1);
}

TEST_CASE("an order that CUDA refuses ends the recording", "[cuda]") {
  Recording recording;
  const int destroyed = recording.calls("cuGraphDestroy");
  recording.fail("cuGraphAddDependencies", 0);
  CHECK_THROWS_AS(record_steps(recording, {1, 1}, {}, {{}, {0}}), UserError);
  CHECK(recording.calls("cuGraphDestroy") == destroyed + 1);
}

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
