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

// visit(line, name): of each line; name: the template that it includes, or "".
template <class Visit>
void for_each_line(std::string_view text, Visit visit) {
  constexpr std::string_view include = "#include \"";
  while (!text.empty()) {
    const size_t newline = text.find('\n');
    const std::string_view line = text.substr(0, newline);
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
    visit(line, line.starts_with(include) ? line.substr(include.size(), line.rfind('"') - include.size()) : std::string_view());
  }
}

void collect_included(std::string_view text, std::map<std::string, std::string>& found) {
  for_each_line(text, [&](std::string_view, std::string_view name) {
    if (name.empty()) return;
    const std::string_view included = embedded_text(name);
    if (found.try_emplace(std::string(name), included).second) collect_included(included, found);
  });
}

}  // namespace

std::string template_text(std::string_view name) {
  std::string out;
  for_each_line(embedded_text(name), [&](std::string_view line, std::string_view included) {
    if (included.empty())
      out.append(line).append("\n");
    else
      out += template_text(included);
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

namespace {

constexpr std::string_view variable_begin = "/*{{", name_end = "*/", variable_end = "/*}}*/";

// The spaces that `text` starts its last line with.
std::string indentation_of(std::string_view text) {
  const size_t newline = text.rfind('\n');
  const std::string_view line = newline == std::string_view::npos ? text : text.substr(newline + 1);
  return std::string(line.substr(0, std::min(line.find_first_not_of(' '), line.size())));
}

void append_indented(std::string& out, std::string_view value) {
  const std::string indentation = indentation_of(out);
  while (value.ends_with('\n')) value.remove_suffix(1);
  for (size_t at = 0; at < value.size();) {
    const size_t newline = std::min(value.find('\n', at), value.size());
    if (at > 0) out += '\n';
    if (at > 0 && newline > at && value[at] != '#') out += indentation;  // directives stay at the line's start
    out += value.substr(at, newline - at);
    at = newline + 1;
  }
}

}  // namespace

std::string render_template(std::string_view text, const TemplateVariables& values, std::string_view file) {
  std::string out;
  std::set<std::string, std::less<>> used;
  while (true) {
    const size_t begin = text.find(variable_begin);
    const std::string_view before = text.substr(0, begin);
    if (before.find(variable_end) != std::string_view::npos) throw_internal("{}: a variable ends that did not begin", file);
    out += before;
    if (begin == std::string_view::npos) break;
    text.remove_prefix(begin + variable_begin.size());
    const size_t name_length = text.find(name_end), end = text.find(variable_end);
    if (name_length == std::string_view::npos || end == std::string_view::npos || end < name_length)
      throw_internal("{}: a hole does not end", file);
    const std::string_view name = text.substr(0, name_length);
    if (text.substr(0, end).find(variable_begin) != std::string_view::npos)
      throw_internal("{}: the hole '{}' holds another", file, name);
    const auto value = values.find(name);
    if (value == values.end()) throw_internal("{}: no value for the variable '{}'", file, name);
    append_indented(out, value->second);
    used.emplace(name);
    text.remove_prefix(end + variable_end.size());
  }
  for (const auto& [name, value] : values)
    if (!used.contains(name)) throw_internal("{}: there is no hole '{}' to fill", file, name);
  return out;
}

std::string render_template_file(std::string_view name, const TemplateVariables& values) {
  return render_template(template_text(name), values, name);
}

}  // namespace cxxinductor::codegen
