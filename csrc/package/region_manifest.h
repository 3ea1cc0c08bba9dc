// What a region of a TorchScript module keeps of its compiled forms: for which sizes of arguments there are plans, and of which calls.
// docs/design/torchscript.md says how it is used.
//
// Manifests are untrusted. A form says only how to trace the region again: a plan is found by the digest of the calls that come out, so
// nothing here has to be believed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "package/manifest.h"

namespace cxxinductor::package_file {

struct RegionArgument {
  std::string kind;  // all but sizes, as a text that is compared: "f32 on cpu contiguous"
  // Of a tensor, or one integer: numbers, and symbol k as -1 - k.
  std::vector<int64_t> sizes;
  friend bool operator==(const RegionArgument&, const RegionArgument&) = default;
};

struct RegionForm {
  std::string region;  // its name: a region that was split has parts
  std::vector<RegionArgument> arguments;
  uint32_t symbols = 0;
  std::string calls;  // text_digest of the calls that it was made of
  std::vector<Build> builds;
};

struct RegionManifest {
  std::string library_version;
  std::vector<RegionForm> forms;
};

// 64 hexadecimal digits of a text's SHA-256.
std::string text_digest(std::string_view text);

std::string print_region_manifest(const RegionManifest& manifest);
// UserError that names the field.
RegionManifest read_region_manifest(std::string_view text);

}  // namespace cxxinductor::package_file
