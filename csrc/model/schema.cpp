#include "model/schema.h"

#include <algorithm>
#include <array>

namespace cxxinductor::model {

bool has_structured_out(std::string_view callee) {
  static constexpr std::array<std::string_view, 4> names{"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm"};
  return std::find(names.begin(), names.end(), callee) != names.end();
}

}  // namespace cxxinductor::model
