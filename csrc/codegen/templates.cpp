#include "codegen/templates.h"

#include "support/error.h"

namespace cxxinductor::codegen {

// Generated from kernels_templates/ by cmake/EmbedTemplates.cmake.
struct EmbeddedTemplate {
  std::string_view name, text;
};
extern const EmbeddedTemplate embedded_templates[];
extern const unsigned long embedded_template_count;

std::string template_text(std::string_view name) {
  for (unsigned long i = 0; i < embedded_template_count; ++i) {
    if (embedded_templates[i].name != name) continue;
    std::string out;
    std::string_view rest = embedded_templates[i].text;
    while (!rest.empty()) {
      const size_t newline = rest.find('\n');
      const std::string_view line = rest.substr(0, newline);
      rest.remove_prefix(newline == std::string_view::npos ? rest.size() : newline + 1);
      constexpr std::string_view include = "#include \"";
      if (line.starts_with(include))
        out += template_text(line.substr(include.size(), line.rfind('"') - include.size()));
      else
        out.append(line).append("\n");
    }
    return out;
  }
  throw_internal("no kernel template is named {}", name);
}

}  // namespace cxxinductor::codegen
