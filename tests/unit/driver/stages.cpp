// The table of stages and its runner.
#include "driver/stages.h"

#include <functional>

#include "support/error.h"
#include "unit/catch.h"

using namespace cxxinductor;
using driver::FormKind;
using driver::Stage;

namespace {

constexpr const char* two_ops = "graph @f(%x: f32[8, 4]) {\n  %0 = add(%x, 1.0)\n  %1 = relu(%0)\n  return %1\n}\n";

driver::PipelineState state_of(std::string_view text) {
  driver::PipelineState state;
  state.form = driver::parse_form(text);
  state.inputs.targets = cpu_target("x86-64-v3", 1);
  return state;
}

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const UserError& error) {
    return error.what();
  }
  return {};
}

std::vector<std::string> names_of(std::span<const Stage> stages) {
  std::vector<std::string> names;
  for (const Stage& stage : stages) names.emplace_back(stage.name);
  return names;
}

}  // namespace

TEST_CASE("each stage takes what the one before it makes", "[stages]") {
  const std::span<const Stage> all = driver::stage_table();
  for (size_t i = 0; i + 1 < all.size(); ++i) CHECK(all[i].makes == all[i + 1].takes);
  CHECK(all.front().takes == FormKind::Calls);
  CHECK(all.back().makes == FormKind::Text);
}

TEST_CASE("a stretch is named by its first and last stage", "[stages]") {
  CHECK(names_of(driver::stages_between("lower", "place-memory")) ==
        std::vector<std::string>{"lower", "fuse", "loops-passes", "select-kernels", "place-memory"});
  CHECK(names_of(driver::stages_from(FormKind::Loops, "select-kernels")) == std::vector<std::string>{"fuse", "loops-passes", "select-kernels"});
  CHECK(message_of([] {
          driver::stages_between("lower", "planning");
        }).starts_with("expected the name of a stage, found 'planning'; known are import, graph-passes"));
  CHECK(message_of([] { driver::stages_between("fuse", "lower"); }) == "expected a stage from fuse on, found 'lower', which comes before it");
}

TEST_CASE("any stretch runs from text to text", "[stages]") {
  driver::PipelineState whole = state_of(two_ops);
  driver::run_stages(driver::stages_from(FormKind::Graph, "source"), whole);
  std::string text = two_ops;
  for (const Stage& stage : driver::stages_from(FormKind::Graph, "source")) {
    driver::PipelineState state = state_of(text);
    driver::run_stages({&stage, 1}, state);
    text = driver::print(state.form);
  }
  CHECK(text == driver::print(whole.form));
}

TEST_CASE("the observer sees the form after each stage that runs", "[stages]") {
  driver::PipelineState state = state_of(two_ops);
  std::vector<std::string> seen;
  state.inputs.options.fusion = false;
  state.inputs.keep_texts = true;
  state.inputs.observer = [&](std::string_view stage, const driver::Form& form) {
    seen.push_back(fmt::format("{} {}", stage, driver::to_string(driver::kind_of(form))));
  };
  driver::run_stages(driver::stages_from(FormKind::Graph, "select-kernels"), state);
  CHECK(seen == std::vector<std::string>{"graph-passes graph", "lower loops", "loops-passes loops", "select-kernels plan"});
  CHECK(state.texts.size() == seen.size());
}

TEST_CASE("a run stops between stages, and refuses a form that its stage does not take", "[stages]") {
  driver::PipelineState state = state_of(two_ops);
  state.inputs.interrupted = [] { return true; };
  CHECK_THROWS_AS(driver::run_stages(driver::stages_between("lower", "lower"), state), Interrupted);
  CHECK(message_of([&] { driver::run_stages(driver::stages_between("fuse", "fuse"), state); }) == "stage fuse: expected loops, found graph");
}
