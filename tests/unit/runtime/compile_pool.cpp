#include "runtime/compile_pool.h"

#include <grp.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "support/error.h"
#include "support/interrupt.h"
#include "sym/algebra.h"
#include "unit/catch.h"
#include "unit/runtime/child_process.h"

using namespace cxxinductor;
using namespace cxxinductor::runtime;
using namespace std::chrono_literals;

TEST_CASE("one thread runs the longest task first") {
  CompilePool pool(1);
  std::vector<int> order;
  std::vector<CompileTask> tasks;
  for (int i = 0; i < 4; ++i) {
    tasks.push_back({"t", i == 2 ? 10.0 : 1.0, [&order, i](const auto&) { order.push_back(i); }});
  }
  CHECK(pool.run_all(std::move(tasks)).empty());
  CHECK(order == std::vector<int>{2, 0, 1, 3});
  CHECK(pool.run_all({}).empty());
}

TEST_CASE("all tasks run even when some fail, and every failure is reported") {
  CompilePool pool(4);
  std::atomic<int> done = 0;
  std::vector<CompileTask> tasks;
  for (int i = 0; i < 50; ++i) {
    tasks.push_back({"task " + std::to_string(i), 1.0, [&done, i](const auto&) {
                       ++done;
                       if (i % 20 == 0) throw std::runtime_error("bad " + std::to_string(i));
                     }});
  }
  const std::vector<CompileFailure> failures = pool.run_all(std::move(tasks));
  CHECK(done == 50);
  REQUIRE(failures.size() == 3);
  CHECK(failures[1].name == "task 20");
  CHECK_THROWS_WITH(std::rethrow_exception(failures[2].error), "bad 40");
}

TEST_CASE("a pool counts what it was given and what it has run") {
  CompilePool pool(2);
  CHECK(pool.progress().given == 0);
  uint64_t seen = 0;
  std::vector<CompileTask> tasks;
  tasks.push_back({"a", 2, [&](const auto&) { seen = pool.progress().given; }});
  tasks.push_back({"b", 1, [](const auto&) { throw std::runtime_error("fails, and counts"); }});
  pool.run_all(std::move(tasks));
  CHECK(seen == 2);
  CHECK(pool.progress().done == 2);
}

TEST_CASE("several callers share a pool") {
  CompilePool pool(2);
  std::atomic<int> done = 0;
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        std::vector<CompileTask> tasks(5);
        std::atomic<int> mine = 0;
        for (CompileTask& task : tasks) {
          task.work = [&](const auto&) {
            ++done;
            ++mine;
          };
        }
        pool.run_all(std::move(tasks));
        if (mine != 5) throw std::runtime_error("run_all returned early");
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(done == 1000);
}

TEST_CASE("what nobody waits for runs beside, has a thread in any pool, and can be dropped") {
  for (const int threads : {1, 3}) {
    CompilePool pool(threads);
    const int owner = 0, other = 0;
    std::atomic<int> done = 0;
    std::mutex gate;
    gate.lock();
    pool.run_in_background(&owner, {"first", 1, [&](const auto&) {
                                      const std::lock_guard wait(gate);
                                      ++done;
                                    }});
    for (int i = 0; i < 20; ++i) pool.run_in_background(&other, {"later", 1, [&](const auto&) { ++done; }});
    if (threads == 1) {
      // The one thread is busy, so that these are still to begin.
      pool.cancel(&other);
      CHECK(done == 0);
    }
    gate.unlock();
    pool.finish();
    CHECK(done == (threads == 1 ? 1 : 21));
    CHECK(pool.progress().done == 21);
    std::vector<CompileTask> tasks;
    tasks.push_back({"waited for", 1, [&](const auto&) { done = 100; }});
    CHECK(pool.run_all(std::move(tasks)).empty());
    CHECK(done == 100);
  }
}

TEST_CASE("a caller that is interrupted gets its tasks stopped, and nobody else's") {
  CompilePool pool(2);
  std::atomic<int> begun = 0, ended = 0, asked = 0;
  std::atomic<bool> others_done = false;
  std::thread other([&] {
    std::vector<CompileTask> tasks;
    tasks.push_back({"of another caller", 100, [&](const InterruptCheck& stopped) {
                       while (begun == 0) std::this_thread::yield();
                       std::this_thread::sleep_for(50ms);
                       others_done = !stopped();
                     }});
    if (!pool.run_all(std::move(tasks)).empty()) throw std::runtime_error("it was stopped too");
  });
  std::vector<CompileTask> tasks;
  for (int i = 0; i < 10; ++i) {
    tasks.push_back({"long", 1, [&](const InterruptCheck& stopped) {
                       ++begun;
                       while (!stopped()) std::this_thread::sleep_for(1ms);
                       ++ended;
                       throw Interrupted();
                     }});
  }
  const auto start = std::chrono::steady_clock::now();
  // The check says so once, as Python's signals are told once.
  CHECK_THROWS_AS(pool.run_all(std::move(tasks), [&] { return begun > 0 && asked++ == 0; }), Interrupted);
  CHECK(std::chrono::steady_clock::now() - start < 10s);
  CHECK(begun == ended);
  CHECK(begun < 10);
  CHECK(asked == 1);
  other.join();
  CHECK(others_done);
  CHECK(pool.progress().given == pool.progress().done);
}

TEST_CASE("a call's tasks have a thread while background tasks run, and cancel interrupts those") {
  for (const int threads : {1, 2, 3}) {
    CompilePool pool(threads);
    const int owner = 0;
    std::atomic<int> running = 0;
    for (int i = 0; i < 5; ++i) {
      pool.run_in_background(&owner, {"background", 1, [&](const InterruptCheck& stopped) {
                                        ++running;
                                        while (!stopped()) std::this_thread::sleep_for(1ms);
                                      }});
    }
    while (running == 0) std::this_thread::yield();
    std::vector<CompileTask> tasks;
    tasks.push_back({"waited for", 1, [](const auto&) {}});
    CHECK(pool.run_all(std::move(tasks)).empty());
    pool.cancel(&owner);
    CHECK(pool.progress().done == 6);
  }
}

TEST_CASE("a pool that was stopped works on the calling thread") {
  CompilePool pool(2);
  const int owner = 0;
  std::atomic<int> done = 0;
  std::atomic<bool> begun = false;
  pool.run_in_background(&owner, {"background", 1, [&](const InterruptCheck& stopped) {
                                    begun = true;
                                    while (!stopped()) std::this_thread::sleep_for(1ms);
                                  }});
  while (!begun) std::this_thread::yield();
  pool.stop();
  pool.run_in_background(&owner, {"dropped", 1, [&](const auto&) { done = 100; }});
  pool.finish();
  std::vector<CompileTask> tasks;
  const auto caller = std::this_thread::get_id();
  tasks.push_back({"here", 1, [&](const auto&) { done += std::this_thread::get_id() == caller ? 1 : 10; }});
  CHECK(pool.run_all(std::move(tasks)).empty());
  CHECK(done == 1);
}

TEST_CASE("where the system gives no thread the caller works; where it gives few, few do") {
  for (const rlim_t processes : {rlim_t{1}, rlim_t{3}}) {
    CHECK(in_child([&] {
            // The limit does not hold for root.
            const rlimit limit{processes, processes};
            if (::geteuid() == 0 && (::setgroups(0, nullptr) != 0 || ::setgid(54321) != 0 || ::setuid(54321) != 0)) return 1;
            if (::setrlimit(RLIMIT_NPROC, &limit) != 0) return 2;
            CompilePool pool(8);
            std::atomic<int> done = 0, stopped_after = 0;
            std::vector<CompileTask> tasks(20);
            for (CompileTask& task : tasks) task.work = [&](const auto&) { ++done; };
            if (!pool.run_all(std::move(tasks)).empty() || done != 20) return 3;
            const int owner = 0;
            pool.run_in_background(&owner, {"later", 1, [&](const auto&) { ++done; }});
            pool.finish();
            if (done != 21) return 4;
            if (processes > 1) return 0;
            // On the calling thread a check that says so once stops the tasks that come after.
            std::vector<CompileTask> many(20);
            for (CompileTask& task : many)
              task.work = [&](const InterruptCheck& stopped) {
                ++stopped_after;
                stop_if(stopped);
              };
            int asked = 0;
            try {
              pool.run_all(std::move(many), [&] { return ++asked == 3; });
              return 5;
            } catch (const Interrupted&) {
              return stopped_after < 20 && asked == 3 ? 0 : 6;
            }
          }) == 0);
  }
}

// GCC 12's AddressSanitizer does not free the locks of its own allocator in a forked child: one fork in some hundreds hangs
// in malloc, whatever the program does.
#ifndef __SANITIZE_ADDRESS__
TEST_CASE("a child forked while threads compile finds all locks free and a pool that works") {
  CompilePool pool(3);
  std::atomic<bool> stop = false;
  const auto algebra = [](int64_t round) {
    const sym::Expr s = sym::Expr::symbol("fork" + std::to_string(round % 7));
    return sym::equal_as_polynomials((s + 1) * (s + round), s * s + s * (round + 1) + round);
  };
  std::vector<std::thread> compiling;
  for (int t = 0; t < 3; ++t) {
    compiling.emplace_back([&, t] {
      for (int64_t round = t; !stop; round += 3) {
        std::vector<CompileTask> tasks(4);
        for (CompileTask& task : tasks) task.work = [&](const auto&) { algebra(round); };
        pool.run_all(std::move(tasks));
      }
    });
  }
  const int owner = 0;
  for (int fork_number = 0; fork_number < 200; ++fork_number) {
    pool.run_in_background(&owner, {"background", 1, [&](const auto&) { algebra(fork_number); }});
    const int result = in_child([&] {
      ::alarm(20);  // a deadlock ends the child
      std::atomic<int> done = 0;
      std::vector<CompileTask> tasks(4);
      for (CompileTask& task : tasks) task.work = [&](const auto&) { done += algebra(done + 2) ? 1 : 0; };
      const bool failed = !pool.run_all(std::move(tasks)).empty();
      pool.finish();
      pool.cancel(&owner);
      return failed || done != 4 || pool.progress().given != pool.progress().done ? 1 : 0;
    });
    INFO("fork " << fork_number);
    REQUIRE(result == 0);
  }
  stop = true;
  for (std::thread& thread : compiling) thread.join();
  pool.finish();
}
#endif

TEST_CASE("fork locks are taken in their order") {
  const ForkGuard later(ForkLock::Expressions);
  CHECK_THROWS_AS(ForkGuard(ForkLock::Services), InternalError);
  CHECK_NOTHROW(ForkGuard(ForkLock::Leaf));
}
