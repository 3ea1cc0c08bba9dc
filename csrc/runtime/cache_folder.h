// The folder of the disk cache: whether what lies in it may be executed, and how much of it there is.
#pragma once

#include <cstdint>
#include <string>

namespace cxxinductor::runtime {

// Where a cache may live, or why not.
struct CacheFolder {
  std::string path;     // without links; empty where refused
  std::string refusal;  // a sentence for the user; empty when all is well
};
// Creates the folder (mode 0700) if need be. Refused when it is not the user's, or when somebody else could replace it or
// what is in it: each folder on its path must belong to the user or to root, and be writable for nobody else unless it is
// sticky (/tmp).
CacheFolder open_cache_folder(const std::string& path);

// Whether a file of this name is an entry of a cache, of whatever build and version. Other files are left alone.
bool is_cache_entry(const std::string& name);

// Removes the files of writers that were killed, entries that were not used for 90 days, and those used longest ago until
// all together take at most `limit` bytes. Any number of processes may do so at once. Returns the bytes that are left.
int64_t prune_cache_folder(const std::string& path, int64_t limit);

}  // namespace cxxinductor::runtime
