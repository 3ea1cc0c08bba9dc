// Passes that users register: what runs, and what is refused of what they return.
#include "driver/text_passes.h"

#include <algorithm>
#include <stdexcept>

#include "driver/compile.h"
#include "driver/dump.h"
#include "driver/plan_cache.h"
#include "ir/graph/text.h"
#include "passes/pass_manager.h"
#include "support/error.h"
#include "support/interrupt.h"
#include "unit/catch.h"
#include "unit/replaced.h"
#include "unit/runtime/test_plans.h"

using namespace cxxinductor;
using driver::TextPass;
using Function = std::function<std::string(const std::string&)>;

namespace {

constexpr const char* add_and_relu = "graph @f(%x: f32[8, 4]) {\n  %0 = add(%x, 1.0)\n  %1 = relu(%0)\n  return %1\n}\n";

Function replacing(const std::string& from, const std::string& to) {
  return [=](const std::string& text) { return replaced(text, from, to); };
}

std::string refusal(const TextPass& pass) {
  try {
    driver::check_text_pass(pass);
  } catch (const UserError& error) {
    return error.what();
  }
  return {};
}

// What a pass over the graph of two ops is told.
std::string error_of(const Function& function, const char* text = add_and_relu) {
  driver::Form form = driver::parse_form(text);
  try {
    driver::run_text_pass({"mine", "graph-passes", "1", function}, form);
  } catch (const UserError& error) {
    return error.what();
  }
  return {};
}

driver::Report report_of(const std::vector<TextPass>& passes, const std::string& verify = "boundaries") {
  static runtime::PlainHost host;
  driver::Request request;
  request.graph = graph::parse(add_and_relu);
  request.targets = cpu_target("x86-64-v3", 1);
  request.host = &host;
  request.keep_texts = true;
  request.options.verify = verify;
  for (const TextPass& pass : passes) request.text_passes.push_back(std::make_shared<const TextPass>(pass));
  return driver::compile(std::move(request)).report;
}

}  // namespace

TEST_CASE("a text pass runs after its stage, is timed and keeps its text", "[text_passes]") {
  for (const driver::Stage& row : driver::stage_table()) {
    if (!row.passes_of_users) continue;
    const std::string_view stage = row.name;
    CAPTURE(stage);
    std::string given;
    const auto report = report_of({{"mine", std::string(stage), "1", [&](const std::string& text) {
                                      given = text;
                                      return replaced(text, "relu", "neg");
                                    }}});
    CHECK(given == report.texts.at(std::string(stage)));
    CHECK(report.texts.at(fmt::format("{}+mine", stage)) == replaced(given, "relu", "neg"));
    CHECK(report.texts.at("source").find("neg") != std::string::npos);
    CHECK(report.pass_times.contains("mine"));
    CHECK(report.text_passes == std::vector{fmt::format("mine (after {})", stage)});
  }
}

TEST_CASE("text passes of a stage run in order, each on what the last one returned", "[text_passes]") {
  const auto report = report_of({{"b", "lower", "1", replacing("relu", "neg")}, {"a", "lower", "1", replacing("neg", "abs")}}, "each");
  CHECK(report.texts.at("lower+b").find("neg") != std::string::npos);
  CHECK(report.texts.at("lower+a").find("abs") != std::string::npos);
}

TEST_CASE("a text pass that returns what it got changes nothing", "[text_passes]") {
  driver::Form form = driver::parse_form(add_and_relu);
  CHECK_FALSE(driver::run_text_pass({"mine", "graph-passes", "1", [](const std::string& text) { return text; }}, form));
  CHECK(driver::run_text_pass({"mine", "graph-passes", "1", replacing("relu", "neg")}, form));
  CHECK(driver::print(form) == replaced(add_and_relu, "relu", "neg"));
}

TEST_CASE("what a text pass returns is not trusted", "[text_passes]") {
  const auto returning = [](const std::string& text) { return [text](const std::string&) { return text; }; };
  CHECK(error_of([](const std::string&) -> std::string { throw std::runtime_error("no idea"); }) == "the pass mine (after graph-passes) raised: no idea");
  CHECK_THAT(error_of(returning("")), mentions("the pass mine (after graph-passes) did not return a valid program: "));
  CHECK_THAT(error_of(returning("garbage")), mentions("did not return a valid program"));
  CHECK_THAT(error_of(replacing("relu", "no_such_op")), mentions("no_such_op"));
  CHECK_THAT(error_of(replacing("relu(%0)", "relu(%7)")), mentions("did not return a valid program"));
  CHECK_THAT(error_of(replacing("%0 = add(%x, 1.0)", "%0: f32[2] = add(%x, 1.0)")), mentions("did not return a valid program"));
  CHECK_THAT(error_of(returning("program @f() {\n}\n")), mentions("did not return a valid program"));
  CHECK_THAT(error_of(replacing("f32[8, 4]", "f32[8, 5]")), mentions("changed what the program takes or returns: expected input x: f32 on cpu [8, 4, ]"));
  CHECK_THAT(error_of(replacing("return %1", "return %1, %0")), mentions("expected no more, found output f32"));
  CHECK_THAT(error_of(replacing("f32[8, 4])", "f32[8, 4], %y: f32[2])")), mentions("found input y"));
  CHECK(error_of(replacing("return %1", "return %0")).empty());
}

TEST_CASE("interrupts pass through a text pass", "[text_passes]") {
  driver::Form form = driver::parse_form(add_and_relu);
  CHECK_THROWS_AS(driver::run_text_pass({"mine", "graph-passes", "1", [](const std::string&) -> std::string { throw Interrupted(); }}, form), Interrupted);
}

TEST_CASE("names, stages and versions of text passes are checked", "[text_passes]") {
  const Function same = [](const std::string& text) { return text; };
  CHECK(refusal({"mine", "lower", "1", same}).empty());
  CHECK_THAT(refusal({"", "lower", "1", same}), mentions("expected a name of letters"));
  CHECK_THAT(refusal({"a,b", "lower", "1", same}), mentions("expected a name of letters"));
  CHECK_THAT(refusal({"graph-cse", "lower", "1", same}), mentions("graph-cse is the name of a pass or stage"));
  CHECK_THAT(refusal({"fuse", "lower", "1", same}), mentions("fuse is the name of a pass or stage"));
  CHECK_THAT(refusal({"mine", "plan", "1", same}), mentions("expected one of the stages graph-passes, lower, fuse, loops-passes, found 'plan'"));
  CHECK_THAT(refusal({"mine", "lower", "", same}), mentions("expected a version"));
  CHECK_THAT(refusal({"mine", "lower", "1", {}}), mentions("expected a function"));
}

TEST_CASE("options know the names of text passes", "[text_passes]") {
  const std::vector<std::string> names{"mine"};
  Options options;
  options.skip_passes = "mine,graph-cse";
  options.dump = "after:mine";
  CHECK_NOTHROW(passes::check_skip_passes(options, names));
  CHECK_NOTHROW(driver::check_dump(options, names));
  CHECK_THROWS_WITH(passes::check_skip_passes(options), mentions("found 'mine'"));
  CHECK_THROWS_WITH(driver::check_dump(options), mentions("found 'mine'"));
}
