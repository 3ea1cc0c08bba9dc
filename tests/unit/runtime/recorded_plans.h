// Plans, kernels and library calls for tests of recordings on a device in software.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "runtime/graphs/graph_cache.h"
#include "unit/catch.h"
#include "unit/runtime/software_device.h"
#include "unit/runtime/test_plans.h"

namespace cxxinductor::runtime {

inline float* floats(uint64_t word) { return reinterpret_cast<float*>(word); }

// y = x + 1, n numbers.
inline void add_one_to_all(const Words& b, const Words& s) {
  for (uint64_t i = 0; i < s[0]; ++i) floats(b[1])[i] = floats(b[0])[i] + 1;
}

inline const sym::Expr n = sym::Expr::symbol("n");

struct DevicePlanBuilder : PlanBuilder {
  DevicePlanBuilder() {
    plan.target = "cuda";
    plan.devices = {software_gpu};
  }
  plan::BufferId on_gpu(const char* name, plan::Buffer::Kind kind) {
    const plan::BufferId id = buffer(name, plan::Buffer::Kind::Standalone, {n});
    plan.buffers[id].kind = kind;
    plan.buffers[id].device = software_gpu;
    return id;
  }
  plan::BufferId gpu_input(const char* name) {
    const plan::BufferId id = input(name, {n});
    plan.buffers[id].device = software_gpu;
    return id;
  }
  plan::BufferId arena(const char* name) {
    const plan::BufferId id = on_gpu(name, plan::Buffer::Kind::Arena);
    if (plan.arenas.empty()) plan.arenas.push_back({software_gpu, 0});
    plan.buffers[id].arena_offset = plan.arenas[0].bytes;
    plan.arenas[0].bytes = plan.arenas[0].bytes + sym::ceil_div(n * 4, 64) * 64;
    return id;
  }
  void add(plan::BufferId from, plan::BufferId to) {
    if (plan.kernels.empty()) plan.kernels[kernel("add_one", 2, {false, true}, {"n"})].device = software_gpu;
    launch(plan::KernelId(0), {from, to}, {n}, 1);
  }
  void allocate(plan::BufferId id) { plan.steps.emplace_back(plan::Allocate{id}); }
  void free(plan::BufferId id) { plan.steps.emplace_back(plan::Free{id}); }
};

struct DeviceRun {
  SoftwareDevice device;
  std::unique_ptr<Executable> executable;
  std::vector<TensorRef> held;  // so that later tensors have other addresses

  explicit DeviceRun(UseGraphs use = UseGraphs::On) : use_(use) {}
  void load(const DevicePlanBuilder& builder) { load(builder, std::make_shared<SoftwareKernels>(device, std::vector<SoftwareKernels::Body>{add_one_to_all})); }
  void load(const DevicePlanBuilder& builder, std::shared_ptr<KernelProvider> kernels) {
    executable = std::make_unique<Executable>(builder.plan, std::move(kernels), device, GraphSettings{use_, true});
    graph_counters().recordings = graph_counters().replays = graph_counters().refused_stretches = 0;
  }
  TensorRef tensor(int64_t size, float first) {
    const int64_t one = 1;
    TensorRef made = device.empty_strided(DType::F32, software_gpu, {&size, 1}, {&one, 1});
    for (int64_t i = 0; i < size; ++i) static_cast<float*>(made.data)[i] = first + static_cast<float>(i);
    held.push_back(made);
    return made;
  }
  // The result of a call with x = first, first + 1, ..., which has to be x + more in memory that nobody else has.
  void check(int64_t size, float first, float more) {
    std::vector<Value> results = executable->run(device, one_input(tensor(size, first)));
    REQUIRE(results.size() == 1);
    const TensorRef& y = results[0].tensor;
    for (int64_t i = 0; i < size; ++i) REQUIRE(static_cast<const float*>(y.data)[i] == first + static_cast<float>(i) + more);
    held.push_back(y);
  }

 private:
  UseGraphs use_;
};

// A library call: result = operand + 10, in memory of its own.
inline void add_ten(SoftwareDevice& device, std::span<const Operand> operands, std::span<const TensorView>, std::span<TensorRef> results) {
  const TensorView& x = operands[0].tensor;
  results[0] = device.empty_strided(x.dtype, software_gpu, x.sizes, x.strides);
  const auto count = static_cast<uint64_t>(x.sizes[0]);
  device.queue({100,
                [](const Words& w) {
                  for (uint64_t i = 0; i < w[2]; ++i) floats(w[1])[i] = floats(w[0])[i] + 10;
                },
                {reinterpret_cast<uintptr_t>(x.data), reinterpret_cast<uintptr_t>(results[0].data), count}});
}

// The same with an operand's address in a form of its own.
inline void add_ten_hidden(SoftwareDevice& device, std::span<const Operand> operands, std::span<const TensorView>, std::span<TensorRef> results) {
  const TensorView& x = operands[0].tensor;
  results[0] = device.empty_strided(x.dtype, software_gpu, x.sizes, x.strides);
  device.queue({101,
                [](const Words& w) {
                  for (uint64_t i = 0; i < w[2]; ++i) floats(w[1])[i] = floats(~w[0])[i] + 10;
                },
                {~reinterpret_cast<uintptr_t>(x.data), reinterpret_cast<uintptr_t>(results[0].data), static_cast<uint64_t>(x.sizes[0])}});
}

inline DevicePlanBuilder with_call(const char* callee) {
  DevicePlanBuilder b;
  const auto x = b.gpu_input("x"), t = b.arena("t"), u = b.on_gpu("u", plan::Buffer::Kind::ExternOwned);
  const auto y = b.on_gpu("y", plan::Buffer::Kind::Standalone);
  b.add(x, t);
  b.call(callee, {b.whole(t)}, {u}, false);
  b.allocate(y);
  b.add(u, y);
  b.free(u);
  b.output(y);
  return b;
}

}  // namespace cxxinductor::runtime
