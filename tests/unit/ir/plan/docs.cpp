// The examples of docs/ir.md are what the printers print.
#include <fstream>
#include <iterator>

#include "ir/graph/text.h"
#include "ir/loops/text.h"
#include "ir/plan/text.h"
#include "unit/catch.h"

using namespace cxxinductor;

TEST_CASE("the examples of docs/ir.md round-trip", "[ir][docs]") {
  std::ifstream file(std::string(CXXINDUCTOR_SOURCE_DIR) + "/docs/ir.md");
  REQUIRE(file);
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  int graphs = 0, programs = 0, plans = 0;
  const std::string fence = "```\n";
  for (size_t at = page.find(fence); at != page.npos; at = page.find(fence, at)) {
    size_t begin = at + fence.size(), end = page.find(fence, begin);
    REQUIRE(end != page.npos);
    std::string text = page.substr(begin, end - begin);
    at = end + fence.size();
    if (text.starts_with("graph ")) {
      CHECK(graph::print(graph::parse(text)) == text);
      ++graphs;
    } else if (text.starts_with("program ")) {
      CHECK(loops::print(loops::parse(text)) == text);
      ++programs;
    } else if (text.starts_with("plan ")) {
      CHECK(plan::print(plan::parse(text)) == text);
      ++plans;
    }
  }
  CHECK(graphs == 3);
  CHECK(programs == 1);
  CHECK(plans == 2);
}
