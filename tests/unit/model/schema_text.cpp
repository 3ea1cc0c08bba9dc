#include "model/schema_text.h"

#include "support/error.h"
#include "unit/catch.h"

namespace cxxinductor::model {

TEST_CASE("schemas are read from torch's text") {
  const NamedSchema add = parse_schema("aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor");
  CHECK(add.callee == "aten::add");
  CHECK(add.overload == "Tensor");
  REQUIRE(add.schema.arguments.size() == 3);
  CHECK(add.schema.arguments[0].is_tensor);
  CHECK_FALSE(add.schema.arguments[2].is_tensor);
  CHECK(add.schema.arguments[2].kwarg_only);
  CHECK(add.schema.arguments[2].default_value == Arg(int64_t{1}));
  CHECK(add.schema.returns.size() == 1);
  CHECK_FALSE(add.schema.nondeterministic_seeded);
}

TEST_CASE("alias sets, writes and destinations of schemas") {
  const Schema out = parse_schema("aten::mm.out(Tensor self, Tensor mat2, *, Tensor(a!) out) -> Tensor(a!)").schema;
  CHECK(out.arguments[2].out);
  CHECK(out.arguments[2].written);
  CHECK(out.returns[0].alias == "a");
  CHECK(out.planned_form == PlannedForm::Structured);
  const Schema view = parse_schema("aten::chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]").schema;
  CHECK(view.arguments[0].alias == "a");
  CHECK_FALSE(view.arguments[0].written);
  CHECK(view.returns[0].is_list);
  CHECK(view.returns[0].is_tensor);
  const Schema lists = parse_schema("aten::_foreach_add_.List(Tensor(a!)[] self, Tensor[] other, *, Scalar alpha=1) -> ()").schema;
  CHECK(lists.arguments[0].is_list);
  CHECK(lists.arguments[0].written);
  CHECK(lists.returns.empty());
}

TEST_CASE("optional lists, several results and defaults of schemas") {
  const Schema schema = parse_schema(
                            "aten::f(Tensor?[] a, int[2]? b=None, int[] c=[0, -1], float d=1e-05, str e=\"mean\", bool f=True, ScalarType? g=None, "
                            "MemoryFormat h=contiguous_format) -> (Tensor out, Tensor(a)[] rest, int) {nondeterministic_seeded}")
                            .schema;
  CHECK(schema.arguments[0].is_list);
  CHECK_FALSE(schema.arguments[1].is_list);
  CHECK(schema.arguments[1].default_value == Arg(None{}));
  CHECK(schema.arguments[2].default_value == Arg(ArgList{int64_t{0}, int64_t{-1}}));
  CHECK(schema.arguments[3].default_value == Arg(1e-05));
  CHECK(schema.arguments[4].default_value == Arg(std::string("mean")));
  CHECK(schema.arguments[5].default_value == Arg(true));
  CHECK_FALSE(schema.arguments[7].default_value.has_value());
  CHECK(schema.returns.size() == 3);
  CHECK(schema.returns[1].is_list);
  CHECK_FALSE(schema.returns[2].is_tensor);
  CHECK(schema.nondeterministic_seeded);
}

TEST_CASE("bad schemas are errors with their place") {
  for (const char* text : {"", "aten::add", "aten::add(Tensor) -> Tensor", "aten::add(Tensor self -> Tensor", "aten::add(Tensor self) -> Tensor ]",
                           "aten::add(Tensor(a self) -> Tensor"})
    CHECK_THROWS_AS(parse_schema(text), UserError);
}

TEST_CASE("a table finds schemas by op and overload") {
  const SchemaTable table("aten::neg(Tensor self) -> Tensor\naten::add.Tensor(Tensor self, Tensor other) -> Tensor\n");
  CHECK(table.size() == 2);
  CHECK(table.find("aten::neg", ""));
  CHECK(table.find("aten::neg", "default"));
  CHECK(table.find("aten::add", "Tensor"));
  CHECK_FALSE(table.find("aten::add", ""));
}

}  // namespace cxxinductor::model
