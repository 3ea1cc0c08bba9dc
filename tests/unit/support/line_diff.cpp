#include "support/line_diff.h"

#include "unit/catch.h"

using cxxinductor::line_diff;

TEST_CASE("equal texts have no differences", "[line_diff]") { CHECK(line_diff("a\nb\n", "a\nb\n").empty()); }

TEST_CASE("lines that differ are shown with those around them", "[line_diff]") {
  CHECK(line_diff("a\nb\nc\nd\ne\nf\n", "a\nb\nc\nX\ne\nf\n", 1) == "...\n  c\n- d\n+ X\n  e\n...\n");
  CHECK(line_diff("a\nb\n", "b\nc\n") == "- a\n  b\n+ c\n");
  CHECK(line_diff("", "a\n") == "+ a\n");
  CHECK(line_diff("a\na\n", "a\n") == "  a\n- a\n");
}

TEST_CASE("long texts are compared without a table of all pairs", "[line_diff]") {
  std::string before, after;
  for (int i = 0; i < 5000; ++i) {
    before += "b" + std::to_string(i) + "\n";
    after += "a" + std::to_string(i) + "\n";
  }
  CHECK(line_diff(before, after).starts_with("- b0\n"));
}
