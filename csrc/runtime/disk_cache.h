// Compiled code on disk, found by the content of what it was compiled from.
//
// An entry is a file named by the XXH3-128 hash of the caller's key text. It starts with a header (magic, format
// version, build id, key, payload size and hash) that is verified on every read: an entry that is damaged, truncated,
// of another version or of another key is removed and counts as a miss. Writers make a temporary file and rename it, so
// that any number of processes may share a folder and a killed writer leaves nothing that is read.
//
// The folder is created with mode 0700 and refused when it is not ours or others may write to it: its contents are
// executed. A cache that cannot be used never fails a compile: status() says why, to whoever wants to report it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cxxinductor::runtime {

class DiskCache {
 public:
  using Bytes = std::vector<std::byte>;

  // folder: absolute path; empty: a cache that never hits. build_id: identifies this library's build.
  DiskCache(std::string folder, std::string build_id);

  std::optional<Bytes> get(std::string_view key);
  // False when nothing was stored (full, read-only, no folder).
  bool put(std::string_view key, std::string_view bytes);

  bool usable() const { return usable_; }
  // Empty when all is well; otherwise why the folder is not used, or why the first failed put failed.
  std::string status() const;
  struct Counters {
    int64_t hits = 0, misses = 0, dropped = 0, stored = 0, failed_writes = 0;
  };
  Counters counters() const;
  // The file that holds, or would hold, this key.
  std::string path_of(std::string_view key) const;

 private:
  std::optional<Bytes> drop(const std::string& path);
  bool write_entry(const std::string& path, std::span<const std::string_view> parts);

  std::string folder_;
  std::string build_id_;
  bool usable_ = false;
  mutable std::mutex mutex_;
  std::string status_;  // guarded by mutex_
  std::atomic<int64_t> hits_ = 0, misses_ = 0, dropped_ = 0, stored_ = 0, failed_writes_ = 0;
};

// 32 hexadecimal digits of XXH3-128.
std::string content_hash(std::string_view text);

}  // namespace cxxinductor::runtime
