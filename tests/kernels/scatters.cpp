// Stores that combine where points meet, for every dtype and way to combine: compiled for the CPU, emulated CUDA,
// NVRTC, and the GPU, against a loop written by hand.
#include <algorithm>

#include "driver/stages.h"
#include "ir/graph/text.h"
#include "kernels/compare.h"
#include "kernels/cpu_program.h"
#include "kernels/cuda_program.h"
#include "kernels/gpu_host.h"
#include "unit/catch.h"
#include "unit/make_plan.h"
#include "unit/targets/find_nvrtc.h"

using namespace cxxinductor;
using namespace cxxinductor::tests;

namespace {

constexpr Combine all_combines[] = {Combine::Overwrite, Combine::Add, Combine::Mul, Combine::Max, Combine::Min};
constexpr DType all_dtypes[] = {DType::F64, DType::F32, DType::F16, DType::BF16, DType::I64, DType::I32, DType::I16, DType::I8, DType::U8, DType::Bool};
constexpr int64_t places = 17, points = 300;

// An output a dtype, filled from its base and updated where the indices say.
std::string program(Combine combine) {
  std::string inputs = fmt::format("@k: i64[{}]", points), buffers, regions, outputs;
  for (DType dtype : all_dtypes) {
    if (!accepts(combine, dtype)) continue;
    const std::string name(to_string(dtype));
    inputs += fmt::format(", @x_{0}: {0}[{1}], @s_{0}: {0}[{2}]", name, places, points);
    buffers += fmt::format("  output @y_{0}: {0}[{1}]\n", name, places);
    regions += fmt::format("  region @fill_{0} over i < {1} {{\n    %0 = load @x_{0}[i]\n    store @y_{0}[i] = %0\n  }}\n", name, places);
    regions += fmt::format(
        "  region @put_{0} over i < {1} {{\n    %0 = load @k[i]\n    check %0 < ({2}) \"index\"\n    %2 = load "
        "@s_{0}[i]\n"
        "    update{3} @y_{0}[%0] = %2 conflict_order (i)\n  }}\n",
        name, points, places, combine == Combine::Overwrite ? "" : fmt::format("<{}>", name_of(combine)));
    outputs += (outputs.empty() ? "@y_" : ", @y_") + name;
  }
  return fmt::format("program @p on DEVICE ({}) {{\n{}{}  return {}\n}}\n", inputs, buffers, regions, outputs);
}

// Numbers that combine to the same in any order. Overwriting: what meets is equal.
std::vector<Input> inputs_for(Combine combine) {
  std::vector<Input> inputs{{DType::I64, {points}, {1}, {}}};
  for (int64_t i = 0; i < points; ++i) inputs[0].values.push_back(static_cast<double>(i * 7 % 31 % places));
  for (DType dtype : all_dtypes) {
    if (!accepts(combine, dtype)) continue;
    Input base{dtype, {places}, {1}, {}}, source{dtype, {points}, {1}, {}};
    for (int64_t i = 0; i < places; ++i) base.values.push_back(dtype == DType::Bool ? i % 2 : static_cast<double>(i % 3));
    for (int64_t i = 0; i < points; ++i) {
      const int64_t place = static_cast<int64_t>(inputs[0].values[static_cast<size_t>(i)]);
      const bool is_signed = is_float(dtype) || info(dtype).dtype_class == DTypeClass::Signed;
      int64_t number = i * 13 % 11 % 3 - (is_signed ? 1 : 0);
      if (combine == Combine::Mul && !is_signed) number = 1 + (i == 5);
      if (combine == Combine::Overwrite) number = dtype == DType::Bool ? place % 2 : place + 20;
      source.values.push_back(static_cast<double>(number));
    }
    inputs.push_back(base);
    inputs.push_back(source);
  }
  return inputs;
}

std::vector<Numbers> by_hand(Combine combine, const std::vector<Input>& inputs) {
  std::vector<Numbers> results;
  for (size_t i = 1; i < inputs.size(); i += 2) {
    const DType dtype = inputs[i].dtype;
    const auto scalar = [&](double number) {
      return is_float(dtype) ? Scalar::from_real(dtype, number) : Scalar::from_integer(dtype, static_cast<int64_t>(number));
    };
    std::vector<Scalar> values;
    for (double number : inputs[i].values) values.push_back(scalar(number));
    for (size_t p = 0; p < points; ++p) {
      Scalar& place = values[static_cast<size_t>(inputs[0].values[p])];
      place = combined(combine, place, scalar(inputs[i + 1].values[p]));
    }
    results.emplace_back();
    for (const Scalar& value : values) results.back().push_back(value.as_real());
  }
  return results;
}

}  // namespace

TEST_CASE("points that meet, on the CPU and in CUDA text", "[cpu][cuda]") {
  for (const Combine combine : all_combines) {
    INFO(name_of(combine));
    const std::vector<Input> inputs = inputs_for(combine);
    const std::vector<Numbers> expected = by_hand(combine, inputs);
    CpuProgram cpu(on_device(program(combine), "cpu"));
    check_equal(expected, run_on(cpu, inputs), 0);
    for (const plan::Variant variant : {plan::Variant{true, false}, plan::Variant{false, true}}) {
      CudaProgram cuda(on_device(program(combine), "cuda:0"), variant);
      check_equal(expected, run_on(cuda, inputs), 0);
    }
  }
}

TEST_CASE("on the CPU the last of several points stays, and sums go in order", "[cpu]") {
  CpuProgram last(R"(program @p on cpu (@x: f32[4], @k: i64[2000], @s: f32[2000, 3]) {
    output @y: f32[4, 3]
    region @fill over i < 4, j < 3 {
      %0 = load @x[i]
      store @y[i, j] = %0
    }
    region @put over i < 2000, j < 3 {
      %0 = load @k[i]
      %1 = load @s[i, j]
      update @y[%0, j] = %1 conflict_order (3*i + j)
    }
    return @y
  })");
  Input x{DType::F32, {4}, {1}, Numbers(4, 0)}, k{DType::I64, {2000}, {1}, {}}, s{DType::F32, {2000, 3}, {3, 1}, {}};
  for (int i = 0; i < 2000; ++i) k.values.push_back(i % 3);
  for (int i = 0; i < 6000; ++i) s.values.push_back(i);
  check_equal({{5994, 5995, 5996, 5997, 5998, 5999, 5991, 5992, 5993, 0, 0, 0}}, {run_on(last, {x, k, s})}, 0);

  CpuProgram sum(R"(program @p on cpu (@x: bf16[1], @s: bf16[600]) {
    output @y: bf16[1]
    region @fill over i < 1 {
      %0 = load @x[i]
      store @y[i] = %0
    }
    region @put over i < 600 {
      %0 = load @s[i]
      update<add> @y[0] = %0 conflict_order (i)
    }
    return @y
  })");
  // From 256 on a bf16 does not move by one.
  check_equal({{256}}, run_on(sum, {{DType::BF16, {1}, {1}, {0}}, {DType::BF16, {600}, {1}, Numbers(600, 1)}}), 0);
}

TEST_CASE("NVRTC compiles every way to combine", "[cuda][nvrtc]") {
  const std::unique_ptr<targets::Nvrtc> nvrtc = targets::find_nvrtc();
  if (!nvrtc) return;
  for (const Combine combine : all_combines) {
    const plan::Plan plan = schedule::test::make_plan(loops::parse(on_device(program(combine), "cuda:0")), gpu_target(), Options{});
    std::vector<const plan::Kernel*> kernels;
    for (const plan::Kernel& kernel : plan.kernels) kernels.push_back(&kernel);
    const std::string source = codegen::emit_cuda(kernels, {true, false}, plan.origins);
    for (const char* arch : {"sm_80", "sm_90a"}) {
      INFO(name_of(combine) << " for " << arch);
      CHECK(nvrtc->compile_to_cubin(source, arch, "scatters").log == "");
    }
  }
}

TEST_CASE("points that meet on the GPU", "[gpu]") {
  std::string why;
  const std::shared_ptr<GpuMachine> machine = find_gpu(&why);
  if (!machine) {
    WARN("skipped: " << why);
    return;
  }
  for (const Combine combine : all_combines) {
    INFO(name_of(combine));
    const std::vector<Input> inputs = inputs_for(combine);
    GpuProgram gpu(on_device(program(combine), "cuda:0"), machine);
    std::vector<runtime::TensorRef> tensors;
    for (const Input& input : inputs) tensors.push_back(gpu.host.upload(input.dtype, input.sizes, input.strides, input.values));
    check_equal(by_hand(combine, inputs), gpu.run(std::move(tensors)), 0);
  }
}

TEST_CASE("updates of a large buffer move what they write", "[cpu]") {
  std::string text = "graph @f(%x: f32[100000, 64], %s: f32[4, 64], %i: i64[4]) {\n";
  for (int k = 0; k < 20; ++k)
    text +=
        fmt::format("  %a{} = scatter<target=[-1, 1], index_dims=[0]{}>({}, %s, %i)\n", k, k % 2 ? ", add" : "", k == 0 ? "%x" : fmt::format("%a{}", k - 1));
  graph::Graph graph = graph::parse(text + "  final %x = %a19\n  return\n}\n");
  const plan::Plan plan = driver::plan_of(std::move(graph), cpu_target("x86-64-v3", 4));
  int64_t bytes = 0;
  for (const plan::Step& step : plan.steps)
    if (const auto* launch = std::get_if<plan::Launch>(&step)) {
      const plan::Kernel& kernel = plan.kernels[launch->kernel];
      bytes += kernel.bytes_read_hint + kernel.bytes_written_hint;
    }
  CHECK(bytes <= 20 * 4 * (3 * 64 * 4 + 8));
  CHECK(plan.arenas.empty());
}
