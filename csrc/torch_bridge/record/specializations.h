// The compiled forms of one function: one for each kind of arguments that it was called with.
#pragma once

#include <ATen/core/ivalue.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/size_guards.h"
#include "support/fork_mutex.h"
#include "support/interrupt.h"
#include "support/options.h"
#include "torch_bridge/compiled_graph.h"
#include "torch_bridge/record/call_pattern.h"
#include "torch_bridge/record/trace.h"

namespace cxxinductor::torch_bridge {

struct CompiledForm {
  // Takes CallPattern::take_inputs. None: the caller runs the function itself, whose reason is `reason`.
  std::function<std::vector<c10::IValue>(std::vector<c10::IValue> inputs)> run;
  std::function<std::string(std::string_view title)> describe;
  std::string reason;                          // why it was not compiled, or runs op by op through ATen; "" otherwise
  std::shared_ptr<const CompiledGraph> graph;  // null: `run` is more than a run of one
};

// A function recorded for a kind of arguments, to be compiled.
struct TracedForm {
  std::vector<model::SizeGuard> guards;
  bool has_solved_guards = false;    // sizes that guards tie to others are written in terms of these
  bool writes = false;               // to an argument, or to what is captured
  std::vector<at::Tensor> captured;  // tensors with memory that it reads or writes beside its arguments
  bool is_packaged = false;          // compiled before: `compile` reads it back
  // Once, on any thread.
  std::function<CompiledForm(const CompileSettings& settings, const InterruptCheck& interrupted)> compile;
};
// Unsupported, or a user error of its own, where the function cannot be recorded.
using Tracer = std::function<TracedForm(const CallPattern& pattern)>;

// The plan and machine code that a package has for calls, if any.
using PlanFinder = std::function<std::optional<PackagedPlan>(const model::CallGraph& calls)>;
// Of functions whose results carry no gradients.
Tracer inference_tracer(std::string name, TracedFunction function, Options options, PlanFinder find_plan = {});

// Patterns that fit arguments, for which there may be forms that are packaged.
using PatternFinder = std::function<std::vector<CallPattern>(std::span<const c10::IValue> arguments)>;

struct SpecializationPolicy {
  // When numbers that differ between calls become inputs.
  bool reals = false;        // floats: at the second
  size_t sets_of_sizes = 1;  // compiled as numbers before sizes become symbols
  bool warns = false;        // of forms that are not compiled, by PyTorch's warnings
};

class Specializations {
 public:
  // The function is traced at the first call, and again for arguments of other dtypes, devices, ranks or layouts, and under other settings. Where
  // numbers alone differ, those that do become inputs. options.wait: whether calls wait for the compiler.
  Specializations(std::string name, const Options& options, SpecializationPolicy policy = {}, PatternFinder find_packaged = {});
  ~Specializations();  // drops what is being compiled

  struct Form {
    Form(CallPattern of, const CompileSettings& made_under) : pattern(std::move(of)), settings(made_under) {}
    CallPattern pattern;
    const CompileSettings settings;
    std::vector<model::SizeGuard> guards;
    bool writes = false;
    std::vector<c10::IValue> captured;   // tensors
    std::atomic<bool> is_ready = false;  // `compiled` is what it stays
    CompiledForm compiled;
  };
  // What runs these arguments; `tracer` traces the function where no form fits them. Null where it has no compiled form for them, or
  // not yet: the caller runs it itself. Thread-safe.
  std::shared_ptr<const Form> form_for(const std::vector<c10::IValue>& arguments, const Tracer& tracer);
  // The results of form_for; the arguments are moved then. None where that is null.
  std::optional<std::vector<c10::IValue>> run(std::vector<c10::IValue>&& arguments, const Tracer& tracer);

  // Of the forms that are compiled, in the order of their making.
  std::vector<CallPattern> patterns() const;

  // Why calls were not compiled, each reason once; "" when all were.
  std::string reasons() const;
  std::string describe() const;

 private:
  std::shared_ptr<const Form> find(const std::vector<c10::IValue>& arguments) const;
  std::shared_ptr<const Form> make(const std::vector<c10::IValue>& arguments, const Tracer& tracer);
  void add(const std::shared_ptr<const Form>& form);
  CallPattern pattern_for(const std::vector<c10::IValue>& arguments) const;
  std::pair<CallPattern, TracedForm> trace(const std::vector<c10::IValue>& arguments, const Tracer& tracer) const;
  static bool holds(const Form& form, const std::vector<c10::IValue>& arguments);

  const std::string name_;
  const PatternFinder find_packaged_;
  const Options options_;
  const SpecializationPolicy policy_;
  ForkMutex tracing_;
  mutable ForkSharedMutex mutex_;  // guards what follows
  std::vector<std::shared_ptr<const Form>> forms_;
  std::set<std::string> refused_;  // why arguments were
  // Nobody compiles the others any more: calls trace the function again.
  const ForkChildHook in_child_{[this] { std::erase_if(forms_, [](const auto& form) { return !form->is_ready; }); }};
};

}  // namespace cxxinductor::torch_bridge
