// Ops that files may not call.
#include "frontend/check_calls.h"

#include "model/schema_text.h"
#include "model/text.h"
#include "support/error.h"
#include "unit/catch.h"

namespace cxxinductor::frontend {
namespace {

std::string error_of(const std::string& call, const std::vector<std::string>& allowed = {}) {
  const model::SchemaTable schemas(
      "aten::neg(Tensor self) -> Tensor\n"
      "aten::from_file(str filename, bool? shared=None, int? size=0) -> Tensor\n"
      "aten::set_.source_Tensor(Tensor(a!) self, Tensor source) -> Tensor(a!)\n"
      "mylib::op(Tensor self) -> Tensor\n");
  const std::string text = "calls @model {\n  input %x: f32[2]\n  %y: f32[2] = " + call + "\n  return %y\n}\n";
  try {
    check_calls(model::parse(text), schemas, allowed);
  } catch (const UserError& error) {
    return error.what();
  }
  return "allowed";
}

}  // namespace

TEST_CASE("ops outside the allow-list") {
  CHECK(error_of("\"aten::neg\"(%x)") == "allowed");
  for (const char* call : {"\"aten::from_file\"(\"/etc/passwd\", false, 2)", "\"aten::set_.source_Tensor\"(%x, %x)", "\"mylib::op\"(%x)", "\"prim::Print\"(%x)",
                           "\"cxxinductor::run_region\"(%x)"})
    CHECK_THAT(error_of(call), mentions("expected an op of PyTorch that reads its arguments and does nothing else; option allow_ops adds ops by name"));
  CHECK_THAT(error_of("\"mylib::op\"(%x)"), mentions("mylib::op"));
  CHECK(error_of("\"mylib::op\"(%x)", {"mylib"}) == "allowed");
  CHECK(error_of("\"mylib::op\"(%x)", {"mylib::op"}) == "allowed");
  CHECK_THAT(error_of("\"mylib::op\"(%x)", {"mylib::other", "my"}), mentions("allow_ops"));
}

}  // namespace cxxinductor::frontend
