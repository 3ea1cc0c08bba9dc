// Edits of a region's statement list that keep its meaning.
#pragma once

#include <vector>

#include "ir/loops/loops.h"

namespace cxxinductor::kernels {

// A new body made from an old one: statements are copied in order, or replaced by others of the new body.
class BodyCopier {
 public:
  explicit BodyCopier(const loops::Region& from) : from_(from), renamed_(from.body.size()) {}

  // The old statement with operands as they are called in the new body; each must be copied or replaced already.
  loops::Stmt renamed(loops::StmtId old) const;
  loops::StmtId copy(loops::StmtId old);
  void replace(loops::StmtId old, loops::StmtId now);
  // A statement over the new body's names.
  loops::StmtId append(const loops::Stmt& stmt);
  const IdVector<loops::StmtId, loops::Stmt>& body() const { return body_; }

 private:
  const loops::Region& from_;
  IdVector<loops::StmtId, loops::Stmt> body_;
  IdVector<loops::StmtId, loops::StmtId> renamed_;
  sym::Substitution symbols_;
};

// Drops statements that no Store or Check needs.
void drop_dead(loops::Region& region);

// Keeps the first of equal pure statements. A load before and one after a store to the same buffer are not equal.
void merge_equal(loops::Region& region);

}  // namespace cxxinductor::kernels
