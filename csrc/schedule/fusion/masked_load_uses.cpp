#include "schedule/fusion/masked_load_uses.h"

#include <algorithm>

namespace cxxinductor::schedule {

using loops::StmtId;

namespace {

constexpr int max_depth = 12;

bool are_opposites(const loops::Apply& a, const loops::Apply& b) {
  return a.operands == b.operands && ((a.op == ScalarOp::Lt && b.op == ScalarOp::Ge) || (a.op == ScalarOp::Ge && b.op == ScalarOp::Lt));
}

}  // namespace

MaskedLoadUses::MaskedLoadUses(const loops::Region& region) : region_(region), users_(region.body.size()) {
  for (size_t s = 0; s < region.body.size(); ++s)
    for (StmtId operand : loops::operands(region.body[StmtId(s)])) users_[operand.index()].push_back(StmtId(s));
}

bool MaskedLoadUses::implied(StmtId condition, const std::vector<Literal>& known) const {
  const auto* apply = region_.body[condition].as<loops::Apply>();
  for (const Literal& literal : known) {
    if (literal.condition == condition && literal.holds) return true;
    const auto* other = region_.body[literal.condition].as<loops::Apply>();
    // On integers, that is on positions: never NaN.
    if (!literal.holds && apply && other && are_opposites(*apply, *other) && is_integer(region_.body[apply->operands[0]].dtype)) return true;
    if (literal.holds && other && other->op == ScalarOp::LogicalAnd &&
        std::find(other->operands.begin(), other->operands.end(), condition) != other->operands.end())
      return true;
  }
  return apply && apply->op == ScalarOp::LogicalAnd && implied(apply->operands[0], known) && implied(apply->operands[1], known);
}

bool MaskedLoadUses::discarded(StmtId value, StmtId mask, std::vector<Literal>& known, int depth) const {
  if (implied(mask, known)) return true;
  if (depth > max_depth) return false;
  return std::all_of(users_[value.index()].begin(), users_[value.index()].end(), [&](StmtId user) {
    const auto* apply = region_.body[user].as<loops::Apply>();
    if (!apply) return false;
    if (apply->op != ScalarOp::Where || apply->operands[0] == value) return discarded(user, mask, known, depth + 1);
    bool fine = true;
    for (size_t arm : {1, 2}) {
      if (apply->operands[arm] != value) continue;
      known.push_back({apply->operands[0], arm == 1});
      fine = fine && discarded(user, mask, known, depth + 1);
      known.pop_back();
    }
    return fine;
  });
}

bool MaskedLoadUses::only_under_mask(StmtId load) const {
  std::vector<Literal> known;
  return discarded(load, region_.body[load].as<loops::Load>()->mask, known, 0);
}

}  // namespace cxxinductor::schedule
