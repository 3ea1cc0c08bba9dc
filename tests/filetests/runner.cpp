// Golden-file tests: every tests/filetests/**/*.cxxi says what to run, on what, and what comes out.
//
//   ; run: lower | fuse          steps of tools/text_pipeline.h; a single word stands for all up to it;
//                                a last word parse-error, passes-error ... expects that step to refuse
//   ; target: cuda sm_90a        optional
//   ; option: fusion=false       optional, may be repeated
//   graph @f(...) { ... }
//   ; ---- expect
//   the output, or the error's message
//
// An output that is a form of the compiler has to parse, and to print as the same text again.
// CXXINDUCTOR_BLESS=1 rewrites the expectations.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "support/error.h"
#include "support/line_diff.h"
#include "text_pipeline.h"
#include "unit/catch.h"

namespace {

using namespace cxxinductor;
namespace fs = std::filesystem;

struct FileTest {
  std::string head;      // everything before the mark: directives and input
  std::string expected;  // everything after it
  std::string steps, target;
  std::vector<std::string> options;
};

std::string read_text(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

FileTest read_test(const fs::path& path) {
  FileTest test;
  const std::string text = read_text(path);
  test.head = tools::input_part(text);
  if (test.head.size() < text.size()) test.expected = text.substr(test.head.size() + tools::expectation_mark.size());
  if (!test.head.empty() && test.head.back() != '\n') test.head += '\n';
  for (const std::string& line : lines_of(test.head)) {
    if (line.starts_with("; run:")) test.steps = tools::trimmed(std::string_view(line).substr(6));
    if (line.starts_with("; target:")) test.target = tools::trimmed(std::string_view(line).substr(9));
    if (line.starts_with("; option:")) test.options.push_back(tools::trimmed(std::string_view(line).substr(9)));
  }
  return test;
}

struct Outcome {
  std::string output;
  bool as_asked = true;   // an error where the steps end in -error, and none elsewhere
  std::string reprinted;  // the text that the output's form has once the output is parsed, or why it does not parse
};

// What the text of a form becomes, parsed and printed.
std::string reprint(driver::FormKind kind, const std::string& text) {
  if (kind == driver::FormKind::Text) return text;
  try {
    return driver::print(driver::parse_form(text));
  } catch (const Error& error) {
    return fmt::format("{}\n", error.what());
  }
}

Outcome run_test(const FileTest& test) {
  constexpr std::string_view refusal = "-error";
  std::string steps = test.steps;
  const bool expects_error = steps.ends_with(refusal);
  if (expects_error) steps.resize(steps.size() - refusal.size());
  tools::TextRun run{tools::parse_steps(steps), tools::parse_targets(test.target, test.head), {}};
  for (const std::string& option : test.options) set_option(run.options, option.substr(0, option.find('=')), option.substr(option.find('=') + 1));
  try {
    const driver::Form form = tools::run_steps(test.head, run);
    const std::string text = driver::print(form);
    return {text, !expects_error, reprint(driver::kind_of(form), text)};
  } catch (const Error& error) {
    const std::string text = fmt::format("{}\n", error.what());
    return {text, expects_error, text};
  }
}

std::vector<fs::path> test_files() {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(CXXINDUCTOR_SOURCE_DIR) / "tests/filetests"))
    if (entry.path().extension() == ".cxxi") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

bool blessing() {
  const char* value = std::getenv("CXXINDUCTOR_BLESS");
  return value != nullptr && std::string_view(value) == "1";
}

}  // namespace

TEST_CASE("golden files") {
  const std::vector<fs::path> paths = test_files();
  REQUIRE_FALSE(paths.empty());
  for (const fs::path& path : paths) {
    const std::string name = fs::relative(path, fs::path(CXXINDUCTOR_SOURCE_DIR) / "tests/filetests").string();
    const FileTest test = read_test(path);
    CAPTURE(name);
    if (test.steps.empty()) {
      FAIL_CHECK("expected a line '; run: ...' in " << name);
      continue;
    }
    const Outcome outcome = run_test(test);
    if (!outcome.as_asked) {
      FAIL_CHECK(name << ": expected " << (test.steps.ends_with("-error") ? "an error" : "no error") << ", found\n" << outcome.output);
      continue;
    }
    if (outcome.reprinted != outcome.output)
      FAIL_CHECK(name << ": the output is another text once it is parsed (- output, + parsed and printed)\n"
                      << line_diff(outcome.output, outcome.reprinted, 5));
    if (outcome.output == test.expected) continue;
    if (blessing())
      std::ofstream(path) << test.head << tools::expectation_mark << outcome.output;
    else
      FAIL_CHECK(name << ": the output differs (- expected, + found); CXXINDUCTOR_BLESS=1 rewrites the file\n" << line_diff(test.expected, outcome.output, 5));
  }
  SUCCEED();
}
