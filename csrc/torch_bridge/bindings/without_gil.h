// The GIL given up for a scope.
#pragma once

#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

namespace cxxinductor::bindings {

inline bool interpreter_ends() {
#if PY_VERSION_HEX >= 0x030d0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

// A thread that takes the GIL back while the interpreter ends is ended by Python, which cannot unwind our frames: it stays
// here instead, until the process is gone. So this is not for the thread that ends the interpreter.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil() {
    if (!Py_IsInitialized() || interpreter_ends()) stay();
    try {
      PyEval_RestoreThread(state_);
    } catch (abi::__forced_unwind&) {  // the end began while it waited for the GIL
      stay();
    }
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  [[noreturn]] static void stay() {
    while (true) ::pause();
  }

  PyThreadState* state_;
};

}  // namespace cxxinductor::bindings
