#include "torch_bridge/reproducer.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>

#include "driver/compile.h"
#include "driver/dump.h"
#include "frontend/import.h"
#include "ir/graph/text.h"
#include "support/error.h"
#include "support/files.h"
#include "torch_bridge/dispatcher_schemas.h"
#include "torch_bridge/providers.h"
#include "torch_bridge/torch_host.h"

namespace cxxinductor::torch_bridge {
namespace {

constexpr std::string_view kContents = R"(
calls.txt     the calls into ATen that were read from the model, with its source lines
graph.txt     the graph IR (docs/ir.md): `cxxi-opt --to plan graph.txt` shows what becomes of it, examples/run_graph shows
              how a program compiles and runs it
loops.txt, fused.txt, plan.txt, kernels/   the later forms; what is missing here could not be made
)";

// Compiles nothing: the texts are wanted, the kernels are what fails.
class NoKernels final : public runtime::KernelProvider {
 public:
  void prepare(const plan::Plan&, const InterruptCheck&) override {}
  const runtime::LoadedKernel& get(plan::KernelId, plan::Variant) override { throw_internal("nothing is run here"); }
};

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
  Target target;
};

Texts remake(const frontend::CallGraph& calls, const Options& options) {
  Texts texts;
  driver::Request request;
  request.graph = frontend::import_graph(calls, DispatcherSchemas());
  texts.report.graph_text = graph::print(request.graph);
  try {
    texts.target = request.target = target_for(driver::main_device(request.graph));
    TorchHost host;
    request.host = &host;
    request.options = options;
    request.make_provider = [](const plan::Plan&, const Target&) { return std::make_shared<NoKernels>(); };
    request.keep_texts = true;
    texts.report = driver::compile(std::move(request)).report;
  } catch (const Error&) {
    // The bug lies before the kernels: the graph as it was imported is what shows it.
  }
  return texts;
}

}  // namespace

std::string write_reproducer(const frontend::CallGraph& calls, const Options& options, const std::string& error) {
  Texts texts;
  try {
    texts = remake(calls, options);
  } catch (const Error&) {
    // The bug lies in the import: the calls show it.
  }
  const std::string folder =
      driver::write_dump(texts.report, texts.target, calls.name + ".failed", base_folder(options), "all");
  write_text(join_path(folder, "error.txt"), fmt::format("{}\n\noptions: {}\ntarget: {} {}\n{}", error, to_string(options),
                                               texts.target.device == DeviceType::Cuda ? "cuda" : "cpu",
                                               texts.target.arch, kContents));
  write_text(join_path(folder, "calls.txt"), frontend::to_string(calls));
  return folder;
}

}  // namespace cxxinductor::torch_bridge
