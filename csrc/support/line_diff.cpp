#include "support/line_diff.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace cxxinductor {
namespace {

using Lines = std::vector<std::string_view>;

Lines lines_of(std::string_view text) {
  Lines lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

struct Line {
  char mark;  // ' ', '-' or '+'
  std::string_view text;
};

// Lengths of longest common subsequences of the rest of both from each pair of positions on.
class CommonLengths {
 public:
  CommonLengths(const Lines& a, const Lines& b) : columns_(b.size() + 1), lengths_((a.size() + 1) * columns_) {
    for (size_t i = a.size(); i-- > 0;)
      for (size_t j = b.size(); j-- > 0;) at(i, j) = a[i] == b[j] ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
  }
  uint32_t& at(size_t i, size_t j) { return lengths_[i * columns_ + j]; }

 private:
  size_t columns_;
  std::vector<uint32_t> lengths_;
};

void append_changes(const Lines& a, const Lines& b, std::vector<Line>& out) {
  constexpr size_t most_pairs = size_t{1} << 24;
  size_t i = 0, j = 0;
  if (a.size() * b.size() <= most_pairs) {
    CommonLengths common(a, b);
    while (i < a.size() && j < b.size()) {
      if (a[i] == b[j]) {
        out.push_back({' ', a[i]});
        ++i, ++j;
      } else if (common.at(i + 1, j) >= common.at(i, j + 1)) {
        out.push_back({'-', a[i++]});
      } else {
        out.push_back({'+', b[j++]});
      }
    }
  }
  for (; i < a.size(); ++i) out.push_back({'-', a[i]});
  for (; j < b.size(); ++j) out.push_back({'+', b[j]});
}

std::string with_context(const std::vector<Line>& lines, size_t context) {
  std::vector<bool> shown(lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].mark == ' ') continue;
    for (size_t near = i - std::min(i, context); near < std::min(i + context + 1, lines.size()); ++near) shown[near] = true;
  }
  std::string text;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (shown[i])
      text += std::string{lines[i].mark, ' '} + std::string(lines[i].text) + "\n";
    else if (i == 0 || shown[i - 1])
      text += "...\n";
  }
  return text;
}

}  // namespace

std::string line_diff(std::string_view before, std::string_view after, size_t context) {
  if (before == after) return "";
  Lines a = lines_of(before), b = lines_of(after);
  const auto [a_end, b_end] = std::ranges::mismatch(a, b);
  const auto same_begin = static_cast<size_t>(a_end - a.begin());
  size_t same_end = 0;
  while (same_begin + same_end < std::min(a.size(), b.size()) && a[a.size() - 1 - same_end] == b[b.size() - 1 - same_end]) ++same_end;
  std::vector<Line> lines;
  for (size_t i = 0; i < same_begin; ++i) lines.push_back({' ', a[i]});
  const auto middle = [&](const Lines& whole) {
    return Lines(whole.begin() + static_cast<std::ptrdiff_t>(same_begin), whole.end() - static_cast<std::ptrdiff_t>(same_end));
  };
  append_changes(middle(a), middle(b), lines);
  for (size_t i = a.size() - same_end; i < a.size(); ++i) lines.push_back({' ', a[i]});
  return with_context(lines, context);
}

}  // namespace cxxinductor
