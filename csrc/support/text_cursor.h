// Reads the text forms of the IRs. Text is untrusted: every failure is a UserError with line, column, what was
// expected and what was found; nothing is read past the end; nesting depth is limited.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cxxinductor {

class TextCursor {
 public:
  explicit TextCursor(std::string_view text) : text_(text) {}

  // Skips blanks, newlines and comments (";" to the end of the line).
  void skip_blanks();
  bool at_end();
  // True, and consumed, if the next token is exactly this punctuation or keyword.
  bool accept(std::string_view token);
  void expect(std::string_view token);
  bool looking_at(std::string_view token);

  // [A-Za-z_][A-Za-z0-9_.:]*
  std::string identifier(std::string_view what);
  // Sigil ("%", "@", "$") followed by [A-Za-z0-9_.]+, returned without the sigil.
  std::string sigil_name(char sigil, std::string_view what);
  int64_t integer(std::string_view what);
  double real(std::string_view what);         // accepts inf, -inf, nan, hexadecimal floats
  std::string quoted(std::string_view what);  // "..." with \" \\ \n escapes
  bool looking_at_number();
  // The text up to, and not including, the first of `stops` at nesting depth 0 of ()[]{}; for embedded expressions.
  std::string_view balanced_until(std::string_view stops);

  [[noreturn]] void fail(std::string_view expected);
  size_t offset() const { return offset_; }
  int line() const;

  // Nesting guard for recursive descent: throws beyond 200 levels.
  class Nested {
   public:
    explicit Nested(TextCursor& cursor);
    ~Nested() { --cursor_.depth_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;

   private:
    TextCursor& cursor_;
  };

 private:
  std::string_view text_;
  size_t offset_ = 0;
  int depth_ = 0;
};

}  // namespace cxxinductor
