// Programs over several devices: one plan with kernels, arenas and peaks of each, which computes what the graph does.
#include <algorithm>
#include <map>
#include <random>

#include "interp/interp.h"
#include "ir/graph/memory.h"
#include "ir/graph/text.h"
#include "ir/plan/memory.h"
#include "ir/plan/text.h"
#include "ir/plan/verify.h"
#include "lowering/lower.h"
#include "unit/catch.h"
#include "unit/schedule/plan_programs.h"

namespace cxxinductor::schedule::test {
namespace {

constexpr Device host{}, first_gpu{DeviceType::Cuda, 0}, second_gpu{DeviceType::Cuda, 1};

Targets all_targets() {
  Targets targets = gpu();
  targets.add(second_gpu, gpu());
  targets.add(host, cpu());
  return targets;
}

// A table of the CPU on two paths, a scalar of the CPU, and a chain that ends on the second GPU and comes back.
constexpr const char* mixed = R"(
graph @mixed on cuda:0 (%x: f32[6, 5], %t: f32[5] on cpu, %s: f32[] on cpu) {
  %0 = log(%t)
  %1 = mul(%0, 2.0)
  %2 = add(%1, 1.0)
  %3: f32[5] = extern "aten::_to_copy"($0, device = device(cuda:0)) with (%2)
  %4: f32[6, 5] = expand(%3)
  %5 = add(%x, %4)
  %6 = mul(%s, 3.0)
  %7 = mul(%5, %6)
  %8 = reduce<sum, dims=[1], keepdim>(%7)
  %9: f32[6, 5] = expand(%8)
  %10 = sub(%7, %9)
  %11: f32[6, 5] on cuda:1 = extern "aten::_to_copy"($0, device = device(cuda:1)) with (%10)
  %12 = relu(%11)
  %13 = exp(%12)
  %14: f32[6, 5] on cuda:1 = extern "my::f"($0) with (%13)
  %15 = neg(%14)
  %16: f32[6, 5] = extern "aten::_to_copy"($0, device = device(cuda:0)) with (%15)
  %17 = add(%16, %7)
  %18 = reduce<sum, dims=[0]>(%2)
  return %17, %18
}
)";

interp::Tensor tensor(std::vector<int64_t> sizes, uint32_t seed) {
  std::mt19937 random(seed);
  interp::Tensor made{DType::F32, sizes, {}};
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  std::uniform_real_distribution<double> uniform(0.5, 2);
  for (int64_t i = 0; i < count; ++i) made.elements.push_back(Scalar::from_real(DType::F32, uniform(random)));
  return made;
}

// Both externs of the graph give what they take.
std::vector<interp::Tensor> identity(const std::string&, const std::string&, const std::vector<Arg>&, const std::vector<interp::Tensor>& operands) {
  return {operands.at(0)};
}

plan::Plan plan_of(const char* text) {
  graph::Graph graph = graph::parse(text);
  graph.eager_peaks = graph::eager_peaks(graph);
  loops::Program program = fuse(lowering::lower(graph), all_targets(), Options(), nullptr);
  return place_memory(select_kernels(std::move(program), all_targets()).plan);
}

}  // namespace

TEST_CASE("a plan over a CPU and two GPUs computes what its graph does") {
  const plan::Plan plan = plan_of(mixed);
  INFO(plan::print(plan));
  CHECK(plan::verify(plan).empty());
  const interp::Arguments arguments{{tensor({6, 5}, 1), tensor({5}, 2), tensor({}, 3)}, {}};
  const auto expected = interp::run(graph::parse(mixed), arguments, identity);
  const auto actual = interp::run(plan, arguments, identity);
  REQUIRE(actual.size() == expected.size());
  for (size_t i = 0; i < actual.size(); ++i) CHECK(interp::compare(expected[i], actual[i]) <= 1.0);
  // The text form says all of it.
  const auto again = interp::run(plan::parse(plan::print(plan)), arguments, identity);
  for (size_t i = 0; i < again.size(); ++i) CHECK(interp::compare(actual[i], again[i]) == 0);
}

TEST_CASE("each device has kernels and an arena of its own") {
  const plan::Plan plan = plan_of(mixed);
  INFO(plan::print(plan));
  CHECK(plan.devices == std::vector<Device>{first_gpu, host, second_gpu});
  std::map<Device, int> kernels, arenas;
  for (const plan::Kernel& kernel : plan.kernels) ++kernels[kernel.device];
  for (const plan::Arena& arena : plan.arenas) ++arenas[arena.device];
  CHECK(kernels[host] >= 1);
  CHECK(kernels[first_gpu] >= 1);
  CHECK(kernels[second_gpu] >= 1);
  for (const auto& [device, count] : arenas) CHECK(count == 1);
  CHECK(arenas.contains(host));
  for (const plan::Buffer& buffer : plan.buffers)
    if (buffer.kind == plan::Buffer::Kind::Arena) CHECK(plan.arenas[buffer.arena].device == buffer.device);
}

TEST_CASE("no device of a plan holds more than eager does there") {
  const plan::Plan plan = plan_of(mixed);
  CHECK(plan.eager_peaks.size() == 3);
  CHECK(plan::bytes_beyond_eager(plan) == 0);
}

TEST_CASE("what one device gains by another order is not paid for by the other") {
  // Where the second GPU's tensors die early, all devices together hold less, and the first one holds a half more than eager does.
  const plan::Plan plan = plan_of(R"(
graph @g on cuda:0 (%x: f32[1000], %z: f32[1000] on cuda:1) {
  %0: f32[2500, 1000] on cuda:1 = expand(%z)
  %1: f32[2500, 1000] on cuda:1 = extern "aten::cumsum"($0, 1) with (%0)
  %2: f32[2500, 1000] = expand(%x)
  %3: f32[2500, 1000] = extern "aten::cumsum"($0, 1) with (%2)
  %4 = reduce<sum, dims=[1]>(%3)
  %5: f32[1250, 1000] on cuda:1 = slice<dim=0, start=0, step=2>(%1)
  %6: f32[1250, 1000] = extern "aten::_to_copy"($0, device = device(cuda:0)) with (%5)
  return %4, %6
}
)");
  INFO(plan::print(plan));
  CHECK(plan::bytes_beyond_eager(plan) == 0);
}

TEST_CASE("a scalar that the CPU computes is an argument of the GPU's kernel") {
  const plan::Plan plan = plan_of(mixed);
  const bool taken = std::any_of(plan.kernels.begin(), plan.kernels.end(), [](const plan::Kernel& kernel) {
    return kernel.device == first_gpu && std::any_of(kernel.params.begin(), kernel.params.end(), [](const plan::Param& param) { return param.by_value; });
  });
  CHECK(taken);
}

TEST_CASE("a region on a device without target is refused, which names the devices") {
  const graph::Graph graph = graph::parse(mixed);
  CHECK_THROWS_AS(fuse(lowering::lower(graph), gpu(), Options(), nullptr), Unsupported);
}

}  // namespace cxxinductor::schedule::test
