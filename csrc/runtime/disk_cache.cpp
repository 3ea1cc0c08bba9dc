#include "runtime/disk_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

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

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  bool open() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }
  bool read_exactly(void* to, size_t size) const {
    auto* out = static_cast<char*>(to);
    while (size > 0) {
      const ssize_t n = ::read(descriptor_, out, size);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      out += n;
      size -= static_cast<size_t>(n);
    }
    return true;
  }
  bool write_all(const void* from, size_t size) const {
    const auto* in = static_cast<const char*>(from);
    while (size > 0) {
      const ssize_t n = ::write(descriptor_, in, size);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      in += n;
      size -= static_cast<size_t>(n);
    }
    return true;
  }
  bool close() {
    const int result = ::close(descriptor_);
    descriptor_ = -1;
    return result == 0;
  }

 private:
  int descriptor_;
};

bool make_folders(const std::string& path) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) return false;
    if (slash == std::string::npos) return true;
  }
}

// Why the folder cannot be trusted or used; empty when it can.
std::string refusal(const std::string& folder) {
  if (folder.empty()) return "no cache folder was given";
  if (folder[0] != '/') return fmt::format("the cache folder '{}' is not an absolute path", folder);
  struct stat info {};
  if (::stat(folder.c_str(), &info) != 0) {
    if (!make_folders(folder) || ::stat(folder.c_str(), &info) != 0) {
      return fmt::format("the cache folder '{}' cannot be created: {}", folder, std::strerror(errno));
    }
  }
  if (!S_ISDIR(info.st_mode)) return fmt::format("'{}' is not a folder", folder);
  if (info.st_uid != ::geteuid()) {
    return fmt::format("the cache folder '{}' belongs to user {}, not to user {}: its contents would be executed",
                       folder, info.st_uid, ::geteuid());
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return fmt::format("other users may write to the cache folder '{}': its contents would be executed (chmod 700)",
                       folder);
  }
  return {};
}

constexpr std::string_view kTemporarySuffix = ".part";

// Files of writers that were killed. A writer takes milliseconds: what is an hour old has none.
void remove_abandoned(const std::string& folder) {
  namespace fs = std::filesystem;
  const auto oldest = fs::file_time_type::clock::now() - std::chrono::hours(1);
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (!entry->path().native().ends_with(kTemporarySuffix)) continue;
    std::error_code gone;  // another process does the same
    const auto written = entry->last_write_time(gone);
    if (!gone && written < oldest) fs::remove(entry->path(), gone);
  }
}

}  // namespace

std::string content_hash(std::string_view text) {
  const Hash h = hash_text(text);
  return fmt::format("{:016x}{:016x}", h.high, h.low);
}

DiskCache::DiskCache(std::string folder, std::string build_id)
    : folder_(std::move(folder)), build_id_(std::move(build_id)), status_(refusal(folder_)) {
  usable_ = status_.empty();
  if (usable_) remove_abandoned(folder_);
}

std::string DiskCache::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

std::string DiskCache::path_of(std::string_view key) const { return folder_ + "/" + content_hash(key); }

std::optional<DiskCache::Bytes> DiskCache::drop(const std::string& path) {
  ::unlink(path.c_str());
  ++dropped_;
  ++misses_;
  return std::nullopt;
}

std::optional<DiskCache::Bytes> DiskCache::get(std::string_view key) {
  if (!usable_) {
    ++misses_;
    return std::nullopt;
  }
  const std::string path = path_of(key);
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.open()) {
    ++misses_;
    return std::nullopt;
  }
  struct stat info {};
  Header header;
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != ::geteuid()) return drop(path);
  if (!file.read_exactly(&header, sizeof header)) return drop(path);
  const bool ours = header.magic == kMagic && header.version == kFormatVersion && header.reserved == 0 &&
                    header.build == hash_text(build_id_) && header.key == hash_text(key) &&
                    header.key_size == key.size() && header.payload_size <= kLargestPayload &&
                    static_cast<uint64_t>(info.st_size) == sizeof header + header.payload_size;
  if (!ours) return drop(path);
  Bytes bytes(header.payload_size);
  if (!file.read_exactly(bytes.data(), bytes.size())) return drop(path);
  if (hash_bytes(bytes.data(), bytes.size()) != header.payload) return drop(path);
  ++hits_;
  return bytes;
}

bool DiskCache::write_entry(const std::string& path, std::span<const std::string_view> parts) {
  std::string temporary = path + ".XXXXXX" + std::string(kTemporarySuffix);
  File file(::mkostemps(temporary.data(), static_cast<int>(kTemporarySuffix.size()), O_CLOEXEC));
  if (!file.open()) return false;
  bool written = true;
  for (std::string_view part : parts) written = written && file.write_all(part.data(), part.size());
  if (written && file.close() && ::rename(temporary.c_str(), path.c_str()) == 0) return true;
  const int reason = errno;
  ::unlink(temporary.c_str());
  errno = reason;
  return false;
}

bool DiskCache::put(std::string_view key, std::string_view bytes) {
  if (!usable_ || bytes.size() > kLargestPayload) return false;
  Header header;
  header.build = hash_text(build_id_);
  header.key = hash_text(key);
  header.payload = hash_text(bytes);
  header.payload_size = bytes.size();
  header.key_size = key.size();
  const std::array parts{std::string_view(reinterpret_cast<const char*>(&header), sizeof header), bytes};
  if (write_entry(path_of(key), parts)) {
    ++stored_;
    return true;
  }
  const int reason = errno;
  ++failed_writes_;
  const std::lock_guard lock(mutex_);
  if (status_.empty())
    status_ = fmt::format("cannot write to the cache folder '{}': {}", folder_, std::strerror(reason));
  return false;
}

DiskCache::Counters DiskCache::counters() const { return {hits_, misses_, dropped_, stored_, failed_writes_}; }

}  // namespace cxxinductor::runtime
