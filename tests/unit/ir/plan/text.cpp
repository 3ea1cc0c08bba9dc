// Round trips and rejected texts of the plan IR.
#include "ir/plan/text.h"

#include "ir/plan/spelling.h"
#include "support/error.h"
#include "unit/catch.h"
#include "unit/ir/expect_text.h"
#include "unit/ir/plan/samples.h"
#include "unit/ir/text_fuzz.h"

using namespace cxxinductor;
using plan::parse;
using plan::print;

namespace {

std::string failure(std::string_view text) {
  try {
    parse(text);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

std::string edited(std::string_view before, std::string_view after) {
  std::string text = every_plan_kind;
  size_t at = text.find(before);
  REQUIRE(at != text.npos);
  return text.replace(at, before.size(), after);
}

}  // namespace

TEST_CASE("every part of a plan survives print and parse", "[ir][plan]") {
  CHECK(print(parse(every_plan_kind)) == std::string(every_plan_kind));
  CHECK(print(parse(matmul_plan)) == std::string(matmul_plan));
}

TEST_CASE("a kernel's canonical text leaves out names and origins, and nothing else", "[ir][plan]") {
  plan::Plan p = parse(every_plan_kind);
  plan::Kernel a = p.kernels[plan::KernelId(0)], b = a;
  b.name = "other";
  b.region.name = "other";
  for (loops::Stmt& stmt : b.region.body) stmt.origin = {};
  CHECK(print(a) == print(b));
  auto differs = [&](auto edit) {
    plan::Kernel c = a;
    edit(c);
    return print(c) != print(a);
  };
  CHECK(differs([](plan::Kernel& k) { k.device = {}; }));
  CHECK(differs([](plan::Kernel& k) { k.params[0].aligned = !k.params[0].aligned; }));
  CHECK(differs([](plan::Kernel& k) { k.symbols.push_back("q"); }));
  CHECK(differs([](plan::Kernel& k) { k.assumptions.set_range("i", {0, 5}); }));
  CHECK(differs([](plan::Kernel& k) { k.offsets[loops::StmtId(0)] = 7; }));
  CHECK(differs([](plan::Kernel& k) { k.access[loops::StmtId(0)] = plan::AccessKind::Strided; }));
  CHECK(differs([](plan::Kernel& k) { k.memory_spaces[loops::StmtId(0)] = plan::MemorySpace::Row; }));
  CHECK(differs([](plan::Kernel& k) { k.segments.pop_back(); }));
  CHECK(differs([](plan::Kernel& k) { k.mapping.vector_width = 2; }));
  CHECK(differs([](plan::Kernel& k) { std::get<plan::Rows>(k.mapping.shape).rows_per_block = 77; }));
  CHECK(differs([](plan::Kernel& k) { std::get<plan::Rows>(k.mapping.shape).persistent = false; }));
  CHECK(differs([](plan::Kernel& k) { k.index_limit = 1; }));
  CHECK(differs([](plan::Kernel& k) { k.always_index32 = !k.always_index32; }));
  CHECK(differs([](plan::Kernel& k) { k.order_changed = !k.order_changed; }));
  CHECK(differs([](plan::Kernel& k) { k.region.vars[loops::VarId(0)].extent = 3; }));
}

TEST_CASE("every field of every shape of mapping is in the text", "[ir][plan]") {
  plan::Kernel kernel = parse(every_plan_kind).kernels[plan::KernelId(0)];
  for (const auto& [keyword, usual] : plan::shape_keywords) {
    INFO(keyword);
    kernel.mapping.shape = usual;
    const std::string text = print(kernel);
    std::visit(
        [&](const auto& defaults) {
          plan::for_each_field(defaults, [&](const auto& field, const auto& value) {
            INFO(field.keyword);
            auto shape = defaults;
            if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, plan::VarId>)
              shape.*field.member = plan::VarId(0);
            else
              shape.*field.member = !value;
            kernel.mapping.shape = shape;
            CHECK(print(kernel) != text);
          });
        },
        usual);
  }
}

TEST_CASE("bad plan text names the line and what was expected", "[ir][plan]") {
  for (auto [text, message] : std::vector<std::pair<std::string, std::string>>{
           {"plan @p", "expected 'for'"},
           {edited("mapping rows", "mapping heaps"), "a shape of mapping"},
           {edited("space [i]", "space [q]"), "a variable of the region"},
           {edited("load @0[", "load @9["), "parameters"},
           {edited("memory_space row", "memory_space away"), "where the value lives"},
           {edited("launch @softmax", "launch @nothing"), "a kernel"},
           {edited("allocate @y", "allocate @z"), "there is no @z"},
           {edited(" standalone\n", " borrowed\n"), "a kind of buffer"},
           {edited("symbol s0 = input 1", "symbol s0 = input 7"), "P12"},
           {edited("vector_width 8", "vector_width 99999999999"), "vector_width between"},
           {edited("grid [", "grid [1, "), "a grid of two"},
       }) {
    INFO(text);
    check_contains(failure(text), message);
  }
}

TEST_CASE("mutated plan texts never crash the parser", "[ir][plan][fuzz]") {
  fuzz_text(every_plan_kind, [](std::string_view text) { parse(text); });
}
