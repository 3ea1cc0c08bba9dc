#include <fmt/format.h>

#include "driver/bisect.h"
#include "support/line_diff.h"

namespace cxxinductor::driver {
namespace {

std::string indented(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines += fmt::format("  {}\n", text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string headline(const BisectReport& report) {
  switch (report.symptom) {
    case BisectReport::Symptom::None:
      return "nothing is wrong: all stages agree\n";
    case BisectReport::Symptom::Differs:
      return fmt::format("the form after stage {} is the first that differs\n", report.stage);
    case BisectReport::Symptom::Fails:
      return fmt::format("stage {} fails\n", report.stage);
    case BisectReport::Symptom::KernelDiffers:
      return "all stages agree; a kernel differs from the plan\n";
    case BisectReport::Symptom::Judged:
      return "the graph is bad\n";
  }
  return "";
}

std::string text_of(const BisectReport::Culprit& culprit) {
  const auto limited = [&](std::string_view kind, std::string_view before_name, std::string_view limit) {
    return fmt::format("guilty: {}{}{} ({}={}), in stage {}\n", kind, culprit.name.empty() ? "" : before_name, culprit.name, limit, culprit.number,
                       culprit.stage.empty() ? "unknown" : culprit.stage);
  };
  std::string text;
  switch (culprit.kind) {
    case BisectReport::Culprit::Kind::Pass:
      text = limited("pass", " ", "pass_limit");
      break;
    case BisectReport::Culprit::Kind::Fusion:
      text = limited("fusion", ": ", "fusion_limit");
      break;
    case BisectReport::Culprit::Kind::TextPass:
      text = fmt::format("guilty: registered pass {}, after stage {}\n", culprit.name, culprit.stage);
      break;
  }
  if (const std::string lines = line_diff(culprit.before, culprit.after); !lines.empty()) text += fmt::format("what it changes:\n{}", indented(lines));
  return text + fmt::format("without it all is well: option {}\n", culprit.avoided_by);
}

}  // namespace

std::string describe(const BisectReport& report) {
  std::string text = headline(report) + indented(report.detail);
  if (report.culprit)
    text += text_of(*report.culprit);
  else if (report.symptom != BisectReport::Symptom::None)
    text += "no single pass or fusion is guilty: it is so without any of them\n";
  for (const std::string& note : report.notes) text += fmt::format("note: {}\n", note);
  return text;
}

}  // namespace cxxinductor::driver
