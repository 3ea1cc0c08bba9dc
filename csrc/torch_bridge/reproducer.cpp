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
settings.txt  the options, the devices and the registered passes
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

driver::Report remake(const model::CallGraph& calls, const frontend::ImportEnvironment& environment, const Options& options) {
  driver::Report report;
  driver::Request request;
  request.graph = frontend::import_graph(frontend::lower_complex(calls, DispatcherSchemas()), DispatcherSchemas(), environment);
  report.texts["import"] = graph::print(request.graph);
  try {
    request.targets = targets_for(driver::devices_of(request.graph), options);
    request.host = &torch_host();
    set_options_and_passes(request, options);
    report.settings_text = driver::settings_text(request.options, request.targets, request.text_passes);
    request.keep_texts = true;
    request.observer = [&](std::string_view stage, const driver::Form& form) { report.texts[std::string(stage)] = driver::print(form); };
    report = driver::compile(std::move(request)).report;
  } catch (const std::exception&) {
    // The bug lies before the kernels: the forms after the stages before it show it.
  }
  return report;
}

}  // namespace

std::string write_reproducer(const model::CallGraph& calls, const frontend::ImportEnvironment& environment, const Options& options, const std::string& error) {
  driver::Report report;
  report.settings_text = driver::settings_text(options, {}, {});
  try {
    report = remake(calls, environment, options);
  } catch (const std::exception&) {
    // The bug lies in the import: the calls show it.
  }
  const std::string folder = driver::write_dump(report, calls.name + ".failed", base_folder(options), "all");
  write_text(join_path(folder, "error.txt"), fmt::format("{}\n{}", error, kContents));
  write_text(join_path(folder, "calls.txt"), model::print(calls));
  return folder;
}

}  // namespace cxxinductor::torch_bridge
