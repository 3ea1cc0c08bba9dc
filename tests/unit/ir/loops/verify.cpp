// A negative case for each invariant of the loops IR, and the queries on regions.
#include "ir/loops/text.h"
#include "ir/loops/verify.h"
#include "support/error.h"
#include "unit/catch.h"
#include "unit/ir/expect_text.h"

using namespace cxxinductor;
using namespace cxxinductor::loops;

namespace {

Program sample() {
  return parse(R"(program @f(@x: f32[s0, 4], @k: i64[s0], sym s0) where 1 <= s0 {
    output @y: f32[s0, 4]
    temporary @t: f32[s0]
    output @r: f32[s0]
    region @a over i < s0, j < 4 {
      %0 = load @x[i, j] from "model.py":7 "h" "aten.exp"
      %1 = reduce<sum>(%0) over j
      store @t[i] = %1
    }
    region @b over i < s0, j < 4 {
      %0 = load @k[i]
      check %0 < (s0) "index"
      %2 = index(%0 + 1)
      %3 = lt(%2, %0)
      %4 = load @x[%0, j] if %3 else f32(0.0)
      %5 = exp(%4)
      %6 = where(%3, %5, %4)
      %7 = reduce<welford>(%6) over j
      %8 = project<1>(%7)
      %9 = add(%6, %8)
      store @y[i, j] = %9 if %3
    }
    @r = extern "aten::f"($0, $1) with (@t, expr(s0))
    return @y, @r
  })");
}

Region& region(Program& p, size_t step) { return std::get<Region>(p.steps[step]); }
Stmt& stmt(Program& p, size_t step, size_t id) { return region(p, step).body[StmtId(id)]; }
ExternCall& call(Program& p) { return std::get<ExternCall>(p.steps[2]); }

template <class Edit>
std::string report_after(Edit edit) {
  Program p = sample();
  edit(p);
  std::string all;
  for (const std::string& message : verify(p)) all += message + "\n";
  return all;
}

}  // namespace

TEST_CASE("the verifier accepts a sound program", "[ir][loops]") { CHECK(verify(sample()).empty()); }

TEST_CASE("each invariant of the loops IR has a counterexample", "[ir][loops]") {
  auto breaks = [](const char* invariant, auto edit) {
    INFO(invariant);
    check_contains(report_after(edit), std::string(invariant) + ":");
  };
  VarSet i = VarSet::of(VarId(0)), j = VarSet::of(VarId(1));
  sym::Expr q = sym::Expr::symbol("q");
  breaks("L1", [](Program& p) { stmt(p, 1, 5).as<Apply>()->operands[0] = StmtId(5); });
  breaks("L1", [](Program& p) { stmt(p, 1, 5).as<Apply>()->operands[0] = StmtId(); });
  breaks("L1", [](Program& p) { stmt(p, 1, 5).as<Apply>()->operands[0] = StmtId(1); });  // a check has no value
  breaks("L1", [](Program& p) { stmt(p, 0, 0).as<Load>()->buffer = BufferId(99); });
  breaks("L1", [](Program& p) { stmt(p, 0, 1).as<Reduce>()->over |= VarSet::of(VarId(7)); });
  breaks("L1", [](Program& p) { stmt(p, 0, 0).as<Load>()->coords[0] = statement_symbol(StmtId(2)); });
  breaks("L1", [](Program& p) { call(p).results[0] = BufferId(99); });
  breaks("L2", [](Program& p) { p.buffers[BufferId(0)].name = "k"; });
  breaks("L2", [](Program& p) { region(p, 1).name = "a"; });
  breaks("L2", [](Program& p) { region(p, 1).vars[VarId(1)].name = "i"; });
  breaks("L2", [](Program& p) { region(p, 1).vars[VarId(1)].name = "s0"; });
  breaks("L2", [](Program& p) { region(p, 1).vars[VarId(1)].name = "stmt.1"; });
  breaks("L3", [&](Program& p) { stmt(p, 0, 0).vars = i; });
  breaks("L3", [&](Program& p) { stmt(p, 0, 1).vars = i | j; });
  breaks("L3", [&](Program& p) { stmt(p, 0, 2).vars = i | j; });
  breaks("L4", [](Program& p) { stmt(p, 0, 0).dtype = DType::F64; });
  breaks("L4", [](Program& p) { stmt(p, 1, 4).as<Load>()->mask = StmtId(2); });
  breaks("L4", [](Program& p) { stmt(p, 1, 4).as<Load>()->other = Scalar::from_real(DType::F64, 0); });
  breaks("L4", [](Program& p) { stmt(p, 1, 5).as<Apply>()->operands = {StmtId(2)}; });
  breaks("L4", [](Program& p) { stmt(p, 1, 6).as<Apply>()->operands[0] = StmtId(4); });
  breaks("L4", [](Program& p) { stmt(p, 1, 1).as<Check>()->index = StmtId(0), stmt(p, 1, 0).dtype = DType::F32; });
  breaks("L4", [](Program& p) { p.buffers[BufferId(2)].dtype = DType::BF16; });
  breaks("L5", [](Program& p) { stmt(p, 0, 0).as<Load>()->coords.pop_back(); });
  breaks("L5", [](Program& p) { p.buffers[BufferId(0)].strides.pop_back(); });
  breaks("L6", [](Program& p) { stmt(p, 1, 10).as<Store>()->buffer = BufferId(0); });
  breaks("L7", [&](Program& p) { stmt(p, 0, 0).as<Load>()->coords[1] = q; });
  breaks("L7", [&](Program& p) { region(p, 0).vars[VarId(0)].extent = q; });
  breaks("L7", [](Program& p) { stmt(p, 1, 10).as<Store>()->coords[0] = statement_symbol(StmtId(5)); });
  breaks("L7", [&](Program& p) { p.outputs.push_back({.kind = ProgramOutput::Kind::Symbol, .buffer = {}, .view = {}, .symbol = q}); });
  breaks("L8", [](Program& p) { stmt(p, 1, 8).as<Project>()->result = 2; });
  breaks("L8", [](Program& p) { stmt(p, 1, 8).as<Project>()->of = StmtId(6); });
  breaks("L8", [&](Program& p) { region(p, 0).vars.push_back({"z", 2}), stmt(p, 0, 1).as<Reduce>()->over |= VarSet::of(VarId(2)); });
  breaks("L9", [](Program& p) { std::swap(p.steps[0], p.steps[2]); });
  breaks("L9", [](Program& p) { p.steps.pop_back(); });
  breaks("L9", [](Program& p) { p.steps.push_back(p.steps[2]); });
  breaks("L9", [](Program& p) { call(p).results[0] = BufferId(0); });
  breaks("L10", [](Program& p) { call(p).callee.clear(); });
  breaks("L10", [](Program& p) { call(p).args[0] = Arg(OperandRef{5}); });
  breaks("L10", [](Program& p) { call(p).alias_of = {1}; });
  breaks("L10", [](Program& p) { call(p).alias_of = {}; });
  breaks("L10", [](Program& p) { call(p).mutated_operands = {1}; });
  breaks("L10", [](Program& p) { std::get<View>(call(p).operands[0]).strides.clear(); });
  breaks("L11", [](Program& p) { p.buffers[BufferId(0)].role = Buffer::Role::Temporary; });
  breaks("L11", [](Program& p) { p.inputs.push_back({.kind = ProgramInput::Kind::Opaque, .donated = true}); });
  breaks("L11", [](Program& p) { p.inputs.erase(p.inputs.begin()); });
  breaks("L11", [](Program& p) { p.inputs.push_back(p.inputs[0]); });
  breaks("L11", [](Program& p) { p.outputs[0].buffer = BufferId(); });
}

TEST_CASE("each invariant of updates has a counterexample", "[ir][loops]") {
  const auto report_after = [](auto edit) {
    Program p = parse(R"(program @f(@x: f32[8, 4], @s: f32[6, 4], @k: i64[6], @flag: bool[8]) {
      output @y: f32[8, 4]
      region @fill over i < 8, j < 4 {
        %0 = load @x[i, j]
        store @y[i, j] = %0
      }
      region @update over i < 6, j < 4 {
        %0 = load @s[i, j]
        %1 = load @k[i]
        check %1 < (8) "index"
        %3 = load @x[i, j]
        update<add> @y[%1, j] = %0 conflict_order (4*i + j)
      }
      return @y
    })");
    edit(p);
    std::string all;
    for (const std::string& message : verify(p)) all += message + "\n";
    return all;
  };
  const auto update = [](Program& p) { return stmt(p, 1, 4).as<Store>(); };
  CHECK(report_after([](Program&) {}) == "");
  check_contains(report_after([&](Program& p) { update(p)->update = false; }), "L13:");
  check_contains(report_after([&](Program& p) { update(p)->update = false, update(p)->combine = Combine::Overwrite; }), "L13:");
  check_contains(report_after([&](Program& p) { update(p)->conflict_order = p.steps.empty() ? sym::Expr(0) : region(p, 1).symbol(VarId(1)); }), "L13:");
  check_contains(report_after([&](Program& p) { stmt(p, 1, 3).as<Load>()->buffer = update(p)->buffer; }), "L13:");
  check_contains(report_after([&](Program& p) { std::swap(p.steps[0], p.steps[1]); }), "L9:");
}

TEST_CASE("verify_or_throw of a program shows the text", "[ir][loops]") {
  Program p = sample();
  verify_or_throw(p, "nothing");
  stmt(p, 0, 0).dtype = DType::F64;
  try {
    verify_or_throw(p, "fuse");
    FAIL("accepted");
  } catch (const InternalError& error) {
    check_contains(error.what(), "after fuse");
    check_contains(error.what(), "(model.py:7)");
    check_contains(error.what(), "program @f");
  }
}

TEST_CASE("regions answer questions", "[ir][loops]") {
  Program p = sample();
  const Region& r = region(p, 1);
  CHECK(statement_of_symbol(statement_symbol(StmtId(12)).name()) == StmtId(12));
  CHECK(!statement_of_symbol("stmt.x").valid());
  CHECK(!statement_of_symbol("s0").valid());
  CHECK(operands(r.body[StmtId(4)]) == std::vector<StmtId>{StmtId(0), StmtId(3)});
  CHECK(operands(r.body[StmtId(10)]) == std::vector<StmtId>{StmtId(9), StmtId(3)});
  CHECK(vars_of(r, statement_symbol(StmtId(4)) + sym::Expr::symbol("s0")) == (VarSet::of(VarId(0)) | VarSet::of(VarId(1))));
  CHECK(reduced_vars(r) == VarSet::of(VarId(1)));
  std::vector<Access> found = accesses(r);
  REQUIRE(found.size() == 3);
  CHECK(found[1].buffer == BufferId(0));
  CHECK(found[2].store);
}
