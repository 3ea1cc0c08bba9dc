#include "driver/plan_cache.h"

#include <algorithm>
#include <functional>

#include "driver/compile.h"
#include "ir/graph/text.h"
#include "ir/plan/text.h"
#include "ir/registered_ops.h"
#include "runtime/disk_cache.h"
#include "unit/catch.h"
#include "unit/runtime/temporary_folder.h"
#include "unit/runtime/test_plans.h"

using namespace cxxinductor;

namespace {

// Two kernels: the first one's result is read by a call and by the second.
constexpr const char* around_a_call =
    "graph @f(%x: f32[8, 4], %w: f32[4, 4] frozen) {\n  %0 = add(%x, 1.0)\n  %1 = neg(%w)\n"
    "  %2: f32[8, 4] = extern \"aten::mm\"($0, $1) with (%0, %1)\n  %3 = add(%2, %0)\n  return %3\n}\n";

struct Compiler {
  runtime::TemporaryFolder folder;
  runtime::DiskCache cache{folder.path(), "build"};
  runtime::PlainHost host;

  driver::Compilation compile(const std::function<void(driver::Request&)>& change = {}) {
    driver::Request request;
    request.graph = graph::parse(around_a_call);
    request.targets = cpu_target("x86-64-v3", 1);
    request.host = &host;
    request.plan_cache = &cache;
    if (change) change(request);
    return driver::compile(std::move(request));
  }
  std::optional<driver::StoredPlan> read(const std::string& key) {
    runtime::EntryLock lock;
    return driver::read_plan(cache, key, lock, {});
  }
};

std::string same(const std::string& text) { return text; }

bool ran(const driver::Report& report, std::string_view stage) {
  return std::ranges::find(report.times, stage, &driver::StageTime::stage) != report.times.end();
}

}  // namespace

TEST_CASE("a graph that was planned before is read back", "[plan_cache]") {
  Compiler compiler;
  CHECK(ran(compiler.compile().report, "select-kernels"));
  const driver::Report again = compiler.compile().report;
  CHECK_FALSE(ran(again, "select-kernels"));
  CHECK(again.externs == std::vector<std::string>{"aten::mm"});
  CHECK(compiler.cache.counters().stored == 1);
}

TEST_CASE("whatever shapes a plan makes it another entry", "[plan_cache]") {
  Compiler compiler;
  compiler.compile();
  const std::vector<std::function<void(driver::Request&)>> changes{
      [](driver::Request& r) { r.options.fusion = false; },
      [](driver::Request& r) { r.options.skip_passes = "graph-cse"; },
      [](driver::Request& r) { r.options.pass_limit = 1; },
      [](driver::Request& r) { r.options.fusion_limit = 1; },
      [](driver::Request& r) { r.targets = cpu_target("x86-64-v4", 1); },
      [](driver::Request& r) { r.targets = cpu_target("x86-64-v3", 2); },
      [](driver::Request& r) { r.late_inputs = {1}; },
      [](driver::Request& r) {
        r.graph.eager_peaks = {{Device(), 12345}};
      },
      [](driver::Request& r) { r.graph.name = "g"; },
      [](driver::Request& r) { r.text_passes = {std::make_shared<const driver::TextPass>("mine", "lower", "1", same)}; },
      [](driver::Request& r) { r.text_passes = {std::make_shared<const driver::TextPass>("mine", "lower", "2", same)}; },
  };
  for (const auto& change : changes) {
    CHECK(ran(compiler.compile(change).report, "select-kernels"));
    CHECK_FALSE(ran(compiler.compile(change).report, "select-kernels"));
  }
  CHECK_FALSE(ran(compiler.compile().report, "select-kernels"));
}

TEST_CASE("before_planning is called where a plan is made, not where one is read", "[plan_cache]") {
  Compiler compiler;
  std::vector<std::string> planned_for;
  const auto listen = [&](driver::Request& r) { r.before_planning = [&](const Targets& targets) { planned_for.push_back(targets.main().arch); }; };
  for (int i = 0; i < 2; ++i) compiler.compile(listen);
  CHECK(planned_for == std::vector<std::string>{"x86-64-v3"});
}

TEST_CASE("who asks for stages gets them run", "[plan_cache]") {
  Compiler compiler;
  compiler.compile();
  CHECK(ran(compiler.compile([](driver::Request& r) { r.keep_texts = true; }).report, "select-kernels"));
  for (int i = 0; i < 2; ++i) CHECK(ran(compiler.compile([](driver::Request& r) { r.options.verify = "each"; }).report, "select-kernels"));
}

TEST_CASE("a stored plan has all that was planned", "[plan_cache]") {
  Compiler compiler;
  driver::Request request;
  request.graph = graph::parse(around_a_call);
  request.targets = cpu_target("x86-64-v3", 1);
  const std::string key = driver::plan_key(request);
  CHECK_FALSE(compiler.read(key));

  plan::Plan plan = plan::parse(Compiler().compile([](driver::Request& r) { r.keep_texts = true; }).report.texts.at("fit-memory"));
  plan.missed_fusions = {{"k0", "k1", "a \"reason\"", 128}};
  const passes::ConstGraph const_graph{graph::parse("graph @c(%w: f32[4]) {\n  %0 = neg(%w)\n  return %0\n}\n"), {3}};
  driver::write_plan(compiler.cache, key, plan, const_graph);
  const auto found = compiler.read(key);
  REQUIRE(found);
  CHECK(plan::print(found->plan) == plan::print(plan));
  REQUIRE(found->plan.missed_fusions.size() == 1);
  CHECK(found->plan.missed_fusions[0].reason == "a \"reason\"");
  CHECK(found->plan.missed_fusions[0].bytes == 128);
  REQUIRE(found->const_graph);
  CHECK(graph::print(found->const_graph->graph) == graph::print(const_graph.graph));
  CHECK(found->const_graph->inputs == const_graph.inputs);
}

TEST_CASE("an entry that does not read back is planned again", "[plan_cache]") {
  Compiler compiler;
  compiler.compile();
  driver::Request request;
  request.graph = graph::parse(around_a_call);
  request.targets = cpu_target("x86-64-v3", 1);
  const std::string key = driver::plan_key(request);
  for (std::string_view bytes : {"", "nonsense", "\xa1\x63key\x01", "\xa0"}) {
    REQUIRE(compiler.cache.put(key, bytes));
    CHECK_FALSE(compiler.read(key));
  }
}

TEST_CASE("a key has what users registered of the graph's ops, and of others only where passes may bring them in", "[plan_cache]") {
  add_scalar_op({.overload = "keyed::op", .arguments = {"x"}, .cpu = "keyed_function({0})", .cpu_source = "/* of the key */"});
  driver::Request request;
  request.targets = cpu_target("x86-64-v3", 1);
  request.graph = graph::parse("graph @f(%x: f32[8]) {\n  %0 = keyed.op(%x)\n  return %0\n}\n");
  CHECK_THAT(driver::plan_key(request), mentions("keyed_function({0})") && mentions("/* of the key */"));
  request.graph = graph::parse("graph @f(%x: f32[8]) {\n  %0 = neg(%x)\n  return %0\n}\n");
  CHECK_THAT(driver::plan_key(request), !mentions("keyed_function"));
  // A pass may bring it in.
  request.text_passes = {std::make_shared<const driver::TextPass>("mine", "lower", "1", same)};
  CHECK_THAT(driver::plan_key(request), mentions("keyed_function({0})"));
}

TEST_CASE("a plan that is compiled from text is in the report, with its source", "[plan_cache]") {
  Compiler compiler;
  driver::Request request;
  request.targets = cpu_target("x86-64-v3", 1);
  request.host = &compiler.host;
  const std::string text = plan::print(driver::plan_of(graph::parse(around_a_call), cpu_target("x86-64-v3", 1)));
  CHECK(driver::compile_plan(text, request).report.texts.empty());
  request.keep_texts = true;
  const driver::Report report = driver::compile_plan(text, request).report;
  CHECK(report.texts.at("fit-memory") == text);
  CHECK_THAT(report.texts.at("source"), mentions("k0_"));
  CHECK(report.kernel_sources.size() == plan::parse(text).kernels.size());
}
