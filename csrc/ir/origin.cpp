#include "ir/origin.h"

#include <fmt/format.h>

namespace cxxinductor {

std::string describe(const Origin& origin) {
  std::string place = origin.file.empty() ? "" : fmt::format("{}:{}", origin.file, origin.line);
  if (!origin.module.empty()) place += (place.empty() ? "" : ", ") + origin.module;
  return place.empty() ? origin.call : fmt::format("{} ({})", origin.call, place);
}

}  // namespace cxxinductor
