// The cache on disk, for graph_cache.py and cache_transfer.py.
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace cxxinductor::bindings {

void bind_cache(pybind11::module_& module);

}  // namespace cxxinductor::bindings
