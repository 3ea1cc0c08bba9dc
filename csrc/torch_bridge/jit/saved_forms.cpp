#include "torch_bridge/jit/saved_forms.h"

#include <ATen/ops/empty.h>
#include <cxxinductor/cxxinductor.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "model/text.h"
#include "readers/pt2/printable.h"
#include "support/error.h"
#include "torch_bridge/import_targets.h"

namespace cxxinductor::torch_bridge {
namespace {

using package_file::RegionArgument;
using package_file::RegionForm;
using package_file::SectionKind;

constexpr size_t longest_kind = 100;

// Long texts of constants by their digest.
std::string kind_of(const ArgumentPattern& pattern) {
  const std::string text = kind_text(pattern);
  const bool is_short = text.size() <= longest_kind && readers::printable(text) == text;
  return is_short ? text : "constant " + package_file::text_digest(text);
}

// The tensor's sizes come from PyTorch's unpickler, which compares them with no storage.
void require_bytes(const at::Tensor& tensor) {
  const bool is_plain = tensor.defined() && tensor.layout() == at::kStrided && tensor.scalar_type() == at::kByte && tensor.dim() == 1 &&
                        tensor.stride(0) == 1 && tensor.size(0) >= 0 && tensor.storage_offset() >= 0;
  const auto held = is_plain ? static_cast<uint64_t>(tensor.storage().nbytes()) : 0;
  if (!is_plain || static_cast<uint64_t>(tensor.storage_offset()) > held ||
      static_cast<uint64_t>(tensor.size(0)) > held - static_cast<uint64_t>(tensor.storage_offset()))
    throw_user_error("compiled forms: expected the bytes of a package as a dense tensor inside of its storage");
}

std::shared_ptr<const OpenPackage> open(const at::Tensor& tensor) {
  require_bytes(tensor);
  const auto bytes = std::make_shared<const at::Tensor>(tensor.cpu());  // PyTorch may have been asked to load everything to a GPU
  const std::span<const std::byte> span(static_cast<const std::byte*>(bytes->const_data_ptr()), static_cast<size_t>(bytes->numel()));
  return std::make_shared<const OpenPackage>(OpenPackage{bytes, package_file::Container(span)});
}

}  // namespace

SavedForms::SavedForms(const at::Tensor& bytes, const Options& options) : opened_(open(bytes)) {
  const package_file::Container& container = opened_->container;
  manifest_ = package_file::read_region_manifest(container.read(container.get(SectionKind::Manifest, "manifest")));
  note_ = code_distrust(container, manifest_.library_version, options);
}

std::vector<CallPattern> SavedForms::patterns_for(const std::string& region, std::span<const c10::IValue> arguments) const {
  std::vector<CallPattern> found;
  if (!note_.empty()) return found;
  const CallPattern given(arguments);
  std::vector<std::string> kinds;
  for (const ArgumentPattern& argument : given.arguments()) kinds.push_back(kind_of(argument));
  const auto has_kind = [](const RegionArgument& argument, const std::string& kind) { return argument.kind == kind; };
  for (const RegionForm& form : manifest_.forms) {
    if (form.region != region || !std::ranges::equal(form.arguments, kinds, has_kind)) continue;
    std::vector<std::vector<int64_t>> sizes;
    for (const RegionArgument& argument : form.arguments) sizes.push_back(argument.sizes);
    if (auto pattern = CallPattern::with_symbols(arguments, sizes, form.symbols)) found.push_back(std::move(*pattern));
  }
  return found;
}

std::optional<PackagedPlan> SavedForms::find_plan(const model::CallGraph& calls) const {
  if (!note_.empty()) return std::nullopt;
  const std::string digest = package_file::text_digest(model::print(calls));
  const auto form = std::ranges::find_if(manifest_.forms, [&](const RegionForm& candidate) { return candidate.calls == digest; });
  if (form == manifest_.forms.end()) return std::nullopt;
  std::string no_build;
  auto plans = choose_plans(opened_, form->builds, no_build);
  if (!plans) return std::nullopt;
  return std::move(plans->main);
}

std::string SavedForms::list() const {
  std::string text;
  for (const RegionForm& form : manifest_.forms) {
    std::vector<std::string> arguments, archs;
    for (const RegionArgument& argument : form.arguments) {
      std::vector<std::string> sizes;
      for (const int64_t size : argument.sizes) sizes.push_back(size < 0 ? symbol_name(static_cast<size_t>(-1 - size)) : fmt::format("{}", size));
      arguments.push_back(fmt::format("{}[{}]", readers::printable(argument.kind), fmt::join(sizes, ", ")));
    }
    for (const package_file::Build& build : form.builds)
      for (const auto& [device, arch] : build.archs) archs.push_back(readers::printable(arch));
    text += fmt::format("  {} of {}: {}\n", readers::printable(form.region), fmt::join(arguments, ", "), fmt::join(archs, " and "));
  }
  const auto& signer = opened_->container.signer();
  return text + (signer ? "  signed with key " + package_file::to_hex(*signer) : "  not signed") + "\n";
}

void PackedForms::add(const std::string& region, const CallPattern& pattern, const model::CallGraph& calls, const Options& options) {
  const std::set<Device> devices = devices_of(calls);
  RegionForm form{region, {}, static_cast<uint32_t>(pattern.symbol_count()), package_file::text_digest(model::print(calls)), {}};
  const std::vector<std::vector<int64_t>> sizes = pattern.symbolic_sizes();
  for (size_t i = 0; i < sizes.size(); ++i) form.arguments.push_back({kind_of(pattern.arguments()[i]), sizes[i]});
  form.builds = add_builds(plans_, devices, choose_archs(devices, archs_), fmt::format("{}", manifest_.forms.size()),
                           [&](const Targets& targets) { return std::vector{package_trace(calls, targets, options)}; });
  manifest_.forms.push_back(std::move(form));
}

at::Tensor PackedForms::bytes() const {
  if (manifest_.forms.empty()) return at::empty({0}, at::kByte);
  package_file::RegionManifest manifest = manifest_;
  manifest.library_version = version();
  const std::string text = package_file::print_region_manifest(manifest);
  std::vector<package_file::NewSection> sections{{SectionKind::Manifest, "manifest", {std::as_bytes(std::span(text))}}};
  add_sections(plans_, sections);
  const std::vector<std::byte> all = package_file::container_bytes(sections, key_);
  at::Tensor bytes = at::empty({static_cast<int64_t>(all.size())}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr(), all.data(), all.size());
  return bytes;
}

}  // namespace cxxinductor::torch_bridge
