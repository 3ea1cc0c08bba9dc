// cxxi-opt: any stretch of the compiler's pipeline on IR text.
//
//   cxxi-opt --to merge-kernels --target "cuda sm_90a" model.cxxi
//   cxxi-opt --from lower --to fuse --dump-after lower < model.cxxi
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>

#include "driver/stages.h"
#include "support/error.h"
#include "text_pipeline.h"

namespace {

using namespace cxxinductor;

std::string read_input(const std::string& path) {
  if (path.empty() || path == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  std::ifstream file(path);
  if (!file) throw_user_error("cannot read {}", path);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Arguments {
  std::string path, from, to = "merge-kernels", run, target, arch;
  std::vector<std::string> options, dump_after;
};

// Prints what is asked for to stderr, so that stdout holds the result alone.
driver::StageObserver observer_of(const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (name != "all") driver::stages_between(name, name);  // refuses an unknown one
  const bool all = std::ranges::find(names, "all") != names.end();
  return [names, all](std::string_view stage, const driver::Form& form) {
    if (all || std::ranges::find(names, stage) != names.end()) std::cerr << "; after " << stage << "\n" << driver::print(form);
  };
}

std::string transform(const Arguments& arguments) {
  const std::string whole = read_input(arguments.path), text(tools::input_part(whole));
  tools::TextRun run;
  run.steps = arguments.run.empty() ? tools::steps_between(arguments.from, arguments.to) : tools::parse_steps(arguments.run);
  run.observer = observer_of(arguments.dump_after);
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
  std::vector<std::string_view> names;
  for (const driver::Stage& stage : driver::stage_table()) names.push_back(stage.name);
  auto* from = app.add_option("--from", arguments.from, "the first stage to run (default: the first that takes the text's form)");
  auto* to = app.add_option("--to", arguments.to, fmt::format("the last stage to run (default: {}): {}", arguments.to, fmt::join(names, ", ")));
  app.add_option("--run", arguments.run, "steps of a golden file in place of stages, joined by '|': those of tools/text_pipeline.h")
      ->excludes(from)
      ->excludes(to);
  app.add_option("--dump-after", arguments.dump_after, "prints the form after this stage to stderr, or after each (all); may be repeated")
      ->allow_extra_args(false);
  auto* target = app.add_option("--target", arguments.target, "cuda, cpu or several devices with commas between (default: where the text's tensors are)");
  app.add_option("--arch", arguments.arch, "sm_80, sm_90a; x86-64-v3, x86-64-v4")->needs(target);
  app.add_option("--option", arguments.options, "name=value, as in torch.compile(options=...); may be repeated")->allow_extra_args(false);
  CLI11_PARSE(app, argc, argv);
  try {
    std::cout << transform(arguments);
    return 0;
  } catch (const Error& error) {
    std::cerr << "cxxi-opt: " << error.what() << "\n";
    return 1;
  }
}
