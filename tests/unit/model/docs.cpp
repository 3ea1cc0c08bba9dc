#include <fstream>
#include <iterator>

#include "model/text.h"
#include "unit/catch.h"

using namespace cxxinductor;

TEST_CASE("the call graph of docs/ir.md round-trips") {
  std::ifstream file(std::string(CXXINDUCTOR_SOURCE_DIR) + "/docs/ir.md");
  REQUIRE(file);
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const std::string fence = "```\n";
  const size_t begin = page.find(fence + "calls ");
  REQUIRE(begin != page.npos);
  const std::string text = page.substr(begin + fence.size(), page.find(fence, begin + 1) - begin - fence.size());
  CHECK(model::print(model::parse(text)) == text);
}
