// Random graphs, compiled for the CPU and run, against the interpreter.
#include "kernels/cpu_fuzz.h"

#include "fuzz/seed.h"
#include "unit/catch.h"

using namespace cxxinductor;
using namespace cxxinductor::tests;

TEST_CASE("random graphs compiled for the CPU give what the interpreter gives", "[cpu][fuzz]") {
  const uint64_t first = fuzz::first_seed();
  const std::vector<fuzz::Executor> executors = {cpu_executor(machine_target(), true), cpu_executor(machine_target(), false)};
  int failures = 0;
  for (uint64_t seed = first; seed < first + 25 && failures < 3; ++seed) {
    fuzz::Shape shape;
    shape.steps = 4 + static_cast<int>(seed % 4) * 6;
    const fuzz::RandomGraph random = fuzz::random_graph(seed, shape);
    const interp::Arguments arguments = fuzz::random_arguments(random.graph, random.symbols, seed);
    const auto mismatch = fuzz::find_mismatch(random, arguments, executors);
    if (!mismatch) continue;
    ++failures;
    const fuzz::Executor& executor = executors[mismatch->executor == executors[0].name ? 0 : 1];
    const fuzz::RandomGraph small = fuzz::shrink(random, seed, executor);
    const auto again = fuzz::find_mismatch(small, fuzz::random_arguments(small.graph, small.symbols, seed), {executor});
    FAIL_CHECK(fuzz::describe(small, seed, again.value_or(*mismatch)) << "\nagain with CXXINDUCTOR_FUZZ_SEED=" << seed);
  }
  SUCCEED();
}
