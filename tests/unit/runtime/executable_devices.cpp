// Plans over several devices on a host that only notes which device is meant: arenas, streams, providers of kernels, copies.
#include <map>
#include <string>
#include <vector>

#include "ir/plan/memory.h"
#include "runtime/device_kernels.h"
#include "runtime/executable.h"
#include "runtime/plain_host.h"
#include "unit/catch.h"
#include "unit/runtime/test_plans.h"

using namespace cxxinductor;
using namespace cxxinductor::runtime;

namespace {

constexpr Device cpu{}, first_gpu{DeviceType::Cuda, 0}, second_gpu{DeviceType::Cuda, 1};

// All memory is the CPU's. Every request, launch and copy leaves a line.
class NotingHost : public PlainHost {
 public:
  NotingHost() : PlainHost(1, copy) {}
  Owner allocate(Device device, int64_t bytes, void** data) override {
    notes.push_back(fmt::format("allocate {} on {}", bytes, to_string(device)));
    return PlainHost::allocate({}, bytes, data);
  }
  TensorRef empty_strided(DType dtype, Device device, std::span<const int64_t> sizes, std::span<const int64_t> strides) override {
    TensorRef tensor = PlainHost::empty_strided(dtype, {}, sizes, strides);
    tensor.device = device;
    return tensor;
  }
  void* current_stream(Device device) override {
    CHECK(device.type == DeviceType::Cuda);
    return &streams[static_cast<size_t>(device.index)];
  }
  std::string name_of(const void* stream) const {
    if (stream == nullptr) return "no stream";
    return fmt::format("stream {}", static_cast<const char*>(stream) - streams);
  }

  std::vector<std::string> notes;
  char streams[2] = {};

 private:
  // aten::_to_copy onto the device that the call names.
  static void copy(PlainHost& host, const plan::CallExtern& call, std::span<const Operand> operands, std::span<const TensorView>,
                   std::span<TensorRef> results) {
    const Device to = *call.kwargs.at(0).second.as<Device>();
    const TensorView& from = operands[0].tensor;
    auto& noting = static_cast<NotingHost&>(host);
    noting.notes.push_back(fmt::format("copy {} to {}", to_string(from.device), to_string(to)));
    results[0] = noting.empty_strided(from.dtype, to, from.sizes, contiguous_strides(from.sizes));
    TensorView target = view_of(results[0]);
    host.copy_strided(target, from);
  }
};

// Kernels of one device: f32 of four elements, by the kernel's place in the plan.
class NotingProvider : public KernelProvider {
 public:
  NotingProvider(Device device, std::map<uint32_t, KernelBody> bodies) : device_(device) {
    for (auto& [id, body] : bodies) kernels_[id] = std::make_unique<Kernel>(device, std::move(body));
  }
  void prepare(const plan::Plan& plan, const InterruptCheck&) override {
    for (const plan::Kernel& kernel : plan.kernels) prepared += kernel.device == device_ ? 1 : 0;
  }
  const LoadedKernel& get(plan::KernelId kernel, plan::Variant) override { return *kernels_.at(kernel.index()); }

  int prepared = 0;

 private:
  struct Kernel : LoadedKernel {
    Kernel(Device d, KernelBody b) : device(d), body(std::move(b)) {}
    void launch(Host& host, const LaunchArgs& args, void* stream) const override {
      auto& noting = static_cast<NotingHost&>(host);
      noting.notes.push_back(fmt::format("launch on {}, {}", to_string(device), noting.name_of(stream)));
      body(args.buffers, args.symbols, args.grid.x);
    }
    Device device;
    KernelBody body;
  };
  Device device_;
  std::map<uint32_t, std::unique_ptr<Kernel>> kernels_;
};

float* as_floats(void* buffer) { return static_cast<float*>(buffer); }

// y = x + table on the first GPU, z = 2 * y on the second; the table (0, 1, 2, 3) is the CPU's.
struct Mixed : PlanBuilder {
  plan::BufferId x, table, moved, y, there, z;

  plan::BufferId on(Device device, const char* name, plan::Buffer::Kind kind) {
    const plan::BufferId id = buffer(name, plan::Buffer::Kind::Standalone, {4});
    plan.buffers[id].kind = kind;
    plan.buffers[id].device = device;
    if (kind == plan::Buffer::Kind::Arena) {
      plan.buffers[id].arena = static_cast<uint32_t>(plan.arenas.size());
      plan.buffers[id].arena_offset = 0;
      plan.arenas.push_back({device, 64});
    }
    return id;
  }
  void add_kernel(Device device, std::vector<bool> written, std::vector<plan::BufferId> args) {
    const plan::KernelId id = kernel(fmt::format("k{}", plan.kernels.size()), static_cast<int>(written.size()), written);
    plan.kernels[id].device = device;
    launch(id, std::move(args), {}, 1);
  }
  void add_copy(plan::BufferId from, plan::BufferId to) {
    call("aten::_to_copy", {whole(from)}, {to}, false).kwargs.emplace_back("device", Arg(plan.buffers[to].device));
  }
  Mixed() {
    plan.target = "cuda";
    plan.devices = {first_gpu, second_gpu, cpu};
    x = input("x", {4});
    plan.buffers[x].device = first_gpu;
    table = on(cpu, "table", plan::Buffer::Kind::Arena);
    moved = on(first_gpu, "moved", plan::Buffer::Kind::ExternOwned);
    y = on(first_gpu, "y", plan::Buffer::Kind::Arena);
    there = on(second_gpu, "there", plan::Buffer::Kind::ExternOwned);
    z = on(second_gpu, "z", plan::Buffer::Kind::Standalone);
    add_kernel(cpu, {true}, {table});
    add_copy(table, moved);
    add_kernel(first_gpu, {false, false, true}, {x, moved, y});
    add_copy(y, there);
    plan.steps.emplace_back(plan::Allocate{z});
    add_kernel(second_gpu, {false, true}, {there, z});
    output(z);
  }
};

std::map<Device, std::shared_ptr<KernelProvider>> providers() {
  std::map<Device, std::shared_ptr<KernelProvider>> all;
  all[cpu] = std::make_shared<NotingProvider>(cpu, std::map<uint32_t, KernelBody>{{0, [](auto buffers, auto, int64_t) {
                                                                                     for (int i = 0; i < 4; ++i)
                                                                                       as_floats(buffers[0])[i] = static_cast<float>(i);
                                                                                   }}});
  all[first_gpu] = std::make_shared<NotingProvider>(first_gpu, std::map<uint32_t, KernelBody>{{1, [](auto b, auto, int64_t) {
                                                                                                 for (int i = 0; i < 4; ++i)
                                                                                                   as_floats(b[2])[i] = as_floats(b[0])[i] + as_floats(b[1])[i];
                                                                                               }}});
  all[second_gpu] = std::make_shared<NotingProvider>(second_gpu, std::map<uint32_t, KernelBody>{{2, [](auto b, auto, int64_t) {
                                                                                                   for (int i = 0; i < 4; ++i)
                                                                                                     as_floats(b[1])[i] = 2 * as_floats(b[0])[i];
                                                                                                 }}});
  return all;
}

}  // namespace

TEST_CASE("a plan over three devices: each kernel on its device's stream, each arena when it is first needed", "[runtime][devices]") {
  Mixed mixed;
  NotingHost host;
  const auto all = providers();
  auto kernels = std::make_shared<DeviceKernels>(all);
  kernels->prepare(mixed.plan);
  for (const auto& [device, provider] : all) CHECK(static_cast<NotingProvider&>(*provider).prepared == 1);
  const Executable executable(mixed.plan, kernels, host);
  TensorRef x = host.empty_strided(DType::F32, first_gpu, std::vector<int64_t>{4}, std::vector<int64_t>{1});
  for (int i = 0; i < 4; ++i) as_floats(x.data)[i] = 10;
  const std::vector<Value> results = executable.run(host, {Value(x)});
  REQUIRE(results.size() == 1);
  for (int i = 0; i < 4; ++i) CHECK(as_floats(results[0].tensor.data)[i] == 2 * (10 + static_cast<float>(i)));
  CHECK(results[0].tensor.device == second_gpu);
  CHECK(host.notes == std::vector<std::string>{"allocate 64 on cpu", "launch on cpu, no stream", "copy cpu to cuda:0", "allocate 64 on cuda:0",
                                               "launch on cuda:0, stream 0", "copy cuda:0 to cuda:1", "launch on cuda:1, stream 1"});
}

TEST_CASE("an arena's bytes are evaluated when it is taken, and one that no step uses is never taken", "[runtime][devices]") {
  Mixed mixed;
  mixed.plan.arenas[1].bytes = 128;
  mixed.on(second_gpu, "unused", plan::Buffer::Kind::Arena);
  NotingHost host;
  auto kernels = std::make_shared<DeviceKernels>(providers());
  kernels->prepare(mixed.plan);
  const Executable executable(mixed.plan, kernels, host);
  executable.run(host, {Value(host.empty_strided(DType::F32, first_gpu, std::vector<int64_t>{4}, std::vector<int64_t>{1}))});
  int arenas = 0;
  for (const std::string& note : host.notes) arenas += note.starts_with("allocate") ? 1 : 0;
  CHECK(arenas == 2);
  CHECK(host.notes[3] == "allocate 128 on cuda:0");
}

TEST_CASE("memory is counted device by device, arenas from their first use on", "[runtime][devices]") {
  const Mixed mixed;
  CHECK(plan::profile_memory(mixed.plan, cpu).peak == 512);
  CHECK(plan::profile_memory(mixed.plan, first_gpu).peak == 1024);  // what was moved, and the arena
  CHECK(plan::profile_memory(mixed.plan, second_gpu).peak == 1024);
  CHECK(plan::profile_memory(mixed.plan, first_gpu).peak_step == 2);
  plan::Plan bounded = mixed.plan;
  bounded.eager_peaks = {{cpu, 0}, {first_gpu, 4096}, {second_gpu, 1000}};
  CHECK(plan::bytes_beyond_eager(bounded) == 512 + 24);
  const auto taken = plan::arenas_by_first_use(mixed.plan);
  CHECK(taken[0] == std::vector<uint32_t>{0});
  CHECK(taken[2] == std::vector<uint32_t>{1});
}

TEST_CASE("a kernel on a device without provider is an error before anything runs", "[runtime][devices]") {
  const Mixed mixed;
  auto some = providers();
  some.erase(second_gpu);
  DeviceKernels kernels(some);
  CHECK_THROWS_AS(kernels.prepare(mixed.plan), InternalError);
}
