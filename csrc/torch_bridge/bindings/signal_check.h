// Lets Python's signal handlers stop what the main thread waits for.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include <optional>

#include "support/interrupt.h"

namespace cxxinductor::bindings {

namespace py = pybind11;

// Python's signal handlers run while the main thread waits; what one of them raises (KeyboardInterrupt) stops the wait. Python runs them on
// no other thread, and a thread that takes the GIL while the interpreter ends does not return. Made and destroyed with the GIL.
class [[gnu::visibility("hidden")]] SignalCheck {  // as the types of pybind11 in it
 public:
  SignalCheck() {
    const py::module_ threading = py::module_::import("threading");
    on_main_thread_ = threading.attr("current_thread")().is(threading.attr("main_thread")());
  }

  // For a wait without the GIL. Holds on to this object.
  InterruptCheck check() {
    if (!on_main_thread_) return {};
    return [this] {
      const py::gil_scoped_acquire acquire;
      if (PyErr_CheckSignals() == 0) return false;
      raised_.emplace();
      return true;
    };
  }
  // After Interrupted: throws what the handler raised, if one did.
  void rethrow() const {
    if (raised_) throw *raised_;
  }

 private:
  bool on_main_thread_ = false;
  std::optional<py::error_already_set> raised_;
};

}  // namespace cxxinductor::bindings
