// verify=boundaries: each IR is verified once after each stage that makes or changes it.
#include "driver/compile.h"
#include "ir/graph/text.h"
#include "unit/catch.h"
#include "unit/runtime/test_plans.h"

using namespace cxxinductor;

namespace {

// What precedes each verification, as the report's times name it.
std::vector<std::string> boundaries(const std::string& verify) {
  runtime::PlainHost host;
  driver::Request request;
  request.graph = graph::parse("graph @f(%x: f32[8, 4]) {\n  %0 = add(%x, 1.0)\n  return %0\n}\n");
  request.targets = cpu_target("x86-64-v3", 1);
  request.host = &host;
  request.options.verify = verify;
  const std::string_view prefix = "verify ";
  std::vector<std::string> found;
  for (const driver::StageTime& time : driver::compile(std::move(request)).report.times)
    if (time.stage.starts_with(prefix)) found.push_back(time.stage.substr(prefix.size()));
  return found;
}

}  // namespace

TEST_CASE("the boundaries of all stages are verified", "[driver]") {
  CHECK(boundaries("boundaries") == std::vector<std::string>{"import", "graph-passes", "lower", "loops-passes", "fit-memory"});
  CHECK(boundaries("each") ==
        std::vector<std::string>{"import", "lower", "fuse", "select-kernels", "place-memory"});  // no pass changed the graph or the program
  CHECK(boundaries("off").empty());
}
