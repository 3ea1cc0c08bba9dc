#include "api/model_source.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "model/text.h"
#include "package/container.h"
#include "package/manifest.h"
#include "readers/pt2/printable.h"
#include "support/error.h"
#include "support/files.h"
#include "support/options.h"
#include "torch_bridge/dispatcher_schemas.h"
#include "torch_bridge/import_targets.h"
#include "torch_bridge/process_check.h"
#include "torch_bridge/providers.h"
#include "torch_bridge/shaping_options.h"

namespace cxxinductor::api {
namespace {

using package_file::Container;
using package_file::Manifest;
using package_file::SectionKind;

// Fills plans or note of the source.
void add_plans(ModelSource& source, const Bytes& file, const Manifest& manifest) {
  const auto opened = std::make_shared<const torch_bridge::OpenPackage>(torch_bridge::OpenPackage{file.owner, Container(file.span)});
  source.note = torch_bridge::code_distrust(opened->container, manifest.library_version, source.options);
  if (source.note.empty()) source.plans = torch_bridge::choose_plans(opened, manifest.builds, source.note);
}

void parallel_for(size_t count, const std::function<void(size_t)>& work) {
  at::parallel_for(0, static_cast<int64_t>(count), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) work(static_cast<size_t>(i));
  });
}

Bytes map_weights(const package_file::WeightFile& expected, const std::string& folder) {
  if (folder.empty()) throw_user_error("package: its weights are in the file '{}' beside it: load it by its path", readers::printable(expected.name));
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
  torch_bridge::set_shaping_options(source.options, manifest.options);
  if (manifest.weight_file) {
    source.bytes = map_weights(*manifest.weight_file, folder);
  } else if (const package_file::Section* weights = container.find(SectionKind::Weights, "weights")) {
    const std::span<const std::byte> mapped = container.map(*weights, parallel_for);
    source.bytes = {file.owner, file.span.subspan(weights->offset, mapped.size())};
  }
  package_file::check_storages(manifest.program, source.bytes.span.size());
  if (run_here) add_plans(source, file, manifest);
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
  if (run_here)
    for (Device device : torch_bridge::devices_of(source.program.calls)) torch_bridge::open_torch_library(device.type);
  return source;
}

ModelSource read_model(const std::string& path, const Options& options, bool run_here) {
  torch_bridge::check_process();  // what the file has no part in
  check_options(options);
  Bytes file = map_file(path);
  try {
    return read_model(std::move(file), parent_path(path), options, run_here);
  } catch (const UserError& error) {
    throw_user_error("{}: {}", path, error.what());
  } catch (const Unsupported& error) {
    throw_unsupported("{}: {}", path, error.what());
  }
}

}  // namespace cxxinductor::api
