#include "targets/cuda/nvrtc_places.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "support/files.h"

namespace cxxinductor::targets {
namespace {

constexpr std::string_view newest = "libnvrtc.so.13";

// 13 of "libnvrtc.so.13", and of "libnvrtc-672ee683.so.13" as LibTorch's archives name it. Neither libnvrtc-builtins nor
// libnvrtc.alt, a variant of the compiler, is NVRTC.
std::optional<int> major_version(std::string_view name) {
  constexpr std::string_view prefix = "libnvrtc", suffix = ".so.";
  const size_t dot = name.rfind(suffix);
  if (!name.starts_with(prefix) || dot == name.npos || dot < prefix.size()) return std::nullopt;
  const std::string_view tag = name.substr(prefix.size(), dot - prefix.size()), version = name.substr(dot + suffix.size());
  const bool is_hash = tag.starts_with('-') && tag.find_first_not_of("0123456789abcdef", 1) == tag.npos;
  if (!tag.empty() && !is_hash) return std::nullopt;
  int major = 0;
  const char* const end = version.data() + version.size();
  const auto [stop, error] = std::from_chars(version.data(), end, major);
  if (error != std::errc() || (stop != end && *stop != '.')) return std::nullopt;
  return major;
}

// The NVRTCs of a folder, newest first; the newest one's usual name where there is none.
void add_folder(const std::string& folder, std::vector<std::string>& candidates) {
  std::vector<std::pair<int, std::string>> found;
  for (const std::string& name : file_names(folder))
    if (const std::optional<int> major = major_version(name)) found.emplace_back(-*major, name);
  std::sort(found.begin(), found.end());
  if (found.empty()) found.emplace_back(0, newest);
  for (const auto& [order, name] : found) candidates.push_back(join_path(folder, name));
}

// Whether the path names a library rather than a folder.
bool is_library(std::string_view path) { return path.substr(path.rfind('/') + 1).find(".so") != path.npos; }

}  // namespace

std::vector<std::string> nvrtc_candidates(const NvrtcPlaces& places) {
  if (is_library(places.given)) return {places.given};
  std::vector<std::string> candidates;
  if (!places.given.empty()) {
    add_folder(places.given, candidates);
    return candidates;
  }
  if (!places.torch_folder.empty()) {
    add_folder(places.torch_folder, candidates);
    const std::string packages = parent_path(parent_path(places.torch_folder));
    for (const char* neighbour : {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"}) add_folder(join_path(packages, neighbour), candidates);
  }
  for (const std::string& toolkit : places.toolkits)
    for (const char* folder : {"lib64", "lib"}) add_folder(join_path(toolkit, folder), candidates);
  for (const char* name : {newest.data(), "libnvrtc.so.12", "libnvrtc.so"}) candidates.emplace_back(name);
  return candidates;
}

}  // namespace cxxinductor::targets
