// How a caller stops work that it waits for.
//
// Whoever asks for a compile may hand in an InterruptCheck. It is called on the caller's own thread at least every 50 ms
// while that thread waits, and between the stages of the pipeline; once it returns true, what runs for the caller is stopped
// and Interrupted is thrown. Checks must not be called with a lock held: they may run anything (Python's signal handlers).
#pragma once

#include <exception>
#include <functional>

namespace cxxinductor {

// True: stop. Empty: never.
using InterruptCheck = std::function<bool()>;

// Not an Error: it is not a reason to fall back, and passes through to whoever handed in the check.
class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "the caller stopped this compile"; }
};

inline void stop_if(const InterruptCheck& interrupted) {
  if (interrupted && interrupted()) throw Interrupted();
}

}  // namespace cxxinductor
