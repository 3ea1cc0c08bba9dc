// Packages: one file that holds a compiled model and loads without compiling. Beside cxxinductor.h, whose load() reads packages too.
//
//   cxxinductor::PackageOptions options;
//   options.archs = {"sm_80", "sm_90"};
//   options.signing_key = "key.pem";                          // openssl genpkey -algorithm ed25519 -out key.pem
//   cxxinductor::package("model.pt2", "model.cxxi", options);
//
// A package holds the model's calls, a plan and machine code for each architecture, the sources of kernels, and the weights. Its machine code
// is run if the package is signed with one of Options::trusted_keys, or under Options::trust; otherwise load() compiles the calls, as those of
// a .pt2 file. The same happens where it has no code for the machine. docs/design/package.md describes the file.
#pragma once

#include <cxxinductor/cxxinductor.h>

#include <cstddef>
#include <string>
#include <vector>

namespace cxxinductor {

struct PackageOptions {
  // Of GPUs ("sm_80", "sm_90a"; code of sm_80 runs on all of 8.x) and of CPUs ("x86-64-v3"): a plan and machine code for each, the GPUs'
  // being compiled without a GPU. Of a kind that is not listed, that of this machine.
  std::vector<std::string> archs;
  // Into a file of their own in the same folder, path + ".weights", which the package names with its digest.
  bool weights_beside = false;
  std::string signing_key;  // a file: an Ed25519 private key as PEM; "": the package is not signed
};

// Packages a model with its weights as they are now. options: as the model was loaded with.
// Error::Kind::User: the file cannot be written, an architecture is unknown, the key is no Ed25519 key, or the model is on a GPU that
// neither the machine has nor archs lists. Error::Kind::Unsupported: the model runs op by op through ATen; the message says why.
void package(const Model& model, const std::string& path, const PackageOptions& package_options = {});
// Packages a .pt2 file, or a package anew, without running or loading it: a model on a GPU needs none.
void package(const std::string& model, const std::string& path, const PackageOptions& package_options = {}, const Options& options = {});
void package(const void* model, size_t size, const std::string& path, const PackageOptions& package_options = {}, const Options& options = {});

}  // namespace cxxinductor
