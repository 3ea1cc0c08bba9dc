// Recordings with library calls on a device in software: which of them are recorded, and whose memory their results are.
#include <random>
#include <set>

#include "unit/runtime/recorded_plans.h"

using namespace cxxinductor;
using namespace cxxinductor::runtime;

TEST_CASE("what a recording alone uses shares one block, results of library calls too", "[graphs]") {
  DeviceRun run;
  run.device.library["test::add_ten"] = add_ten;
  DevicePlanBuilder b;
  const auto x = b.gpu_input("x");
  auto last = b.on_gpu("t", plan::Buffer::Kind::Standalone);
  b.allocate(last);
  b.add(x, last);
  for (int i = 0; i < 20; ++i) {
    const auto next = b.on_gpu(fmt::format("u{}", i).c_str(), plan::Buffer::Kind::ExternOwned);
    b.call("test::add_ten", {b.whole(last)}, {next}, false);
    b.free(last);
    last = next;
  }
  b.output(last);
  run.load(b);
  for (const int64_t size : {int64_t{8}, int64_t{1} << 20}) {
    for (int call = 0; call < 6; ++call) run.check(size, static_cast<float>(call), 201);
    const int64_t before = run.device.allocations;
    run.check(size, 0, 201);
    CHECK(run.device.allocations - before == 2);  // the input, and the result
  }
  CHECK(graph_counters().replays == 2 * 7 - 2 * 2);
}

TEST_CASE("kernels take over results of library calls within a recording", "[graphs]") {
  DeviceRun run;
  run.device.library["test::add_ten"] = add_ten;
  DevicePlanBuilder b;
  plan::BufferId last = b.gpu_input("x");
  for (int i = 0; i < 10; ++i) {
    const auto result = b.on_gpu(fmt::format("u{}", i).c_str(), plan::Buffer::Kind::ExternOwned);
    const auto taken_over = b.on_gpu(fmt::format("v{}", i).c_str(), plan::Buffer::Kind::Standalone);
    b.call("test::add_ten", {b.whole(last)}, {result}, false);
    if (i > 0) b.free(last);
    b.plan.steps.emplace_back(plan::Reuse{result, taken_over});
    b.add(last = taken_over, taken_over);
  }
  b.output(last);
  run.load(b);
  for (const int64_t size : {int64_t{8}, int64_t{1} << 20}) {
    for (int call = 0; call < 6; ++call) run.check(size, static_cast<float>(call), 110);
    const int64_t before = run.device.allocations;
    run.check(size, 0, 110);
    CHECK(run.device.allocations - before == 2);  // the input, and the result
  }
  CHECK(graph_counters().replays == 2 * 7 - 2 * 2);  // one for all steps
}

TEST_CASE("library calls without any kernel are recorded", "[graphs]") {
  DeviceRun run;
  run.device.library["test::add_ten"] = add_ten;
  DevicePlanBuilder b;
  const auto u = b.on_gpu("u", plan::Buffer::Kind::ExternOwned), v = b.on_gpu("v", plan::Buffer::Kind::ExternOwned);
  b.call("test::add_ten", {b.whole(b.gpu_input("x"))}, {u}, false);
  b.call("test::add_ten", {b.whole(u)}, {v}, false);
  b.free(u);
  b.output(v);
  run.load(b);
  for (int call = 0; call < 10; ++call) run.check(8, static_cast<float>(call), 20);
  CHECK(graph_counters().replays == 8);
}

TEST_CASE("random plans of kernels and library calls have the results of calls without recordings", "[graphs]") {
  const uint32_t seed = GENERATE(range(0u, 40u));
  CAPTURE(seed);
  std::mt19937 random(seed);
  DeviceRun run;
  run.device.library["test::add_ten"] = add_ten;
  DevicePlanBuilder b;
  struct Live {
    plan::BufferId id;
    float value;
    plan::Buffer::Kind kind;
  };
  std::vector<Live> live{{b.gpu_input("x"), 0, plan::Buffer::Kind::Input}};
  for (int i = 0; i < 30; ++i) {
    const size_t chosen = random() % live.size();
    const Live from = live[chosen];
    const std::string name = fmt::format("t{}", i);
    const bool in_arena = from.kind == plan::Buffer::Kind::Arena;
    if ((in_arena || from.kind == plan::Buffer::Kind::Standalone) && random() % 2 == 0) {
      const auto to = b.on_gpu(name.c_str(), from.kind);
      if (in_arena) b.plan.buffers[to].arena_offset = b.plan.buffers[from.id].arena_offset;
      b.plan.steps.emplace_back(plan::Reuse{from.id, to});
      b.add(to, to);
      live[chosen] = {to, from.value + 1, from.kind};
    } else if (random() % 2 == 0) {
      const auto to = b.on_gpu(name.c_str(), plan::Buffer::Kind::ExternOwned);
      b.call("test::add_ten", {b.whole(from.id)}, {to}, false);
      live.push_back({to, from.value + 10, plan::Buffer::Kind::ExternOwned});
    } else if (random() % 2 == 0) {
      const auto to = b.on_gpu(name.c_str(), plan::Buffer::Kind::Standalone);
      b.allocate(to);
      b.add(from.id, to);
      live.push_back({to, from.value + 1, plan::Buffer::Kind::Standalone});
    } else {
      const auto to = b.arena(name.c_str());
      b.add(from.id, to);
      live.push_back({to, from.value + 1, plan::Buffer::Kind::Arena});
    }
    if (random() % 3 != 0) continue;
    const size_t ended = random() % live.size();
    if (live[ended].kind == plan::Buffer::Kind::Input || live.size() == 1) continue;
    if (live[ended].kind != plan::Buffer::Kind::Arena) b.free(live[ended].id);
    live.erase(live.begin() + static_cast<ptrdiff_t>(ended));
  }
  std::vector<float> added;
  for (const Live& each : live) {
    if (each.kind == plan::Buffer::Kind::Input) continue;
    auto out = each.id;
    if (each.kind == plan::Buffer::Kind::Arena) {
      out = b.on_gpu(fmt::format("y{}", added.size()).c_str(), plan::Buffer::Kind::Standalone);
      b.allocate(out);
      b.add(each.id, out);
    }
    b.output(out);
    added.push_back(each.kind == plan::Buffer::Kind::Arena ? each.value + 1 : each.value);
  }
  run.load(b);
  for (int call = 0; call < 12; ++call) {
    const int64_t size = call % 4 == 3 ? 5 : 8;
    const std::vector<Value> results = run.executable->run(run.device, one_input(run.tensor(size, static_cast<float>(call))));
    for (size_t r = 0; r < results.size(); ++r) {
      run.held.push_back(results[r].tensor);
      for (int64_t i = 0; i < size; ++i) REQUIRE(static_cast<const float*>(results[r].tensor.data)[i] == static_cast<float>(call + i) + added[r]);
    }
  }
  CHECK(graph_counters().replays > 0);
}

TEST_CASE("a second recording proves that a library call follows its operands", "[graphs]") {
  DeviceRun run;
  run.device.library["test::add_ten"] = add_ten;
  run.load(with_call("test::add_ten"));
  for (int call = 0; call < 20; ++call) run.check(8, static_cast<float>(call), 12);
  CHECK(graph_counters().replays == 18);
  // The input is the kernel's, the arena the call's: as soon as both have moved, there is nothing more to prove.
  CHECK(graph_counters().recordings <= 4);
  CHECK(run.device.recorded_calls == graph_counters().recordings);
}

TEST_CASE("a result of a library call that the caller gets is new memory in each call", "[graphs]") {
  DeviceRun run;
  run.device.library["test::add_ten"] = add_ten;
  DevicePlanBuilder b;
  const auto x = b.gpu_input("x"), t = b.arena("t"), u = b.on_gpu("u", plan::Buffer::Kind::ExternOwned);
  b.add(x, t);
  b.call("test::add_ten", {b.whole(t)}, {u}, false);
  b.output(u);
  run.load(b);
  std::vector<TensorRef> results;
  for (int call = 0; call < 12; ++call) {
    run.check(8, static_cast<float>(call), 11);
    results.push_back(run.held.back());
  }
  for (size_t i = 0; i < results.size(); ++i) CHECK(static_cast<float*>(results[i].data)[0] == static_cast<float>(i) + 11);
}

TEST_CASE("a library call whose arguments hide addresses is found out and runs by itself", "[graphs]") {
  DeviceRun run;
  run.device.library["test::hidden"] = add_ten_hidden;
  // The operand moves in each call: it is an input.
  DevicePlanBuilder b;
  const auto x = b.gpu_input("x"), u = b.on_gpu("u", plan::Buffer::Kind::ExternOwned), y = b.on_gpu("y", plan::Buffer::Kind::Standalone);
  b.call("test::hidden", {b.whole(x)}, {u}, false);
  b.allocate(y);
  b.add(u, y);
  b.output(y);
  run.load(b);
  for (int call = 0; call < 12; ++call) run.check(8, static_cast<float>(call), 11);
  CHECK(graph_counters().refused_stretches == 1);
}

TEST_CASE("of a recording with a call that hides addresses all else is replayed", "[graphs]") {
  DeviceRun run;
  run.device.library["test::add_ten"] = add_ten;
  run.device.library["test::hidden"] = add_ten_hidden;
  DevicePlanBuilder b;
  const auto x = b.gpu_input("x"), t = b.on_gpu("t", plan::Buffer::Kind::Standalone);
  std::vector<plan::BufferId> u;
  for (int i = 0; i < 6; ++i) u.push_back(b.on_gpu(fmt::format("u{}", i).c_str(), plan::Buffer::Kind::ExternOwned));
  b.call("test::add_ten", {b.whole(x)}, {u[0]}, false);
  b.call("test::add_ten", {b.whole(u[0])}, {u[1]}, false);
  b.call("test::hidden", {b.whole(x)}, {u[2]}, false);
  b.call("test::add_ten", {b.whole(u[1])}, {u[3]}, false);
  b.call("test::add_ten", {b.whole(u[3])}, {u[4]}, false);
  b.allocate(t);
  b.add(u[4], t);
  b.output(t);
  b.output(u[2]);
  run.load(b);
  for (int call = 0; call < 20; ++call) {
    const std::vector<Value> results = run.executable->run(run.device, one_input(run.tensor(8, static_cast<float>(call))));
    CHECK(static_cast<const float*>(results[0].tensor.data)[0] == static_cast<float>(call) + 41);
    CHECK(static_cast<const float*>(results[1].tensor.data)[0] == static_cast<float>(call) + 10);
    for (const Value& result : results) run.held.push_back(result.tensor);
  }
  CHECK(run.executable->not_recorded() == std::vector<std::pair<std::string, int>>{{"test::hidden: does other work when its operands move: other words", 1}});
  CHECK(graph_counters().replays > 20);  // two stretches
}

TEST_CASE("a library call whose results share memory runs by itself", "[graphs]") {
  DeviceRun run;
  run.device.library["test::twins"] = [](SoftwareDevice& device, std::span<const Operand> operands, std::span<const TensorView> none,
                                         std::span<TensorRef> results) {
    add_ten(device, operands, none, results);
    results[1] = device.alias(results[0], results[0].data, results[0].dtype, results[0].sizes(), results[0].strides());
    results[1].device = software_gpu;
  };
  DevicePlanBuilder b;
  const auto x = b.gpu_input("x"), u = b.on_gpu("u", plan::Buffer::Kind::ExternOwned), v = b.on_gpu("v", plan::Buffer::Kind::ExternOwned);
  const auto t = b.arena("t"), y = b.on_gpu("y", plan::Buffer::Kind::Standalone);
  b.call("test::twins", {b.whole(x)}, {u, v}, false);
  b.add(u, t);
  b.allocate(y);
  b.add(v, y);
  b.free(u);
  b.free(v);
  b.output(y);
  run.load(b);
  for (int call = 0; call < 8; ++call) run.check(8, static_cast<float>(call), 11);
  CHECK(run.executable->not_recorded() ==
        std::vector<std::pair<std::string, int>>{{"test::twins: could not be recorded: test::twins returns results that share memory", 1}});
}

TEST_CASE("a library call may take memory again that it has given back", "[graphs]") {
  DeviceRun run;
  std::set<uint64_t> workspaces;
  run.device.library["test::workspace"] = [&](SoftwareDevice& device, std::span<const Operand> operands, std::span<const TensorView>,
                                              std::span<TensorRef> results) {
    const TensorView& x = operands[0].tensor;
    const int64_t count = x.sizes[0], larger = 1024, one = 1;
    const TensorRef workspace = device.empty_strided(x.dtype, software_gpu, {&larger, 1}, {&one, 1});
    workspaces.insert(reinterpret_cast<uintptr_t>(workspace.data));
    device.queue({103,
                  [&workspaces](const Words& w) {
                    REQUIRE(workspaces.contains(w[0]));
                    for (uint64_t i = 0; i < w[1]; ++i) floats(w[0])[i] = 7;
                  },
                  {reinterpret_cast<uintptr_t>(workspace.data), static_cast<uint64_t>(larger)}});
    results[0] = device.alias(workspace, workspace.data, x.dtype, x.sizes, x.strides);
    results[0].device = software_gpu;
    device.take_again(results[0], count * 4);
    device.queue({104,
                  [](const Words& w) {
                    for (uint64_t i = 0; i < w[2]; ++i) floats(w[1])[i] = floats(w[0])[i] + 10;
                  },
                  {reinterpret_cast<uintptr_t>(x.data), reinterpret_cast<uintptr_t>(results[0].data), static_cast<uint64_t>(count)}});
  };
  run.load(with_call("test::workspace"));
  for (int call = 0; call < 20; ++call) run.check(8, static_cast<float>(call), 12);
  CHECK(run.executable->not_recorded().empty());
  CHECK(graph_counters().replays == 18);
}

TEST_CASE("a library call that returns a part of its memory runs by itself", "[graphs]") {
  const int64_t begin = GENERATE(0, 16);
  DeviceRun run;
  run.device.library["test::part"] = [begin](SoftwareDevice& device, std::span<const Operand> operands, std::span<const TensorView>,
                                             std::span<TensorRef> results) {
    const TensorView& x = operands[0].tensor;
    const int64_t larger = 1024, one = 1;
    const TensorRef all = device.empty_strided(x.dtype, software_gpu, {&larger, 1}, {&one, 1});
    results[0] = device.alias(all, static_cast<float*>(all.data) + begin, x.dtype, x.sizes, x.strides);
    results[0].device = software_gpu;
    device.queue({105,
                  [begin](const Words& w) {
                    for (int64_t i = 0; i < 1024; ++i) floats(w[1])[i] = 0;
                    for (uint64_t i = 0; i < w[2]; ++i) floats(w[1])[begin + static_cast<int64_t>(i)] = floats(w[0])[i] + 10;
                  },
                  {reinterpret_cast<uintptr_t>(x.data), reinterpret_cast<uintptr_t>(all.data), static_cast<uint64_t>(x.sizes[0])}});
  };
  run.load(with_call("test::part"));
  for (int call = 0; call < 8; ++call) run.check(8, static_cast<float>(call), 12);
  CHECK(run.executable->not_recorded() ==
        std::vector<std::pair<std::string, int>>{{"test::part: could not be recorded: test::part returns a part of larger memory as result 0", 1}});
}

TEST_CASE("a library call that takes memory which is not the recording's runs by itself", "[graphs]") {
  DeviceRun run;
  // As on a stream of its own, or in a pool that the program has chosen: somebody else has it as soon as the call has returned.
  std::vector<float> elsewhere(8);
  run.device.library["test::elsewhere"] = [&](SoftwareDevice& device, std::span<const Operand> operands, std::span<const TensorView>,
                                              std::span<TensorRef> results) {
    const TensorView& x = operands[0].tensor;
    TensorRef workspace;
    workspace.data = elsewhere.data();
    device.take_again(workspace, 32);
    results[0] = device.empty_strided(x.dtype, software_gpu, x.sizes, x.strides);
    device.queue({107,
                  [](const Words& w) {
                    for (uint64_t i = 0; i < w[3]; ++i) floats(w[2])[i] = 10;
                    for (uint64_t i = 0; i < w[3]; ++i) floats(w[1])[i] = floats(w[0])[i] + floats(w[2])[i];
                  },
                  {reinterpret_cast<uintptr_t>(x.data), reinterpret_cast<uintptr_t>(results[0].data), reinterpret_cast<uintptr_t>(elsewhere.data()),
                   static_cast<uint64_t>(x.sizes[0])}});
  };
  run.load(with_call("test::elsewhere"));
  for (int call = 0; call < 8; ++call) run.check(8, static_cast<float>(call), 12);
  CHECK(run.executable->not_recorded() ==
        std::vector<std::pair<std::string, int>>{{"test::elsewhere: could not be recorded: it takes memory that the recording does not keep", 1}});
}

TEST_CASE("words that a library leaves unset are no reason not to replay", "[graphs]") {
  DeviceRun run;
  uint64_t unset = 0;
  run.device.library["test::unset"] = [&unset](SoftwareDevice& device, std::span<const Operand> operands, std::span<const TensorView>,
                                               std::span<TensorRef> results) {
    const TensorView& x = operands[0].tensor;
    results[0] = device.empty_strided(x.dtype, software_gpu, x.sizes, x.strides);
    device.queue({102,
                  [](const Words& w) {
                    for (uint64_t i = 0; i < w[2]; ++i) floats(w[1])[i] = floats(w[0])[i] + 10;
                  },
                  {reinterpret_cast<uintptr_t>(x.data), reinterpret_cast<uintptr_t>(results[0].data), static_cast<uint64_t>(x.sizes[0]), ++unset}});
  };
  run.load(with_call("test::unset"));
  for (int call = 0; call < 20; ++call) run.check(8, static_cast<float>(call), 12);
  CHECK(run.executable->not_recorded().empty());
  CHECK(graph_counters().replays == 18);
  CHECK(graph_counters().recordings <= 4);
}

TEST_CASE("a library call that cannot be recorded runs between recordings", "[graphs]") {
  DeviceRun run;
  run.device.library["test::waits"] = [](SoftwareDevice& device, std::span<const Operand> operands, std::span<const TensorView> none,
                                         std::span<TensorRef> results) {
    device.fail_if_recording();
    add_ten(device, operands, none, results);
  };
  const auto load = [&run](int kernels) {  // ahead of the call, and behind it
    DevicePlanBuilder b;
    auto last = b.gpu_input("x");
    const auto add = [&](int count) {
      for (int i = 0; i < count; ++i) {
        const auto next = b.arena(fmt::format("t{}", b.plan.buffers.size()).c_str());
        b.add(last, next);
        last = next;
      }
    };
    add(kernels);
    const auto u = b.on_gpu("u", plan::Buffer::Kind::ExternOwned), y = b.on_gpu("y", plan::Buffer::Kind::Standalone);
    b.call("test::waits", {b.whole(last)}, {u}, false);
    last = u;
    add(kernels - 1);
    b.allocate(y);
    b.add(last, y);
    b.output(y);
    run.load(b);
  };
  load(3);
  for (int call = 0; call < 12; ++call) run.check(8, static_cast<float>(call), 16);
  CHECK(graph_counters().replays == 0);  // three launches take no longer than a replay
  load(4);
  for (int call = 0; call < 12; ++call) run.check(8, static_cast<float>(call), 18);
  CHECK(run.executable->not_recorded() ==
        std::vector<std::pair<std::string, int>>{{"test::waits: could not be recorded: the device waits for its stream, which is recorded", 1}});
  CHECK(graph_counters().replays > 0);
}

TEST_CASE("a call whose inputs share memory is not recorded, but may replay", "[graphs]") {
  DevicePlanBuilder b;
  const auto x = b.gpu_input("x"), z = b.gpu_input("z"), t = b.arena("t"), y = b.on_gpu("y", plan::Buffer::Kind::Standalone);
  b.add(x, t);
  b.allocate(y);
  b.add(z, y);
  b.output(y);
  DeviceRun run;
  run.load(b);
  const auto check = [&](const TensorRef& first, const TensorRef& second, float wanted) {
    std::vector<Value> inputs = one_input(first);
    inputs.push_back(one_input(second)[0]);
    const std::vector<Value> results = run.executable->run(run.device, std::move(inputs));
    CHECK(static_cast<const float*>(results[0].tensor.data)[0] == wanted);
    run.held.push_back(results[0].tensor);
  };
  const TensorRef one = run.tensor(8, 1), two = run.tensor(8, 2);
  for (int call = 0; call < 4; ++call) check(one, one, 2);
  CHECK(graph_counters().recordings == 0);
  CHECK(run.executable->not_recorded() == std::vector<std::pair<std::string, int>>{{"a stretch: inputs share memory in some calls", 2}});
  for (int call = 0; call < 3; ++call) check(one, two, 3);
  CHECK(graph_counters().replays == 3);
  check(two, two, 3);
  CHECK(graph_counters().recordings == 1);
  CHECK(graph_counters().replays == 4);
}

TEST_CASE("steps that are not recorded take no memory for results of library calls", "[graphs]") {
  DevicePlanBuilder b;
  const auto x = b.gpu_input("x"), z = b.gpu_input("z");
  std::vector<plan::BufferId> u;
  for (int i = 0; i < 3; ++i) u.push_back(b.on_gpu(fmt::format("u{}", i).c_str(), plan::Buffer::Kind::ExternOwned));
  b.call("test::add_ten", {b.whole(x)}, {u[0]}, false);
  b.call("test::add_ten", {b.whole(u[0])}, {u[1]}, false);
  b.free(u[0]);
  b.call("test::add_ten", {b.whole(z)}, {u[2]}, false);
  b.output(u[1]);
  b.output(u[2]);
  DeviceRun run;
  // Pieces of memory that live at once.
  int64_t most = 0;
  run.device.library["test::add_ten"] = [&](SoftwareDevice& device, std::span<const Operand> operands, std::span<const TensorView> none,
                                            std::span<TensorRef> results) {
    add_ten(device, operands, none, results);
    most = std::max<int64_t>(most, device.live_allocations);
  };
  run.load(b);
  const TensorRef input = run.tensor(8, 1);
  const auto check = [&] {
    std::vector<Value> inputs = one_input(input);
    inputs.push_back(one_input(input)[0]);
    most = 0;
    const std::vector<Value> results = run.executable->run(run.device, std::move(inputs));
    CHECK(static_cast<const float*>(results[0].tensor.data)[0] == 21);
    CHECK(static_cast<const float*>(results[1].tensor.data)[0] == 11);
    return most;
  };
  const int64_t by_steps = check();
  check();
  CHECK(check() - by_steps <= 1);  // scratch memory
  CHECK(check() - by_steps <= 1);
  CHECK(graph_counters().recordings == 0);
}

TEST_CASE("a call without operands runs ahead of the recording that it stands in", "[graphs]") {
  DeviceRun run;
  int drawn = 0;
  run.device.not_recordable = {"cxxinductor::state"};
  run.device.library["cxxinductor::state"] = [&](SoftwareDevice& device, std::span<const Operand>, std::span<const TensorView>, std::span<TensorRef> results) {
    device.fail_if_recording();
    const int64_t size = 8, one = 1;
    results[0] = device.empty_strided(DType::F32, software_gpu, {&size, 1}, {&one, 1});
    for (int i = 0; i < 8; ++i) static_cast<float*>(results[0].data)[i] = static_cast<float>(drawn);
    ++drawn;
  };
  DevicePlanBuilder b;
  const auto x = b.gpu_input("x"), t = b.arena("t"), state = b.on_gpu("state", plan::Buffer::Kind::ExternOwned),
             y = b.on_gpu("y", plan::Buffer::Kind::Standalone);
  b.add(x, t);
  b.call("cxxinductor::state", {}, {state}, false);
  b.allocate(y);
  b.add(state, y);
  b.output(y);
  run.load(b);
  for (int call = 0; call < 10; ++call) {
    const std::vector<Value> results = run.executable->run(run.device, one_input(run.tensor(8, 0)));
    CHECK(static_cast<const float*>(results[0].tensor.data)[7] == static_cast<float>(call + 1));
  }
  CHECK(drawn == 10);
  CHECK(graph_counters().recordings == 1);
  CHECK(graph_counters().replays == 8);
}

TEST_CASE("calls that use memory of the recording keep their order", "[graphs]") {
  const bool with_workspace = GENERATE(false, true);
  DeviceRun run;
  run.device.library["test::call"] = [with_workspace](SoftwareDevice& device, std::span<const Operand> operands, std::span<const TensorView> none,
                                                      std::span<TensorRef> results) {
    add_ten(device, operands, none, results);
    if (!with_workspace) return;
    const TensorRef workspace = device.empty_strided(DType::F32, software_gpu, operands[0].tensor.sizes, operands[0].tensor.strides);
    device.queue({106, [](const Words&) {}, {reinterpret_cast<uintptr_t>(workspace.data)}});
  };
  DevicePlanBuilder b;
  const auto x = b.gpu_input("x"), t = b.arena("t");
  b.add(x, t);
  for (int i = 0; i < 4; ++i) {
    const auto u = b.on_gpu(fmt::format("u{}", i).c_str(), plan::Buffer::Kind::ExternOwned);
    b.call("test::call", {b.whole(t)}, {u}, false);
    b.output(u);
  }
  run.load(b);
  for (int call = 0; call < 12; ++call)
    for (const Value& result : run.executable->run(run.device, one_input(run.tensor(8, static_cast<float>(call)))))
      REQUIRE(static_cast<const float*>(result.tensor.data)[7] == static_cast<float>(call) + 18);
  CHECK(graph_counters().replays > 0);
  CHECK((run.device.reordered_recordings > 0) == !with_workspace);
}
