// CUDA graphs on a driver that keeps the arguments of recorded kernels: words in ranges, patches, errors.
#include <array>
#include <atomic>
#include <set>
#include <string_view>
#include <thread>

#include "support/error.h"
#include "targets/cuda/dynamic_library.h"
#include "targets/cuda/graph.h"
#include "targets/cuda/node_updates.h"
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
  decltype(&fake_cuda_update_tables) update_tables = reinterpret_cast<decltype(&fake_cuda_update_tables)>(library.find("fake_cuda_update_tables"));
  decltype(&fake_cuda_hold_back) hold_back = reinterpret_cast<decltype(&fake_cuda_hold_back)>(library.find("fake_cuda_hold_back"));
  decltype(&fake_cuda_replayed_word) replayed_word = reinterpret_cast<decltype(&fake_cuda_replayed_word)>(library.find("fake_cuda_replayed_word"));
  std::unique_ptr<NodeUpdateKernels> updates;  // null: not there yet
  CudaGraphDevice device{context, 1e12, 3e-6, [this] { return updates.get(); }};

  std::array<char, 256> first{}, second{}, own{};

  // A graph of one kernel with an address in `memory` and a number.
  std::unique_ptr<DeviceGraph> record(std::array<char, 256>& memory, uint64_t number) {
    const auto recorder = device.record(context.create_stream(), [this](const void* address) { return address == own.data(); });
    void* address = memory.data() + 16;
    std::array<void*, 2> arguments{&address, &number};
    context.launch(nullptr, {1}, {.block_x = 32}, nullptr, arguments.data(), "kernel");
    const MemoryRange range{memory.data(), 256};
    recorder->note({&range, 1}, {}, all_words);
    return recorder->finish(nullptr);
  }
};

// Kernels with addresses in two ranges by turns, and replays of them.
struct ManyKernels {
  Recording& recording;
  std::unique_ptr<DeviceGraph> graph;
  std::array<std::array<char, 256>, 2> other{};

  ManyKernels(Recording& on, size_t count) : recording(on) {
    const auto recorder = on.device.record(on.context.create_stream(), [](const void*) { return false; });
    const std::array<MemoryRange, 2> ranges{MemoryRange{on.first.data(), 256}, {on.second.data(), 256}};
    for (size_t i = 0; i < count; ++i) {
      void* address = (i % 2 == 0 ? on.first : on.second).data() + i % 256;
      uint64_t number = i;
      std::array<void*, 2> arguments{&number, &address};
      on.context.launch(nullptr, {1}, {.block_x = 32}, nullptr, arguments.data(), "kernel");
      recorder->note(ranges, {}, all_words);
    }
    graph = recorder->finish(nullptr);
  }
  size_t replay(const void* first, const void* second) {
    const std::array<void*, 2> begins{const_cast<void*>(first), const_cast<void*>(second)};
    return graph->launch(begins, nullptr);
  }
  bool is_at(const void* first, const void* second, size_t count) const {
    for (size_t i = 0; i < count; ++i) {
      const auto begin = reinterpret_cast<uintptr_t>(i % 2 == 0 ? first : second);
      if (recording.word(static_cast<int>(i), 0) != i || recording.word(static_cast<int>(i), 1) != begin + i % 256) return false;
    }
    return true;
  }
};

bool is_same_work(const DeviceGraph& a, const DeviceGraph& b) { return a.differences(b).empty(); }

// Steps of these numbers of kernels. Those of `own` use the recording's own memory, which the recorder has to tell; the others a range.
std::unique_ptr<DeviceGraph> record_steps(Recording& recording, const std::vector<int>& kernels, const std::set<size_t>& own, const Dependencies& order) {
  const MemoryRange range{recording.first.data(), 256};
  const auto recorder = recording.device.record(recording.context.create_stream(), [&](const void* address) { return address == recording.own.data(); });
  for (size_t step = 0; step < kernels.size(); ++step) {
    void* address = own.contains(step) ? recording.own.data() : recording.first.data() + step;
    uint64_t number = step;
    std::array<void*, 2> arguments{&address, &number};
    for (int k = 0; k < kernels[step]; ++k) recording.context.launch(nullptr, {1}, {.block_x = 32}, nullptr, arguments.data(), "kernel");
    recorder->note({&range, 1}, {}, all_words);
  }
  const std::vector<bool> uses_own = recorder->uses_of_own_memory();
  for (size_t step = 0; step < kernels.size(); ++step) CHECK(uses_own.at(step) == own.contains(step));
  return recorder->finish(&order);
}

}  // namespace

TEST_CASE("steps wait for those of their order alone", "[cuda]") {
  Recording recording;
  // 0 -> 1, 2 -> 3, one kernel each.
  const auto graph = record_steps(recording, {1, 1, 1, 1}, {}, {{}, {0}, {0}, {1, 2}});
  CHECK(recording.edges() == 4);
  CHECK((recording.edge(0, 1) && recording.edge(0, 2) && recording.edge(1, 3) && recording.edge(2, 3)));
  CHECK(is_same_work(*graph, *graph));
  CHECK_FALSE(is_same_work(*record_steps(recording, {1, 1, 1, 1}, {}, {{}, {0}, {1}, {2}}), *graph));
}

TEST_CASE("the kernels of one step keep their order, and steps without kernels pass on what they wait for", "[cuda]") {
  Recording recording;
  // Kernels 0, then 1 and 2 of step 1, none of step 2, then 3.
  record_steps(recording, {1, 2, 0, 1}, {}, {{}, {}, {0}, {2}});
  CHECK(recording.edges() == 2);
  CHECK((recording.edge(1, 2) && recording.edge(0, 3)));
}

TEST_CASE("steps that use the recording's own memory are told apart", "[cuda]") {
  Recording recording;
  record_steps(recording, {1, 1, 1, 1}, {1, 3}, {{}, {}, {}, {}});
}

TEST_CASE("an order that CUDA refuses ends the recording", "[cuda]") {
  Recording recording;
  const int destroyed = recording.calls("cuGraphDestroy");
  recording.fail("cuGraphAddDependencies", 0);
  CHECK_THROWS_AS(record_steps(recording, {1, 1}, {}, {{}, {0}}), UserError);
  CHECK(recording.calls("cuGraphDestroy") == destroyed + 1);
}

TEST_CASE("a recording that ends with an error leaves no graph", "[cuda]") {
  Recording recording;
  const auto record = [&] {
    // As an allocator that cannot tell its memory.
    const auto recorder = recording.device.record(recording.context.create_stream(), [](const void*) -> bool { throw UserError("unknown"); });
    uint64_t number = 7;
    std::array<void*, 2> arguments{&number, &number};
    recording.context.launch(nullptr, {1}, {.block_x = 32}, nullptr, arguments.data(), "kernel");
    recorder->note({}, {}, all_words);
    return recorder->finish(nullptr);
  };
  const int destroyed = recording.calls("cuGraphDestroy");
  CHECK_THROWS_AS(record(), UserError);
  CHECK(recording.calls("cuGraphDestroy") == destroyed + 1);
}

TEST_CASE("a replay at another address patches the words that lie in the range", "[cuda]") {
  Recording recording;
  const auto graph = recording.record(recording.first, 7);
  void* begin = recording.first.data();
  CHECK(graph->launch({&begin, 1}, nullptr) == 0);
  begin = recording.second.data();
  CHECK(graph->launch({&begin, 1}, nullptr) == 1);
  CHECK(recording.word(0, 0) == reinterpret_cast<uintptr_t>(recording.second.data() + 16));
  CHECK(recording.word(0, 1) == 7);
  CHECK(recording.calls("cuGraphLaunch") == 2);
}

TEST_CASE("numbers of our own kernels stay, even those that look like addresses", "[cuda]") {
  Recording recording;
  const auto recorder = recording.device.record(recording.context.create_stream(), [](const void*) { return false; });
  void* address = recording.first.data();
  uint64_t number = reinterpret_cast<uintptr_t>(recording.first.data() + 8);
  std::array<void*, 2> arguments{&address, &number};
  recording.context.launch(nullptr, {1}, {.block_x = 32}, nullptr, arguments.data(), "kernel");
  const MemoryRange range{recording.first.data(), 256};
  recorder->note({&range, 1}, {}, 1);
  const auto graph = recorder->finish(nullptr);
  void* begin = recording.second.data();
  CHECK(graph->launch({&begin, 1}, nullptr) == 1);
  CHECK(recording.word(0, 0) == reinterpret_cast<uintptr_t>(recording.second.data()));
  CHECK(recording.word(0, 1) == number);
}

TEST_CASE("memory of a result is other memory in what was queued before it was taken", "[cuda]") {
  Recording recording;
  const auto recorder = recording.device.record(recording.context.create_stream(), [&](const void* address) { return address == recording.own.data(); });
  void* address = recording.own.data();
  uint64_t number = 0;
  std::array<void*, 2> arguments{&address, &number};
  const auto launch = [&] { recording.context.launch(nullptr, {1}, {.block_x = 32}, nullptr, arguments.data(), "kernel"); };
  launch();
  const size_t position = recorder->position();
  CHECK(position == 1);
  launch();
  const MemoryRange range{recording.first.data(), 256};
  const ReplacedMemory result{{recording.own.data(), 256}, 0, 32, position};
  recorder->note({&range, 1}, {&result, 1}, all_words);
  const auto graph = recorder->finish(nullptr);
  void* begin = recording.first.data();
  CHECK(graph->launch({&begin, 1}, nullptr) == 0);  // it was made executable with this address
  CHECK(recording.word(1, 0) == reinterpret_cast<uintptr_t>(recording.first.data() + 32));
  begin = recording.second.data();
  CHECK(graph->launch({&begin, 1}, nullptr) == 1);
  CHECK(recording.word(0, 0) == reinterpret_cast<uintptr_t>(recording.own.data()));
  CHECK(recording.word(1, 0) == reinterpret_cast<uintptr_t>(recording.second.data() + 32));
}

TEST_CASE("recordings are the same work if they differ in ranges alone", "[cuda]") {
  Recording recording;
  const auto graph = recording.record(recording.first, 7);
  CHECK(is_same_work(*recording.record(recording.second, 7), *graph));
  CHECK_FALSE(is_same_work(*recording.record(recording.second, 8), *graph));
}

TEST_CASE("words that differ without anything having moved are not compared", "[cuda]") {
  Recording recording;
  const auto before = recording.record(recording.first, 7), graph = recording.record(recording.second, 8);
  const auto differences = graph->differences(*before);
  REQUIRE(differences.size() == 1);
  CHECK(differences[0].step == 0);
  CHECK(differences[0].what == "word 1 of its kernel's arguments is 0x8, and was 0x7");
  graph->ignore(*recording.record(recording.second, 8));
  CHECK_FALSE(is_same_work(*graph, *before));
  graph->ignore(*recording.record(recording.second, 9));
  CHECK(is_same_work(*graph, *before));
  CHECK(is_same_work(*before, *graph));
}

TEST_CASE("steps that queue other kernels are told apart", "[cuda]") {
  Recording recording;
  const Dependencies order{{}, {}, {}};
  const auto graph = record_steps(recording, {1, 2, 1}, {}, order), other = record_steps(recording, {1, 1, 1}, {}, order);
  const auto differences = graph->differences(*other);
  REQUIRE(differences.size() == 1);
  CHECK(differences[0].step == 1);
  CHECK(differences[0].what == "it queues another number of kernels");
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
  recording.fail("cuGraphLaunch's memory", 0);
  CHECK_THROWS_AS(graph->launch({&begin, 1}, nullptr), Unsupported);
  void* other = recording.second.data();
  recording.fail("cuGraphExecKernelNodeSetParams", 0);
  CHECK_THROWS_AS(graph->launch({&other, 1}, nullptr), Unsupported);
}

TEST_CASE("a graph of many kernels whose operands keep moving updates its nodes itself", "[cuda]") {
  Recording recording;
  constexpr int count = 1500;  // more words than a table has
  ManyKernels many(recording, count);
  const auto& [a, b] = many.other;
  const void* const c = recording.first.data();
  for (int i = 0; i < 3; ++i) CHECK(many.replay(i % 2 == 0 ? a.data() : c, b.data() + i) == count);
  // The kernels that do it are not there yet.
  CHECK(many.replay(c, b.data()) == count);
  recording.updates = std::make_unique<NodeUpdateKernels>(recording.driver, 0,
                                                          "\x7f"
                                                          "ELF");
  CHECK(many.replay(a.data(), b.data() + 1) == count);
  CHECK(recording.update_tables() == 0);
  CHECK(many.replay(a.data(), b.data() + 1) == 0);
  CHECK(recording.update_tables() == 2);
  for (size_t i = 0; i < 2 * NodeUpdateKernels::slots + 3; ++i) {
    CHECK(many.replay(a.data() + i, b.data() + 2 * i) == 0);
    CHECK(many.is_at(a.data() + i, b.data() + 2 * i, count));
  }
  CHECK(many.replay(c, b.data()) == 0);
  CHECK(many.is_at(c, b.data(), count));
}

TEST_CASE("nodes without addresses that moved stay with the host", "[cuda]") {
  Recording recording;
  recording.updates = std::make_unique<NodeUpdateKernels>(recording.driver, 0,
                                                          "\x7f"
                                                          "ELF");
  ManyKernels many(recording, 20);  // ten of each range
  const auto& [a, b] = many.other;
  const void *const c = recording.first.data(), *const d = recording.second.data();
  for (int i = 0; i < 6; ++i) many.replay(i % 2 == 0 ? a.data() : c, d);
  CHECK(recording.update_tables() == 1);
  CHECK(many.replay(a.data(), d) == 0);
  CHECK(many.replay(c, b.data()) == 10);  // the other half
  CHECK(many.is_at(c, b.data(), 20));
}

TEST_CASE("the host stays with patching nodes where the driver lets no kernel do it", "[cuda]") {
  Recording recording;
  recording.updates = std::make_unique<NodeUpdateKernels>(recording.driver, 0,
                                                          "\x7f"
                                                          "ELF");
  const char* const call = GENERATE("cuGraphKernelNodeSetAttribute", "cuGraphClone", "cuGraphAddKernelNode", "cuGraphUpload");
  ManyKernels many(recording, 8);
  const auto& [a, b] = many.other;
  for (int i = 0; i < 3; ++i) many.replay(a.data() + i, b.data() + i);
  recording.fail(call, 0);
  many.replay(b.data(), a.data());
  // One node that a kernel may not update does not keep it from the others.
  const bool refuses_a_node = std::string_view(call) == "cuGraphKernelNodeSetAttribute";
  for (int i = 0; i < 3; ++i) {
    CHECK(many.replay(a.data() + i, b.data() + i) == (refuses_a_node ? 1 : 8));
    CHECK(many.is_at(a.data() + i, b.data() + i, 8));
  }
  CHECK(recording.update_tables() == (refuses_a_node ? 1 : 0));
}

TEST_CASE("a host that is far ahead waits for the GPU, and learns that it has failed", "[cuda]") {
  Recording recording;
  recording.updates = std::make_unique<NodeUpdateKernels>(recording.driver, 0,
                                                          "\x7f"
                                                          "ELF");
  ManyKernels many(recording, 16);
  const auto& [a, b] = many.other;
  for (size_t i = 0; i < 6; ++i) many.replay(a.data() + i, b.data() + i);
  REQUIRE(recording.update_tables() == 1);
  recording.hold_back(true);
  for (size_t i = 0; i < NodeUpdateKernels::slots; ++i) many.replay(a.data() + i, b.data());
  recording.fail("cuStreamQuery", 3);
  CHECK_THROWS_AS(many.replay(a.data(), b.data()), InternalError);
  const int queried = recording.calls("cuStreamQuery");
  std::atomic<bool> returned = false;
  std::thread gpu([&] {
    while (recording.calls("cuStreamQuery") == queried && !returned) std::this_thread::yield();  // until the host waits
    recording.hold_back(false);
  });
  many.replay(b.data(), a.data());
  returned = true;
  gpu.join();
  CHECK(recording.calls("cuStreamQuery") > queried);
  CHECK(many.is_at(b.data(), a.data(), 16));
  // None of those that were held back has the addresses of a later one.
  for (size_t i = 0; i < NodeUpdateKernels::slots; ++i) CHECK(recording.replayed_word(static_cast<int>(6 + i)) == reinterpret_cast<uintptr_t>(a.data() + i));
}
