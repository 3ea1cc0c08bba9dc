// Ops that users register, for extend.py.
#pragma once

#include <pybind11/pybind11.h>

namespace cxxinductor::bindings {

void bind_extensions(pybind11::module_& module);

}  // namespace cxxinductor::bindings
