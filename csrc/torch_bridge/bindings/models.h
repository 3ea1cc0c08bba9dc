// Models of files in Python: cxxinductor.package and cxxinductor.load.
#pragma once

#include <pybind11/pybind11.h>

namespace cxxinductor::bindings {

void bind_models(pybind11::module_& module);

}  // namespace cxxinductor::bindings
