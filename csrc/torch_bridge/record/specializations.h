// The compiled forms of one function: one for each kind of arguments that it was called with.
#pragma once

#include <ATen/core/ivalue.h>

#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <vector>

#include "support/options.h"
#include "torch_bridge/compiled_graph.h"
#include "torch_bridge/record/trace.h"

namespace cxxinductor::torch_bridge {

class Specializations {
 public:
  // The function is traced at the first call, and again for arguments of other dtypes, devices, ranks or layouts. Where
  // sizes alone differ, those that do become symbols.
  Specializations(std::string name, TracedFunction function, Options options);

  // The results of the compiled function. None where it has no compiled form for these arguments: the caller runs it
  // itself. Thread-safe.
  std::optional<std::vector<c10::IValue>> run(const std::vector<c10::IValue>& arguments);

  // Why calls were not compiled, each reason once; "" when all were.
  std::string reasons() const;
  std::string describe() const;

 private:
  struct Form {
    CallPattern pattern;
    std::vector<model::SizeGuard> guards;
    bool writes = false;                   // to an argument
    std::shared_ptr<CompiledGraph> graph;  // null: could not be compiled
    std::string reason;                    // why
  };
  std::shared_ptr<const Form> find(const std::vector<c10::IValue>& arguments) const;
  std::shared_ptr<const Form> make(const std::vector<c10::IValue>& arguments);
  CallPattern pattern_for(const std::vector<c10::IValue>& arguments) const;
  static bool holds(const Form& form, const std::vector<c10::IValue>& arguments);

  const std::string name_;
  const TracedFunction function_;
  const Options options_;
  mutable std::shared_mutex mutex_;  // guards forms_
  std::vector<std::shared_ptr<const Form>> forms_;
  std::mutex compiling_;
};

}  // namespace cxxinductor::torch_bridge
