// TorchScript modules, compiled: beside cxxinductor.h, for programs that have models as TorchScript.
//
//   torch::jit::Module model = cxxinductor::optimize(torch::jit::load("model.pt"));
//   model.forward({images});                                            // compiled for images of these sizes
//   cxxinductor::package(model, "compiled.pt", {.signing_key = "key.pem"});   // C++20; any program that has loaded libcxxinductor runs it
#pragma once

#include <cxxinductor/error.h>
#include <cxxinductor/options.h>
#include <cxxinductor/package.h>
#include <torch/csrc/jit/api/module.h>

#include <string>

namespace cxxinductor {

// A copy of the module whose methods run compiled between control flow that depends on elements of tensors. The module and its submodules have to
// be in evaluation mode (eval()), and are frozen: weights become constants of the copy, gradients go to inputs alone. What is compiled is compiled at
// the first call, for the dtypes, devices and sizes at hand; sizes that change later become symbols. Calls that require gradients, or run under
// autocast, run as written. The copy is thread-safe. It can be saved, and loaded wherever libcxxinductor is loaded: with what is compiled
// by then, for this machine and not signed. Options that shape kernels, and wait, are saved; others are those of the loading program's
// environment.
// Error::Kind::User for a module in training mode, or without methods.
torch::jit::Module optimize(const torch::jit::Module& module, const Options& options = without_waiting());

// Saves a module that optimize returned as TorchScript, with the plans and machine code of all that it was called with. A program that
// loads the file, in which libcxxinductor is loaded, runs them without compiling if its environment trusts them: CXXINDUCTOR_TRUSTED_KEYS
// lists the key, or CXXINDUCTOR_TRUST=1 trusts whoever made the file. Otherwise it compiles the code in the file.
// package_options: archs and signing_key; weights are always inside.
// Error::Kind::User: nothing is compiled yet, the file cannot be written, or as of package(Model). Error::Kind::Unsupported: what was
// called cannot be packaged.
void package(const torch::jit::Module& optimized, const std::string& path, const PackageOptions& package_options = {});

// Reads a TorchScript file, as torch::jit::load does: for files that package wrote, with options of the program's own, trust and trusted_keys
// among them, in place of the environment's.
torch::jit::Module load_module(const std::string& path, const Options& options = {});

// What became of each compiled part of a module that optimize returned, how many calls ran as written and why, and which ops run as
// TorchScript: for people.
std::string explain(const torch::jit::Module& optimized);

}  // namespace cxxinductor
