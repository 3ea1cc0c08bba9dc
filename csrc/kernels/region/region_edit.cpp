#include "kernels/region/region_edit.h"

#include <algorithm>
#include <string>

namespace cxxinductor::kernels {

using loops::Stmt;
using loops::StmtId;

namespace {

struct Equal {
  bool operator()(const loops::Load& a, const loops::Load& b) const {
    return a.buffer == b.buffer && a.coords == b.coords && a.mask == b.mask && a.other == b.other;
  }
  bool operator()(const loops::Constant& a, const loops::Constant& b) const { return a.value == b.value; }
  bool operator()(const loops::Index& a, const loops::Index& b) const { return a.value == b.value; }
  bool operator()(const loops::Apply& a, const loops::Apply& b) const {
    return a.op == b.op && a.operands == b.operands;
  }
  bool operator()(const loops::Reduce& a, const loops::Reduce& b) const {
    return a.reduction == b.reduction && a.operand == b.operand && a.over == b.over;
  }
  bool operator()(const loops::Project& a, const loops::Project& b) const {
    return a.of == b.of && a.result == b.result;
  }
  template <class A, class B>
  bool operator()(const A&, const B&) const {
    return false;
  }
};

}  // namespace

Stmt BodyCopier::renamed(StmtId old) const {
  Stmt stmt = from_.body[old];
  auto rename = [&](StmtId& id) {
    if (id.valid()) id = renamed_[id];
  };
  if (auto* load = stmt.as<loops::Load>()) rename(load->mask);
  if (auto* apply = stmt.as<loops::Apply>()) std::for_each(apply->operands.begin(), apply->operands.end(), rename);
  if (auto* reduce = stmt.as<loops::Reduce>()) rename(reduce->operand);
  if (auto* project = stmt.as<loops::Project>()) rename(project->of);
  if (auto* check = stmt.as<loops::Check>()) rename(check->index);
  if (auto* store = stmt.as<loops::Store>()) {
    rename(store->value);
    rename(store->mask);
  }
  rewrite_expressions(stmt, [&](sym::Expr e) { return substitute(e, symbols_); });
  return stmt;
}

StmtId BodyCopier::copy(StmtId old) {
  StmtId now = body_.push_back(renamed(old));
  replace(old, now);
  return now;
}

StmtId BodyCopier::append(const Stmt& stmt) { return body_.push_back(stmt); }

void BodyCopier::replace(StmtId old, StmtId now) {
  renamed_[old] = now;
  if (old != now) symbols_.emplace(std::string(statement_symbol(old).name()), statement_symbol(now));
}

void drop_dead(loops::Region& region) {
  std::vector<bool> live(region.body.size());
  for (size_t s = region.body.size(); s-- > 0;) {
    const Stmt& stmt = region.body[StmtId(s)];
    if (stmt.as<loops::Store>() || stmt.as<loops::Check>()) live[s] = true;
    if (!live[s]) continue;
    for (StmtId operand : operands(stmt)) live[operand.index()] = true;
  }
  BodyCopier copier(region);
  for (size_t s = 0; s < region.body.size(); ++s)
    if (live[s]) copier.copy(StmtId(s));
  region.body = copier.body();
}

void merge_equal(loops::Region& region) {
  BodyCopier copier(region);
  std::vector<StmtId> candidates;  // of the new body
  for (size_t s = 0; s < region.body.size(); ++s) {
    Stmt stmt = copier.renamed(StmtId(s));
    auto same = std::find_if(candidates.begin(), candidates.end(), [&](StmtId id) {
      const Stmt& other = copier.body()[id];
      return other.dtype == stmt.dtype && std::visit(Equal(), other.kind, stmt.kind);
    });
    if (same != candidates.end()) {
      copier.replace(StmtId(s), *same);
      continue;
    }
    StmtId now = copier.copy(StmtId(s));
    candidates.push_back(now);
    if (const auto* store = stmt.as<loops::Store>())
      std::erase_if(candidates, [&](StmtId id) {
        const auto* load = copier.body()[id].as<loops::Load>();
        return load && load->buffer == store->buffer;
      });
  }
  region.body = copier.body();
}

}  // namespace cxxinductor::kernels
