#include "runtime/disk_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "runtime/cache_folder.h"
#include "support/files.h"
#include "support/fork_locks.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace cxxinductor::runtime {
namespace {

constexpr std::array<char, 8> kMagic = {'c', 'x', 'x', 'i', 'o', 'b', 'j', '\n'};
constexpr uint32_t kFormatVersion = 1;
constexpr uint64_t kLargestPayload = uint64_t{1} << 31;

struct Hash {
  uint64_t low, high;
  friend bool operator==(const Hash&, const Hash&) = default;
};

Hash hash_bytes(const void* data, size_t size) {
  const XXH128_hash_t h = XXH3_128bits(data, size);
  return {h.low64, h.high64};
}
Hash hash_text(std::string_view text) { return hash_bytes(text.data(), text.size()); }

// Fixed layout, no padding: written and compared as bytes. The cache never leaves the machine's architecture: the magic
// of another byte order would not verify.
struct Header {
  std::array<char, 8> magic = kMagic;
  uint32_t version = kFormatVersion;
  uint32_t reserved = 0;
  Hash build{};
  Hash key{};
  Hash payload{};
  uint64_t payload_size = 0;
  uint64_t key_size = 0;
};
static_assert(sizeof(Header) == 80);

constexpr int64_t kRenewAfter = 3600;  // seconds: the order of use need not be finer, and reads should not write

void renew(int file, const struct stat& info) {
  if (::time(nullptr) - info.st_mtim.tv_sec > kRenewAfter) ::futimens(file, nullptr);
}

}  // namespace

std::string content_hash(std::string_view text) {
  const Hash h = hash_text(text);
  return fmt::format("{:016x}{:016x}", h.high, h.low);
}

DiskCache::DiskCache(std::string folder, std::string build_id, int64_t limit)
    : build_id_(std::move(build_id)), limit_(limit) {
  CacheFolder opened = open_cache_folder(folder);
  folder_ = std::move(opened.path);
  status_ = std::move(opened.refusal);
  if (usable()) prune_cache_folder(folder_, limit_);
}

std::string DiskCache::status() const {
  const ForkGuard guard(ForkLock::Leaf);
  return status_;
}

std::string DiskCache::path_of(std::string_view key) const {
  return fmt::format("{}/{}-{:016x}", folder_, content_hash(key), hash_text(build_id_).low);
}

std::optional<DiskCache::Bytes> DiskCache::drop(const std::string& path) {
  ::unlink(path.c_str());
  ++dropped_;
  ++misses_;
  return std::nullopt;
}

std::optional<DiskCache::Bytes> DiskCache::get(std::string_view key) {
  if (!usable()) {
    ++misses_;
    return std::nullopt;
  }
  const std::string path = path_of(key);
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!file.open()) {
    if (errno == ELOOP || errno == ENXIO) return drop(path);  // a link, a socket or a device
    ++misses_;
    return std::nullopt;
  }
  struct stat info {};
  Header header;
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != ::geteuid() ||
      (info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return drop(path);
  if (!read_exactly(file.get(), &header, sizeof header)) return drop(path);
  const bool ours = header.magic == kMagic && header.version == kFormatVersion && header.reserved == 0 &&
                    header.build == hash_text(build_id_) && header.key == hash_text(key) &&
                    header.key_size == key.size() && header.payload_size <= kLargestPayload &&
                    static_cast<uint64_t>(info.st_size) == sizeof header + header.payload_size;
  if (!ours) return drop(path);
  Bytes bytes(header.payload_size);
  if (!read_exactly(file.get(), bytes.data(), bytes.size())) return drop(path);
  if (hash_bytes(bytes.data(), bytes.size()) != header.payload) return drop(path);
  renew(file.get(), info);
  ++hits_;
  return bytes;
}

void DiskCache::count_written(int64_t bytes) {
  if (unseen_growth_.fetch_add(bytes) + bytes <= limit_ / 16) return;
  unseen_growth_ = 0;
  // Room for what comes before the next look, here and in a few other processes.
  prune_cache_folder(folder_, limit_ - limit_ / 8);
}

bool DiskCache::write_entry(const std::string& path, std::span<const std::string_view> parts) {
  std::string temporary = path + ".XXXXXX.part";
  Descriptor file(::mkostemps(temporary.data(), 5, O_CLOEXEC));
  if (!file.open()) return false;
  bool written = true;
  for (std::string_view part : parts) written = written && write_all(file.get(), part);
  if (written && file.close() && ::rename(temporary.c_str(), path.c_str()) == 0) return true;
  const int reason = errno;
  ::unlink(temporary.c_str());
  errno = reason;
  return false;
}

bool DiskCache::put(std::string_view key, std::string_view bytes) {
  if (!usable() || bytes.size() > kLargestPayload) return false;
  Header header;
  header.build = hash_text(build_id_);
  header.key = hash_text(key);
  header.payload = hash_text(bytes);
  header.payload_size = bytes.size();
  header.key_size = key.size();
  const std::array parts{std::string_view(reinterpret_cast<const char*>(&header), sizeof header), bytes};
  if (write_entry(path_of(key), parts)) {
    ++stored_;
    count_written(static_cast<int64_t>(sizeof header + bytes.size()));
    return true;
  }
  const int reason = errno;
  ++failed_writes_;
  const ForkGuard guard(ForkLock::Leaf);
  if (status_.empty())
    status_ = fmt::format("cannot write to the cache folder '{}': {}", folder_, std::strerror(reason));
  return false;
}

DiskCache::Counters DiskCache::counters() const { return {hits_, misses_, dropped_, stored_, failed_writes_}; }

}  // namespace cxxinductor::runtime
