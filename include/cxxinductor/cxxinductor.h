// Compiles exported PyTorch models and runs them, without Python: the C++ API of cxxinductor.
//
//   #include <cxxinductor/cxxinductor.h>
//
//   const cxxinductor::Model model = cxxinductor::load("model.pt2");   // from torch.export.save
//   at::Tensor logits = model.run({images}).at(0).toTensor();
//
// Link cxxinductor::cxxinductor (find_package(cxxinductor)), which brings LibTorch. This header needs C++17.
// All functions throw cxxinductor::Error (cxxinductor/error.h); what PyTorch throws passes through.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <cxxinductor/error.h>
#include <cxxinductor/options.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace cxxinductor {

// An exported model, compiled. Copies share one model.
class Model {
 public:
  // Runs the model: forward, as it was exported. Thread-safe; on CUDA the work is queued on the calling thread's current
  // stream, as PyTorch's own ops are. Buffers that the model updates (batch norm in training, a cache) are updated in place: calls
  // of such a model must not overlap.
  //
  // inputs: the leaves of forward's arguments in their order, as input_types() lists them: tensors, integers, and the constants
  // that the model was exported for. Returns the leaves of its result in their order.
  // Error::Kind::User names the input, what was expected and what was found.
  std::vector<c10::IValue> run(std::vector<c10::IValue> inputs) const;

  // "images: f32[b, 3, 224, 224] on cpu where 1 <= b <= 64", an entry for each input of run.
  std::vector<std::string> input_types() const;
  // "f32[b, 10] on cpu where 1 <= b <= 64", an entry for each result of run.
  std::vector<std::string> output_types() const;

  // How inputs and results of run are nested in Python: (args, kwargs), and what forward returns, as JSON that
  // torch.utils._pytree.treespec_dumps writes; "" where the file does not say.
  std::string input_structure() const;
  std::string output_structure() const;

  // What became of the model, for people: its kernels, what they read and write, calls of ATen and their reasons, peak memory,
  // the time of the compile; or why it runs op by op through ATen.
  std::string explain() const;

  // Parameters, buffers and constants, by the names that the module gave them: "encoder.layers.0.weight".
  std::vector<std::string> weight_names() const;
  // The tensor itself: model.weight("bias").copy_(x) changes the model. Sizes, strides, dtype and device stay what they are.
  at::Tensor weight(const std::string& name) const;

 private:
  class Impl;
  friend struct ModelMaker;  // of the library
  explicit Model(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

const char* version() noexcept;  // of the library: "0.1.0"

// Options as the environment variables CXXINDUCTOR_* say (docs/options.md), for programs that want to be debugged by them.
Options options_from_environment();

// Reads and compiles a .pt2 file of PyTorch 2.11, decomposed or not. Weights on the CPU are mapped from the file, which
// must stay as it is while the model lives; a write to one changes the model alone.
// The file is untrusted: it can call no op but those that Options::allow_ops names and those of PyTorch that do nothing but compute.
// With options.wait = false it returns before the model is compiled: calls run op by op through ATen until it is.
// A model that cannot be compiled, or is on a CPU without a C++ compiler, runs op by op through ATen; a warning says why.
Model load(const std::string& path, const Options& options = {});
// The same from memory, which is copied.
Model load(const void* bytes, size_t size, const Options& options = {});

}  // namespace cxxinductor
