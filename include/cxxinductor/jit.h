// TorchScript modules, compiled: beside cxxinductor.h, for programs that have models as TorchScript.
#pragma once

#include <cxxinductor/error.h>
#include <cxxinductor/options.h>
#include <torch/csrc/jit/api/module.h>

#include <string>

namespace cxxinductor {

// A copy of the module whose forward runs compiled between control flow. The module has to be in evaluation mode (eval()), and is frozen:
// weights become constants of the copy. What is compiled is compiled at the first call, for the dtypes, devices and sizes at hand; sizes that
// change later become symbols. The copy is thread-safe. It can be saved, and loaded wherever libcxxinductor is loaded.
// Error::Kind::User for a module in training mode.
torch::jit::Module optimize(const torch::jit::Module& module, const Options& options = {});

// What became of each compiled part of a module that optimize returned, for people.
std::string explain(const torch::jit::Module& optimized);

}  // namespace cxxinductor
