#include <algorithm>

#include "unit/catch.h"
#include "unit/schedule/plan_programs.h"

namespace cxxinductor::schedule::test {
namespace {

using plan::AccessKind;
using plan::Home;
using plan::Kernel;
using plan::MappingKind;
using plan::Segment;

const Kernel& only_kernel(const plan::Plan& plan) {
  REQUIRE(plan.kernels.size() == 1);
  return plan.kernels[plan::KernelId(0)];
}

const plan::Launch& first_launch(const plan::Plan& plan) {
  for (const plan::Step& step : plan.steps)
    if (const auto* launch = std::get_if<plan::Launch>(&step)) return *launch;
  FAIL("no launch");
  throw 0;
}

int count_homes(const Kernel& kernel, Home home) {
  return static_cast<int>(std::count(kernel.homes.begin(), kernel.homes.end(), home));
}

int count_sweeps(const Kernel& kernel) {
  return static_cast<int>(std::count_if(kernel.segments.begin(), kernel.segments.end(),
                                        [](const Segment& s) { return s.kind == Segment::Kind::Sweep; }));
}

int count_access(const Kernel& kernel, AccessKind kind) {
  int count = 0;
  for (size_t s = 0; s < kernel.region.body.size(); ++s) {
    const loops::Stmt& stmt = kernel.region.body[loops::StmtId(s)];
    if (stmt.as<loops::Load>() || stmt.as<loops::Store>()) count += kernel.access[loops::StmtId(s)] == kind;
  }
  return count;
}

TEST_CASE("pointwise with a broadcast operand keeps two variables and 16-byte vectors") {
  plan::Plan plan = plan_for(gelu_bias, gpu());
  const Kernel& kernel = only_kernel(plan);
  CHECK(kernel.mapping.kind == MappingKind::Pointwise);
  CHECK(kernel.region.vars.size() == 2);
  CHECK(kernel.mapping.vector_width == 8);
  CHECK_FALSE(kernel.mapping.vector_tail);
  CHECK(count_access(kernel, AccessKind::Vector) == 3);
  CHECK(kernel.always_index32);
  CHECK_FALSE(kernel.order_changed);
  CHECK(first_launch(plan).grid_x ==
        sym::Expr(512 * 1024 / 8 / (kernel.mapping.block_threads * kernel.mapping.unroll)));
}

TEST_CASE("contiguous operands of a dynamic size become one variable with a tail") {
  plan::Plan plan = plan_for(flat_add, gpu());
  const Kernel& kernel = only_kernel(plan);
  REQUIRE(kernel.region.vars.size() == 1);
  CHECK(kernel.region.vars[loops::VarId(0)].name == "i0");
  CHECK(kernel.region.vars[loops::VarId(0)].extent == sym::Expr(48) * sym::Expr::symbol("s0"));
  CHECK(kernel.mapping.vector_width == 4);
  CHECK_FALSE(kernel.mapping.vector_tail);
  CHECK(kernel.symbols == std::vector<std::string>{"s0"});
  REQUIRE(plan.symbols.size() == 1);
  CHECK(plan.symbols[0].input == 0);
  CHECK(plan.symbols[0].dim == 0);
}

TEST_CASE("softmax keeps its row in registers, as few bytes as possible") {
  const Kernel kernel = only_kernel(plan_for(softmax, gpu()));
  CHECK(kernel.mapping.kind == MappingKind::Rows);
  CHECK(kernel.mapping.resident);
  CHECK(kernel.mapping.vector_width == 8);
  CHECK(kernel.mapping.threads_per_row == 32);
  CHECK(kernel.mapping.rows_per_block == 4);
  CHECK(kernel.mapping.items_per_thread == 4);
  CHECK(count_sweeps(kernel) == 3);
  // The bf16 load for the sum's sweep, the exponential for the last one; the cast is repeated.
  CHECK(count_homes(kernel, Home::Resident) == 2);
  CHECK(kernel.homes[loops::StmtId(0)] == Home::Resident);
  CHECK(kernel.homes[loops::StmtId(1)] == Home::Local);
  CHECK(kernel.order_changed);
}

TEST_CASE("a row of dynamic length is swept again") {
  const Kernel kernel = only_kernel(plan_for(softmax_dynamic_row, gpu()));
  CHECK(kernel.mapping.kind == MappingKind::Rows);
  CHECK_FALSE(kernel.mapping.resident);
  CHECK(count_homes(kernel, Home::Resident) == 0);
  CHECK(kernel.mapping.vector_width == 1);
  // Every sweep lists the load; the stores are in the last one alone.
  for (const Segment& segment : kernel.segments)
    if (segment.kind == Segment::Kind::Sweep)
      CHECK(std::count(segment.stmts.begin(), segment.stmts.end(), loops::StmtId(0)) == 1);
}

TEST_CASE("layer norm keeps the rounded sum and loads its weights in the last sweep alone") {
  const Kernel kernel = only_kernel(plan_for(layer_norm, gpu()));
  CHECK(kernel.mapping.resident);
  CHECK(count_sweeps(kernel) == 2);
  REQUIRE(count_homes(kernel, Home::Resident) == 1);
  for (size_t s = 0; s < kernel.homes.size(); ++s)
    if (kernel.homes[loops::StmtId(s)] == Home::Resident)
      CHECK(kernel.region.body[loops::StmtId(s)].dtype == DType::BF16);
  const Segment& first = *std::find_if(kernel.segments.begin(), kernel.segments.end(),
                                       [](const Segment& s) { return s.kind == Segment::Kind::Sweep; });
  int loads = 0;
  for (loops::StmtId id : first.stmts) loads += kernel.region.body[id].as<loops::Load>() != nullptr;
  CHECK(loads == 2);
}

TEST_CASE("on a CPU only what is expensive to compute is kept for the row") {
  const Kernel kernel = only_kernel(plan_for(softmax, cpu()));
  CHECK(kernel.mapping.kind == MappingKind::Rows);
  CHECK(kernel.mapping.resident);
  CHECK(kernel.mapping.vector_width == 8);
  REQUIRE(count_homes(kernel, Home::Resident) == 1);
  for (size_t s = 0; s < kernel.homes.size(); ++s)
    if (kernel.homes[loops::StmtId(s)] == Home::Resident)
      CHECK(kernel.region.body[loops::StmtId(s)].as<loops::Apply>());
  CHECK(first_launch(plan_for(softmax, cpu())).grid_x == sym::Expr::symbol("s0"));
}

TEST_CASE("a sum across rows is a column kernel") {
  for (const Target& target : {gpu(), cpu()}) {
    const plan::Plan plan = plan_for(column_sum, target);
    const Kernel& kernel = plan.kernels[plan::KernelId(0)];
    CHECK(kernel.mapping.kind == MappingKind::Columns);
    CHECK(count_access(kernel, AccessKind::Vector) >= 1);
    CHECK(kernel.mapping.columns_per_block % kernel.mapping.vector_width == 0);
  }
}

TEST_CASE("a tall column sum is cut in parts") {
  const plan::Plan plan = plan_for(tall_column_sum, gpu());
  REQUIRE(plan.kernels.size() == 2);
  const Kernel& partial = plan.kernels[plan::KernelId(0)];
  CHECK(partial.mapping.kind == MappingKind::Columns);
  CHECK(partial.params[1].dtype == DType::F32);
  CHECK(partial.name.ends_with("_partial"));
  CHECK(plan.kernels[plan::KernelId(1)].mapping.kind == MappingKind::Columns);
  CHECK(first_launch(plan).grid_x.constant() >= 100);
  CHECK(plan_for(tall_column_sum, cpu()).kernels.size() == 1);
}

TEST_CASE("a full sum is two launches of many blocks and one") {
  const plan::Plan plan = plan_for(full_sum, gpu());
  REQUIRE(plan.kernels.size() == 2);
  CHECK(first_launch(plan).grid_x.constant() >= 16);
  CHECK(plan.kernels[plan::KernelId(1)].mapping.space.empty());
}

TEST_CASE("a transposed load goes through shared tiles") {
  const Kernel kernel = only_kernel(plan_for(transpose_add, gpu()));
  CHECK(kernel.mapping.kind == MappingKind::Tiles);
  CHECK(kernel.mapping.tile_var == loops::VarId(0));
  CHECK(count_access(kernel, AccessKind::Staged) == 1);
  CHECK(first_launch(plan_for(transpose_add, gpu())).grid_x == sym::Expr(5 * 6));
  CHECK(only_kernel(plan_for(transpose_add, cpu())).mapping.kind == MappingKind::Pointwise);
}

TEST_CASE("arg-max keeps the order of its positions") {
  const Kernel kernel = only_kernel(plan_for(arg_max, gpu()));
  REQUIRE(kernel.mapping.row.size() == 2);
  CHECK(kernel.region.vars[kernel.mapping.row[0]].extent == sym::Expr(6));
  CHECK(kernel.region.vars[kernel.mapping.row[1]].extent == sym::Expr(7));
}

TEST_CASE("gathered rows are read in vectors") {
  const Kernel kernel = only_kernel(plan_for(embedding, gpu()));
  CHECK(kernel.mapping.vector_width == 4);
  CHECK(count_access(kernel, AccessKind::Vector) == 2);
  CHECK(count_access(kernel, AccessKind::Broadcast) == 1);
}

TEST_CASE("equal regions are one kernel") {
  for (const Target& target : {gpu(), cpu()}) {
    const plan::Plan plan = plan_for(two_blocks, target);
    CHECK(plan.kernels.size() == 2);
    CHECK(std::count_if(plan.steps.begin(), plan.steps.end(),
                        [](const plan::Step& step) { return std::holds_alternative<plan::Launch>(step); }) == 4);
  }
}

}  // namespace
}  // namespace cxxinductor::schedule::test
