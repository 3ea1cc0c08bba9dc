// The JSON of a build, which manifests of models and of regions share.
#pragma once

#include "package/manifest.h"
#include "readers/pt2/json.h"

namespace cxxinductor::package_file {

readers::Json to_json(const Build& build);
Build read_build(const readers::Field& field);  // UserError that names the field

}  // namespace cxxinductor::package_file
