#include "runtime/build_id.h"

#include <dlfcn.h>

#include "unit/catch.h"

using namespace cxxinductor;

TEST_CASE("each library has its own build ID", "[build_id]") {
  const std::string own = runtime::build_id(reinterpret_cast<const void*>(&runtime::build_id));
  CHECK(own.size() >= 16);
  CHECK(own.size() % 2 == 0);
  CHECK(own.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(runtime::build_id(reinterpret_cast<const void*>(&dlopen)) != own);
}

TEST_CASE("an address outside of all libraries has no build ID", "[build_id]") {
  const int local = 0;
  CHECK(runtime::build_id(&local).empty());
  CHECK(runtime::build_id(nullptr).empty());
}
