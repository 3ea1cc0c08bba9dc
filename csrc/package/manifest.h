// What a package's manifest says: the model's signature and weights, the options that shaped its kernels, and the plans that there
// are. The text is JSON; docs/design/package.md lists its fields.
//
// Manifests are untrusted: what one says of the calls and of the weights' bytes is checked against them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/dtype.h"
#include "package/digest.h"
#include "readers/pt2/read_pt2.h"

namespace cxxinductor::package_file {

// Of the calls of a model, or of one of its subgraphs.
struct BuiltPlan {
  std::string plan;  // name of its section
  // What it was made of is needed at loading: its calls write to inputs or weights, or hold for some sizes alone.
  bool needs_calls = false;
};

// Plans with their machine code, for the devices that the model is on.
struct Build {
  std::vector<std::pair<Device, std::string>> archs;  // "sm_90a", "x86-64-v3"; the main device first
  bool deterministic = false;                         // of PyTorch, when the plans were made
  BuiltPlan main;
  std::vector<BuiltPlan> subgraphs;  // of control flow: those of nested calls before their own, else in the order of the calls
};

// Weights in a file of their own, in the package's folder.
struct WeightFile {
  std::string name;
  uint64_t size = 0;
  Digest digest{};
};

struct Manifest {
  std::string library_version;
  readers::Program program;  // without calls; byte offsets are in the weights
  std::vector<std::pair<std::string, std::string>> options;
  std::optional<WeightFile> weight_file;  // none: weights are a section
  std::vector<Build> builds;
};

std::string print_manifest(const Manifest& manifest);
// calls: the package's, which become the program's; what they state of the layout and memory of inputs is replaced by what the
// weights have. UserError that names the field.
Manifest read_manifest(std::string_view text, model::CallGraph calls);
// That all storages lie in weights of this many bytes.
void check_storages(const readers::Program& program, size_t weight_bytes);

}  // namespace cxxinductor::package_file
