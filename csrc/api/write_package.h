// Writes packages (cxxinductor/package.h).
#pragma once

#include <cxxinductor/package.h>

#include <functional>
#include <span>
#include <string>

#include "readers/pt2/read_pt2.h"

namespace cxxinductor::api {

// The storage of a weight: bytes that live until the package is written.
using StorageOf = std::function<std::span<const std::byte>(const readers::WeightRef&)>;

void write_package(readers::Program program, const StorageOf& storage_of, const std::string& path, const PackageOptions& package_options,
                   const Options& options);

}  // namespace cxxinductor::api
