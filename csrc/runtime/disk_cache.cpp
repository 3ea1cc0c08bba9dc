#include "runtime/disk_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <thread>
#include <utility>

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

// Whether the header is that of an entry of this build with a payload of this many bytes.
bool is_entry(const Header& header, const std::string& build_id, uint64_t payload_size) {
  return header.magic == kMagic && header.version == kFormatVersion && header.reserved == 0 && header.build == hash_text(build_id) &&
         header.payload_size <= kLargestPayload && header.payload_size == payload_size;
}
bool has_key(const Header& header, std::string_view key) { return header.key == hash_text(key) && header.key_size == key.size(); }

// Of an entry's file; none where it is damaged or of another build.
std::optional<Header> verified_header(std::string_view file, const std::string& build_id) {
  Header header;
  if (file.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, file.data(), sizeof header);
  const std::string_view payload = file.substr(sizeof header);
  if (!is_entry(header, build_id, payload.size()) || hash_text(payload) != header.payload) return std::nullopt;
  return header;
}

std::string entry_name(Hash key, const std::string& build_id) { return fmt::format("{:016x}{:016x}-{:016x}", key.high, key.low, hash_text(build_id).low); }

constexpr int64_t kRenewAfter = 3600;  // seconds: the order of use need not be finer, and reads should not write

void renew(int file, const struct stat& info) {
  if (::time(nullptr) - info.st_mtim.tv_sec > kRenewAfter) ::futimens(file, nullptr);
}

}  // namespace

std::string content_hash(std::string_view text) {
  const Hash h = hash_text(text);
  return fmt::format("{:016x}{:016x}", h.high, h.low);
}

CacheCounters& cache_counters() {
  static constinit CacheCounters counters;
  return counters;
}

DiskCache::DiskCache(std::string folder, std::string build_id, int64_t limit) : build_id_(std::move(build_id)), limit_(limit) {
  CacheFolder opened = open_cache_folder(folder);
  folder_ = std::move(opened.path);
  status_ = std::move(opened.refusal);
  if (usable()) prune_cache_folder(folder_, limit_);
}

std::string DiskCache::status() const {
  const ForkGuard guard(ForkLock::Leaf);
  return status_;
}

std::string DiskCache::name_of(std::string_view key) const { return entry_name(hash_text(key), build_id_); }
std::string DiskCache::path_of(std::string_view key) const { return join_path(folder_, name_of(key)); }

void DiskCache::set_remote(std::shared_ptr<const RemoteStore> remote) {
  const ForkGuard guard(ForkLock::Leaf);
  remote_.swap(remote);  // the old one is destroyed without the lock
}

std::shared_ptr<const RemoteStore> DiskCache::remote() const {
  const ForkGuard guard(ForkLock::Leaf);
  return remote_;
}

void DiskCache::note_use(std::string_view key) {
  if (!usable()) return;  // there is no file to carry elsewhere
  std::string name = name_of(key);
  const ForkGuard guard(ForkLock::Leaf);
  used_.insert(std::move(name));
}

std::set<std::string> DiskCache::take_used() {
  const ForkGuard guard(ForkLock::Leaf);
  return std::exchange(used_, {});
}

std::optional<std::string> DiskCache::read_file(const std::string& name) const {
  if (!usable() || !is_cache_entry(name)) return std::nullopt;
  const Descriptor file(::open(join_path(folder_, name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  struct stat info {};
  if (!file.open() || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  if (!read_exactly(file.get(), bytes.data(), bytes.size())) return std::nullopt;
  return bytes;
}

bool DiskCache::write_file(const std::string& name, std::string_view file) {
  const std::optional<Header> header = verified_header(file, build_id_);
  if (!usable() || !header || name != entry_name(header->key, build_id_)) return false;
  if (!write_entry(join_path(folder_, name), {&file, 1})) return false;
  count_written(static_cast<int64_t>(file.size()));
  return true;
}

// From the remote store, into the folder where that can be written.
std::optional<DiskCache::Bytes> DiskCache::fetch(std::string_view key) {
  const auto store = remote();
  if (!store) return std::nullopt;
  const std::string name = name_of(key);
  const std::optional<std::string> file = store->get(name);
  if (!file) return std::nullopt;
  const std::optional<Header> header = verified_header(*file, build_id_);
  if (!header || !has_key(*header, key)) return std::nullopt;
  write_file(name, *file);
  const auto payload = std::as_bytes(std::span(*file)).subspan(sizeof(Header));
  return Bytes(payload.begin(), payload.end());
}

std::optional<DiskCache::Bytes> DiskCache::get(std::string_view key) {
  std::optional<Bytes> found = read(key);
  if (!found) found = fetch(key);
  if (found) {
    ++cache_counters().hits;
    note_use(key);
  }
  return found;
}

DiskCache::Claim DiskCache::claim(std::string_view key, std::chrono::milliseconds patience, const InterruptCheck& interrupted) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds longest_pause(20);
  Claim claim{get(key), {}, false};
  if (claim.bytes || !usable()) return claim;
  const Clock::time_point end = Clock::now() + patience;
  const std::string path = path_of(key);
  for (std::chrono::milliseconds pause(1);; pause = std::min(2 * pause, longest_pause)) {
    claim.lock = EntryLock(path + EntryLock::suffix);
    claim.busy = claim.lock.state() == EntryLock::State::Busy;
    // Whoever had the lock may have made the entry.
    if (::access(path.c_str(), F_OK) == 0 && (claim.bytes = get(key))) return {std::move(claim.bytes), {}, false};
    if (!claim.busy || Clock::now() >= end) return claim;
    stop_if(interrupted);
    std::this_thread::sleep_for(pause);
  }
}

std::optional<DiskCache::Bytes> DiskCache::drop(const std::string& path) {
  ::unlink(path.c_str());
  ++dropped_;
  ++misses_;
  return std::nullopt;
}

std::optional<DiskCache::Bytes> DiskCache::read(std::string_view key) {
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
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != ::geteuid() || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0) return drop(path);
  if (!read_exactly(file.get(), &header, sizeof header)) return drop(path);
  if (!is_entry(header, build_id_, static_cast<uint64_t>(info.st_size) - sizeof header) || !has_key(header, key)) return drop(path);
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
  if (bytes.size() > kLargestPayload) return false;
  Header header;
  header.build = hash_text(build_id_);
  header.key = hash_text(key);
  header.payload = hash_text(bytes);
  header.payload_size = bytes.size();
  header.key_size = key.size();
  const std::array parts{std::string_view(reinterpret_cast<const char*>(&header), sizeof header), bytes};
  if (const auto store = remote()) store->put(name_of(key), std::string(parts[0]).append(bytes));
  if (!usable()) return false;
  if (write_entry(path_of(key), parts)) {
    ++stored_;
    ++cache_counters().writes;
    note_use(key);
    count_written(static_cast<int64_t>(sizeof header + bytes.size()));
    return true;
  }
  const int reason = errno;
  ++failed_writes_;
  const ForkGuard guard(ForkLock::Leaf);
  if (status_.empty()) status_ = fmt::format("cannot write to the cache folder '{}': {}", folder_, std::strerror(reason));
  return false;
}

DiskCache::Counters DiskCache::counters() const { return {hits_, misses_, dropped_, stored_, failed_writes_}; }

}  // namespace cxxinductor::runtime
