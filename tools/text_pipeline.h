// The pipeline on texts: what cxxi-opt and the golden-file tests share.
//
// A run is a list of steps over one IR text: names of stages (driver/stages.h), of rewrites of calls (text_pipeline.cpp), or
//   parse         read, verify
//   bodies        the kernels' bodies of a plan, verified
//   passes        the graph pipeline on a graph, the loops pipeline on a program
// A single word stands for the shipped pipeline up to it, from the form that the text is in. Several words are taken as they stand:
// "parse | lower" is lowering alone. The form is verified after each step.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "driver/stages.h"
#include "ir/target.h"
#include "support/options.h"

namespace cxxinductor::tools {

// What a golden-file test expects follows this line; cxxi-opt ignores it, so that it reads those files too.
inline constexpr std::string_view expectation_mark = "; ---- expect\n";
inline std::string_view input_part(std::string_view text) { return text.substr(0, text.find(expectation_mark)); }

struct TextRun {
  std::vector<std::string> steps;
  Targets targets;
  Options options;
  driver::StageObserver observer;  // may be empty
};

// Without blanks at both ends, and without the end of the line.
std::string trimmed(std::string_view text);
// Words separated by '|'; UserError lists the known ones for an unknown one.
std::vector<std::string> parse_steps(std::string_view text);
// The stages of the table from `first` to `last` as steps; first empty: from the one that takes the form that the text is in.
std::vector<std::string> steps_between(std::string_view first, std::string_view last);
// "cuda", "cuda sm_80", "cpu", "cpu x86-64-v4", or several of them with commas between ("cuda:0, cuda:1, cpu"), the main
// device first; empty: the text's own devices. The number of multiprocessors or threads is fixed, so that output does not
// depend on the machine.
Targets parse_targets(std::string_view text, std::string_view ir_text);
// The form that the steps make of a text, and its text.
driver::Form run_steps(std::string_view ir_text, const TextRun& run);
std::string run_text(std::string_view ir_text, const TextRun& run);

}  // namespace cxxinductor::tools
