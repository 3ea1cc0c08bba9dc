#include "driver/text_passes.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "driver/stages.h"
#include "passes/pass_manager.h"
#include "support/error.h"
#include "support/interrupt.h"

namespace cxxinductor::driver {
namespace {

bool is_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
  });
}

template <class T>
std::string tensor(const T& of) {
  std::string text = fmt::format("{} on {} [", to_string(of.dtype), to_string(of.device));
  for (sym::Expr size : of.sizes) text += to_string(size) + ", ";
  return text + "]";
}

std::string strides(const std::vector<sym::Expr>& of) {
  std::string text = " strides [";
  for (sym::Expr stride : of) text += to_string(stride) + ", ";
  return text + "]";
}

// What a form takes and returns, a line each.
std::vector<std::string> signature(const graph::Graph& graph) {
  std::vector<std::string> lines;
  for (const graph::Input& input : graph.inputs) {
    const std::string what = input.value.valid() ? tensor(graph.value(input.value)) + strides(graph.value(input.value).layout.strides) : input.symbol;
    lines.push_back(fmt::format("input {}: {}{}{}", input.source, what, input.donated ? " donated" : "", input.frozen ? " frozen" : ""));
  }
  for (const graph::Output& output : graph.outputs) {
    std::string what = output.kind == graph::Output::Kind::Symbol ? to_string(output.symbol) : "none";
    if (output.kind == graph::Output::Kind::Tensor) what = tensor(graph.value(output.value));
    if (output.kind == graph::Output::Kind::Tensor && !output.flexible_strides) what += strides(graph.value(output.value).layout.strides);
    lines.push_back("output " + what);
  }
  for (const graph::Mutation& mutation : graph.mutations) lines.push_back(fmt::format("write of input {}", mutation.input));
  return lines;
}

std::vector<std::string> signature(const loops::Program& program) {
  std::vector<std::string> lines;
  for (const loops::ProgramInput& input : program.inputs) {
    const bool is_tensor = input.kind == loops::ProgramInput::Kind::Tensor;
    const std::string what = is_tensor ? tensor(program.buffers[input.buffer]) + strides(program.buffers[input.buffer].strides) : input.symbol;
    lines.push_back(fmt::format("input {}: {}{}", input.source, what, input.donated ? " donated" : ""));
  }
  for (const loops::ProgramOutput& output : program.outputs) {
    std::string what = output.kind == loops::ProgramOutput::Kind::Symbol ? to_string(output.symbol) : "none";
    if (output.kind == loops::ProgramOutput::Kind::Tensor) what = tensor(program.buffers[output.buffer]);
    if (output.kind == loops::ProgramOutput::Kind::View)
      what = fmt::format("view of {} {}", tensor(program.buffers[output.view.buffer]), strides(output.view.strides));
    lines.push_back("output " + what);
  }
  return lines;
}

std::vector<std::string> signature(const model::CallGraph&) { throw_internal("no text pass runs on calls"); }
std::vector<std::string> signature(const plan::Plan&) { throw_internal("no text pass runs on plans"); }
std::vector<std::string> signature(const std::string&) { throw_internal("no text pass runs on source"); }

std::vector<std::string> signature(const Form& form) {
  return std::visit([](const auto& of) { return signature(of); }, form);
}

std::string call(const TextPass& pass, const std::string& text) {
  try {
    return pass.function(text);
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception& error) {
    throw_user_error("the pass {} raised: {}", describe(pass), error.what());
  }
}

void require_signature(const TextPass& pass, const Form& before, const Form& after) {
  const std::vector<std::string> expected = signature(before), found = signature(after);
  const auto [e, f] = std::ranges::mismatch(expected, found);
  if (e == expected.end() && f == found.end()) return;
  throw_user_error("the pass {} changed what the program takes or returns: expected {}, found {}", describe(pass), e == expected.end() ? "no more" : *e,
                   f == found.end() ? "no more" : *f);
}

}  // namespace

void leave_out_skipped(TextPasses& passes, Options& options) {
  std::vector<std::string> skipped = list_items(options.skip_passes);
  std::erase_if(passes, [&](const auto& pass) { return std::erase(skipped, pass->name) > 0; });
  options.skip_passes = fmt::format("{}", fmt::join(skipped, ","));
}

std::string describe(const TextPass& pass) { return fmt::format("{} (after {})", pass.name, pass.stage); }

void check_text_pass(const TextPass& pass) {
  if (!is_name(pass.name)) throw_user_error("expected a name of letters, digits, '_', '-' and '.' for a pass, found '{}'", pass.name);
  const std::vector<passes::PassInfo> ours = passes::pass_table();
  if (std::ranges::find(ours, pass.name, &passes::PassInfo::name) != ours.end() ||
      std::ranges::find(stage_table(), pass.name, &Stage::name) != stage_table().end())
    throw_user_error("{} is the name of a pass or stage of the compiler: give the pass another one", pass.name);
  std::vector<std::string_view> stages;
  for (const Stage& stage : stage_table())
    if (stage.passes_of_users) stages.push_back(stage.name);
  if (std::ranges::find(stages, pass.stage) == stages.end())
    throw_user_error("the pass {}: expected one of the stages {}, found '{}'", pass.name, fmt::join(stages, ", "), pass.stage);
  if (pass.version.empty()) throw_user_error("the pass {}: expected a version, which you change when what the pass does changes", pass.name);
  if (!pass.function) throw_user_error("the pass {}: expected a function", pass.name);
}

bool run_text_pass(const TextPass& pass, Form& form) {
  const std::string before = print(form), after = call(pass, before);
  if (after == before) return false;
  std::optional<Form> changed;
  try {
    changed = parse_form(after);
    if (kind_of(*changed) != kind_of(form)) throw_user_error("expected {}, found {}", to_string(kind_of(form)), to_string(kind_of(*changed)));
    verify_or_throw(*changed, pass.name);
  } catch (const Error& error) {
    verify_or_throw(form, pass.stage);  // an invalid program that the pass was given is not its fault
    throw_user_error("the pass {} did not return a valid program: {}", describe(pass), error.what());
  }
  require_signature(pass, form, *changed);
  form = std::move(*changed);
  return true;
}

}  // namespace cxxinductor::driver
