// What python -m cxxinductor.time_kernel needs: a dumped plan of one launch made callable, and what to call it with.
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace cxxinductor::bindings {

namespace py = pybind11;

void bind_kernel_timing(py::module_& module);

}  // namespace cxxinductor::bindings
