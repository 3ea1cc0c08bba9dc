// cxxi-opt: any stretch of the compiler's pipeline on IR text.
//
//   cxxi-opt --to plan --target "cuda sm_90a" model.cxxi
//   cxxi-opt --run "passes | lower" < model.cxxi
#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>

#include "driver/form.h"
#include "support/error.h"
#include "text_pipeline.h"

namespace {

using namespace cxxinductor;

// The forms that --from and --to speak of.
const std::map<std::string, driver::FormKind> kind_of_form{{"calls", driver::FormKind::Calls},
                                                           {"graph", driver::FormKind::Graph},
                                                           {"loops", driver::FormKind::Loops},
                                                           {"plan", driver::FormKind::Plan}};
const std::map<std::string, std::string> step_to_form{
    {"calls", "parse"}, {"graph", "import"}, {"loops", "lower"}, {"fused", "loops-passes"}, {"plan", "plan"}, {"source", "source"}};

std::string read_input(const std::string& path) {
  if (path.empty() || path == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  std::ifstream file(path);
  if (!file) throw_user_error("cannot read {}", path);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Arguments {
  std::string path, from, to = "plan", run, target, arch;
  std::vector<std::string> options;
};

std::string transform(const Arguments& arguments) {
  const std::string whole = read_input(arguments.path), text(tools::input_part(whole));
  const driver::FormKind kind = driver::kind_of_text(text);
  if (!arguments.from.empty() && kind != kind_of_form.at(arguments.from))
    throw_user_error("--from: expected {}, found {}", arguments.from, driver::to_string(kind));
  tools::TextRun run;
  const bool is_there = arguments.to == "graph" && kind == driver::FormKind::Graph;
  const std::string step = is_there ? "parse" : step_to_form.at(arguments.to);
  run.steps = tools::parse_steps(arguments.run.empty() ? step : arguments.run);
  std::string target = arguments.target;
  if (!target.empty() && !arguments.arch.empty()) target += " " + arguments.arch;
  run.targets = tools::parse_targets(target, text);
  for (const std::string& option : arguments.options) {
    const size_t equals = option.find('=');
    if (equals == std::string::npos) throw_user_error("--option expects name=value, found '{}'", option);
    set_option(run.options, option.substr(0, equals), option.substr(equals + 1));
  }
  return tools::run_text(text, run);
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Runs a stretch of the compiler's pipeline on IR text and prints the result."};
  app.add_option("file", arguments.path, "IR text; '-' or nothing: standard input");
  app.add_option("--from", arguments.from, "what the text is (default: found out)")
      ->check(CLI::IsMember({"calls", "graph", "loops", "plan"}));
  app.add_option("--to", arguments.to, "what to print (default: plan)")
      ->check(CLI::IsMember({"calls", "graph", "loops", "fused", "plan", "source"}));
  app.add_option("--run", arguments.run,
                 "steps instead of --to, joined by '|': those of tools/text_pipeline.h");
  auto* target = app.add_option("--target", arguments.target,
                                "cuda, cpu or several devices with commas between (default: where the text's tensors are)");
  app.add_option("--arch", arguments.arch, "sm_80, sm_90a; x86-64-v3, x86-64-v4")->needs(target);
  app.add_option("--option", arguments.options, "name=value, as in torch.compile(options=...); may be repeated");
  CLI11_PARSE(app, argc, argv);
  try {
    std::cout << transform(arguments);
    return 0;
  } catch (const Error& error) {
    std::cerr << "cxxi-opt: " << error.what() << "\n";
    return 1;
  }
}
