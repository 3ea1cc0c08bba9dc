// Machine code that was compiled before and is trusted: what a package holds. Providers of kernels look for it before the cache
// on disk, and need no compiler for what they find.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

namespace cxxinductor::runtime {

// By content_hash (disk_cache.h) of what the code is made of: source, architecture and flags, but not the compiler. Thread-safe;
// empty: there is none.
using PackagedCode = std::function<std::optional<std::string>(const std::string& hash)>;

// What is put into a package.
using CodeByHash = std::map<std::string, std::string>;

}  // namespace cxxinductor::runtime
