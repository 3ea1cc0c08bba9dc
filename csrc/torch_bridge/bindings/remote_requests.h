// What compiles ask of a remote store or of passes in Python, answered by threads of Python.
//
// A thread that compiles never takes the GIL: one that holds it may be waiting for the compile, and at the end of the interpreter Python would
// end whoever asks for it, in the middle of our frames.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "support/fork_locks.h"

namespace cxxinductor::bindings {

class RemoteRequests {
 public:
  struct Request {
    uint64_t number = 0;
    std::string name;
    std::optional<std::string> file;  // none: it is asked for
  };

  // patience: how long an answer may take. Without one in that time the request counts as a miss, and so do those of the next minute or until
  // an answer comes: nobody answers while a thread that waits for the compile holds the GIL.
  explicit RemoteRequests(std::chrono::milliseconds patience);

  // Of threads that compile: waits for the answer. None where there is none.
  std::optional<std::string> ask(std::string name, std::optional<std::string> file);

  // Of threads that serve, without the GIL: waits for a request; none after close.
  std::optional<Request> next();
  void answer(uint64_t number, std::optional<std::string> file);
  void close();

 private:
  using Clock = std::chrono::steady_clock;
  struct State {
    std::mutex mutex;
    std::condition_variable asked, answered;
    std::deque<Request> waiting;
    std::map<uint64_t, std::optional<std::optional<std::string>>> open;  // by number: the answer, once it is there
    uint64_t last = 0;
    bool closed = false;
    Clock::time_point paused_until;
  };

  const std::chrono::milliseconds patience_;
  std::unique_ptr<State> state_;  // replaced in a forked child, which has none of the threads
  ForkChildHook in_child_;
};

}  // namespace cxxinductor::bindings
