// The schemas of PyTorch's ops, for tests without torch.
#pragma once

#include <fstream>
#include <iterator>
#include <string>

#include "model/schema_text.h"

namespace cxxinductor::model {

inline const SchemaTable& aten_schemas() {
  static const SchemaTable table = [] {
    std::ifstream file(std::string(CXXINDUCTOR_SOURCE_DIR) + "/tools/aten_schemas.txt");
    return SchemaTable(std::string{std::istreambuf_iterator<char>(file), {}});
  }();
  return table;
}

}  // namespace cxxinductor::model
