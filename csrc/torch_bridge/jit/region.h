// A region of TorchScript code at run time: its compiled forms, and the code as it stands for calls that have none.
#pragma once

#include <ATen/core/ivalue.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "support/fork_mutex.h"
#include "support/options.h"
#include "torch_bridge/jit/saved_forms.h"
#include "torch_bridge/jit/traceable.h"
#include "torch_bridge/record/specializations.h"

namespace cxxinductor::torch_bridge {

class Region final : public torch::CustomClassHolder {
 public:
  // code: as regions.h makes it, gives a tuple. saved: forms of the file that the region comes from; null: there are none.
  Region(std::string name, std::shared_ptr<torch::jit::Graph> code, Options options, std::shared_ptr<const SavedForms> saved = nullptr);
  ~Region() override;

  // The items of what the code gives. Thread-safe. Runs the code as it stands where arguments require gradients, under autocast, and where
  // it cannot be compiled for them: from the second such call on in parts, around the node that was the reason.
  std::vector<c10::IValue> run(const std::vector<c10::IValue>& arguments);

  // Adds the compiled forms of the region and of its parts.
  void pack(PackedForms& packed) const;

  // What became of it, for people.
  std::string describe() const;

 private:
  struct Shapes;  // of arguments and results
  static TracedFunction traced_code(const std::shared_ptr<torch::jit::Graph>& code, const std::shared_ptr<Shapes>& shapes);
  struct Split;

  std::vector<c10::IValue> run_code(const std::vector<c10::IValue>& arguments) const;
  std::optional<std::vector<c10::IValue>> run_compiled(const std::vector<c10::IValue>& arguments);
  std::shared_ptr<const Split> split() const;
  void split_where_it_failed();

  enum Cause : size_t { Gradients, Autocast, NotCompiled, causes };

  const std::string name_;
  const std::shared_ptr<torch::jit::Graph> code_;
  const Options options_;
  const torch::jit::Code plain_;
  const bool reads_requires_grad_;
  const std::shared_ptr<Shapes> shapes_;
  const std::shared_ptr<const SavedForms> saved_;
  const TracedFunction traced_;
  const Tracer tracer_;
  Specializations forms_;
  std::array<std::atomic<int64_t>, causes> calls_as_written_{};
  mutable ForkMutex mutex_;  // guards split_
  std::shared_ptr<const Split> split_;
};

}  // namespace cxxinductor::torch_bridge
