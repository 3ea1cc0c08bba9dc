// Every IR of a random graph means what the graph means, by the interpreter. A failure is shrunk and written to a file
// beside the program.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "fuzz/graph_fuzz.h"
#include "fuzz/seed.h"
#include "ir/graph/text.h"
#include "unit/catch.h"

namespace {

using namespace cxxinductor;

// Texts take as long as all others.
std::vector<fuzz::Executor> executors_of(uint64_t seed) {
  std::vector<fuzz::Executor> executors = fuzz::ir_executors();
  if (seed % 4 == 0) executors.push_back(fuzz::text_executor());
  return executors;
}

void report(const fuzz::RandomGraph& random, uint64_t seed, const fuzz::Mismatch& mismatch) {
  const auto executors = executors_of(seed);
  const auto executor = std::find_if(executors.begin(), executors.end(), [&](const fuzz::Executor& e) { return e.name == mismatch.executor; });
  const fuzz::RandomGraph small = fuzz::shrink(random, seed, *executor);
  const auto arguments = fuzz::random_arguments(small.graph, small.symbols, seed);
  const auto reason = fuzz::find_mismatch(small, arguments, {*executor}).value_or(mismatch);
  const std::string text = fuzz::describe(small, seed, reason);
  const auto path = std::filesystem::path(CXXINDUCTOR_BINARY_DIR) / ("fuzz_failure_" + std::to_string(seed) + ".cxxi");
  std::ofstream(path) << text;
  FAIL_CHECK(text << "\nwritten to " << path.string() << "; again with CXXINDUCTOR_FUZZ_SEED=" << seed);
}

}  // namespace

TEST_CASE("random graphs mean the same in every IR") {
  constexpr uint64_t graphs = 250;
  constexpr int most_reports = 3;
  int failures = 0;
  for (uint64_t seed = fuzz::first_seed(); seed < fuzz::first_seed() + graphs && failures < most_reports; ++seed) {
    fuzz::Shape shape;
    shape.device = seed % 2 == 0 ? DeviceType::Cpu : DeviceType::Cuda;
    shape.steps = 6 + static_cast<int>(seed % 5) * 5;
    const fuzz::RandomGraph random = fuzz::random_graph(seed, shape);
    const auto arguments = fuzz::random_arguments(random.graph, random.symbols, seed);
    if (const auto mismatch = fuzz::find_mismatch(random, arguments, executors_of(seed))) {
      report(random, seed, *mismatch);
      ++failures;
    }
  }
  SUCCEED();
}

TEST_CASE("random graphs read back from their text") {
  for (uint64_t seed = fuzz::first_seed(); seed < fuzz::first_seed() + 100; ++seed) {
    const std::string text = graph::print(fuzz::random_graph(seed, {}).graph);
    INFO("seed " << seed);
    REQUIRE(graph::print(graph::parse(text)) == text);
  }
}
