// TorchScript modules, compiled: beside cxxinductor.h, for programs that have models as TorchScript.
#pragma once

#include <cxxinductor/error.h>
#include <cxxinductor/options.h>
#include <torch/csrc/jit/api/module.h>

#include <string>

namespace cxxinductor {

// A copy of the module whose methods run compiled between control flow that depends on elements of tensors. The module and its submodules have to
// be in evaluation mode (eval()), and are frozen: weights become constants of the copy, gradients go to inputs alone. What is compiled is compiled at
// the first call, for the dtypes, devices and sizes at hand; sizes that change later become symbols. Calls that require gradients, or run under
// autocast, run as written. The copy is thread-safe. It can be saved, and loaded wherever libcxxinductor is loaded.
// Error::Kind::User for a module in training mode, or without methods.
torch::jit::Module optimize(const torch::jit::Module& module, const Options& options = without_waiting());

// What became of each compiled part of a module that optimize returned, how many calls ran as written and why, and which ops run as
// TorchScript: for people.
std::string explain(const torch::jit::Module& optimized);

}  // namespace cxxinductor
