// Where buffers live: arena, own allocations, what externs own; and when they are freed.
#include <algorithm>
#include <map>
#include <random>

#include "ir/plan/verify.h"
#include "support/error.h"
#include "unit/catch.h"
#include "unit/make_plan.h"
#include "unit/schedule/plan_programs.h"

namespace cxxinductor::schedule::test {
namespace {

using plan::Buffer;

const Buffer& buffer(const plan::Plan& plan, std::string_view name) {
  auto found = std::find_if(plan.buffers.begin(), plan.buffers.end(), [&](const Buffer& b) { return b.name == name; });
  REQUIRE(found != plan.buffers.end());
  return *found;
}

std::vector<std::string> freed(const plan::Plan& plan) {
  std::vector<std::string> names;
  for (const plan::Step& step : plan.steps)
    if (const auto* free = std::get_if<plan::Free>(&step)) names.push_back(plan.buffers[free->buffer].name);
  return names;
}

TEST_CASE("results of matmuls are planned, results of other externs are released after their last use") {
  const plan::Plan plan = plan_for(R"(
program @externs on DEVICE (@a: f32[64, 64], @b: f32[64, 64]) {
  temporary @c: f32[64, 64]
  temporary @d: f32[64, 64] fixed
  output @y: f32[64, 64]
  @c = extern "aten::mm.default"($0, $1) with (@a, @b) planned_out
  @d = extern "aten::cumsum.default"($0, 1) with (@c)
  region @n0 over i < 64, j < 64 {
    %0 = load @d[i, j]
    %1 = add(%0, %0)
    store @y[i, j] = %1
  }
  return @y
})",
                                   gpu());
  CHECK(plan::verify(plan).empty());
  CHECK(buffer(plan, "c").kind == Buffer::Kind::Arena);
  CHECK(buffer(plan, "d").kind == Buffer::Kind::ExternOwned);
  CHECK(buffer(plan, "y").kind == Buffer::Kind::Standalone);
  CHECK(freed(plan).empty());  // y is written where d was
  CHECK(plan.arenas.at(0).bytes == sym::Expr(64 * 64 * 4));
}

TEST_CASE("what an output may alias is never in the arena") {
  const plan::Plan plan = plan_for(R"(
program @aliases on DEVICE (@a: f32[64, 64]) {
  temporary @c: f32[64, 64]
  temporary @e: f32[64, 64]
  output @v: f32[64, 64] fixed
  temporary @w: f32[64, 64] fixed
  output @y: f32[64, 64]
  region @n0 over i < 64, j < 64 {
    %0 = load @a[i, j]
    %1 = exp(%0)
    store @c[i, j] = %1
    store @e[i, j] = %1
  }
  @v = extern "aten::maybe_view.default"($0) with (@c) alias [0]
  @w = extern "aten::maybe_view.default"($0) with (@e) alias [0]
  region @n1 over i < 64, j < 64 {
    %0 = load @a[i, j]
    store @y[i, j] = %0
  }
  region @n2 over i < 64, j < 64 {
    %0 = load @w[i, j]
    store @a[i, j] = %0
  }
  return @v, @y
})",
                                   gpu());
  CHECK(plan::verify(plan).empty());
  CHECK(buffer(plan, "c").kind == Buffer::Kind::Standalone);
  CHECK(buffer(plan, "e").kind == Buffer::Kind::Arena);
  // The own base of an output and the output itself stay; the alias in the middle goes.
  CHECK(freed(plan) == std::vector<std::string>{"w"});
}

TEST_CASE("what an opaque call takes has an owner, and nothing is written in its place") {
  const auto plan_with = [](const std::string& callee) {
    return plan_for(R"(
program @opaque on DEVICE (@a: f32[64, 64]) {
  temporary @c: f32[64, 64]
  temporary @v: f32[64, 64] fixed
  temporary @s: f32[64] fixed
  temporary @d: f32[64, 64]
  temporary @m: f32[64, 64]
  output @y: f32[64, 64]
  region @n0 over i < 64, j < 64 {
    %0 = load @a[i, j]
    %1 = exp(%0)
    store @c[i, j] = %1
  }
  @v = extern "aten::alias"($0) with (@c) alias [0]
  @s = extern ")" + callee +
                        R"("($0) with (@v) alias [-1] ordered
  region @n1 over i < 64, j < 64 {
    %0 = load @c[i, j]
    %1 = load @s[i]
    %2 = add(%0, %1)
    store @d[i, j] = %2
  }
  @m = extern "aten::mm"($0, $1) with (@d, @a) planned_out
  region @n2 over i < 64, j < 64 {
    %0 = load @m[i, j]
    store @y[i, j] = %0
  }
  return @y
})",
                    gpu());
  };
  plan::Plan kept = plan_with("custom::keep");
  CHECK(plan::verify(kept).empty());
  CHECK(buffer(kept, "c").kind == Buffer::Kind::Standalone);
  for (const plan::Step& step : kept.steps)
    if (const auto* reuse = std::get_if<plan::Reuse>(&step)) CHECK(kept.buffers[reuse->from].name != "c");
  CHECK(buffer(plan_with("aten::known"), "c").kind == Buffer::Kind::Arena);
  // The verifier holds plans from text to it.
  for (plan::Step& step : kept.steps)
    if (auto* call = std::get_if<plan::CallExtern>(&step); call && call->callee == "aten::mm") call->callee = "custom::mm";
  CHECK_FALSE(plan::verify(kept).empty());
}

TEST_CASE("the base of a returned view is allocated by itself") {
  const plan::Plan plan = plan_for(R"(
program @views on DEVICE (@a: f32[s0, 4]) where 1 <= s0 <= 100 {
  temporary @c: f32[s0, 4]
  region @n0 over i < s0, j < 4 {
    %0 = load @a[i, j]
    %1 = exp(%0)
    store @c[i, j] = %1
  }
  return view @c: f32[4, s0] strides [1, 4] offset (0), expr(2*s0), @a
})",
                                   cpu());
  CHECK(plan::verify(plan).empty());
  CHECK(buffer(plan, "c").kind == Buffer::Kind::Standalone);
  CHECK(plan.outputs.size() == 3);
}

TEST_CASE("a symbol that no input gives is unsupported") {
  CHECK_THROWS_AS(plan_for(R"(
program @unknown on DEVICE (@a: f32[2*s0], sym s1) where 1 <= s0 <= 100 {
  output @c: f32[2*s0]
  region @n0 over i < 2*s0 {
    %0 = load @a[i]
    store @c[i] = %0
  }
  return @c
})",
                           gpu()),
                  Unsupported);
}

// A random graph of pointwise and row regions over temporaries; every buffer is read by later ones at random.
loops::Program random_program(uint32_t seed, Device device) {
  std::mt19937 random(seed);
  loops::Program program;
  program.name = "random";
  program.assumptions.set_range("s0", {1, 4096});
  sym::Expr rows = random() % 2 ? sym::Expr::symbol("s0") : sym::Expr(24);
  auto add_buffer = [&](std::string name, loops::Buffer::Role role, int64_t columns) {
    return program.buffers.push_back({std::move(name), DType::F32, device, {rows, columns}, {columns, 1}, role, false});
  };
  std::vector<loops::BufferId> values{add_buffer("x", loops::Buffer::Role::Input, 32)};
  program.inputs.push_back({loops::ProgramInput::Kind::Tensor, values[0], "", "x"});
  size_t count = 3 + random() % 20;
  for (size_t k = 0; k < count; ++k) {
    bool last = k + 1 == count;
    int64_t columns = int64_t{16} << (random() % 3);
    loops::BufferId target = add_buffer("t" + std::to_string(k), last ? loops::Buffer::Role::Output : loops::Buffer::Role::Temporary, columns);
    loops::Region region;
    region.name = "n" + std::to_string(k);
    region.device = device;
    loops::RegionBuilder builder(region);
    loops::VarId i = builder.var("i", rows), j = builder.var("j", columns);
    loops::StmtId value;
    for (int operand = 0; operand < 2; ++operand) {
      loops::BufferId source = values[random() % values.size()];
      sym::Expr column = mod(region.symbol(j), program.buffers[source].sizes[1]);
      loops::StmtId load = builder.load(program, source, {region.symbol(i), column});
      value = operand == 0 ? load : builder.apply(ScalarOp::Add, {value, load});
    }
    if (random() % 3 == 0) value = builder.apply(ScalarOp::Sub, {value, builder.reduce(Reduction::Max, value, loops::VarSet::of(j))});
    builder.store(program, target, {region.symbol(i), region.symbol(j)}, value);
    program.steps.emplace_back(std::move(region));
    values.push_back(target);
  }
  program.outputs.push_back({loops::ProgramOutput::Kind::Tensor, values.back(), {}, {}});
  return program;
}

struct Life {
  size_t first = 0, last = 0;
};

std::map<plan::BufferId, Life> lives(const plan::Plan& plan) {
  std::map<plan::BufferId, Life> found;
  for (size_t t = 0; t < plan.steps.size(); ++t)
    if (const auto* launch = std::get_if<plan::Launch>(&plan.steps[t]))
      for (plan::BufferId id : launch->args) {
        auto [life, is_new] = found.try_emplace(id, Life{t, t});
        life->second.last = t;
      }
  return found;
}

TEST_CASE("buffers of random programs never overlap while they live") {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    INFO("seed " << seed);
    Target target = seed % 2 ? gpu() : cpu();
    plan::Plan plan = make_plan(random_program(seed, {target.device, 0}), target, Options());
    std::vector<std::string> broken = plan::verify(plan);
    INFO((broken.empty() ? "" : broken.front()));
    REQUIRE(broken.empty());
    auto bytes = [](sym::Expr e) { return evaluate(e, [](std::string_view) { return 7; }); };
    std::map<plan::BufferId, Life> found = lives(plan);
    for (const auto& [a, life_a] : found)
      for (const auto& [b, life_b] : found) {
        const Buffer &x = plan.buffers[a], &y = plan.buffers[b];
        if (a == b || x.kind != Buffer::Kind::Arena || y.kind != Buffer::Kind::Arena) continue;
        if (life_a.last < life_b.first || life_b.last < life_a.first) continue;
        int64_t from_x = bytes(x.arena_offset), from_y = bytes(y.arena_offset);
        CHECK((from_x + bytes(x.bytes) <= from_y || from_y + bytes(y.bytes) <= from_x));
        CHECK(from_x + bytes(x.bytes) <= bytes(plan.arenas.at(0).bytes));
      }
  }
}

}  // namespace
}  // namespace cxxinductor::schedule::test
