// Stores compiled code on disk, keyed by the content of its source.
//
// An entry is a file named by hashes of the caller's key text and of the build: builds that share a folder do not see one
// another's entries. It starts with a header (magic, format version, build id, key, payload size and hash) that is verified
// on every read: an entry that is damaged, truncated, of another version or of another key is removed and counts as a miss,
// and so is whatever else lies under its name (a link, a pipe), without being followed or waited for. Writers make a temporary
// file and rename it, so that any number of processes may share a folder and a killed writer leaves nothing that is read.
//
// A read renews an entry's time of change. When a folder outgrows its limit, the entries used longest ago are removed; each
// process looks at the whole folder once it has written a 16th of the limit.
//
// Of several processes that need an entry one makes it and the others wait (claim).
//
// A store elsewhere (RemoteStore) may be asked for entries that the folder lacks, and gets those that are written. What it gives is verified as
// files are, which finds damage, not forgery: whoever sets it answers for what it holds, as for the folder.
//
// A folder that others could write to is refused (cache_folder.h): its contents are executed. A cache that cannot be used never
// fails a compile; status() gives the reason.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/entry_lock.h"
#include "support/interrupt.h"

namespace cxxinductor::runtime {

// Functions of any thread, which do not throw. name: of an entry's file; file: all of it.
struct RemoteStore {
  std::function<std::optional<std::string>(const std::string& name)> get;
  std::function<void(const std::string& name, std::string_view file)> put;
};

// Of all caches of the process, which a user asks for.
struct CacheCounters {
  std::atomic<int64_t> hits = 0, writes = 0;
};
CacheCounters& cache_counters();

class DiskCache {
 public:
  using Bytes = std::vector<std::byte>;

  static constexpr int64_t kDefaultLimit = int64_t{4} << 30;
  // folder: absolute path; empty: a cache that never hits. build_id: identifies this library's build. limit: bytes of all
  // entries of the folder together, whatever build they are of.
  DiskCache(std::string folder, std::string build_id, int64_t limit = kDefaultLimit);

  std::optional<Bytes> get(std::string_view key);

  // An entry, or the right to make it. Who gets no bytes makes the entry, puts it, and lets go of the lock.
  struct Claim {
    std::optional<Bytes> bytes;
    EntryLock lock;
    bool busy = false;  // another was making the entry when the patience ended
  };
  static constexpr std::chrono::milliseconds kPatience = std::chrono::minutes(1);  // a kernel takes seconds
  // Waits for what another makes, at most so long. Interrupted when the check says so.
  Claim claim(std::string_view key, std::chrono::milliseconds patience, const InterruptCheck& interrupted = {});
  // False when nothing was stored (full, read-only, no folder).
  bool put(std::string_view key, std::string_view bytes);

  // Null: none.
  void set_remote(std::shared_ptr<const RemoteStore> remote);
  // Names of the entries that were read or written since the last call.
  std::set<std::string> take_used();
  // An entry's file as it lies in the folder.
  std::optional<std::string> read_file(const std::string& name) const;
  // Stores what read_file gave in another process or on another host. False where it is not a whole entry of this build.
  bool write_file(const std::string& name, std::string_view file);

  bool usable() const { return !folder_.empty(); }
  const std::string& folder() const { return folder_; }  // without links; empty when it is not usable
  // Empty when all is well; otherwise why the folder is not used, or why the first failed put failed.
  std::string status() const;
  struct Counters {
    int64_t hits = 0, misses = 0, dropped = 0, stored = 0, failed_writes = 0;
  };
  Counters counters() const;
  // The file that holds, or would hold, this key.
  std::string path_of(std::string_view key) const;

 private:
  std::string name_of(std::string_view key) const;
  std::optional<Bytes> read(std::string_view key);
  std::optional<Bytes> fetch(std::string_view key);
  std::shared_ptr<const RemoteStore> remote() const;
  void note_use(std::string_view key);
  std::optional<Bytes> drop(const std::string& path);
  void count_written(int64_t bytes);
  bool write_entry(const std::string& path, std::span<const std::string_view> parts);

  std::string folder_;
  std::string build_id_;
  int64_t limit_;
  std::string status_;                         // guarded by ForkLock::Leaf
  std::set<std::string> used_;                 // the same
  std::shared_ptr<const RemoteStore> remote_;  // the same
  std::atomic<int64_t> unseen_growth_ = 0;     // bytes written since the folder was looked at
  std::atomic<int64_t> hits_ = 0, misses_ = 0, dropped_ = 0, stored_ = 0, failed_writes_ = 0;
};

// 32 hexadecimal digits of XXH3-128.
std::string content_hash(std::string_view text);

}  // namespace cxxinductor::runtime
