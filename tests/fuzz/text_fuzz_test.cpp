// Texts are untrusted: mutations of the golden files go through parsers, verifiers and the whole text pipeline. Whatever
// comes, the answer is a result or an Error of ours; the asan preset makes a crash of what would only be luck.
// CXXINDUCTOR_FUZZ_SEED repeats a run; the failing text is written beside the program before it is tried.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "fuzz/seed.h"
#include "ir/graph/text.h"
#include "ir/graph/verify.h"
#include "ir/loops/text.h"
#include "ir/loops/verify.h"
#include "ir/plan/text.h"
#include "ir/plan/verify.h"
#include "support/error.h"
#include "text_pipeline.h"
#include "unit/catch.h"

namespace {

using namespace cxxinductor;
namespace fs = std::filesystem;

// The program of every golden file, and what it prints where that is a program too.
std::vector<std::string> golden_texts() {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(CXXINDUCTOR_SOURCE_DIR) / "tests/filetests"))
    if (entry.path().extension() == ".cxxi") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  for (const fs::path& path : paths) {
    std::ifstream file(path);
    const std::string whole{std::istreambuf_iterator<char>(file), {}};
    texts.emplace_back(tools::input_part(whole));
    if (texts.back().size() == whole.size()) continue;
    const std::string printed = whole.substr(texts.back().size() + tools::expectation_mark.size());
    if (printed.rfind("plan ", 0) == 0 || printed.rfind("program ", 0) == 0) texts.push_back(printed);
  }
  return texts;
}

class Mutator {
 public:
  Mutator(const std::vector<std::string>& texts, uint64_t seed) : texts_(texts), random_(seed) {}

  std::string next() {
    std::string text = pick(texts_);
    for (size_t edits = 1 + below(4); edits > 0 && !text.empty(); --edits) edit(text);
    return text;
  }

 private:
  size_t below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }
  const std::string& pick(const std::vector<std::string>& from) { return from[below(from.size())]; }

  std::pair<size_t, size_t> word(const std::string& text) {
    const auto part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '%' || c == '@'; };
    size_t begin = below(text.size());
    while (begin > 0 && part(text[begin - 1])) --begin;
    size_t end = begin;
    while (end < text.size() && part(text[end])) ++end;
    return {begin, std::max(end, begin + 1)};
  }

  std::pair<size_t, size_t> line(const std::string& text) {
    size_t begin = text.rfind('\n', below(text.size()));
    begin = begin == std::string::npos ? 0 : begin + 1;
    const size_t end = text.find('\n', begin);
    return {begin, end == std::string::npos ? text.size() : end + 1};
  }

  void edit(std::string& text) {
    // clang-format off
    static const std::vector<std::string> pieces{
        "0", "-1", "1", "2", "64", "2147483648", "9223372036854775807", "99999999999999999999", "1e400", "nan", "-inf", "s0",
        "s0*s0", "floordiv(s0, 0)", "mod(s0, s1)", "(", ")", "[", "]", "<", ">", "{", "}", ",", ":", "%0", "%x", "@0", "$0",
        "$7", "\"", "\\", "f32", "bf16", "bool", "c64", "reduce<sum, dims=[0]>", "with", "strides", "own", "arena", "\n", " ", "\x80"};
    // clang-format on
    const auto [begin, end] = below(3) == 0 ? line(text) : word(text);
    switch (below(6)) {
      case 0:
        text.erase(begin, end - begin);
        break;
      case 1:
        text.replace(begin, end - begin, pick(pieces));
        break;
      case 2:
        text.insert(begin, pick(pieces));
        break;
      case 3:
        text.insert(begin, text.substr(begin, end - begin));
        break;
      case 4: {
        const std::string other = pick(texts_);
        const auto [from, to] = word(other);
        text.replace(begin, end - begin, other.substr(from, to - from));
        break;
      }
      case 5:
        text.resize(begin);
        break;
    }
  }

  const std::vector<std::string>& texts_;
  std::mt19937_64 random_;
};

template <class F>
void try_out(const F& f) {
  try {
    f();
  } catch (const Error&) {
  }
}

int mutations() {
  const char* given = std::getenv("CXXINDUCTOR_TEXT_MUTATIONS");
  return given ? std::atoi(given) : 30000;
}

}  // namespace

TEST_CASE("mutated texts give a result or an error", "[fuzz]") {
  const std::vector<std::string> texts = golden_texts();
  REQUIRE(texts.size() > 20);
  const uint64_t seed = fuzz::first_seed();
  Mutator mutator(texts, seed);
  const fs::path last = fs::path(CXXINDUCTOR_BINARY_DIR) / "text_fuzz_last.cxxi";
  int results = 0;
  for (int i = 0; i < mutations(); ++i) {
    const std::string text = mutator.next();
    std::ofstream(last) << text;
    INFO("seed " << seed << ", mutation " << i << ":\n" << text);
    CHECK_NOTHROW(try_out([&] { graph::verify(graph::parse(text)); }));
    CHECK_NOTHROW(try_out([&] { loops::verify(loops::parse(text)); }));
    CHECK_NOTHROW(try_out([&] { plan::verify(plan::parse(text)); }));
    CHECK_NOTHROW(try_out([&] {
      tools::run_text(text, {tools::parse_steps("merge-kernels"), tools::parse_targets("", text), {}});
      ++results;
    }));
  }
  CHECK(results > 0);  // some mutations are programs still
  fs::remove(last);
}
