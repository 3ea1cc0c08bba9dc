#include "runtime/failed_check.h"

namespace cxxinductor::runtime {

CheckTexts check_texts(const plan::Kernel& kernel, const OriginTable& origins) {
  CheckTexts texts;
  for (size_t i = 0; i < kernel.region.body.size(); ++i) {
    const loops::Stmt& stmt = kernel.region.body[plan::StmtId(i)];
    const auto* check = stmt.as<loops::Check>();
    if (!check) continue;
    CheckText text{check->what, "in kernel " + kernel.name};
    if (stmt.origin.valid() && origins.contains(stmt.origin)) {
      const Origin& origin = origins[stmt.origin];
      if (!origin.call.empty()) text.what = fmt::format("{}: {}", origin.call, check->what);
      if (!origin.file.empty()) text.place = fmt::format("{}:{}", origin.file, origin.line);
    }
    texts.emplace(static_cast<int64_t>(i), std::move(text));
  }
  return texts;
}

std::string describe_failed_check(const CheckTexts& texts, int64_t check, int64_t index, int64_t bound) {
  const auto found = texts.find(check);
  CXXI_CHECK(found != texts.end(), "a kernel reported check {}, which it does not hold", check);
  return fmt::format("{}: index {} is out of bounds, expected 0 <= index < {} ({})", found->second.what, index, bound,
                     found->second.place);
}

}  // namespace cxxinductor::runtime
