// Compiled forms of regions in a file: packed when a module is saved, looked for when its regions run.
//
// A packed form says for which arguments it was made, and names its plan by a digest of the calls that it was compiled from. A region
// that is called with such arguments is traced again, which compiles nothing, and takes the plan if the calls are the same: what a file
// says is never believed. Plans and code are used only if they are trusted, as those of packages are.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "package/digest.h"
#include "package/region_manifest.h"
#include "support/options.h"
#include "torch_bridge/package_builds.h"
#include "torch_bridge/record/trace.h"

namespace cxxinductor::torch_bridge {

class SavedForms {
 public:
  // bytes: a tensor as PackedForms::bytes makes it, from a file that may be anybody's. UserError: it is damaged.
  SavedForms(const at::Tensor& bytes, const Options& options);

  // Of forms of this region, those that fit the arguments.
  std::vector<CallPattern> patterns_for(const std::string& region, std::span<const c10::IValue> arguments) const;
  std::optional<PackagedPlan> find_plan(const model::CallGraph& calls) const;
  // A line for each form: its arguments and architectures; who signed them.
  std::string list() const;
  // Why the code is not used; "" where it is.
  const std::string& note() const { return note_; }

 private:
  std::shared_ptr<const OpenPackage> opened_;
  package_file::RegionManifest manifest_;
  std::string note_;
};

// What a region and its parts add their forms to.
class PackedForms {
 public:
  // archs: as those of PackageOptions.
  PackedForms(std::vector<std::string> archs, const package_file::SigningKey* key) : archs_(std::move(archs)), key_(key) {}

  // Unsupported where the calls cannot be packaged.
  void add(const std::string& region, const CallPattern& pattern, const model::CallGraph& calls, const Options& options);
  size_t size() const { return manifest_.forms.size(); }
  // An empty tensor where nothing was added.
  at::Tensor bytes() const;

 private:
  std::vector<std::string> archs_;
  const package_file::SigningKey* key_;
  package_file::RegionManifest manifest_;
  BuiltPlans plans_;
};

}  // namespace cxxinductor::torch_bridge
