// A compiled graph. Immutable and re-entrant: several threads may call run at once, each call has its own state.
//
// The constructor does all that does not depend on a call: expressions become one flat program, steps become tables of
// slots and buffer numbers, externs are resolved. run() evaluates the program, walks the steps and builds the outputs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/plan/plan.h"
#include "runtime/host.h"
#include "runtime/kernels.h"
#include "runtime/observer.h"

namespace cxxinductor::runtime {

// Whether calls on a GPU are recorded, and replayed by later calls: On after two calls with the same sizes, Auto after eight, AtOnce
// the first one.
enum class UseGraphs : uint8_t { Off, Auto, On, AtOnce };
struct GraphSettings {
  UseGraphs use = UseGraphs::Off;
  bool branches = false;  // steps that are independent run side by side in a recording, where an estimate says that it saves time
};

struct CallOptions {
  // Checks dtype, device, rank, sizes, strides and the ranges of symbols: on wherever no Python guards have checked them. An
  // input whose strides are not those that the plan declares is a UserError: a silent copy would lose writes to a
  // mutated input and hide the cost for the others.
  bool check_inputs = true;
  StepObserver* observer = nullptr;  // must outlive the call
  bool graphs = true;                // recordings may be made and used; the caller captures no graph of its own
  int64_t library_settings = 0;      // stands for what libraries choose kernels by, where the plan calls any: calls with others have recordings of their own
  // Where an exception of the host's leaves run unchanged: gets the names of the inputs that had been written by then.
  std::string* written = nullptr;
};

// A call that runs in parts. Destroying it drops what it computed; what its steps wrote to inputs stays.
class PartialCall {
 public:
  virtual ~PartialCall() = default;
  // The tensor of an input that had no memory when the call began. Before the first step that uses it.
  virtual void supply(size_t input, TensorRef tensor) = 0;
  // Runs the steps before `end` that have not run. Errors are those of Executable::run.
  virtual void advance(size_t end) = 0;
  // Runs all other steps. Once.
  virtual std::vector<Value> finish() = 0;
};

class Executable {
 public:
  // `host` resolves the externs; run may be given another host of the same kind.
  // graphs: whether and how calls on a GPU are recorded and replayed (CUDA graphs).
  Executable(plan::Plan plan, std::shared_ptr<KernelProvider> kernels, Host& host, GraphSettings graphs = {});
  ~Executable();
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;
  // inputs: one for each plan input, moved from: the last use of an input releases it. Errors of this library raised after
  // the first step name the inputs that had been written by then.
  std::vector<Value> run(Host& host, std::vector<Value> inputs, const CallOptions& options = {}) const;
  // run() in parts, without checks of inputs. Those that are to be supplied later have their sizes, and any address. Both the executable and
  // the host outlive the call, which runs on the streams that are current now.
  std::unique_ptr<PartialCall> begin(Host& host, std::vector<Value> inputs) const;
  const plan::Plan& plan() const;
  // Why steps are not recorded, with the number of those; empty where nothing is recorded because of the option or the plan's devices.
  std::vector<std::pair<std::string, int>> not_recorded() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cxxinductor::runtime
