#include "runtime/cache_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <string_view>
#include <vector>

#include "runtime/entry_lock.h"
#include "support/files.h"

namespace cxxinductor::runtime {
namespace {

constexpr int64_t kHour = 3600;
constexpr int64_t kUnusedTooLong = 90 * 24 * kHour;
constexpr size_t kHashDigits = 32;

// Why another user could change the contents of this folder; empty if none can.
std::string distrust(const std::string& folder, bool own) {
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0) return fmt::format("'{}' cannot be read: {}", folder, std::strerror(errno));
  if (!S_ISDIR(info.st_mode)) return fmt::format("'{}' is not a folder", folder);
  if (info.st_uid != ::geteuid() && (own || info.st_uid != 0))
    return fmt::format("the folder '{}' belongs to user {}, not to user {}: the cache's contents would be executed", folder, info.st_uid, ::geteuid());
  const bool others_write = (info.st_mode & (S_IWGRP | S_IWOTH)) != 0, sticky = (info.st_mode & S_ISVTX) != 0;
  if (others_write && (own || !sticky))
    return fmt::format("other users may write to the folder '{}': the cache's contents would be executed (chmod {})", folder,
                       own ? "700" : "go-w, or set cache_dir");
  return {};
}

struct Entry {
  std::string path;
  int64_t bytes, used;
};

}  // namespace

CacheFolder open_cache_folder(const std::string& path) {
  if (path.empty()) return {{}, "no cache folder was given"};
  if (path[0] != '/') return {{}, fmt::format("the cache folder '{}' is not an absolute path", path)};
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && !S_ISDIR(info.st_mode)) return {{}, fmt::format("'{}' is not a folder", path)};
  if (!make_folders(path)) return {{}, fmt::format("the cache folder '{}' cannot be created: {}", path, std::strerror(errno))};
  // All later accesses use the resolved path: links on the way to it have no say any more.
  std::string resolved = resolved_path(path);
  if (resolved.empty()) return {{}, fmt::format("'{}' cannot be read: {}", path, std::strerror(errno))};
  if (std::string reason = distrust(resolved, true); !reason.empty()) return {{}, std::move(reason)};
  for (std::string above = resolved; above != "/";) {
    above = parent_path(above);
    if (std::string reason = distrust(above, false); !reason.empty()) return {{}, std::move(reason)};
  }
  return {std::move(resolved), {}};
}

// The hash of the key, then more that is in hexadecimal digits and dashes.
bool is_cache_entry(const std::string& name) { return name.size() >= kHashDigits && name.find_first_not_of("0123456789abcdef-") == std::string::npos; }

int64_t prune_cache_folder(const std::string& path, int64_t limit) {
  constexpr std::string_view temporary = ".part";
  const int64_t now = ::time(nullptr);
  std::vector<Entry> entries;
  int64_t total = 0;
  for (const std::string& name : file_names(path)) {
    const bool abandoned = name.ends_with(temporary) || name.ends_with(EntryLock::suffix);
    if (!abandoned && !is_cache_entry(name)) continue;
    Entry entry{join_path(path, name), 0, 0};
    struct stat info {};
    if (::lstat(entry.path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    entry.bytes = info.st_size;
    entry.used = info.st_mtim.tv_sec;
    // A writer takes milliseconds, a holder of a lock minutes: what is an hour old has none.
    if (now - entry.used > (abandoned ? kHour : kUnusedTooLong)) {
      ::unlink(entry.path.c_str());
      continue;
    }
    total += entry.bytes;
    if (!abandoned) entries.push_back(std::move(entry));
  }
  if (total <= limit) return total;
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (total <= limit) break;
    ::unlink(entry.path.c_str());
    total -= entry.bytes;
  }
  return total;
}

}  // namespace cxxinductor::runtime
