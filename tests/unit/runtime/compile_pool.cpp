#include "runtime/compile_pool.h"

#include <atomic>
#include <mutex>
#include <stdexcept>

#include "unit/catch.h"

using namespace cxxinductor::runtime;

TEST_CASE("one thread runs the longest task first") {
  CompilePool pool(1);
  std::vector<int> order;
  std::vector<CompileTask> tasks;
  for (int i = 0; i < 4; ++i) {
    tasks.push_back({"t", i == 2 ? 10.0 : 1.0, [&order, i] { order.push_back(i); }});
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
    tasks.push_back({"task " + std::to_string(i), 1.0, [&done, i] {
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
  tasks.push_back({"a", 2, [&] { seen = pool.progress().given; }});
  tasks.push_back({"b", 1, [] { throw std::runtime_error("fails, and counts"); }});
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
          task.work = [&] {
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
    pool.run_in_background(&owner, {"first", 1, [&] {
                              const std::lock_guard wait(gate);
                              ++done;
                            }});
    for (int i = 0; i < 20; ++i) pool.run_in_background(&other, {"later", 1, [&] { ++done; }});
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
    tasks.push_back({"waited for", 1, [&] { done = 100; }});
    CHECK(pool.run_all(std::move(tasks)).empty());
    CHECK(done == 100);
  }
}
