#include "support/text_cursor.h"

#include <charconv>

#include "support/text_error.h"

namespace cxxinductor {
namespace {

// Of ASCII, whatever the locale says: most of what a reader does is asking these.
bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '_'; }
bool is_identifier(char c) { return is_word(c) || c == '.'; }

}  // namespace

void TextCursor::skip_blanks() {
  while (offset_ < text_.size()) {
    if (is_blank(text_[offset_])) {
      ++offset_;
    } else if (text_[offset_] == ';') {
      while (offset_ < text_.size() && text_[offset_] != '\n') ++offset_;
    } else {
      return;
    }
  }
}

bool TextCursor::at_end() {
  skip_blanks();
  return offset_ == text_.size();
}

bool TextCursor::looking_at(std::string_view token) {
  skip_blanks();
  // Most tokens that are tried differ in their first letter.
  if (offset_ == text_.size() || text_[offset_] != token[0] || !text_.substr(offset_).starts_with(token)) return false;
  // A keyword must end where the word ends.
  const size_t end = offset_ + token.size();
  return !(is_word(token.back()) && end < text_.size() && is_word(text_[end]));
}

bool TextCursor::accept(std::string_view token) {
  if (!looking_at(token)) return false;
  offset_ += token.size();
  return true;
}

void TextCursor::expect(std::string_view token) {
  if (!accept(token)) fail(fmt::format("'{}'", token));
}

std::string TextCursor::identifier(std::string_view what) {
  skip_blanks();
  const size_t begin = offset_;
  if (begin < text_.size() && (is_letter(text_[begin]) || text_[begin] == '_')) {
    size_t end = begin;
    while (end < text_.size()) {
      if (is_identifier(text_[end])) {
        ++end;
      } else if (text_.substr(end, 2) == "::" && end + 2 < text_.size() && is_word(text_[end + 2])) {
        end += 2;
      } else {
        break;
      }
    }
    offset_ = end;
    return std::string(text_.substr(begin, end - begin));
  }
  fail(what);
}

std::string TextCursor::sigil_name(char sigil, std::string_view what) {
  skip_blanks();
  size_t end = offset_ + 1;
  if (offset_ >= text_.size() || text_[offset_] != sigil) fail(what);
  while (end < text_.size() && is_identifier(text_[end])) ++end;
  if (end == offset_ + 1) fail(what);
  std::string name(text_.substr(offset_ + 1, end - offset_ - 1));
  offset_ = end;
  return name;
}

bool TextCursor::looking_at_number() {
  skip_blanks();
  size_t at = offset_;
  if (at < text_.size() && text_[at] == '-') ++at;
  return at < text_.size() && is_digit(text_[at]);
}

int64_t TextCursor::integer(std::string_view what) {
  if (!looking_at_number()) fail(what);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text_.data() + offset_, text_.data() + text_.size(), value);
  if (error != std::errc()) fail(what);
  offset_ = static_cast<size_t>(end - text_.data());
  return value;
}

double TextCursor::real(std::string_view what) {
  skip_blanks();
  size_t end = offset_;
  if (end < text_.size() && (text_[end] == '-' || text_[end] == '+')) ++end;
  while (end < text_.size()) {
    const char c = text_[end];
    const bool exponent_sign = (c == '-' || c == '+') && end > 0 && std::string_view("eEpP").find(text_[end - 1]) != std::string_view::npos;
    if (!is_identifier(c) && !exponent_sign) break;
    ++end;
  }
  std::string_view token = text_.substr(offset_, end - offset_);
  const bool negative = token.starts_with('-');
  if (negative || token.starts_with('+')) token.remove_prefix(1);
  const bool hexadecimal = token.starts_with("0x") || token.starts_with("0X");
  if (hexadecimal) token.remove_prefix(2);
  double value = 0;
  // Reads inf and nan too. Unlike strtod, it does not depend on the locale. The sign was read before.
  const auto [parsed_end, error] =
      std::from_chars(token.data(), token.data() + token.size(), value, hexadecimal ? std::chars_format::hex : std::chars_format::general);
  if (token.empty() || token[0] == '-' || error != std::errc() || parsed_end != token.data() + token.size()) fail(what);
  if (negative) value = -value;
  offset_ = end;
  return value;
}

std::string TextCursor::quoted(std::string_view what) {
  skip_blanks();
  if (offset_ >= text_.size() || text_[offset_] != '"') fail(what);
  std::string value;
  for (size_t at = offset_ + 1;; ++at) {
    const size_t special = text_.find_first_of("\"\\", at);
    if (special == std::string_view::npos) break;
    value.append(text_, at, special - at);
    if (text_[special] == '"') {
      offset_ = special + 1;
      return value;
    }
    at = special + 1;
    if (at == text_.size()) break;
    value += text_[at] == 'n' ? '\n' : text_[at];
  }
  fail("a closing '\"'");
}

std::string_view TextCursor::balanced_until(std::string_view stops) {
  skip_blanks();
  const size_t begin = offset_;
  int depth = 0;
  for (; offset_ < text_.size(); ++offset_) {
    const char c = text_[offset_];
    if (depth == 0 && stops.find(c) != std::string_view::npos) break;
    if (c == '(' || c == '[' || c == '{') ++depth;
    if ((c == ')' || c == ']' || c == '}') && --depth < 0) break;
  }
  return text_.substr(begin, offset_ - begin);
}

int TextCursor::line() const {
  int line = 1;
  for (size_t i = 0; i < offset_ && i < text_.size(); ++i) line += text_[i] == '\n';
  return line;
}

void TextCursor::fail(std::string_view expected) {
  skip_blanks();
  const size_t newline = text_.substr(0, offset_).rfind('\n');
  const size_t column = newline == std::string_view::npos ? offset_ + 1 : offset_ - newline;
  std::string_view found = text_.substr(offset_, 24);
  found = found.substr(0, found.find('\n'));
  throw TextError(fmt::format("line {}, column {}", line(), column),
                  fmt::format("expected {}, found {}", expected, found.empty() ? std::string("the end of the text") : fmt::format("'{}'", found)));
}

TextCursor::Nested::Nested(TextCursor& cursor) : cursor_(cursor) {
  constexpr int deepest = 200;
  if (++cursor_.depth_ > deepest) {
    --cursor_.depth_;
    throw TextError(fmt::format("line {}", cursor_.line()), fmt::format("nested more than {} deep", deepest));
  }
}

}  // namespace cxxinductor
