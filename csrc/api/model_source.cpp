#include "api/model_source.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <cxxinductor/cxxinductor.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "api/shaping_options.h"
#include "model/text.h"
#include "package/container.h"
#include "package/manifest.h"
#include "readers/pt2/printable.h"
#include "support/error.h"
#include "support/files.h"
#include "support/options.h"
#include "torch_bridge/dispatcher_schemas.h"
#include "torch_bridge/process_check.h"
#include "torch_bridge/providers.h"

namespace cxxinductor::api {
namespace {

using package_file::Build;
using package_file::Container;
using package_file::Manifest;
using package_file::SectionKind;
using torch_bridge::PackagedPlan;

bool is_on_gpu(const model::CallGraph& calls) {
  return std::any_of(calls.values.begin(), calls.values.end(), [](const model::CallValueInfo& value) {
    return value.kind == model::CallValueInfo::Kind::Tensor && value.device.type == DeviceType::Cuda;
  });
}

// Why the package's code is not trusted; empty when it is.
std::string distrust(const Container& container, const Options& options) {
  if (options.trust) return {};
  if (!container.signer()) return "it is not signed, and option trust is off";
  for (const std::string& key : list_items(options.trusted_keys))
    if (package_file::parse_public_key(key, "option trusted_keys") == *container.signer()) return {};
  return fmt::format("it is signed with key {}, which option trusted_keys does not list", package_file::to_hex(*container.signer()));
}

// The targets that run the build here; none where the machine does not.
std::optional<Targets> targets_for(const Build& build) {
  Targets targets;
  for (const auto& [device, arch] : build.archs) {
    auto target = torch_bridge::find_target(device, arch);
    if (!target) return std::nullopt;
    targets.add(device, std::move(*target));
  }
  return targets;
}

std::string archs_text(const Build& build) {
  std::string text;
  for (const auto& [device, arch] : build.archs) text += (text.empty() ? "" : " and ") + readers::printable(arch);
  return text;
}

// The last build that this machine runs: builds are in the order of their architectures.
const Build* choose_build(const Manifest& manifest, std::optional<Targets>& targets, std::string& note) {
  const bool deterministic = at::globalContext().deterministicAlgorithms();
  const Build* chosen = nullptr;
  std::string archs;
  for (const Build& build : manifest.builds) {
    archs += (archs.empty() ? "" : ", ") + archs_text(build) + (build.deterministic ? " (deterministic)" : "");
    if (deterministic && !build.deterministic) continue;
    auto found = targets_for(build);
    if (!found) continue;
    targets = std::move(found);
    chosen = &build;
  }
  if (!chosen) note = fmt::format("it has code for {}, none of which this machine and PyTorch's settings take", archs.empty() ? "nothing" : archs);
  return chosen;
}

// Fills plan or note of the source.
void add_plan(ModelSource& source, const Bytes& file, const Manifest& manifest) {
  struct Opened {
    Bytes file;
    Container container;
  };
  const auto opened = std::make_shared<const Opened>(Opened{file, Container(file.span)});
  const Options& options = source.options;
  source.note = distrust(opened->container, options);
  if (source.note.empty() && manifest.library_version != version())
    source.note = fmt::format("it was made by version {}, and this is {}", manifest.library_version, version());
  if (source.note.empty() && (options.tier == "aten" || options.check != "off" || !options.dump.empty()))
    source.note = "options tier, check and dump compile models from their calls";
  if (!source.note.empty()) return;
  std::optional<Targets> targets;
  const Build* build = choose_build(manifest, targets, source.note);
  if (!build) return;
  source.plan = PackagedPlan{opened->container.read(opened->container.get(SectionKind::Plan, build->plan)), std::move(*targets),
                             [opened](const std::string& hash) -> std::optional<std::string> {
                               const package_file::Section* section = opened->container.find(SectionKind::Code, hash);
                               if (!section) return std::nullopt;
                               return opened->container.read(*section);
                             },
                             build->writes};
}

void parallel_for(size_t count, const std::function<void(size_t)>& work) {
  at::parallel_for(0, static_cast<int64_t>(count), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) work(static_cast<size_t>(i));
  });
}

Bytes map_weights(const package_file::WeightFile& expected, const std::string& folder) {
  if (folder.empty())
    throw_user_error("package: its weights are in the file '{}' beside it: load it by its path", readers::printable(expected.name));
  const std::string path = join_path(folder, expected.name);
  Bytes file = map_file(path);
  if (file.span.size() != expected.size)
    throw_user_error("{}: expected the {} bytes of weights that the package was made with, found {}", path, expected.size, file.span.size());
  if (package_file::section_digest(file.span, parallel_for) != expected.digest)
    throw_user_error("{}: expected the weights that the package was made with: their digest does not match", path);
  return file;
}

ModelSource read_package(const Bytes& file, const std::string& folder, const Options& options, bool run_here) {
  const Container container(file.span);
  model::CallGraph calls = model::parse(container.read(container.get(SectionKind::Calls, "calls")));
  Manifest manifest = package_file::read_manifest(container.read(container.get(SectionKind::Manifest, "manifest")), std::move(calls));
  ModelSource source;
  source.options = options;
  set_shaping_options(source.options, manifest.options);
  if (manifest.weight_file) {
    source.bytes = map_weights(*manifest.weight_file, folder);
  } else if (const package_file::Section* weights = container.find(SectionKind::Weights, "weights")) {
    const std::span<const std::byte> mapped = container.map(*weights, parallel_for);
    source.bytes = {file.owner, file.span.subspan(weights->offset, mapped.size())};
  }
  package_file::check_storages(manifest.program, source.bytes.span.size());
  if (run_here) add_plan(source, file, manifest);
  source.program = std::move(manifest.program);
  return source;
}

}  // namespace

ModelSource read_model(Bytes file, const std::string& folder, const Options& options, bool run_here) {
  torch_bridge::check_process();
  check_options(options);
  ModelSource source;
  if (package_file::is_package(file.span))
    source = read_package(file, folder, options, run_here);
  else
    source = {readers::read_pt2(file.span, torch_bridge::DispatcherSchemas()), file, options, std::nullopt, {}};
  if (run_here && is_on_gpu(source.program.calls)) torch_bridge::open_torch_cuda();
  return source;
}

ModelSource read_model(const std::string& path, const Options& options, bool run_here) {
  return read_model(map_file(path), parent_path(path), options, run_here);
}

}  // namespace cxxinductor::api
