// Uses of a masked load outside its mask: often its value does not matter there, since a `where` discards it.
#pragma once

#include <vector>

#include "ir/loops/loops.h"

namespace cxxinductor::schedule {

class MaskedLoadUses {
 public:
  explicit MaskedLoadUses(const loops::Region& region);
  // Every use of the masked load's value is discarded wherever the mask is false.
  bool only_under_mask(loops::StmtId load) const;

 private:
  struct Literal {
    loops::StmtId condition;
    bool holds;
  };
  bool implied(loops::StmtId condition, const std::vector<Literal>& known) const;
  bool discarded(loops::StmtId value, loops::StmtId mask, std::vector<Literal>& known, int depth) const;

  const loops::Region& region_;
  std::vector<std::vector<loops::StmtId>> users_;
};

}  // namespace cxxinductor::schedule
