// Every row of ops.def, on every dtype that it accepts, over edge values: the compiled CPU kernel against the row's
// evaluator; and every cast between dtypes. One unit a dtype.
#include "kernels/cpu_unit.h"
#include "kernels/op_sweep.h"

using namespace cxxinductor;
using namespace cxxinductor::tests;

namespace {

RunKernel compiled(const std::vector<const plan::Kernel*>& kernels, const Target& target, const std::string& compiler) {
  std::vector<std::string> names;
  for (const plan::Kernel* kernel : kernels) names.push_back(kernel->name);
  const auto unit = std::make_shared<CpuUnit>(kernels, target, compiler);
  return
      [unit, names](size_t kernel, const std::vector<void*>& buffers, int64_t count) { unit->run(names[kernel], buffers, {count}, 0, (count + 1023) / 1024); };
}

void sweep(DType dtype, const Target& target, const std::string& compiler = "") {
  sweep_ops(dtype, target.vector_bytes / (dtype == DType::F64 ? 8 : 4),
            [&](const std::vector<const plan::Kernel*>& kernels) { return compiled(kernels, target, compiler); });
}

}  // namespace

TEST_CASE("op sweep on the CPU", "[sweep]") {
  for (DType dtype : compute_dtypes) sweep(dtype, machine_target());
}

TEST_CASE("op sweep on the CPU, 256-bit vectors", "[sweep]") {
  if (machine_target().vector_bytes == 32) return;
  for (DType dtype : {DType::F32, DType::F64, DType::I64}) sweep(dtype, cpu_target("x86-64-v3", 1));
}

TEST_CASE("op sweep on the CPU, 128-bit vectors", "[sweep]") {
  for (DType dtype : {DType::F32, DType::F64, DType::I64}) sweep(dtype, cpu_target("x86-64-v2", 1));
}

TEST_CASE("op sweep on the CPU with clang++", "[sweep]") {
  if (targets::find_program("clang++").empty()) return;
  for (DType dtype : {DType::F32, DType::F64, DType::I8, DType::U64, DType::Bool}) sweep(dtype, machine_target(), "clang++");
}

TEST_CASE("every cast between dtypes on the CPU", "[sweep]") {
  sweep_casts([](const std::vector<const plan::Kernel*>& kernels) { return compiled(kernels, machine_target(), ""); });
}
