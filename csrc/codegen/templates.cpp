#include "codegen/templates.h"

#include <algorithm>

#include "support/error.h"

namespace cxxinductor::codegen {

// Generated from kernels_templates/ by cmake/EmbedTemplates.cmake.
struct EmbeddedTemplate {
  std::string_view name, text;
};
extern const EmbeddedTemplate embedded_templates[];
extern const unsigned long embedded_template_count;

namespace {

std::string_view embedded_text(std::string_view name) {
  for (unsigned long i = 0; i < embedded_template_count; ++i)
    if (embedded_templates[i].name == name) return embedded_templates[i].text;
  throw_internal("no kernel template is named {}", name);
}

constexpr std::string_view include_mark = "#include \"";

// Where the first line begins that includes a template.
size_t find_include(std::string_view text) {
  size_t at = text.find(include_mark);
  while (at != std::string_view::npos && at > 0 && text[at - 1] != '\n') at = text.find(include_mark, at + 1);
  return at;
}

// The template that the first line of the text includes.
std::string_view included_by(std::string_view text) {
  text.remove_prefix(include_mark.size());
  return text.substr(0, text.find('"'));
}

void collect_included(std::string_view text, std::map<std::string, std::string>& found) {
  for (size_t at = find_include(text); at != std::string_view::npos; at = find_include(text)) {
    text.remove_prefix(at);
    const std::string_view name = included_by(text), included = embedded_text(name);
    if (found.try_emplace(std::string(name), included).second) collect_included(included, found);
    text.remove_prefix(include_mark.size());
  }
}

void append_text(std::string_view name, std::string& out) {
  std::string_view text = embedded_text(name);
  while (true) {
    const size_t include = find_include(text);
    out += text.substr(0, include);
    if (include == std::string_view::npos) return;
    text.remove_prefix(include);
    append_text(included_by(text), out);
    text.remove_prefix(std::min(text.find('\n') + 1, text.size()));
  }
}

}  // namespace

std::string template_text(std::string_view name) {
  std::string out;
  append_text(name, out);
  return out;
}

void add_template(TextWriter& out, std::string_view name, Templates templates) {
  if (templates == Templates::Inlined)
    out.raw_line(template_text(name));
  else
    out.line("#include \"{}\"", name);
}

std::map<std::string, std::string> included_templates(std::string_view text) {
  std::map<std::string, std::string> found;
  collect_included(text, found);
  return found;
}

}  // namespace cxxinductor::codegen
