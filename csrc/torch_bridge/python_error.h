// The part of an error that Python's interpreter keeps, where a call of PyTorch's ran Python code: an operator written in Python, a mode.
#pragma once

namespace cxxinductor::torch_bridge {

// Forgets the error of this thread; without Python there is none. Code in Python that runs while one is set fails for that alone.
void forget_python_error();
// The Python module says how.
void set_forget_python_error(void (*forget)());

}  // namespace cxxinductor::torch_bridge
