// What each kind of statement states to do, and what follows for a region.
#include "ir/loops/stmt_properties.h"

#include "ir/loops/text.h"
#include "unit/catch.h"

using namespace cxxinductor;
using loops::StmtId;
using loops::VarId;
using loops::VarSet;

namespace {

const char* const row =
    R"(program @p on cpu (@x: f32[4, 8], @i: i64[4]) {
  output @y: f32[4]
  region @n0 over i < 4, j < 8 {
    %0 = load @x[i, j]
    %1 = constant f32(2.0)
    %2 = mul(%0, %1)
    %3 = reduce<welford>(%2) over j
    %4 = reduce<argmax>(%2) over j
    %5 = project<1>(%3)
    %6 = load @i[i]
    check %6 < (8) "out of range"
    store @y[i] = %5
  }
  return @y
}
)";

loops::Region region() { return std::get<loops::Region>(loops::parse(row).steps.at(0)); }

std::vector<size_t> holding(bool (*property)(const loops::Stmt&)) {
  std::vector<size_t> found;
  const loops::Region of = region();
  for (size_t s = 0; s < of.body.size(); ++s)
    if (property(of.body[StmtId(s)])) found.push_back(s);
  return found;
}

}  // namespace

TEST_CASE("properties of statements follow from the traits of their kinds") {
  CHECK(holding(loops::is_effect) == std::vector<size_t>{7, 8});
  CHECK(holding(loops::is_known_after_row) == std::vector<size_t>{3, 4});
  CHECK(holding(loops::is_executed_once) == std::vector<size_t>{3, 4, 7, 8});
  CHECK(holding(loops::depends_on_row_order) == std::vector<size_t>{4});
  CHECK(holding(loops::holds_expressions) == std::vector<size_t>{0, 6, 7, 8});
  CHECK(loops::only_reduces(region()));
}

TEST_CASE("the row of a state is read and replaced") {
  loops::Region of = region();
  loops::Stmt& sum = of.body[StmtId(3)];
  const auto state = row_state(sum);
  REQUIRE(state);
  CHECK(state->reduction == Reduction::Welford);
  CHECK(state->operand == StmtId(2));
  CHECK(state->over == VarSet::of(VarId(1)));
  CHECK(own_vars(sum, of.body[StmtId(2)].vars) == VarSet::of(VarId(0)));
  set_row(sum, StmtId(0), VarSet::of(VarId(0)));
  CHECK(row_state(sum)->operand == StmtId(0));
  CHECK(row_state(sum)->over == VarSet::of(VarId(0)));
  CHECK(!row_state(of.body[StmtId(2)]));
  CHECK(own_vars(of.body[StmtId(2)], VarSet::of(VarId(1))) == VarSet::of(VarId(1)));
  CHECK_THROWS(set_row(of.body[StmtId(2)], StmtId(0), VarSet()));
}
