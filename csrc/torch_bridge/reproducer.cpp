#include "torch_bridge/reproducer.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>

#include "driver/compile.h"
#include "driver/dump.h"
#include "frontend/complex/lower_complex.h"
#include "frontend/import.h"
#include "ir/graph/text.h"
#include "model/text.h"
#include "support/error.h"
#include "support/files.h"
#include "torch_bridge/dispatcher_schemas.h"
#include "torch_bridge/providers.h"
#include "torch_bridge/text_passes.h"
#include "torch_bridge/torch_host.h"

namespace cxxinductor::torch_bridge {
namespace {

constexpr std::string_view kContents = R"(
calls.txt     the calls into ATen that were read from the model, with its source lines: `cxxi-opt --to import calls.txt` imports them
01-import.txt the graph IR (docs/ir.md): `cxxi-opt --to merge-kernels 01-import.txt` shows what becomes of it
NN-STAGE.txt, kernels/   the form after each later stage; what is missing here could not be made
`python -m cxxinductor.bisect` with this folder looks for the stage, pass, fusion or kernel at fault
)";

std::string base_folder(const Options& options) {
  if (!options.dump_dir.empty()) return options.dump_dir;
  std::string pattern = join_path(temporary_folder(), "cxxinductor-reproducer-XXXXXX");
  if (::mkdtemp(pattern.data()) == nullptr) throw_user_error("no folder {}: {}", pattern, std::strerror(errno));
  return pattern;
}

void write_text(const std::string& path, std::string_view text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) throw_user_error("cannot write {}", path);
}

struct Texts {
  driver::Report report;
  Targets targets;
};

Texts remake(const model::CallGraph& calls, const frontend::ImportEnvironment& environment, const Options& options) {
  Texts texts;
  driver::Request request;
  request.graph = frontend::import_graph(frontend::lower_complex(calls, DispatcherSchemas()), DispatcherSchemas(), environment);
  std::map<std::string, std::string>& made = texts.report.texts;
  made["import"] = graph::print(request.graph);
  try {
    texts.targets = request.targets = targets_for(driver::devices_of(request.graph), options);
    request.host = &torch_host();
    set_options_and_passes(request, options);
    request.keep_texts = true;
    request.observer = [&](std::string_view stage, const driver::Form& form) { made[std::string(stage)] = driver::print(form); };
    texts.report = driver::compile(std::move(request)).report;
  } catch (const std::exception&) {
    // The bug lies before the kernels: the forms after the stages before it show it.
  }
  return texts;
}

}  // namespace

std::string write_reproducer(const model::CallGraph& calls, const frontend::ImportEnvironment& environment, const Options& options, const std::string& error) {
  Texts texts;
  try {
    texts = remake(calls, environment, options);
  } catch (const std::exception&) {
    // The bug lies in the import: the calls show it.
  }
  const std::string folder = driver::write_dump(texts.report, calls.name + ".failed", base_folder(options), "all");
  std::string targets;
  for (Device device : texts.targets.devices()) targets += fmt::format("target: {} {}\n", to_string(device), texts.targets.of(device).arch);
  write_text(join_path(folder, "error.txt"), fmt::format("{}\n\noptions: {}\n{}{}", error, to_string(options), targets, kContents));
  write_text(join_path(folder, "calls.txt"), model::print(calls));
  return folder;
}

}  // namespace cxxinductor::torch_bridge
