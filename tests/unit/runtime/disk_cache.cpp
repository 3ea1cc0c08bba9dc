#include "runtime/disk_cache.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <functional>
#include <iterator>

#include "unit/catch.h"
#include "unit/runtime/child_process.h"
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

TEST_CASE("builds that share a folder keep their own entries; an entry under another key's name is a miss") {
  TemporaryFolder folder;
  DiskCache old(folder.path(), "build 1"), now(folder.path(), "build 2");
  REQUIRE(old.put("key", "value"));
  CHECK_FALSE(now.get("key"));
  CHECK(now.counters().dropped == 0);
  REQUIRE(now.put("key", "newer"));
  CHECK(text_of(old.get("key")) == "value");
  CHECK(text_of(now.get("key")) == "newer");
  // Neither is taken for the other's, whatever its name says.
  write_file(now.path_of("key"), read_file(old.path_of("key")));
  CHECK_FALSE(now.get("key"));
  REQUIRE(now.put("a", "value of a"));
  write_file(now.path_of("b"), read_file(now.path_of("a")));
  CHECK_FALSE(now.get("b"));
}

TEST_CASE("what lies under an entry's name and is no file of ours is neither followed nor waited for") {
  TemporaryFolder folder, elsewhere;
  DiskCache cache(folder.path(), "b");
  REQUIRE(cache.put("k", "v"));
  const std::string path = cache.path_of("k"), copy = elsewhere.path() + "/copy";
  write_file(copy, read_file(path));
  ::unlink(path.c_str());
  ::alarm(20);  // opening a pipe waits for a writer
  SECTION("a pipe") { REQUIRE(::mkfifo(path.c_str(), 0600) == 0); }
  SECTION("a link to a good entry") { REQUIRE(::symlink(copy.c_str(), path.c_str()) == 0); }
  SECTION("a file that others may write to") {
    write_file(path, read_file(copy));
    REQUIRE(::chmod(path.c_str(), 0666) == 0);
  }
  SECTION("a device") {
    if (::mknod(path.c_str(), S_IFCHR | 0600, makedev(1, 5)) != 0) write_file(path, "no device may be made here");
  }
  CHECK_FALSE(cache.get("k"));
  CHECK(::access(path.c_str(), F_OK) != 0);
  CHECK(cache.put("k", "v"));
  CHECK(text_of(cache.get("k")) == "v");
  ::alarm(0);
}

TEST_CASE("entries used longest ago go when the folder outgrows its limit; other files stay") {
  TemporaryFolder folder;
  constexpr int64_t limit = 160'000;
  const std::string payload(10'000, 'p');
  const auto set_age = [](const std::string& path, int64_t seconds) {
    const std::array<timespec, 2> times{timespec{::time(nullptr) - seconds, 0}, timespec{::time(nullptr) - seconds, 0}};
    REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times.data(), 0) == 0);
  };
  DiskCache cache(folder.path(), "b", limit), other_build(folder.path(), "old", limit);
  write_file(folder.path() + "/notes.txt", std::string(limit, 'n'));
  REQUIRE(other_build.put("never used again", payload));
  set_age(other_build.path_of("never used again"), 80'000);
  for (int i = 0; i < 11; ++i) {
    const std::string key = "key " + std::to_string(i);
    REQUIRE(cache.put(key, payload));
    set_age(cache.path_of(key), 50'000 - i * 1000);
  }
  CHECK(cache.get("key 0"));  // which renews it
  CHECK(cache.put("new 1", payload));
  CHECK(cache.put("new 2", payload));
  CHECK(cache.put("new 3", payload));
  CHECK_FALSE(other_build.get("never used again"));
  CHECK_FALSE(cache.get("key 1"));
  for (const char* key : {"key 0", "key 10", "new 1", "new 3"}) CHECK(cache.get(key));
  CHECK(::access((folder.path() + "/notes.txt").c_str(), F_OK) == 0);
  // What nobody used for three months goes at the next start, whatever its size.
  set_age(cache.path_of("key 10"), 100 * 24 * 3600);
  DiskCache next(folder.path(), "b", limit);
  CHECK_FALSE(next.get("key 10"));
  CHECK(next.get("new 2"));
}

TEST_CASE("many processes together stay near the limit") {
  TemporaryFolder folder;
  constexpr int64_t limit = 1'600'000;
  std::vector<pid_t> children;
  for (int c = 0; c < 4; ++c) {
    const pid_t child = ::fork();
    if (child == 0) {
      DiskCache cache(folder.path(), "b", limit);
      bool good = true;
      for (int i = 0; i < 200; ++i) {
        const std::string key = std::to_string(c) + "." + std::to_string(i);
        good = cache.put(key, key + std::string(20'000, 'p')) && good;
        const auto found = cache.get(key);
        good = good && (!found || text_of(found) == key + std::string(20'000, 'p'));
      }
      ::_exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  }
  int64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) bytes += static_cast<int64_t>(entry.file_size());
  CHECK(bytes < limit + limit / 4);
  CHECK(bytes > limit / 2);
}

TEST_CASE("every folder on the cache's path must be safe from other users") {
  TemporaryFolder folder;
  const std::string inside = folder.path() + "/a/cache";
  REQUIRE(DiskCache(inside, "b").usable());
  const auto refusal = [&](const std::string& path) { return DiskCache(path, "b").status(); };
  SECTION("a folder above that others may write to") {
    for (const mode_t mode : {0777, 0770}) {
      REQUIRE(::chmod((folder.path() + "/a").c_str(), mode) == 0);
      CHECK(refusal(inside).find("other users may write to the folder '" + folder.path() + "/a'") != std::string::npos);
    }
  }
  SECTION("unless it is sticky") {
    REQUIRE(::chmod((folder.path() + "/a").c_str(), 01777) == 0);
    CHECK(refusal(inside).empty());
  }
  SECTION("a folder above of another user") {
    if (::geteuid() == 0) {
      REQUIRE(::chown((folder.path() + "/a").c_str(), 12345, 12345) == 0);
      CHECK(refusal(inside).find("belongs to user 12345") != std::string::npos);
    }
  }
  SECTION("where a link leads counts, not the link") {
    REQUIRE(::chmod((folder.path() + "/a").c_str(), 0777) == 0);
    REQUIRE(::symlink(inside.c_str(), (folder.path() + "/link").c_str()) == 0);
    CHECK(refusal(folder.path() + "/link").find("other users may write") != std::string::npos);
    REQUIRE(::chmod((folder.path() + "/a").c_str(), 0755) == 0);
    const DiskCache cache(folder.path() + "/link", "b");
    CHECK(cache.usable());
    CHECK(cache.folder() == inside);
  }
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
  {
    DiskCache cache(folder.path(), "b");
    REQUIRE(cache.put("k", "v"));
    REQUIRE(cache.put("damaged", "v"));
    write_file(cache.path_of("damaged"), "nonsense");
  }
  REQUIRE(::chmod(folder.path().c_str(), 0500) == 0);
  CHECK(in_child([&] {
          drop_capabilities();
          DiskCache cache(folder.path(), "b");
          if (!cache.status().empty() || text_of(cache.get("k")) != "v") return 1;
          if (cache.put("new", "w") || cache.put("k", "w")) return 2;
          if (cache.status().find("Permission denied") == std::string::npos) return 3;
          if (text_of(cache.get("k")) != "v") return 4;
          // A damaged entry that cannot be removed stays a miss.
          return cache.get("damaged") || cache.get("damaged") ? 5 : 0;
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
