// Recordings and replays of calls on a device in software: results at other addresses, what is recorded and what is not.
#include <array>
#include <functional>
#include <future>
#include <set>
#include <thread>

#include "runtime/graphs/call_memory_use.h"
#include "unit/runtime/recorded_plans.h"

using namespace cxxinductor;
using namespace cxxinductor::runtime;

TEST_CASE("kernels are recorded once, and replayed with each call's memory", "[graphs]") {
  DevicePlanBuilder b;
  const auto x = b.gpu_input("x"), t = b.arena("t"), u = b.arena("u"), y = b.on_gpu("y", plan::Buffer::Kind::Standalone);
  b.add(x, t);
  b.add(t, u);
  b.allocate(y);
  b.add(u, y);
  b.output(y);
  DeviceRun run;
  run.load(b);
  for (int call = 0; call < 10; ++call) run.check(8, static_cast<float>(call), 3);
  CHECK(graph_counters().recordings == 1);
  CHECK(graph_counters().replays == 8);  // two calls run before the recording
  CHECK(run.executable->not_recorded().empty());
}

TEST_CASE("replays find small arenas in scratch memory, and allocate results alone", "[graphs]") {
  DevicePlanBuilder b;
  const auto x = b.gpu_input("x"), t = b.arena("t"), u = b.arena("u"), y = b.on_gpu("y", plan::Buffer::Kind::Standalone);
  b.add(x, t);
  b.add(t, u);
  b.allocate(y);
  b.add(u, y);
  b.output(y);
  DeviceRun run;
  run.load(b);
  const auto allocations = [&](int64_t size) {
    const int64_t before = run.device.allocations;
    run.check(size, 0, 3);
    return run.device.allocations - before - 1;  // x is the test's
  };
  CHECK(allocations(8) == 2);
  run.check(8, 0, 3);
  run.check(8, 0, 3);  // records: the scratch memory is there from now on
  CHECK(allocations(8) == 1);
  for (int call = 0; call < 3; ++call) run.check(4, 0, 3);
  CHECK(allocations(4) == 1);  // less is a part of it
  for (int call = 0; call < 2; ++call) run.check(1000, 0, 3);
  CHECK(allocations(1000) == 2);  // it grows
  CHECK(allocations(1000) == 1);
  CHECK(allocations(8) == 1);
}

TEST_CASE("memory is shared where uses do not meet", "[graphs]") {
  const std::vector<MemoryUse> uses{{0, 1000, 0, 2}, {1, 1000, 1, 3}, {2, 500, 2, 4}, {3, 3000, 4, 5}, {4, 10, 0, 5}};
  CHECK(most_at_once(uses) == 3010);
  const SharedBlock block = share_block(uses, 1 << 20);
  REQUIRE(block.places.size() == 5);
  for (const auto& [a, at_a] : block.places)
    for (const auto& [b, at_b] : block.places) {
      if (a >= b || uses[a].last <= uses[b].first || uses[b].last <= uses[a].first) continue;
      CHECK((at_a + uses[a].bytes <= at_b || at_b + uses[b].bytes <= at_a));
    }
  CHECK(block.bytes == 3584);  // 3000 and 10, at multiples of 512
  CHECK(share_block(uses, 2560).places.size() == 4);
  CHECK(share_block(uses, 2560).find(3) == nullptr);
  // With the largest first, it takes 6144.
  const std::vector<MemoryUse> others{{0, 2048, 1, 4}, {1, 2048, 1, 5}, {2, 1024, 0, 4}, {3, 2560, 4, 8}, {4, 512, 2, 5}};
  CHECK(share_block(others, 1 << 20).bytes == most_at_once(others));
}

namespace {

// size: the value of the plan's only symbol. held: who holds the inputs, all where it is empty.
std::vector<uint32_t> launches_of_stretches(const plan::Plan& plan, SoftwareDevice& device, int64_t size, std::vector<bool> held = {}) {
  held.resize(plan.inputs.size(), held.empty());
  const Tables tables = build_tables(plan, device);
  std::vector<int64_t> values(tables.program.workspace_size());
  values[tables.bindings.at(0).slot] = size;
  tables.program.run(values, 0);
  std::vector<uint32_t> launches;
  for (const Stretch& each : find_stretches(plan, tables, values, held, {})) launches.push_back(each.launches);
  return launches;
}

}  // namespace

TEST_CASE("a stretch ends where it would hold what a backward pass frees step by step", "[graphs]") {
  // Parameters are read first and held; each of the ten steps behind them makes an output and frees an input that is donated, or that nobody holds.
  const auto stretches = [](bool donated, bool held) {
    DevicePlanBuilder b;
    std::vector<plan::BufferId> parameters, inputs;
    for (int i = 0; i < 10; ++i) parameters.push_back(b.gpu_input(fmt::format("p{}", i).c_str()));
    for (int i = 0; i < 10; ++i) {
      inputs.push_back(b.gpu_input(fmt::format("x{}", i).c_str()));
      b.plan.inputs.back().donated = donated;
    }
    const auto first = b.on_gpu("first", plan::Buffer::Kind::Standalone);
    b.allocate(first);
    for (const plan::BufferId id : parameters) b.add(id, first);
    b.call("test::alone", {b.whole(first)}, {b.on_gpu("between", plan::Buffer::Kind::ExternOwned)}, false);
    b.output(first);
    for (const plan::BufferId id : inputs) {
      const auto out = b.on_gpu(fmt::format("y{}", id.index()).c_str(), plan::Buffer::Kind::Standalone);
      b.allocate(out);
      b.add(id, out);
      b.output(out);
    }
    SoftwareDevice device;
    device.not_recordable = {"test::alone"};
    std::vector<bool> holders(20, true);
    std::fill(holders.begin() + 10, holders.end(), held);
    return launches_of_stretches(b.plan, device, int64_t{1} << 23, holders);  // 32 MiB each
  };
  CHECK(stretches(false, true) == std::vector<uint32_t>{10, 10});
  CHECK(stretches(true, true) == std::vector<uint32_t>{10});
  CHECK(stretches(false, false) == std::vector<uint32_t>{10});  // by themselves, the others hold one input and one output at a time
}

TEST_CASE("a stretch may reach the end where it would hold too much if it ended on the way", "[graphs]") {
  // y shares the memory of the temporaries, but not in a stretch that it outlives.
  DevicePlanBuilder b;
  const auto standalone = [&](const char* name) { return b.on_gpu(name, plan::Buffer::Kind::Standalone); };
  const auto input = b.gpu_input("input"), x = standalone("x"), y = standalone("y"), out = standalone("out");
  const plan::BufferId temporaries[] = {standalone("t0"), standalone("t1"), standalone("t2")};
  b.allocate(out);
  b.allocate(x);
  b.add(input, x);
  for (const plan::BufferId id : temporaries) b.allocate(id);
  for (const plan::BufferId id : temporaries) b.add(x, id);
  for (const plan::BufferId id : temporaries) b.free(id);
  b.allocate(y);
  for (int i = 0; i < 100; ++i) b.add(x, y);
  b.add(y, out);
  b.free(x);
  b.free(y);
  b.output(out);
  SoftwareDevice device;
  CHECK(launches_of_stretches(b.plan, device, int64_t{1} << 23) == std::vector<uint32_t>{105});  // 32 MiB each
}

TEST_CASE("what a block needs beyond the bytes in use at once counts too", "[graphs]") {
  // In MiB: 168 are in use at once, and the best order places them in 176.
  const std::array<std::array<int, 3>, 6> uses{{{48, 5, 9}, {48, 8, 10}, {56, 2, 7}, {32, 4, 6}, {40, 8, 10}, {32, 6, 9}}};
  DevicePlanBuilder b;
  const auto x = b.gpu_input("x"), out = b.on_gpu("out", plan::Buffer::Kind::Standalone);
  std::vector<plan::BufferId> buffers;
  for (const auto& [size, first, last] : uses) {
    buffers.push_back(b.on_gpu(fmt::format("t{}", buffers.size()).c_str(), plan::Buffer::Kind::Standalone));
    b.plan.buffers[buffers.back()].bytes = n * (4 * size);
  }
  b.allocate(out);
  for (int step = 1; step <= 10; ++step) {
    for (size_t i = 0; i < uses.size(); ++i)
      if (uses[i][2] == step) b.free(buffers[i]);
    for (size_t i = 0; i < uses.size(); ++i)
      if (uses[i][1] == step) b.allocate(buffers[i]), b.add(x, buffers[i]);
    b.add(x, out);
  }
  b.output(out);
  SoftwareDevice device;
  const Tables tables = build_tables(b.plan, device);
  std::vector<int64_t> values(tables.program.workspace_size());
  values[tables.bindings.at(0).slot] = int64_t{1} << 18;  // n floats are 1 MiB
  tables.program.run(values, 0);
  const std::vector<Stretch> found = find_stretches(b.plan, tables, values, {true}, {});
  REQUIRE(!found.empty());
  for (const Stretch& stretch : found) CHECK(stretch.block.bytes <= int64_t{168 + 4} << 20);
}

TEST_CASE("inputs that nothing uses are no memory of a call", "[graphs]") {
  // Whoever holds them: else a stretch could hold as much more.
  const auto stretches = [](bool unused) {
    DevicePlanBuilder b;
    std::vector<plan::BufferId> inputs;
    for (int i = 0; i < 10; ++i) inputs.push_back(b.gpu_input(fmt::format("x{}", i).c_str()));
    for (int i = 0; unused && i < 10; ++i) b.gpu_input(fmt::format("u{}", i).c_str());
    for (const plan::BufferId id : inputs) {
      const auto out = b.on_gpu(fmt::format("y{}", id.index()).c_str(), plan::Buffer::Kind::Standalone);
      b.allocate(out);
      b.add(id, out);
      b.output(out);
    }
    SoftwareDevice device;
    return launches_of_stretches(b.plan, device, int64_t{1} << 23, std::vector<bool>(b.plan.inputs.size()));
  };
  CHECK(stretches(false) == stretches(true));
}

TEST_CASE("reports need not wait for a host that is asked who holds inputs", "[graphs]") {
  // torch's may wait for Python, and whoever asks for a report may hold it.
  struct Waiting : SoftwareDevice {
    std::function<void()> asked;
    std::vector<bool> held_by_others(std::span<const TensorRef* const> tensors) override {
      std::async(std::launch::async, asked).get();
      return SoftwareDevice::held_by_others(tensors);
    }
  } device;
  DevicePlanBuilder b;
  const auto x = b.gpu_input("x"), y = b.on_gpu("y", plan::Buffer::Kind::Standalone);
  b.allocate(y);
  b.add(x, y);
  b.add(y, y);
  b.output(y);
  Executable executable(b.plan, std::make_shared<SoftwareKernels>(device, std::vector<SoftwareKernels::Body>{add_one_to_all}), device,
                        GraphSettings{UseGraphs::On, false});
  int reports = 0;
  device.asked = [&] { reports += executable.not_recorded().empty() ? 1 : 0; };
  const int64_t size = 8, stride = 1;
  for (int call = 0; call < 4; ++call) executable.run(device, one_input(device.empty_strided(DType::F32, software_gpu, {&size, 1}, {&stride, 1})));
  CHECK(reports == 1);
}

TEST_CASE("one launch alone is not recorded", "[graphs]") {
  for (const uint32_t count : {1u, 2u}) {
    DevicePlanBuilder b;
    const auto x = b.gpu_input("x"), y = b.on_gpu("y", plan::Buffer::Kind::Standalone);
    b.allocate(y);
    b.add(x, y);
    if (count == 2) b.add(y, y);
    b.output(y);
    SoftwareDevice device;
    CHECK(launches_of_stretches(b.plan, device, 64) == (count == 1 ? std::vector<uint32_t>{} : std::vector<uint32_t>{2}));
  }
}

TEST_CASE("the first stretches of a call are short where there is much memory to take", "[graphs]") {
  // layers: so often, with a call between them that is not recorded.
  const auto stretches = [](int outputs, int layers = 1) {
    DevicePlanBuilder b;
    const auto x = b.gpu_input("x");
    for (int i = 0; i < outputs * layers; ++i) {
      const auto out = b.on_gpu(fmt::format("y{}", i).c_str(), plan::Buffer::Kind::Standalone);
      if (i > 0 && i % outputs == 0)
        b.call("test::alone", {b.whole(x)}, {b.on_gpu(fmt::format("between{}", i).c_str(), plan::Buffer::Kind::ExternOwned)}, false);
      b.allocate(out);
      b.add(x, out);
      b.output(out);
    }
    SoftwareDevice device;
    device.not_recordable = {"test::alone"};
    return launches_of_stretches(b.plan, device, 64);
  };
  CHECK(stretches(63) == std::vector<uint32_t>{63});
  CHECK(stretches(100) == std::vector<uint32_t>{16, 32, 52});
  CHECK(stretches(63, 40).size() == 40);  // none of them is cut
  CHECK(stretches(100, 40).back() == 100);
}

TEST_CASE("option off records nothing, auto after eight calls, at_once the first one too", "[graphs]") {
  const auto replays_of_ten = [](UseGraphs use) {
    DeviceRun run(use);
    run.device.library["test::add_ten"] = add_ten;
    run.load(with_call("test::add_ten"));
    for (int call = 0; call < 10; ++call) run.check(8, static_cast<float>(call), 12);
    return graph_counters().replays.load();
  };
  CHECK(replays_of_ten(UseGraphs::Off) == 0);
  CHECK(replays_of_ten(UseGraphs::Auto) == 2);
  CHECK(replays_of_ten(UseGraphs::AtOnce) == 10);
}

TEST_CASE("a recording that cannot be given other addresses is given up", "[graphs]") {
  DevicePlanBuilder b;
  const auto x = b.gpu_input("x"), t = b.arena("t"), y = b.on_gpu("y", plan::Buffer::Kind::Standalone);
  b.add(x, t);
  b.allocate(y);
  b.add(t, y);
  b.output(y);
  DeviceRun run;
  run.load(b);
  for (int call = 0; call < 6; ++call) run.check(8, static_cast<float>(call), 2);
  CHECK(graph_counters().replays == 4);
  run.device.refuses_patches = true;
  run.check(8, 1, 2);  // its steps run one by one
  run.device.refuses_patches = false;
  run.check(8, 2, 2);
  CHECK(graph_counters().recordings == 2);
  CHECK(graph_counters().replays == 5);
  run.device.refuses_patches = true;
  for (int call = 0; call < 4; ++call) run.check(8, static_cast<float>(call), 2);
  CHECK(graph_counters().refused_stretches == 1);
  for (int call = 0; call < 8; ++call) run.check(9, static_cast<float>(call), 2);
  CHECK(graph_counters().refused_stretches == 2);  // of two sizes, the same steps of the plan
  CHECK(run.executable->not_recorded() == std::vector<std::pair<std::string, int>>{{"a stretch: nodes are not patched", 2}});
}

TEST_CASE("calls of other sizes have recordings of their own", "[graphs]") {
  DeviceRun run;
  run.device.library["test::add_ten"] = add_ten;
  run.load(with_call("test::add_ten"));
  for (int round = 0; round < 6; ++round)
    for (int64_t size = 4; size < 12; ++size) run.check(size, static_cast<float>(round), 12);
  const auto recordings = graph_counters().recordings.load();
  for (int round = 0; round < 6; ++round)
    for (int64_t size = 4; size < 12; ++size) run.check(size, static_cast<float>(round), 12);
  CHECK(graph_counters().recordings == recordings);
}

TEST_CASE("recordings of fewer kernels are dropped once one more is loaded", "[graphs]") {
  DevicePlanBuilder b;
  const auto x = b.gpu_input("x"), y = b.on_gpu("y", plan::Buffer::Kind::Standalone);
  b.allocate(y);
  b.add(x, y);
  b.add(y, y);
  b.output(y);
  DeviceRun run;
  const auto kernels = std::make_shared<SoftwareKernels>(run.device, std::vector<SoftwareKernels::Body>{add_one_to_all});
  run.load(b, kernels);
  const int before = SoftwareGraph::alive;
  const auto call_all = [&] {
    for (int64_t size = 4; size < 9; ++size)
      for (int call = 0; call < 3; ++call) run.check(size, 0, 2);
  };
  call_all();
  CHECK(SoftwareGraph::alive - before == 5);
  ++kernels->late_kernels;
  run.check(4, 0, 2);
  CHECK(SoftwareGraph::alive == before);
  call_all();
  CHECK(SoftwareGraph::alive - before == 5);
}

TEST_CASE("nothing is recorded until all of its kernels are there", "[graphs]") {
  struct LateKernels final : SoftwareKernels {
    using SoftwareKernels::SoftwareKernels;
    const LoadedKernel* find(plan::KernelId kernel, plan::Variant variant) override { return late ? nullptr : &get(kernel, variant); }
    bool late = true;
  };
  DevicePlanBuilder b;
  const auto x = b.gpu_input("x"), y = b.on_gpu("y", plan::Buffer::Kind::Standalone);
  b.allocate(y);
  b.add(x, y);
  b.add(y, y);
  b.output(y);
  if (GENERATE(false, true)) b.plan.steps.back() = plan::GroupedLaunch{{std::get<plan::Launch>(b.plan.steps.back())}};
  DeviceRun run(UseGraphs::AtOnce);
  const auto kernels = std::make_shared<LateKernels>(run.device, std::vector<SoftwareKernels::Body>{add_one_to_all});
  run.load(b, kernels);
  run.check(8, 0, 2);
  CHECK(graph_counters().recordings == 0);
  kernels->late = false;
  run.check(8, 1, 2);
  CHECK(graph_counters().recordings == 1);
}

TEST_CASE("independent steps run in any order, with the results of the plan's", "[graphs]") {
  // Four chains from x, whose ends meet in two results; arenas are used again where the first chains have ended.
  DevicePlanBuilder b;
  const auto x = b.gpu_input("x");
  std::vector<plan::BufferId> ends;
  for (int chain = 0; chain < 4; ++chain) {
    plan::BufferId last = x;
    for (int i = 0; i < 4; ++i) {
      const auto next = b.arena(fmt::format("t{}_{}", chain, i).c_str());
      if (chain > 1) b.plan.buffers[next].arena_offset = b.plan.buffers[plan::BufferId(static_cast<uint32_t>(1 + (chain - 2) * 4 + (3 - i)))].arena_offset;
      b.add(last, next);
      last = next;
    }
    if (chain == 1 || chain == 3) {
      const auto y = b.on_gpu(chain == 1 ? "y" : "z", plan::Buffer::Kind::Standalone);
      b.allocate(y);
      b.add(last, y);
      b.output(y);
    }
  }
  DeviceRun run;
  run.load(b);
  for (int call = 0; call < 40; ++call) {
    const std::vector<Value> results = run.executable->run(run.device, one_input(run.tensor(8, static_cast<float>(call))));
    for (const Value& result : results)
      for (int i = 0; i < 8; ++i) REQUIRE(static_cast<const float*>(result.tensor.data)[i] == static_cast<float>(call + i) + 5);
  }
  CHECK(graph_counters().recordings == 1);
  CHECK(graph_counters().replays == 38);
  CHECK(run.device.reordered_recordings == 1);
}

TEST_CASE("threads share recordings", "[graphs]") {
  DeviceRun run;
  run.device.library["test::add_ten"] = add_ten;
  run.load(with_call("test::add_ten"));
  for (int call = 0; call < 4; ++call) run.check(8, 0, 12);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&run, &wrong, t] {
      for (int call = 0; call < 50; ++call) {
        const int64_t size = 8, one = 1;
        TensorRef x = run.device.PlainHost::empty_strided(DType::F32, {}, {&size, 1}, {&one, 1});
        x.device = software_gpu;
        for (int i = 0; i < 8; ++i) static_cast<float*>(x.data)[i] = static_cast<float>(100 * t + call);
        const std::vector<Value> results = run.executable->run(run.device, one_input(std::move(x)));
        if (static_cast<const float*>(results[0].tensor.data)[3] != static_cast<float>(100 * t + call + 12)) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("a recording is replayed where memory that it did not take is aligned as it was", "[graphs]") {
  // A kernel that reads whole vectors and, where addresses are not aligned, another one.
  struct Kernels final : SoftwareKernels {
    explicit Kernels(SoftwareDevice& device)
        : SoftwareKernels(device, {[](const Words& b, const Words& s) {
                                     REQUIRE(b[0] % 16 == 0);
                                     add_one_to_all(b, s);
                                   },
                                   add_one_to_all}) {}
    const LoadedKernel& get(plan::KernelId, plan::Variant variant) override {
      return SoftwareKernels::get(plan::KernelId(variant.vectorized ? 0 : 1), variant);
    }
  };
  DeviceRun run;
  // Returns memory that it keeps, another part of it each time.
  int64_t offset = 0;
  TensorRef kept = run.tensor(64, 0);
  run.device.not_recordable = {"test::part_of_cache"};
  run.device.library["test::part_of_cache"] = [&](SoftwareDevice& device, std::span<const Operand> operands, std::span<const TensorView>,
                                                  std::span<TensorRef> results) {
    const TensorView& x = operands[0].tensor;
    results[0] = device.alias(kept, static_cast<float*>(kept.data) + offset, x.dtype, x.sizes, x.strides);
    results[0].device = software_gpu;
  };
  DevicePlanBuilder b;
  const auto x = b.gpu_input("x"), u = b.on_gpu("u", plan::Buffer::Kind::ExternOwned), y = b.on_gpu("y", plan::Buffer::Kind::Standalone);
  b.call("test::part_of_cache", {b.whole(x)}, {u}, false);
  auto last = u;
  for (int i = 0; i < 3; ++i) {
    const auto next = b.arena(fmt::format("t{}", i).c_str());
    b.add(last, next);
    last = next;
  }
  b.allocate(y);
  b.add(last, y);
  b.output(y);
  for (plan::Kernel& kernel : b.plan.kernels) kernel.params[0].aligned = true;
  run.load(b, std::make_shared<Kernels>(run.device));
  for (int call = 0; call < 12; ++call) {
    offset = call % 3 == 1 ? 16 * (call / 4) + 3 : 16 * (call % 3);
    const std::vector<Value> results = run.executable->run(run.device, one_input(run.tensor(8, 0)));
    for (int64_t i = 0; i < 8; ++i) REQUIRE(static_cast<const float*>(results[0].tensor.data)[i] == static_cast<float>(offset + i) + 4);
  }
  CHECK(graph_counters().recordings == 1);
  CHECK(graph_counters().replays == 7);
}
