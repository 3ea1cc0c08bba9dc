#include "codegen/templates.h"

#include <set>

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

// The template that a line includes, or "".
std::string_view included_by(std::string_view line) {
  constexpr std::string_view include = "#include \"";
  return line.starts_with(include) ? line.substr(include.size(), line.rfind('"') - include.size()) : std::string_view();
}

void collect_included(std::string_view text, std::map<std::string, std::string>& found) {
  for_each_line(text, [&](std::string_view line) {
    const std::string_view name = included_by(line);
    if (name.empty()) return;
    const std::string_view included = embedded_text(name);
    if (found.try_emplace(std::string(name), included).second) collect_included(included, found);
  });
}

}  // namespace

std::string template_text(std::string_view name) {
  std::string out;
  for_each_line(embedded_text(name), [&](std::string_view line) {
    const std::string_view included = included_by(line);
    out += included.empty() ? std::string(line) + "\n" : template_text(included);
  });
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
