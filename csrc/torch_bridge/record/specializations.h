// The compiled forms of one function: one for each kind of arguments that it was called with.
#pragma once

#include <ATen/core/ivalue.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "model/size_guards.h"
#include "support/interrupt.h"
#include "support/options.h"
#include "torch_bridge/record/call_pattern.h"
#include "torch_bridge/record/trace.h"

namespace cxxinductor::torch_bridge {

struct CompiledForm {
  // Takes the tensors and integers among the arguments. None: the caller runs the function itself, whose reason is `reason`.
  std::function<std::vector<c10::IValue>(std::vector<c10::IValue> inputs)> run;
  std::function<std::string(std::string_view title)> describe;
  std::string reason;  // why it was not compiled, or runs op by op through ATen; "" otherwise
};

// A function recorded for a kind of arguments, to be compiled.
struct TracedForm {
  std::vector<model::SizeGuard> guards;
  bool writes = false;                    // to an argument
  std::function<CompiledForm(const InterruptCheck& interrupted)> compile;  // once, on any thread
};
// Unsupported, or a user error of its own, where the function cannot be recorded.
using Tracer = std::function<TracedForm(const CallPattern& pattern)>;

// Of functions whose results carry no gradients.
Tracer inference_tracer(std::string name, TracedFunction function, Options options);

class Specializations {
 public:
  // The function is traced at the first call, and again for arguments of other dtypes, devices, ranks or layouts. Where
  // sizes alone differ, those that do become symbols. options.wait: whether calls wait for the compiler.
  Specializations(std::string name, Tracer tracer, const Options& options);
  ~Specializations();  // drops what is being compiled

  // The results of the compiled function. None where it has no compiled form for these arguments, or not yet: the caller
  // runs it itself. Thread-safe.
  std::optional<std::vector<c10::IValue>> run(const std::vector<c10::IValue>& arguments);

  // Why calls were not compiled, each reason once; "" when all were.
  std::string reasons() const;
  std::string describe() const;

 private:
  struct Form {
    CallPattern pattern;
    std::vector<model::SizeGuard> guards;
    bool writes = false;
    std::atomic<bool> is_ready = false;  // `compiled` is what it stays
    CompiledForm compiled;
  };
  std::shared_ptr<const Form> find(const std::vector<c10::IValue>& arguments) const;
  std::shared_ptr<const Form> make(const std::vector<c10::IValue>& arguments);
  CallPattern pattern_for(const std::vector<c10::IValue>& arguments) const;
  static bool holds(const Form& form, const std::vector<c10::IValue>& arguments);

  const std::string name_;
  const Tracer tracer_;
  const Options options_;
  mutable std::shared_mutex mutex_;  // guards forms_
  std::vector<std::shared_ptr<const Form>> forms_;
  std::mutex tracing_;
};

}  // namespace cxxinductor::torch_bridge
