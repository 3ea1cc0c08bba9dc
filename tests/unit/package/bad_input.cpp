// What an author who means harm would put into a package, under digests that are right: a case each, with its message.
#include <limits>

#include "model/text.h"
#include "package/container.h"
#include "package/manifest.h"
#include "unit/catch.h"
#include "unit/package/packages.h"

namespace cxxinductor::package_file {
namespace {

std::string error_of_calls(const std::string& text) {
  try {
    (void)model::parse(text);
  } catch (const UserError& error) {
    return error.what();
  } catch (const Unsupported& error) {
    return error.what();
  }
  return "read";
}

}  // namespace

TEST_CASE("packages of absurd sizes") {
  std::string package = package_of(usual_sections());
  put<uint64_t>(package, entry_at(4) + 16, uint64_t{1} << 62);
  renew_digest(package);
  CHECK_THAT(error_of(package), mentions("section weights 'weights': length: expected at most"));
  CHECK_THAT(error_of_calls("calls @model {\n  input %x: f32[9223372036854775807, 9223372036854775807]\n  return %x\n}\n"), !mentions("std::"));
  CHECK_THAT(error_of_calls("calls @model {\n  input %x: f32[" + std::string(100'000, '(') + "]\n  return %x\n}\n"), mentions("line 2"));
}

TEST_CASE("packages whose calls go in circles") {
  CHECK_THAT(error_of_calls("calls @model {\n  input %x: f32[2]\n  %a: f32[2] = \"aten::neg\"(%b)\n  %b: f32[2] = \"aten::neg\"(%a)\n  return %b\n}\n"),
             mentions("line 3"));
}

TEST_CASE("packages without weights") {
  std::vector<TestSection> sections = usual_sections();
  sections.pop_back();
  const std::string package = package_of(sections);
  const Container container(bytes_of(package));
  CHECK_THROWS_WITH(container.get(SectionKind::Weights, "weights"), "package: expected a section weights 'weights', found none");
}

}  // namespace cxxinductor::package_file
