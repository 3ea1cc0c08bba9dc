// Schemas as torch writes them: "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor".
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "model/schema.h"

namespace cxxinductor::model {

struct NamedSchema {
  std::string callee;    // "aten::add"
  std::string overload;  // "Tensor"
  Schema schema;
};

// The declaration may be followed by tags in braces: "{nondeterministic_seeded}". UserError with the column on bad text.
NamedSchema parse_schema(std::string_view declaration);

// A schema a line. Answers without a dispatcher: for tools and tests.
class SchemaTable final : public SchemaSource {
 public:
  explicit SchemaTable(std::string_view lines);
  std::optional<Schema> find(std::string_view callee, std::string_view overload) const override;
  size_t size() const { return schemas_.size(); }

 private:
  std::map<std::string, Schema, std::less<>> schemas_;  // by full name
};

}  // namespace cxxinductor::model
