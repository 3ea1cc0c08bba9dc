#include "schedule/fusion/substitute.h"

#include <algorithm>

#include "ir/loops/region_rewrite.h"
#include "ir/loops/stmt_properties.h"
#include "schedule/fusion/masked_load_uses.h"
#include "schedule/fusion/substitution.h"
#include "support/error.h"

namespace cxxinductor::schedule {
namespace {

using loops::BodyBuilder;
using loops::Renaming;
using loops::Stmt;
using loops::StmtId;
using loops::VarId;

Renaming producer_renaming(const loops::Region& producer, const loops::ExprMap& values, const BodyBuilder& builder) {
  Renaming renaming{std::vector<StmtId>(producer.body.size()), values, {}};
  for (size_t v = 0; v < producer.vars.size(); ++v) {
    auto value = values.find(producer.symbol(VarId(v)));
    renaming.vars.push_back(value == values.end() ? loops::VarSet() : builder.vars_of_expr(value->second));
  }
  return renaming;
}

// A region reduces over variables that its operand varies over; a body where that no longer holds cannot be expressed.
bool is_expressible(const loops::Region& region) {
  return std::all_of(region.body.begin(), region.body.end(), [&](const Stmt& stmt) {
    const auto state = row_state(stmt);
    return !state || (!state->over.empty() && state->over.subset_of(region.body[state->operand].vars));
  });
}

FusedBody finished(loops::Region region, bool aligned) {
  if (!is_expressible(region)) return {{}, aligned, "a reduction's operand would not vary over what it reduces"};
  loops::remove_dead_statements(region);
  return {std::move(region), aligned, {}};
}

// All but its stores, in place of which the consumer has their values, may be computed again.
bool is_inlinable(const loops::Region& producer) {
  return std::none_of(producer.body.begin(), producer.body.end(), [](const Stmt& stmt) { return is_executed_once(stmt) && !stmt.as<loops::Store>(); });
}

class Inliner {
 public:
  Inliner(const loops::Program& program, const Substitution& substitution, loops::Region& result)
      : producer_(substitution.producer()),
        consumer_(substitution.consumer()),
        uses_(substitution.uses()),
        builder_(result, program.assumptions),
        consumer_renaming_(identity_renaming(consumer_)) {}

  void run() {
    for (size_t s = 0; s < consumer_.body.size(); ++s) {
      auto use = std::find_if(uses_.begin(), uses_.end(), [&](const Use& u) { return u.load == StmtId(s); });
      if (use == uses_.end())
        builder_.emit_renamed(consumer_, StmtId(s), consumer_renaming_);
      else
        builder_.bind(StmtId(s), compute(*use), consumer_renaming_);
    }
  }

 private:
  // The producer's value where this load wants it, under the load's mask.
  StmtId compute(const Use& use) {
    const auto& load = *consumer_.body[use.load].as<loops::Load>();
    loops::ExprMap values;
    for (const auto& [var, value] : use.values) values[var] = builder_.space().simplify(loops::replace(value, consumer_renaming_.expressions));
    Renaming renaming = producer_renaming(producer_, values, builder_);
    mask_ = load.mask.valid() ? consumer_renaming_.statements[load.mask.index()] : StmtId();
    StmtId value = emit(producer_.body[use.store].as<loops::Store>()->value, renaming);
    if (!mask_.valid()) return value;
    if (!masked_load_uses_) masked_load_uses_.emplace(consumer_);
    return masked_load_uses_->only_under_mask(use.load) ? value : choose(value, load.other);
  }

  StmtId emit(StmtId old, Renaming& renaming) {
    if (StmtId known = renaming.statements[old.index()]; known.valid()) return known;
    for (StmtId operand : loops::operands(producer_.body[old])) emit(operand, renaming);
    Stmt stmt = builder_.renamed(producer_.body[old], renaming);
    if (auto* load = stmt.as<loops::Load>(); load && mask_.valid()) {
      if (!load->mask.valid()) load->other = Scalar::from_integer(stmt.dtype, 0);
      load->mask = load->mask.valid() ? apply(ScalarOp::LogicalAnd, {load->mask, mask_}, DType::Bool) : mask_;
    }
    StmtId now = builder_.emit(std::move(stmt));
    builder_.bind(old, now, renaming);
    return now;
  }

  StmtId choose(StmtId value, Scalar other) {
    const DType dtype = builder_.region().body[value].dtype, compute = compute_type(dtype);
    StmtId no = builder_.emit({loops::Constant{cast(other, compute)}, compute, {}, {}});
    if (dtype != compute) value = apply(ScalarOp::Cast, {value}, compute);
    StmtId chosen = apply(ScalarOp::Where, {mask_, value, no}, compute);
    return dtype == compute ? chosen : apply(ScalarOp::Cast, {chosen}, dtype);
  }

  StmtId apply(ScalarOp op, std::vector<StmtId> operands, DType dtype) {
    OriginId origin = builder_.region().body[operands.back()].origin;
    return builder_.emit({loops::Apply{op, std::move(operands)}, dtype, {}, origin});
  }

  const loops::Region& producer_;
  const loops::Region& consumer_;
  const std::vector<Use>& uses_;
  BodyBuilder builder_;
  Renaming consumer_renaming_;
  StmtId mask_;
  std::optional<MaskedLoadUses> masked_load_uses_;
};

FusedBody inline_uses(const loops::Program& program, const Substitution& substitution) {
  if (!is_inlinable(substitution.producer())) return {{}, false, "its elements are read in another arrangement than the one they are computed in"};
  const loops::Region& consumer = substitution.consumer();
  loops::Region result{consumer.name, consumer.device, consumer.vars, {}};
  Inliner(program, substitution, result).run();
  return finished(std::move(result), false);
}

// All of the producer, then the consumer with its uses replaced.
loops::Region concatenate(const loops::Program& program, const Substitution& substitution, const StillNeeded& still_needed) {
  const loops::Region& producer = substitution.producer();
  const loops::Region& consumer = substitution.consumer();
  loops::Region result{consumer.name, consumer.device, consumer.vars, {}};
  BodyBuilder builder(result, program.assumptions);
  Renaming ours = producer_renaming(producer, substitution.values(), builder), theirs = identity_renaming(consumer);
  for (size_t s = 0; s < producer.body.size(); ++s) {
    const auto* store = producer.body[StmtId(s)].as<loops::Store>();
    if (!store || still_needed(store->buffer)) builder.emit_renamed(producer, StmtId(s), ours);
  }
  for (size_t s = 0; s < consumer.body.size(); ++s) {
    auto use = std::find_if(substitution.uses().begin(), substitution.uses().end(), [&](const Use& u) { return u.load == StmtId(s); });
    if (use == substitution.uses().end()) {
      builder.emit_renamed(consumer, StmtId(s), theirs);
      continue;
    }
    StmtId stored = producer.body[use->store].as<loops::Store>()->value;
    builder.bind(StmtId(s), ours.statements[stored.index()], theirs);
  }
  return result;
}

}  // namespace

FusedBody substitute_producer(const loops::Program& program, const loops::Region& producer, const loops::Region& consumer, const StillNeeded& still_needed) {
  Substitution substitution(program, producer, consumer);
  if (substitution.align()) return finished(concatenate(program, substitution, still_needed), true);
  return inline_producer(program, producer, consumer);
}

FusedBody inline_producer(const loops::Program& program, const loops::Region& producer, const loops::Region& consumer) {
  Substitution substitution(program, producer, consumer);
  if (!substitution.match_uses()) return {{}, false, "the loads cannot be traced to one store"};
  return inline_uses(program, substitution);
}

FusedBody fuse_siblings(const loops::Program& program, const loops::Region& first, const loops::Region& second) {
  Substitution substitution(program, first, second);
  if (!substitution.align_siblings()) return {{}, false, "their spaces do not match by what they load"};
  return finished(concatenate(program, substitution, [](loops::BufferId) { return true; }), true);
}

loops::Region slice_for_store(const loops::Program& program, const loops::Region& region, loops::BufferId buffer) {
  std::vector<bool> wanted(region.body.size(), false);
  for (size_t s = region.body.size(); s-- > 0;) {
    const auto* store = region.body[StmtId(s)].as<loops::Store>();
    if (store && store->buffer == buffer) wanted[s] = true;
    if (!wanted[s]) continue;
    for (StmtId operand : loops::operands(region.body[StmtId(s)])) wanted[operand.index()] = true;
  }
  loops::Region result{region.name, region.device, region.vars, {}};
  BodyBuilder builder(result, program.assumptions);
  Renaming renaming = identity_renaming(region);
  for (size_t s = 0; s < region.body.size(); ++s)
    if (wanted[s]) builder.emit_renamed(region, StmtId(s), renaming);
  return result;
}

}  // namespace cxxinductor::schedule
