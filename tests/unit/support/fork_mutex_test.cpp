#include "support/fork_mutex.h"

#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "support/error.h"
#include "unit/catch.h"
#include "unit/runtime/child_process.h"

using namespace cxxinductor;

namespace {

constexpr unsigned most_seconds = 20;  // a deadlock ends the child

// The result of the body in a child, forked while another thread is in `section`, which waits for the flag that it gets.
template <class Section>
int fork_during(const Section& section, const std::function<int()>& body) {
  std::atomic<bool> is_in = false, may_end = false;
  std::thread other([&] {
    section([&] {
      is_in = true;
      while (!may_end) std::this_thread::yield();
    });
  });
  while (!is_in) std::this_thread::yield();
  const int result = runtime::in_child([&] {
    ::alarm(most_seconds);
    return body();
  });
  may_end = true;
  other.join();
  return result;
}

}  // namespace

TEST_CASE("a lock that another thread holds is free in a child") {
  const auto mutex = std::make_unique<ForkMutex>();
  const auto hold = [&](const auto& wait) {
    const std::lock_guard lock(*mutex);
    wait();
  };
  CHECK(fork_during(hold, [&] {
          for (int i = 0; i < 2; ++i) const std::lock_guard lock(*mutex);
          return mutex->try_lock() ? 0 : 1;
        }) == 0);
  const std::lock_guard lock(*mutex);
}

TEST_CASE("a lock of readers is free in a child, whether one or several hold it") {
  const auto mutex = std::make_unique<ForkSharedMutex>();
  const auto write_and_read = [&] {
    { const std::lock_guard lock(*mutex); }
    const std::shared_lock lock(*mutex);
    return 0;
  };
  CHECK(fork_during(
            [&](const auto& wait) {
              const std::lock_guard lock(*mutex);
              wait();
            },
            write_and_read) == 0);
  CHECK(fork_during(
            [&](const auto& wait) {
              const std::shared_lock lock(*mutex);
              wait();
            },
            write_and_read) == 0);
  CHECK(write_and_read() == 0);
}

TEST_CASE("the forking thread keeps a lock that it holds") {
  const auto mutex = std::make_unique<ForkMutex>();
  int lost = 0;
  const auto kept = std::make_unique<ForkMutex>([&] { ++lost; });
  std::unique_lock lock(*mutex), other_lock(*kept);
  CHECK(runtime::in_child([&] {
          ::alarm(most_seconds);
          bool is_free = true;
          std::thread([&] { is_free = mutex->try_lock(); }).join();
          if (is_free || lost != 0) return 1;
          lock.unlock();
          return mutex->try_lock() ? 0 : 2;
        }) == 0);
}

TEST_CASE("a child hears of a section that another thread had not ended") {
  int lost = 0;
  const auto mutex = std::make_unique<ForkMutex>([&] { ++lost; });
  const auto hold = [&](const auto& wait) {
    const std::lock_guard lock(*mutex);
    wait();
  };
  CHECK(fork_during(hold, [&] { return lost == 1 ? 0 : 1; }) == 0);
  CHECK(fork_during([](const auto& wait) { wait(); }, [&] { return lost == 0 ? 0 : 1; }) == 0);
  CHECK(lost == 0);
}

TEST_CASE("a lock of an object is taken before those of the table") {
  const auto mutex = std::make_unique<ForkMutex>();
  {
    const ForkGuard guard(ForkLock::Leaf);
    CHECK_THROWS_AS(mutex->lock(), InternalError);
    CHECK_THROWS_AS(mutex->try_lock(), InternalError);
  }
  const std::lock_guard lock(*mutex);
  CHECK_NOTHROW(ForkGuard(ForkLock::Targets));
}
