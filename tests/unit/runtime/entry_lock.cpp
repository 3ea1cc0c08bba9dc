#include "runtime/entry_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <future>
#include <memory>

#include "runtime/cache_folder.h"
#include "runtime/disk_cache.h"
#include "unit/catch.h"
#include "unit/runtime/temporary_folder.h"

using namespace cxxinductor;
using namespace cxxinductor::runtime;
using namespace std::chrono_literals;

namespace {

constexpr auto kLong = std::chrono::minutes(10);

std::string text_of(const DiskCache::Claim& claim) {
  if (!claim.bytes) return "<none>";
  return {reinterpret_cast<const char*>(claim.bytes->data()), claim.bytes->size()};
}

// A process that claims the entry "k" and then waits, until it is killed.
class Holder {
 public:
  explicit Holder(const std::string& folder) {
    std::array<int, 2> pipe{};
    REQUIRE(::pipe(pipe.data()) == 0);
    child_ = ::fork();
    if (child_ == 0) {
      DiskCache cache(folder, "build");
      const DiskCache::Claim claim = cache.claim("k", 0ms);
      const char held = claim.lock.state() == EntryLock::State::Held ? 'y' : 'n';
      if (::write(pipe[1], &held, 1) == 1) ::pause();
      ::_exit(0);
    }
    char held = 0;
    REQUIRE(::read(pipe[0], &held, 1) == 1);
    REQUIRE(held == 'y');
    ::close(pipe[0]);
    ::close(pipe[1]);
  }
  ~Holder() { kill(); }
  void stop() { ::kill(child_, SIGSTOP); }
  void kill() {
    if (child_ == 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    child_ = 0;
  }

 private:
  pid_t child_ = 0;
};

}  // namespace

TEST_CASE("one of several makes an entry and the others get it", "[entry_lock]") {
  TemporaryFolder folder;
  DiskCache first(folder.path(), "build"), second(folder.path(), "build");
  DiskCache::Claim made = first.claim("k", kLong);
  CHECK_FALSE(made.bytes);
  CHECK(made.lock.state() == EntryLock::State::Held);
  const DiskCache::Claim refused = second.claim("k", 0ms);
  CHECK(refused.busy);
  CHECK_FALSE(refused.bytes);
  CHECK_FALSE(second.claim("another", 0ms).busy);

  auto waits = std::async(std::launch::async, [&] { return text_of(second.claim("k", kLong)); });
  CHECK(waits.wait_for(50ms) == std::future_status::timeout);
  REQUIRE(first.put("k", "made"));
  made.lock.release();
  CHECK(waits.get() == "made");
  CHECK(text_of(first.claim("k", 0ms)) == "made");
  CHECK(::access((first.path_of("k") + EntryLock::suffix).c_str(), F_OK) != 0);
}

TEST_CASE("who waits makes an entry that its maker gave up", "[entry_lock]") {
  TemporaryFolder folder;
  DiskCache cache(folder.path(), "build");
  auto held = std::make_unique<DiskCache::Claim>(cache.claim("k", 0ms));
  auto waits = std::async(std::launch::async, [&] { return cache.claim("k", kLong).lock.state(); });
  CHECK(waits.wait_for(50ms) == std::future_status::timeout);
  held.reset();
  CHECK(waits.get() == EntryLock::State::Held);
}

TEST_CASE("a process that was killed holds nothing, and one that was stopped not for ever", "[entry_lock]") {
  TemporaryFolder folder;
  Holder holder(folder.path());
  DiskCache cache(folder.path(), "build");
  holder.stop();
  const DiskCache::Claim impatient = cache.claim("k", 30ms);
  CHECK(impatient.busy);
  CHECK(impatient.lock.state() == EntryLock::State::Busy);
  auto waits = std::async(std::launch::async, [&] { return cache.claim("k", kLong).lock.state(); });
  holder.kill();
  CHECK(waits.get() == EntryLock::State::Held);
}

TEST_CASE("a wait can be interrupted", "[entry_lock]") {
  TemporaryFolder folder;
  DiskCache cache(folder.path(), "build");
  const DiskCache::Claim held = cache.claim("k", 0ms);
  int asked = 0;
  CHECK_THROWS_AS(cache.claim("k", kLong, [&] { return ++asked == 3; }), Interrupted);
}

TEST_CASE("a folder without locks, or none at all, keeps nobody waiting", "[entry_lock]") {
  TemporaryFolder folder;
  DiskCache cache(folder.path(), "build");
  const std::string lock = cache.path_of("k") + EntryLock::suffix;
  REQUIRE(::symlink("/nowhere", lock.c_str()) == 0);  // what is not a file of ours is not locked
  const DiskCache::Claim claim = cache.claim("k", kLong);
  CHECK_FALSE(claim.busy);
  CHECK(claim.lock.state() == EntryLock::State::None);
  const DiskCache::Claim nowhere = DiskCache("", "build").claim("k", kLong);
  CHECK_FALSE(nowhere.busy);
}

TEST_CASE("locks of processes that were killed are removed in the end", "[entry_lock]") {
  TemporaryFolder folder;
  Holder(folder.path()).kill();
  const std::string lock = DiskCache(folder.path(), "build").path_of("k") + EntryLock::suffix;
  REQUIRE(::access(lock.c_str(), F_OK) == 0);
  prune_cache_folder(folder.path(), DiskCache::kDefaultLimit);
  CHECK(::access(lock.c_str(), F_OK) == 0);
  const std::array<timespec, 2> old{timespec{1, 0}, timespec{1, 0}};
  REQUIRE(::utimensat(AT_FDCWD, lock.c_str(), old.data(), 0) == 0);
  prune_cache_folder(folder.path(), DiskCache::kDefaultLimit);
  CHECK(::access(lock.c_str(), F_OK) != 0);
}
