// What python -m cxxinductor.bisect needs.
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace cxxinductor::bindings {

namespace py = pybind11;

void bind_bisection(py::module_& module);

}  // namespace cxxinductor::bindings
