#include "api/write_package.h"

#include <cxxinductor/cxxinductor.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "api/mapped_file.h"
#include "api/model_source.h"
#include "model/text.h"
#include "package/container.h"
#include "package/manifest.h"
#include "support/error.h"
#include "support/files.h"
#include "torch_bridge/file_model.h"
#include "torch_bridge/import_targets.h"
#include "torch_bridge/package_builds.h"
#include "torch_bridge/shaping_options.h"

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

// What the sections hold, until the file is written.
struct Contents {
  std::string manifest, calls;
  torch_bridge::BuiltPlans plans;
  std::vector<Piece> weights;
};

std::vector<NewSection> sections_of(const Contents& contents) {
  std::vector<NewSection> sections{{SectionKind::Manifest, "manifest", {piece_of(contents.manifest)}},
                                   {SectionKind::Calls, "calls", {piece_of(contents.calls)}}};
  torch_bridge::add_sections(contents.plans, sections);
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

}  // namespace

std::optional<package_file::SigningKey> read_signing_key(const std::string& path) {
  if (path.empty()) return std::nullopt;
  const Bytes pem = map_file(path);
  return package_file::SigningKey({reinterpret_cast<const char*>(pem.span.data()), pem.span.size()}, path);
}

void write_package(readers::Program program, const StorageOf& storage_of, const std::string& path, const PackageOptions& package_options,
                   const Options& options) {
  if (options.tier == "aten") throw_user_error("option 'tier': expected kernels, which are what a package is for, found 'aten'");
  const auto key = read_signing_key(package_options.signing_key);
  const std::set<Device> devices = torch_bridge::devices_of(program.calls);
  const torch_bridge::Archs archs = torch_bridge::choose_archs(devices, package_options.archs);
  Contents contents;
  contents.calls = model::print(program.calls);
  contents.weights = lay_out(program, storage_of);
  package_file::Manifest manifest{version(), {}, torch_bridge::shaping_options(options), std::nullopt, {}};
  manifest.builds = torch_bridge::add_builds(contents.plans, devices, archs, "",
                                             [&](const Targets& targets) { return torch_bridge::package_model(program.calls, targets, options); });
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
