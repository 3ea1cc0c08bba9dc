#include "kernels/region/region_edit.h"

#include <algorithm>
#include <string>

#include "ir/loops/stmt_properties.h"
#include "ir/loops/stmt_traits.h"

namespace cxxinductor::kernels {

using loops::Stmt;
using loops::StmtId;

Stmt BodyCopier::renamed(StmtId old) const {
  Stmt stmt = from_.body[old];
  const auto rename = [&](StmtId& id) {
    if (id.valid()) id = renamed_[id];
  };
  for_each_use(stmt, rename, [&](sym::Expr& e) { e = substitute(e, symbols_); });
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
    if (is_effect(stmt)) live[s] = true;
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
    const bool pure = !is_effect(stmt);
    const auto same = std::find_if(candidates.begin(), candidates.end(), [&](StmtId id) { return pure && same_statement(copier.body()[id], stmt); });
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
