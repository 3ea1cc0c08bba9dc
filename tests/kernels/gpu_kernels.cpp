// The planned programs on a real GPU against the CPU target; and, hidden ("[.bench]"), what part of the copy bandwidth
// memory-bound kernels reach. Without a GPU the tests say so and pass.
#include <algorithm>

#include "kernels/bandwidth_programs.h"
#include "kernels/compare.h"
#include "kernels/cpu_program.h"
#include "kernels/gpu_host.h"
#include "runtime/element.h"
#include "unit/catch.h"
#include "unit/schedule/plan_programs.h"

using namespace cxxinductor;
using namespace cxxinductor::tests;
namespace programs = cxxinductor::schedule::test;

namespace {

std::shared_ptr<GpuMachine> gpu_or_skip() {
  std::string why;
  std::shared_ptr<GpuMachine> machine = find_gpu(&why);
  if (!machine) WARN("skipped: " << why);
  return machine;
}

}  // namespace

TEST_CASE("every planned program on the GPU", "[gpu]") {
  const std::shared_ptr<GpuMachine> machine = gpu_or_skip();
  if (!machine) return;
  for (const char* text : programs::all_programs) {
    for (const int64_t s0 : {1, 5, 300}) {
      CpuProgram cpu(on_device(text, "cpu"));
      GpuProgram gpu(on_device(text, "cuda:0"), machine);
      const std::vector<Input> inputs = make_inputs(gpu.plan, {{"s0", s0}, {"s1", 70 + s0}});
      std::vector<runtime::TensorRef> tensors;
      for (const Input& input : inputs) tensors.push_back(gpu.host.upload(input.dtype, input.sizes, input.strides, input.values));
      INFO(gpu.plan.name << " with s0 = " << s0);
      check_equal(run_on(cpu, inputs), gpu.run(std::move(tensors)), 2e-2);
    }
  }
}

TEST_CASE("an index out of bounds on the GPU is raised by a later launch, and the context lives", "[gpu]") {
  const std::shared_ptr<GpuMachine> machine = gpu_or_skip();
  if (!machine) return;
  GpuProgram gpu(on_device(programs::embedding, "cuda:0"), machine);
  const Numbers table = some_values(50 * 64, 1);
  const auto call = [&](const Numbers& indices) {
    const auto n = static_cast<int64_t>(indices.size());
    return gpu.run({gpu.host.upload(DType::F32, {50, 64}, {64, 1}, table), gpu.host.upload(DType::I64, {n}, {1}, indices)});
  };
  CHECK(call({3, 49, 0})[0][64 + 1] == static_cast<float>(table[49 * 64 + 1]));
  call({3, 99, 0});
  machine->synchronize();
  CHECK_THROWS_WITH(call({1}), mentions("index 99 is out of bounds") && mentions("embedding"));
  CHECK(call({3, 49, 0})[0][64 + 1] == static_cast<float>(table[49 * 64 + 1]));
}

// ---- Bandwidth --------------------------------------------------------------------------------------------------

namespace {

constexpr int64_t kElements = int64_t{64} << 20;

// Median milliseconds of several runs of a few repetitions.
double median_time(GpuMachine& machine, const std::function<void()>& work) {
  constexpr int repetitions = 10;
  for (int i = 0; i < 3; ++i) work();
  std::vector<double> times;
  for (int run = 0; run < 7; ++run)
    times.push_back(machine.time([&] {
      for (int i = 0; i < repetitions; ++i) work();
    }) / repetitions);
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

double copy_bytes_per_ms(GpuMachine& machine) {
  const int64_t bytes = int64_t{256} << 20;
  void *from = machine.allocate(bytes), *to = machine.allocate(bytes);
  const double time = median_time(machine, [&] { machine.copy_async(to, from, bytes); });
  machine.free(from);
  machine.free(to);
  return 2.0 * static_cast<double>(bytes) / time;
}

std::string describe(const plan::Mapping& mapping) {
  return std::visit(
      [&](const auto& shape) {
        std::string text = fmt::format("{} v{}", shape.keyword, mapping.vector_width);
        plan::for_each_field(shape, [&](const auto& field, const auto& value) {
          if constexpr (!std::is_same_v<std::remove_cvref_t<decltype(value)>, plan::VarId>) text += fmt::format(" {} {}", field.keyword, value);
        });
        return text;
      },
      mapping.shape);
}

// Different values everywhere in the first part, then copies of it.
void fill(GpuMachine& machine, void* memory, int64_t bytes, DType dtype) {
  const int64_t width = byte_size(dtype);
  const Numbers values = some_values(4096, 7);
  std::vector<char> pattern(static_cast<size_t>(std::min(bytes, width * 4096)));
  for (size_t i = 0; i < pattern.size() / static_cast<size_t>(width); ++i)
    runtime::write_element(Scalar::from_real(dtype, values[i]), pattern.data() + i * static_cast<size_t>(width));
  machine.to_device(memory, pattern.data(), static_cast<int64_t>(pattern.size()));
  for (auto done = static_cast<int64_t>(pattern.size()); done > 0 && done < bytes; done *= 2)
    machine.copy_async(static_cast<char*>(memory) + done, memory, std::min(done, bytes - done));
}

void measure(const std::shared_ptr<GpuMachine>& machine, const std::string& text, double copy) {
  GpuProgram program(text, machine);
  const plan::Plan& plan = program.plan;
  std::vector<void*> addresses;
  int64_t bytes = 0;
  const auto no_symbols = [](std::string_view) { return int64_t{0}; };
  for (const plan::Buffer& buffer : plan.buffers) {
    const int64_t size = sym::evaluate(buffer.bytes, no_symbols);
    addresses.push_back(machine->allocate(size));
    fill(*machine, addresses.back(), size, buffer.dtype);
  }
  for (const plan::Input& input : plan.inputs) bytes += sym::evaluate(plan.buffers[input.buffer].bytes, no_symbols);
  for (const plan::Output& output : plan.outputs) bytes += sym::evaluate(plan.buffers[output.buffer].bytes, no_symbols);
  const double time = median_time(*machine, [&] {
    for (const plan::Step& step : plan.steps) {
      const auto* launch = std::get_if<plan::Launch>(&step);
      if (!launch) continue;
      std::vector<void*> args;
      for (plan::BufferId id : launch->args) args.push_back(addresses[id.index()]);
      program.provider->get(launch->kernel, {}).launch(program.host, {args, {}, {sym::evaluate(launch->grid_x, no_symbols)}}, nullptr);
    }
  });
  machine->synchronize();
  std::string mappings;
  for (const plan::Kernel& kernel : plan.kernels) mappings += (mappings.empty() ? "" : " | ") + describe(kernel.mapping);
  fmt::print("{:<14} {:>9} {:>8.1f} us {:>5.1f} %  {}\n", plan.name, sym::to_string(plan.buffers[plan.inputs[0].buffer].sizes.back()), time * 1000,
             100.0 * static_cast<double>(bytes) / time / copy, mappings);
  std::fflush(stdout);
  for (void* address : addresses) machine->free(address);
}

}  // namespace

TEST_CASE("bandwidth of memory-bound kernels", "[.bench]") {
  const std::shared_ptr<GpuMachine> machine = gpu_or_skip();
  if (!machine) return;
  const double copy = copy_bytes_per_ms(*machine);
  fmt::print("copy {:.2f} TB/s\n", copy / 1e9);
  const auto run = [&](const char* text, const char* type, int64_t n) { measure(machine, sized(text, type, kElements / n, n), copy); };
  for (const char* type : {"bf16", "f32"}) {
    fmt::print("---- {}\n", type);
    for (const char* text : {add, gelu_chain}) run(text, type, 1024);
    for (const char* text : {softmax, layer_norm, rms_norm})
      for (const int64_t n : {256, 512, 768, 1024, 2048, 4096, 5120, 8192, 16384, 32768, 65536, 131072}) run(text, type, n);
    for (const int64_t n : {1024, 16384, 1048576}) run(row_sum, type, n);
    for (const int64_t n : {64, 1024, 8192}) run(column_sum, type, n);
    run(transpose_add, type, 8192);
  }
}
