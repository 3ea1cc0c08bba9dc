// Finds what makes a graph wrong, fail to compile, or bad in any other way that a caller can tell: the first stage whose form differs from
// what the graph means, and in it the pass or the fusion; where all forms agree, the kernel.
//
// It halves options pass_limit and fusion_limit: what they leave is a prefix of the whole compile, so the application that is named is one
// with which the graph is bad and without which, nothing else being different, it is good.
//
// Pure but for the callbacks of the request: forms are interpreted (interp/interp.h), and kernels run where the caller runs them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "driver/stages.h"
#include "interp/interp.h"

namespace cxxinductor::driver {

struct BisectRequest {
  PipelineInputs inputs;  // option freezing is off: what it splits off would be another graph
  Form form;
  std::span<const Stage> stages;  // what becomes of the form; empty: from the first that takes it to fit-memory
  // One tensor and symbol for each of the form's; symbols that no input has are defined as the graph runs.
  interp::Arguments arguments;
  // Makes what answers the library calls of one interpretation: of random draws, the same each time. Empty: such graphs are not interpreted.
  std::function<interp::ExternHandler()> make_externs;
  // What interp::run should give; absent: what it gives for the first form that it knows.
  std::optional<std::vector<interp::Tensor>> expected;
  // Compiles and runs the kernels of a plan. Gives what is wrong with the first wrong one, as KernelMismatch says it; empty: nothing. The
  // function is empty where kernels cannot run.
  std::function<std::string(const plan::Plan& plan, const Options& options)> run_kernels;
  // Takes the place of all the above: what is bad about the graph with these options (too slow, for instance); empty: nothing.
  std::function<std::string(const Options& options)> judge;
  std::function<void(std::string_view line)> progress;  // may be empty
};

struct BisectReport {
  enum class Symptom : uint8_t {
    None,
    Differs,        // the form after `stage` means something else
    Fails,          // `stage` throws, or makes an invalid form
    KernelDiffers,  // a kernel does not compute what the plan says
    Judged,         // BisectRequest::judge said so
  };
  Symptom symptom = Symptom::None;
  std::string stage;   // of Differs and Fails
  std::string detail;  // the error, the first output that differs with its worst element, the kernel
  // An application of a pass, a fusion, or a text pass of the user's. Absent where the graph is bad without any, too: then the stage itself, or
  // the kernel, is at fault.
  struct Culprit {
    enum class Kind : uint8_t { Pass, Fusion, TextPass };
    Kind kind = Kind::Pass;
    int64_t number = 0;         // of a pass or a fusion: the value of pass_limit or fusion_limit that lets it happen; with one less it does not
    std::string name;           // of the pass; which regions are fused. Empty: it fails before it says
    std::string stage;          // the first one whose form it changes
    std::string before, after;  // that form with one less and with it; empty where the stage fails
    std::string avoided_by;     // options with which the symptom is gone, as name=value
  };
  std::optional<Culprit> culprit;
  std::vector<std::string> notes;  // what was not looked at, and why
};

// Interrupted as compiles are. UserError as from run_stages for a form that the stages do not take.
BisectReport bisect(BisectRequest request);

// For people: several lines, with the differences between the forms before and after.
std::string describe(const BisectReport& report);

}  // namespace cxxinductor::driver
