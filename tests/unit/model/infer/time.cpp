// What it takes to infer the result of a call whose rule is known: ./test_model "[time]" -s
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>

#include "model/infer/infer.h"
#include "model/schema_text.h"
#include "model/text.h"
#include "unit/catch.h"

namespace cxxinductor::model {

TEST_CASE("time of an inference", "[.time]") {
  std::ifstream file(std::string(CXXINDUCTOR_SOURCE_DIR) + "/tools/aten_schemas.txt");
  const SchemaTable schemas(std::string{std::istreambuf_iterator<char>(file), {}});
  const char* const calls[] = {
      "\"aten::add.Tensor\"(%x, %x)",  "\"aten::add.Tensor\"(%x, %b)", "\"aten::mul.Tensor\"(%x, 2.0)", "\"aten::relu\"(%x)",
      "\"aten::add_.Tensor\"(%x, %x)", "\"aten::mm\"(%w, %w)",         "\"aten::view\"(%x, [32, -1])",  "\"aten::sum.dim_IntList\"(%x, [-1], true)"};
  for (const char* call : calls) {
    const CallGraph graph =
        parse(std::string("calls @f {\n  input %x: f32[32, 128, 768]\n  input %b: f32[768]\n  input %w: f32[768, 768]\n  ") + call + "\n  return\n}\n");
    const auto rule = OpRule::find(graph.calls[0].callee, graph.calls[0].overload, schemas);
    REQUIRE(rule);
    ProvenSizes sizes(graph.assumptions);
    constexpr int repeats = 2000;
    size_t results = 0;
    double best = 1e9;
    for (int round = 0; round < 20; ++round) {
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < repeats; ++i) results += rule->infer(graph, graph.calls[0], sizes)->size();
      const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start;
      best = std::min(best, time.count() / repeats);
    }
    REQUIRE(results == 20 * repeats);
    UNSCOPED_INFO(call << ": " << static_cast<int>(best) << " ns");
  }
  SUCCEED();
}

}  // namespace cxxinductor::model
