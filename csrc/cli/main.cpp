// cxxinductor: packages, inspects, runs, times and verifies exported models from a shell.
#include <c10/util/Exception.h>
#include <cxxinductor/cxxinductor.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/commands.h"
#include "support/error.h"

namespace {

using namespace cxxinductor;
using cli::Arguments;

constexpr const char* footer = R"(Models come from torch.export.save(torch.export.export(model, args), "model.pt2"), from torch.jit.save, or from
`cxxinductor compile`. Files are untrusted: nothing in them is executed but PyTorch's ops that compute, ops that option allow_ops names, and
machine code under option trust, or signed with a key that option trusted_keys lists. TorchScript is a program: it may call any op.

Options of the library are environment variables CXXINDUCTOR_NAME, or --option name=value, which wins: docs/options.md.

Exit status: 0; 1 when verify finds a difference, or a call fails; 2 for wrong arguments, or a file that cannot be read.)";

void add_model(CLI::App& command, Arguments& arguments) {
  command.add_option("file", arguments.file, "the model: a .pt2 file, a package, or a TorchScript file")->required();
}

void add_options(CLI::App& command, Arguments& arguments, const char* names = "-o,--option") {
  command.add_option(names, arguments.options, "an option of the library, name=value; may be repeated")->type_size(1)->take_all();
}

void add_shapes(CLI::App& command, Arguments& arguments) {
  command
      .add_option("--input", arguments.shapes,
                  "an argument of a TorchScript model's forward, for each of them: a random tensor as \"f32[1, 3, 224, 224]\" or "
                  "\"i64[2, 7] on cuda:0\", or a number, True, False, None as it is")
      ->type_size(1)
      ->take_all();
}

// Arguments that a TorchScript model is called with to be compiled.
void add_example(CLI::App& command, Arguments& arguments) {
  add_shapes(command, arguments);
  command.add_option("-i,--inputs", arguments.inputs, "in place of --input: files that torch.save wrote, with the arguments of a TorchScript model")
      ->take_all();
}

void add_inputs(CLI::App& command, Arguments& arguments) {
  add_shapes(command, arguments);
  command
      .add_option("-i,--inputs", arguments.inputs,
                  "files that torch.save wrote, each a tensor or a list of inputs in the order that `inspect` lists; default: the samples that "
                  "the export put into the file, else random inputs that fit its signature")
      ->take_all();
  command.add_flag("--random", arguments.random, "random inputs: normal numbers, integers 0 and 1");
  command.add_option("--size", arguments.sizes, "the size of a symbol, name=value, for random inputs; may be repeated")->type_size(1)->take_all();
  command.add_option("--seed", arguments.seed, "of random inputs")->capture_default_str();
}

std::vector<std::string> names_of_subcommands(CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

int run_command(int argc, char** argv) {
  CLI::App app("Compiles exported PyTorch models, and inspects, runs, times and verifies them.", "cxxinductor");
  app.footer(footer);
  app.set_version_flag("--version", std::string("cxxinductor ") + version());
  app.require_subcommand(1);
  Arguments arguments;

  CLI::App& compile = *app.add_subcommand("compile", "compile a model into a package: one file that loads without compiling");
  add_model(compile, arguments);
  compile.add_option("-o,--output", arguments.package, "the package")->required();
  compile.add_option("--arch", arguments.archs, "compile for this GPU (sm_80, sm_90a) or CPU (x86-64-v3); may be repeated; default: what this machine has")
      ->type_size(1)
      ->take_all();
  compile.add_option("--weights", arguments.weights, "inside of the package, or beside it in a file of their own")
      ->check(CLI::IsMember({"inside", "beside"}))
      ->capture_default_str();
  compile.add_option("--sign", arguments.signing_key, "a file: the Ed25519 private key, as `openssl genpkey -algorithm ed25519` writes it");
  add_example(compile, arguments);
  add_options(compile, arguments, "--option");

  CLI::App& inspect = *app.add_subcommand("inspect", "print signature, weights, ops and symbols of a file; compiles nothing");
  add_model(inspect, arguments);

  CLI::App& explain = *app.add_subcommand("explain", "compile a model and print its kernels, calls of ATen with reasons, memory and times");
  add_model(explain, arguments);
  add_example(explain, arguments);
  add_options(explain, arguments);

  CLI::App& run = *app.add_subcommand("run", "run a model once and print a summary of its outputs");
  add_model(run, arguments);
  add_inputs(run, arguments);
  run.add_option("--outputs", arguments.outputs, "write the outputs into this file, as a tuple for torch.load");
  add_options(run, arguments);

  CLI::App& bench = *app.add_subcommand("bench", "time a model's calls, compiled and op by op through ATen, after a warm-up");
  add_model(bench, arguments);
  add_inputs(bench, arguments);
  bench.add_option("--samples", arguments.samples, "how often each is measured; a sample is some milliseconds of calls")->capture_default_str();
  add_options(bench, arguments);

  CLI::App& verify = *app.add_subcommand("verify",
                                         "run a model compiled and op by op through ATen, print the largest error of each output and of each "
                                         "input and weight that is updated, and the counters; exit status 1 when they differ");
  add_model(verify, arguments);
  add_inputs(verify, arguments);
  verify.add_option("--tolerance", arguments.tolerance,
                    "largest |compiled - ATen| that is accepted, relative to the larger of |ATen| and the output's root mean square; default: 1e-9 for "
                    "f64, 1e-4 for f32, 1e-2 for f16, 5e-2 for bf16, 0 for integers");
  add_options(verify, arguments);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11 says that there is no subcommand, not what stands in its place.
    if (const std::vector<std::string> unknown = app.remaining(); error.get_exit_code() != 0 && app.get_subcommands().empty() && !unknown.empty())
      throw_user_error("expected a subcommand ({}), found '{}'", fmt::join(names_of_subcommands(app), ", "), unknown.front());
    return app.exit(error) == 0 ? cli::success : cli::wrong_use;
  }
  const bool script = cli::is_torchscript(arguments.file);
  if (!script && !arguments.shapes.empty()) throw_user_error("--input: expected a TorchScript file; of others the signature says which sizes inputs have");
  if (!script && (compile || explain) && !arguments.inputs.empty())
    throw_user_error("--inputs: expected a TorchScript file; others are compiled without inputs");
  if (compile) return (script ? cli::torchscript::compile : cli::compile)(arguments);
  if (inspect) return (script ? cli::torchscript::inspect : cli::inspect)(arguments);
  if (explain) return (script ? cli::torchscript::explain : cli::explain)(arguments);
  if (run) return (script ? cli::torchscript::run : cli::run)(arguments);
  if (bench) return (script ? cli::torchscript::bench : cli::bench)(arguments);
  return (script ? cli::torchscript::verify : cli::verify)(arguments);
}

}  // namespace

int main(int argc, char** argv) try { return run_command(argc, argv); } catch (const Error& error) {
  std::cerr << "cxxinductor: " << error.what() << "\n";
  const bool wrong = error.kind() == Error::Kind::User || error.kind() == Error::Kind::Unsupported;
  return wrong ? cli::wrong_use : cli::failure;
} catch (const c10::Error& error) {
  std::cerr << "cxxinductor: PyTorch: " << error.what_without_backtrace() << "\n";
  return cli::failure;
} catch (const std::exception& error) {
  std::cerr << "cxxinductor: " << error.what() << "\n";
  return cli::failure;
}
