#include "kernels/rows/online_softmax.h"

#include <map>

#include "kernels/region/region_edit.h"

namespace cxxinductor::kernels {
namespace {

using loops::Stmt;
using loops::StmtId;

// sum(exp(x - max(x))): the maximum that the sum belongs to; invalid for other statements.
StmtId maximum_of_sum(const loops::Region& region, StmtId id) {
  const auto operand_of = [&](StmtId value, ScalarOp op, size_t operand) -> StmtId {
    const auto* apply = value.valid() ? region.body[value].as<loops::Apply>() : nullptr;
    return apply && apply->op == op ? apply->operands[operand] : StmtId();
  };
  const auto* sum = region.body[id].as<loops::Reduce>();
  if (!sum || sum->reduction != Reduction::Sum || !is_float(region.body[id].dtype)) return {};
  const StmtId difference = operand_of(sum->operand, ScalarOp::Exp, 0);
  const StmtId x = operand_of(difference, ScalarOp::Sub, 0), largest = operand_of(difference, ScalarOp::Sub, 1);
  const auto* max = largest.valid() ? region.body[largest].as<loops::Reduce>() : nullptr;
  if (!max || max->reduction != Reduction::Max || max->operand != x || max->over != sum->over) return {};
  return region.body[largest].dtype == region.body[id].dtype ? largest : StmtId();
}

}  // namespace

std::optional<FlatRegion> join_softmax_sums(const FlatRegion& flat) {
  const loops::Region& region = flat.region;
  std::map<StmtId, StmtId> maximum_of;  // a sum -> its maximum
  for (size_t s = 0; s < region.body.size(); ++s)
    if (const StmtId largest = maximum_of_sum(region, StmtId(s)); largest.valid()) maximum_of.emplace(s, largest);
  if (maximum_of.empty()) return std::nullopt;
  std::map<StmtId, StmtId> joined;  // a maximum -> the reduction in its place
  for (const auto& [sum, largest] : maximum_of) joined.emplace(largest, StmtId());
  BodyCopier copier(region);
  for (size_t s = 0; s < region.body.size(); ++s) {
    const StmtId id(s);
    if (auto found = maximum_of.find(id); found != maximum_of.end()) {
      const Stmt& sum = region.body[id];
      copier.replace(id, copier.append({loops::Project{joined.at(found->second), 1}, sum.dtype, sum.vars, sum.origin}));
    } else if (auto place = joined.find(id); place != joined.end()) {
      Stmt largest = copier.renamed(id);
      largest.as<loops::Reduce>()->reduction = Reduction::SoftmaxSum;
      copier.replace(id, place->second = copier.append(largest));
    } else {
      copier.copy(id);
    }
  }
  FlatRegion result = flat;
  result.region.body = copier.body();
  drop_dead(result.region);
  return result;
}

}  // namespace cxxinductor::kernels
