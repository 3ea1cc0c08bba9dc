#include "runtime/failed_check.h"

#include <algorithm>

namespace cxxinductor::runtime {
namespace {

// where(index < 0, index + bound, index), as lowering writes it.
bool wraps(const loops::Region& region, const loops::Check& check) {
  const auto* where = region.body[check.index].as<loops::Apply>();
  if (!where || where->op != ScalarOp::Where) return false;
  const auto* negative = region.body[where->operands[0]].as<loops::Apply>();
  const auto* sum = region.body[where->operands[1]].as<loops::Apply>();
  return negative && negative->op == ScalarOp::Lt && negative->operands[0] == where->operands[2] && sum && sum->op == ScalarOp::Add &&
         std::ranges::find(sum->operands, where->operands[2]) != sum->operands.end();
}

}  // namespace

CheckTexts check_texts(const plan::Kernel& kernel, const OriginTable& origins) {
  CheckTexts texts;
  for (size_t i = 0; i < kernel.region.body.size(); ++i) {
    const loops::Stmt& stmt = kernel.region.body[plan::StmtId(i)];
    const auto* check = stmt.as<loops::Check>();
    if (!check) continue;
    CheckText text{check->what, "in kernel " + kernel.name, wraps(kernel.region, *check)};
    if (stmt.origin.valid() && origins.contains(stmt.origin)) {
      const Origin& origin = origins[stmt.origin];
      if (!origin.call.empty()) text.what = fmt::format("{}: {}", origin.call, check->what);
      if (!origin.file.empty()) text.place = fmt::format("{}:{}", origin.file, origin.line);
    }
    texts.emplace(static_cast<int64_t>(i), std::move(text));
  }
  return texts;
}

std::optional<FailedCheck> read_check_record(const volatile int* record) {
  if (record[6] == 0) [[likely]]
    return std::nullopt;
  const auto joined = [&](int at) { return (int64_t{record[at + 1]} << 32) | static_cast<uint32_t>(record[at]); };
  return FailedCheck{record[1], joined(2), joined(4)};
}

std::string describe_failed_check(const CheckTexts& texts, const FailedCheck& failed) {
  const auto& [check, index, bound] = failed;
  const auto found = texts.find(check);
  CXXI_CHECK(found != texts.end(), "a kernel reported check {}, which it does not hold", check);
  const auto& [what, place, wraps] = found->second;
  if (wraps) return fmt::format("{}: index {} is out of bounds, expected {} <= index < {} ({})", what, index < 0 ? index - bound : index, -bound, bound, place);
  return fmt::format("{}: index {} is out of bounds, expected 0 <= index < {} ({})", what, index, bound, place);
}

}  // namespace cxxinductor::runtime
