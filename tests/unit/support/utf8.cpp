#include "support/utf8.h"

#include "unit/catch.h"

using cxxinductor::as_utf8;

TEST_CASE("text of UTF-8 stays as it is, other bytes become question marks", "[support]") {
  for (const char* text : {"", "plain", "\u2018quoted\u2019", "\u00e9 \u20ac \U0001f600"}) CHECK(as_utf8(text) == text);
  CHECK(as_utf8("bad \xff\xfe end") == "bad ?? end");
  CHECK(as_utf8("cut \xe2\x80") == "cut ??");
  CHECK(as_utf8("long \xc0\xaf, surrogate \xed\xa0\x80, large \xf4\x90\x80\x80") == "long ??, surrogate ???, large ????");
}
