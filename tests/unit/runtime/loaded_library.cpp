#include "runtime/loaded_library.h"

#include <dlfcn.h>

#include "support/files.h"
#include "unit/catch.h"

using namespace cxxinductor;

TEST_CASE("each library has its own build ID", "[loaded_library]") {
  const std::string own = runtime::build_id(reinterpret_cast<const void*>(&runtime::build_id));
  CHECK(own.size() >= 16);
  CHECK(own.size() % 2 == 0);
  CHECK(own.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(runtime::build_id(reinterpret_cast<const void*>(&dlopen)) != own);
}

TEST_CASE("an address outside of all libraries has no build ID", "[loaded_library]") {
  const int local = 0;
  CHECK(runtime::build_id(&local).empty());
  CHECK(runtime::build_id(nullptr).empty());
}

TEST_CASE("an address has the file of its program or library", "[loaded_library]") {
  CHECK(runtime::library_path(reinterpret_cast<const void*>(&runtime::library_path)) == resolved_path("/proc/self/exe"));
  Dl_info found{};
  const auto* address = reinterpret_cast<const void*>(&dlopen);
  REQUIRE(dladdr(address, &found) != 0);
  CHECK(runtime::library_path(address) == resolved_path(found.dli_fname));
  const int local = 0;
  CHECK(runtime::library_path(&local).empty());
  CHECK(runtime::library_path(nullptr).empty());
}
