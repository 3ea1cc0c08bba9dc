// Builds indented text; every printer of an IR and every emitter of source writes through it.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace cxxinductor {

class TextWriter {
 public:
  // One line at the current indentation.
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    formatted_line(format, fmt::make_format_args(args...));
  }
  void raw_line(std::string_view line) {
    if (!line.empty()) text_.append(static_cast<size_t>(depth_) * 2, ' ').append(line);
    text_.push_back('\n');
  }
  void blank() { text_.push_back('\n'); }
  void indent() { ++depth_; }
  void dedent() { --depth_; }
  const std::string& text() const& { return text_; }
  std::string take() && { return std::move(text_); }

 private:
  void formatted_line(fmt::string_view format, fmt::format_args args);

  std::string text_;
  int depth_ = 0;
};

}  // namespace cxxinductor
