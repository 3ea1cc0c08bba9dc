// The folder of the disk cache: whether its files may be executed, and its size.
#pragma once

#include <cstdint>
#include <string>

namespace cxxinductor::runtime {

// Where a cache may live, or why not.
struct CacheFolder {
  std::string path;     // without links; empty where refused
  std::string refusal;  // a sentence for the user; empty when all is well
};
// Creates the folder (mode 0700) if needed. Refuses it if it is not the user's, or if another user could replace it or its
// files: each folder on its path must belong to the user or to root, and must not be writable for others unless it is sticky
// (/tmp).
CacheFolder open_cache_folder(const std::string& path);

// Whether a file of this name is an entry of a cache, of whatever build and version. Other files are left alone.
bool is_cache_entry(const std::string& name);

// Removes the files of writers and of holders of locks that were killed, entries that were not used for 90 days, and those used longest ago until
// all together take at most `limit` bytes. Any number of processes may do so at once. Returns the bytes that are left.
int64_t prune_cache_folder(const std::string& path, int64_t limit);

}  // namespace cxxinductor::runtime
