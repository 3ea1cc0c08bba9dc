// What a model is made of, whatever file it came in: a .pt2 archive or a package.
#pragma once

#include <cxxinductor/options.h>

#include <optional>
#include <string>

#include "api/mapped_file.h"
#include "readers/pt2/read_pt2.h"
#include "torch_bridge/package_builds.h"

namespace cxxinductor::api {

struct ModelSource {
  readers::Program program;
  Bytes bytes;      // where the program's byte offsets point
  Options options;  // the caller's; those that shape kernels are a package's own
  // Of a package that is trusted, and has code for this machine.
  std::optional<torch_bridge::PackagedPlans> plans;
  std::string note;  // why the code of a package is not used
};

// folder: of the file, for weights beside it; "": they are not looked for. Checks the process and the options, and opens what models on a
// GPU need of LibTorch when run_here says that the model is going to run.
ModelSource read_model(Bytes file, const std::string& folder, const Options& options, bool run_here = true);
ModelSource read_model(const std::string& path, const Options& options, bool run_here = true);

}  // namespace cxxinductor::api
