// Maps a producer's variables to expressions over the consumer's variables, from the consumer's loads of what it stores.
#pragma once

#include <optional>
#include <vector>

#include "ir/loops/index_algebra.h"
#include "ir/loops/region_rewrite.h"

namespace cxxinductor::schedule {

// One load of the consumer and the store of the producer that it reads.
struct Use {
  loops::StmtId load, store;
  loops::ExprMap values;  // of the producer's variables that the store's coordinates mention
};

class Substitution {
 public:
  // consumer is copied: its variables may have to be split until the values are free of divisions.
  Substitution(const loops::Program& program, const loops::Region& producer, const loops::Region& consumer);

  const loops::Region& producer() const { return producer_; }
  const loops::Region& consumer() const { return consumer_; }
  const std::vector<Use>& uses() const { return uses_; }

  // Fills uses(); false when a load cannot be traced to a store.
  bool match_uses();
  // One value for each producer variable, covering its space exactly once; extends the consumer by variables that only
  // the producer has. False where the uses disagree or the values do not form a bijection.
  bool align();
  // The same from the loads that both have in common, without a dependence; no variables are added.
  bool align_siblings();
  const loops::ExprMap& values() const { return values_; }

 private:
  bool solve_uses();
  bool unite_uses();
  std::vector<loops::VarId> free_variables() const;
  std::optional<loops::ExprMap> values_from_loads(const loops::Load& ours, const loops::Load& theirs) const;
  int equal_loads(const loops::ExprMap& values) const;
  void match_shared_loads(bool allow_divisions);
  void match_extents();
  void add_variables();
  bool is_bijection() const;
  bool keeps_positions() const;
  bool split_consumer();

  const loops::Program& program_;
  const loops::Region& producer_;
  loops::Region consumer_;
  std::vector<Use> uses_;
  loops::ExprMap values_;
};

}  // namespace cxxinductor::schedule
