#include "runtime/disk_cache.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <functional>
#include <iterator>

#include "unit/catch.h"
#include "unit/runtime/temporary_folder.h"

using namespace cxxinductor::runtime;

namespace {

std::string text_of(const std::optional<DiskCache::Bytes>& bytes) {
  if (!bytes) return "<none>";
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}
std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << bytes;
}
size_t file_count(const std::string& folder) {
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++files;
  return files;
}

// The number that `body` returns in a process of its own: what it does to its limits and rights ends with it.
int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Root without capabilities is bound by the permissions of files like everybody.
void drop_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> none{};
  ::syscall(SYS_capset, &header, none.data());
}

}  // namespace

TEST_CASE("an entry is found by its key and survives the process's cache object") {
  TemporaryFolder folder;
  const std::string inside = folder.path() + "/a/b";
  {
    DiskCache cache(inside, "build 1");
    REQUIRE(cache.status().empty());
    CHECK(text_of(cache.get("k")) == "<none>");
    CHECK(cache.put("k", "value"));
    CHECK(cache.put("empty", ""));
  }
  struct stat info {};
  REQUIRE(::stat(inside.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0700);
  DiskCache cache(inside, "build 1");
  CHECK(text_of(cache.get("k")) == "value");
  CHECK(text_of(cache.get("empty")).empty());
  CHECK(cache.put("k", "newer"));
  CHECK(text_of(cache.get("k")) == "newer");
  CHECK(cache.counters().hits == 3);
}

TEST_CASE("every damaged byte, every truncation and every extension of an entry is a miss that drops it") {
  TemporaryFolder folder;
  DiskCache cache(folder.path(), "build");
  REQUIRE(cache.put("key", "some payload of a few bytes"));
  const std::string path = cache.path_of("key");
  const std::string good = read_file(path);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    write_file(path, bad);
    INFO("byte " << i);
    REQUIRE_FALSE(cache.get("key"));
    REQUIRE(::access(path.c_str(), F_OK) != 0);
  }
  for (size_t length = 0; length < good.size(); ++length) {
    write_file(path, good.substr(0, length));
    INFO("length " << length);
    REQUIRE_FALSE(cache.get("key"));
  }
  write_file(path, good + "x");
  CHECK_FALSE(cache.get("key"));
  write_file(path, good);
  CHECK(cache.get("key"));
}

TEST_CASE("an entry of another build, or stored under another key's name, is a miss") {
  TemporaryFolder folder;
  DiskCache old(folder.path(), "build 1");
  REQUIRE(old.put("key", "value"));
  DiskCache now(folder.path(), "build 2");
  CHECK_FALSE(now.get("key"));
  CHECK(now.counters().dropped == 1);
  REQUIRE(now.put("a", "value of a"));
  write_file(now.path_of("b"), read_file(now.path_of("a")));
  CHECK_FALSE(now.get("b"));
}

TEST_CASE("a folder that cannot be used leaves a cache that never hits and says why") {
  TemporaryFolder folder;
  SECTION("none given") {
    DiskCache cache("", "b");
    CHECK_FALSE(cache.put("k", "v"));
    CHECK_FALSE(cache.get("k"));
    CHECK(cache.status() == "no cache folder was given");
  }
  SECTION("relative") { CHECK(DiskCache("cache", "b").status().find("not an absolute path") != std::string::npos); }
  SECTION("a file") {
    write_file(folder.path() + "/file", "");
    CHECK(DiskCache(folder.path() + "/file", "b").status().find("not a folder") != std::string::npos);
    CHECK(DiskCache(folder.path() + "/file/x", "b").status().find("cannot be created") != std::string::npos);
  }
  SECTION("others may write") {
    ::chmod(folder.path().c_str(), 0777);
    DiskCache cache(folder.path(), "b");
    CHECK(cache.status().find("other users may write") != std::string::npos);
    CHECK_FALSE(cache.put("k", "v"));
  }
  SECTION("of another user") {
    if (::geteuid() == 0) {
      REQUIRE(::chown(folder.path().c_str(), 12345, 12345) == 0);
      CHECK(DiskCache(folder.path(), "b").status().find("belongs to user 12345") != std::string::npos);
      REQUIRE(::chown(folder.path().c_str(), 0, 0) == 0);
    }
  }
}

TEST_CASE("a folder that cannot be written to still serves what it holds") {
  TemporaryFolder folder;
  DiskCache cache(folder.path(), "b");
  REQUIRE(cache.put("k", "v"));
  // A folder in the place of the new entry makes the rename fail for every user, root included.
  const std::string blocked = cache.path_of("blocked");
  REQUIRE(::mkdir(blocked.c_str(), 0700) == 0);
  CHECK_FALSE(cache.put("blocked", "w"));
  CHECK(cache.counters().failed_writes == 1);
  CHECK(text_of(cache.get("k")) == "v");
  CHECK(file_count(folder.path()) == 2);  // no temporary file is left
  CHECK(cache.status().find("cannot write to the cache folder '" + folder.path() + "'") != std::string::npos);
}

TEST_CASE("a read-only folder serves what it holds and says why nothing is added") {
  TemporaryFolder folder;
  REQUIRE(DiskCache(folder.path(), "b").put("k", "v"));
  REQUIRE(::chmod(folder.path().c_str(), 0500) == 0);
  CHECK(in_child([&] {
          drop_capabilities();
          DiskCache cache(folder.path(), "b");
          if (!cache.status().empty() || text_of(cache.get("k")) != "v") return 1;
          if (cache.put("new", "w") || cache.put("k", "w")) return 2;
          if (cache.status().find("Permission denied") == std::string::npos) return 3;
          if (text_of(cache.get("k")) != "v") return 4;
          // A damaged entry that cannot be removed stays a miss.
          DiskCache other_build(folder.path(), "c");
          return other_build.get("k") || other_build.get("k") ? 5 : 0;
        }) == 0);
}

TEST_CASE("a disk that is full in the middle of an entry leaves nothing behind") {
  TemporaryFolder folder;
  CHECK(in_child([&] {
          ::signal(SIGXFSZ, SIG_IGN);
          const rlimit small{1000, RLIM_INFINITY};
          DiskCache cache(folder.path(), "b");
          ::setrlimit(RLIMIT_FSIZE, &small);
          if (cache.put("large", std::string(5000, 'x')) || cache.get("large")) return 1;
          if (cache.counters().failed_writes != 1 || file_count(folder.path()) != 0) return 2;
          if (cache.status().find("File too large") == std::string::npos) return 3;
          return cache.put("small", "fits") && text_of(cache.get("small")) == "fits" ? 0 : 4;
        }) == 0);
}

TEST_CASE("what killed writers left is removed after an hour, and never in the way") {
  TemporaryFolder folder;
  std::string path;
  {
    DiskCache cache(folder.path(), "b");
    path = cache.path_of("k");
  }
  // The name that a first writer with this process number would choose.
  write_file(path + "." + std::to_string(::getpid()) + ".0.part", "half of");
  write_file(path + ".old.part", "half of");
  const std::array<timespec, 2> long_ago{timespec{1000, 0}, timespec{1000, 0}};
  REQUIRE(::utimensat(AT_FDCWD, (path + ".old.part").c_str(), long_ago.data(), 0) == 0);
  DiskCache cache(folder.path(), "b");
  CHECK(file_count(folder.path()) == 1);
  CHECK(cache.put("k", "v"));
  CHECK(text_of(cache.get("k")) == "v");
}

TEST_CASE("eight processes write and read the same keys; a killed one leaves nothing that is read") {
  TemporaryFolder folder;
  const std::string payload(200000, 'p');
  const itimerval killing_time{{}, {0, 20000}};
  std::vector<pid_t> children;
  for (int c = 0; c < 8; ++c) {
    const pid_t child = ::fork();
    if (child == 0) {
      DiskCache cache(folder.path(), "b");
      // The last one dies somewhere in its writing, which goes on until then.
      if (c == 7) ::setitimer(ITIMER_REAL, &killing_time, nullptr), ::signal(SIGALRM, [](int) { ::raise(SIGKILL); });
      for (int round = 0; round < 40 || c == 7; ++round) {
        const std::string key = "key " + std::to_string(round % 5);
        if (const auto bytes = cache.get(key)) {
          if (text_of(bytes) != key + payload) ::_exit(1);
        }
        cache.put(key, key + payload);
      }
      ::_exit(cache.counters().dropped == 0 ? 0 : 2);
    }
    children.push_back(child);
  }
  for (int c = 0; c < 8; ++c) {
    int status = 0;
    ::waitpid(children[static_cast<size_t>(c)], &status, 0);
    if (c < 7)
      CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
    else
      CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
  }
  // A writer that died half-way: its temporary file is no entry.
  DiskCache cache(folder.path(), "b");
  write_file(cache.path_of("half") + ".1.0.part", "half of");
  CHECK_FALSE(cache.get("half"));
  for (int k = 0; k < 5; ++k) {
    const std::string key = "key " + std::to_string(k);
    CHECK(text_of(cache.get(key)) == key + payload);
  }
}

TEST_CASE("the content hash depends on every byte") {
  CHECK(content_hash("a") != content_hash("b"));
  CHECK(content_hash("").size() == 32);
}
