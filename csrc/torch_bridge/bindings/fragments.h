// Fragments of model/decompose in Python, which runs their calls on its own tensors (python/cxxinductor/fragments.py).
#pragma once

#include <pybind11/pybind11.h>

namespace cxxinductor::bindings {

void bind_fragments(pybind11::module_& module);

}  // namespace cxxinductor::bindings
