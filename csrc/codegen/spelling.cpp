#include "codegen/spelling.h"

#include <fmt/format.h>

#include "support/error.h"

namespace cxxinductor::codegen {

std::string identifier(std::string_view name) {
  std::string text;
  for (char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    text += plain ? std::string(1, c) : fmt::format("_{:02x}_", static_cast<unsigned char>(c));
  }
  return text;
}

std::string one_line(std::string_view text) {
  std::string safe;
  for (char c : text) safe += static_cast<unsigned char>(c) < 32 || c == '"' || c == '\\' ? ' ' : c;
  return safe;
}

std::string value_name(plan::StmtId id) { return fmt::format("v{}", id.index()); }

std::string applied_op(const ScalarOpInfo& op, std::string_view spelling, DType dtype, std::string_view type, std::span<const std::string> operands) {
  std::string text(spelling);
  if (text.empty() && op.registered) throw_unsupported("{} is registered without an expression for this target", op.name);
  if (text.empty()) {
    text = fmt::format("cxxi_{}(", op.name);
    for (int i = 0; i < op.arity; ++i) text += fmt::format("{}{{{}}}", i > 0 ? ", " : "", i);
    text += ")";
  }
  const auto replace = [&text](std::string_view placeholder, std::string_view with) {
    for (size_t at = text.find(placeholder); at != std::string::npos; at = text.find(placeholder, at + with.size())) text.replace(at, placeholder.size(), with);
  };
  for (size_t i = 0; i < operands.size(); ++i) replace(fmt::format("{{{}}}", i), operands[i]);
  replace("{T}", type);
  replace("{f}", dtype == DType::F32 ? "f" : "");
  return text;
}

}  // namespace cxxinductor::codegen
