// Random graphs, their CUDA kernels run under emulation, against the interpreter.
#include "fuzz/seed.h"
#include "kernels/cpu_fuzz.h"
#include "kernels/cuda_program.h"
#include "unit/catch.h"

using namespace cxxinductor;
using namespace cxxinductor::tests;

namespace {

fuzz::Executor cuda_executor(plan::Variant variant, bool fused) {
  return {fmt::format("CUDA code{}{}{}", variant.vectorized ? "" : ", element by element", variant.index64 ? ", 64-bit indices" : "", fused ? "" : ", unfused"),
          [variant, fused](const graph::Graph& given, const interp::Arguments& arguments) {
            plan::Plan plan = plan_of_random(given, gpu_target(), fused);
            if (variant.index64) plan = without_specializations(std::move(plan));
            CudaProgram compiled(std::move(plan), variant, call_twice);
            return run_compiled(compiled, arguments);
          }};
}

}  // namespace

TEST_CASE("random graphs in CUDA text give what the interpreter gives", "[cuda][fuzz]") {
  const uint64_t first = fuzz::first_seed();
  const std::vector<fuzz::Executor> executors = {cuda_executor({true, false}, true), cuda_executor({false, false}, false), cuda_executor({true, true}, true)};
  int failures = 0;
  for (uint64_t seed = first; seed < first + 15 && failures < 3; ++seed) {
    fuzz::Shape shape;
    shape.device = DeviceType::Cuda;
    shape.steps = 4 + static_cast<int>(seed % 4) * 6;
    const fuzz::Executor& executor = executors[seed % executors.size()];
    const fuzz::RandomGraph random = fuzz::random_graph(seed, shape);
    const interp::Arguments arguments = fuzz::random_arguments(random.graph, random.symbols, seed);
    const auto mismatch = fuzz::find_mismatch(random, arguments, {executor});
    if (!mismatch) continue;
    ++failures;
    const fuzz::RandomGraph small = fuzz::shrink(random, seed, executor);
    const auto again = fuzz::find_mismatch(small, fuzz::random_arguments(small.graph, small.symbols, seed), {executor});
    FAIL_CHECK(fuzz::describe(small, seed, again.value_or(*mismatch)) << "\nagain with CXXINDUCTOR_FUZZ_SEED=" << seed);
  }
  SUCCEED();
}
