#include "api/write_package.h"

#include <ATen/Context.h>
#include <cxxinductor/cxxinductor.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "api/mapped_file.h"
#include "api/model_source.h"
#include "api/shaping_options.h"
#include "model/text.h"
#include "package/container.h"
#include "package/manifest.h"
#include "support/error.h"
#include "support/files.h"
#include "torch_bridge/compiled_graph.h"
#include "torch_bridge/providers.h"

namespace cxxinductor::api {
namespace {

using package_file::NewSection;
using package_file::SectionKind;
using Piece = std::span<const std::byte>;

Piece piece_of(const std::string& text) { return std::as_bytes(std::span(text)); }

// Storages one after another, aligned. Sets the weights' byte offsets.
std::vector<Piece> lay_out(readers::Program& program, const StorageOf& storage_of) {
  static constexpr std::array<std::byte, package_file::storage_alignment> zeros{};
  std::map<std::pair<size_t, Device>, std::pair<size_t, size_t>> placed;  // old offset and device -> offset and size
  std::vector<Piece> pieces;
  size_t end = 0;
  for (readers::WeightRef& weight : program.weights) {
    const Device device = program.calls.values[program.calls.inputs[weight.input]].device;
    const auto [found, added] = placed.try_emplace({weight.byte_offset, device});
    if (added) {
      const Piece storage = storage_of(weight);
      const size_t begin = (end + zeros.size() - 1) / zeros.size() * zeros.size();
      pieces.push_back(std::span(zeros).first(begin - end));
      pieces.push_back(storage);
      found->second = {begin, storage.size()};
      end = begin + storage.size();
      if (storage.empty()) {  // places are told apart by their offset
        pieces.push_back(std::span(zeros).first(1));
        ++end;
      }
    }
    std::tie(weight.byte_offset, weight.byte_size) = found->second;
  }
  return pieces;
}

struct Archs {
  std::vector<std::string> gpu, cpu;
};

// Those that were asked for by kind, from the oldest on, or the machine's.
Archs choose_archs(const std::set<Device>& devices, const PackageOptions& options) {
  Archs archs;
  for (const std::string& arch : options.archs) (arch.starts_with("sm_") ? archs.gpu : archs.cpu).push_back(arch);
  for (auto* list : {&archs.gpu, &archs.cpu}) std::ranges::sort(*list);
  if (archs.cpu.empty()) archs.cpu.push_back(torch_bridge::target_for(Device()).arch);
  const bool on_gpu = std::ranges::any_of(devices, [](Device device) { return device.type == DeviceType::Cuda; });
  if (!on_gpu) archs.gpu = {""};
  if (!archs.gpu.empty()) return archs;
  try {
    for (Device device : devices)
      if (device.type == DeviceType::Cuda) archs.gpu.push_back(torch_bridge::target_for(device).arch);
  } catch (const UserError& error) {
    throw_user_error("the model is on a GPU, which this machine cannot describe: name its architecture, as sm_90 (archs, --arch): {}", error.what());
  }
  return archs;
}

std::set<Device> devices_of(const model::CallGraph& calls) {
  std::set<Device> devices;
  for (const model::CallValueInfo& value : calls.values)
    if (value.kind == model::CallValueInfo::Kind::Tensor) devices.insert(value.device);
  if (devices.empty()) devices.insert(Device());
  return devices;
}

// What the sections hold, until the file is written.
struct Contents {
  std::string manifest, calls;
  std::map<std::string, std::string> plans, sources;
  runtime::CodeByHash code;
  std::vector<Piece> weights;
};

package_file::Build add_build(Contents& contents, const model::CallGraph& calls, const std::set<Device>& devices, const std::string& gpu,
                         const std::string& cpu, const Options& options) {
  package_file::Build build;
  Targets targets;
  std::string name;
  for (auto device = devices.rbegin(); device != devices.rend(); ++device) {  // GPUs first
    const std::string& arch = device->type == DeviceType::Cuda ? gpu : cpu;
    build.archs.emplace_back(*device, arch);
    targets.add(*device, torch_bridge::target_of_arch(*device, arch));
    if (name.find(arch) == std::string::npos) name += (name.empty() ? "" : " ") + arch;
  }
  torch_bridge::PlanForPackage made = torch_bridge::package_calls(calls, targets, options);
  build.deterministic = at::globalContext().deterministicAlgorithms();
  build.writes = made.writes;
  build.plan = name;
  for (driver::Report::KernelSource& source : made.sources)
    contents.sources.emplace(fmt::format("{} {}", name, source.name).substr(0, package_file::longest_name), std::move(source.text));
  contents.plans.emplace(name, std::move(made.plan));
  contents.code.merge(made.code);
  return build;
}

std::vector<NewSection> sections_of(const Contents& contents) {
  std::vector<NewSection> sections{{SectionKind::Manifest, "manifest", {piece_of(contents.manifest)}},
                                   {SectionKind::Calls, "calls", {piece_of(contents.calls)}}};
  const auto add = [&](SectionKind kind, const std::map<std::string, std::string>& texts) {
    for (const auto& [name, text] : texts) sections.push_back({kind, name, {piece_of(text)}});
  };
  add(SectionKind::Plan, contents.plans);
  add(SectionKind::Source, contents.sources);
  add(SectionKind::Code, contents.code);
  return sections;
}

package_file::WeightFile write_weights(const std::string& path, std::span<const Piece> pieces) {
  package_file::WeightFile file{path.substr(path.find_last_of('/') + 1), 0, {}};
  package_file::SectionHasher hasher;
  for (const Piece piece : pieces) {
    hasher.add(piece);
    file.size += piece.size();
  }
  file.digest = hasher.finish();
  package_file::write_pieces(path, pieces);
  return file;
}

std::optional<package_file::SigningKey> read_key(const std::string& path) {
  if (path.empty()) return std::nullopt;
  const Bytes pem = map_file(path);
  return package_file::SigningKey({reinterpret_cast<const char*>(pem.span.data()), pem.span.size()}, path);
}

}  // namespace

void write_package(readers::Program program, const StorageOf& storage_of, const std::string& path, const PackageOptions& package_options,
                   const Options& options) {
  const auto key = read_key(package_options.signing_key);
  const std::set<Device> devices = devices_of(program.calls);
  const Archs archs = choose_archs(devices, package_options);
  Contents contents;
  contents.calls = model::print(program.calls);
  contents.weights = lay_out(program, storage_of);
  package_file::Manifest manifest{version(), {}, shaping_options(options), std::nullopt, {}};
  for (const std::string& gpu : archs.gpu)
    for (const std::string& cpu : archs.cpu) manifest.builds.push_back(add_build(contents, program.calls, devices, gpu, cpu, options));
  manifest.program = std::move(program);
  if (package_options.weights_beside && !contents.weights.empty()) manifest.weight_file = write_weights(path + ".weights", contents.weights);
  contents.manifest = package_file::print_manifest(manifest);
  std::vector<NewSection> sections = sections_of(contents);
  if (!manifest.weight_file && !contents.weights.empty()) sections.push_back({SectionKind::Weights, "weights", std::move(contents.weights)});
  package_file::write_container(path, sections, key ? &*key : nullptr);
}

}  // namespace cxxinductor::api

namespace cxxinductor {
namespace {

void package_source(const api::ModelSource& source, const std::string& path, const PackageOptions& package_options) {
  const std::span<const std::byte> bytes = source.bytes.span;
  const auto storage_of = [bytes](const readers::WeightRef& weight) { return bytes.subspan(weight.byte_offset, weight.byte_size); };
  api::write_package(source.program, storage_of, path, package_options, source.options);
}

}  // namespace

void package(const std::string& model, const std::string& path, const PackageOptions& package_options, const Options& options) {
  package_source(api::read_model(model, options, false), path, package_options);
}

void package(const void* model, size_t size, const std::string& path, const PackageOptions& package_options, const Options& options) {
  package_source(api::read_model(api::copy_bytes(model, size), "", options, false), path, package_options);
}

}  // namespace cxxinductor
