// Writes packages (cxxinductor/package.h).
#pragma once

#include <cxxinductor/package.h>

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "package/digest.h"
#include "readers/pt2/read_pt2.h"

namespace cxxinductor::api {

// The storage of a weight: bytes that live until the package is written.
using StorageOf = std::function<std::span<const std::byte>(const readers::WeightRef&)>;

// From a file; none for "". UserError that names it.
std::optional<package_file::SigningKey> read_signing_key(const std::string& path);

void write_package(readers::Program program, const StorageOf& storage_of, const std::string& path, const PackageOptions& package_options,
                   const Options& options);

}  // namespace cxxinductor::api
