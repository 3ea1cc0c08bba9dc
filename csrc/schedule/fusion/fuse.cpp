// The driver of fusion: inlines cheap producers, merges the pair that saves most until nothing changes, inlines what is
// cheaper to compute than to load, and splits reductions that would leave most of the device idle.
#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <unordered_set>

#include "ir/loops/region_rewrite.h"
#include "schedule/fusion/can_fuse.h"
#include "schedule/fusion/dependencies.h"
#include "schedule/fusion/fuse_mixed_order_reductions.h"
#include "schedule/fusion/fusion_limit.h"
#include "schedule/fusion/inline_producers.h"
#include "schedule/fusion/live_range_budget.h"
#include "schedule/fusion/lower_matmuls.h"
#include "schedule/fusion/lower_vector_products.h"
#include "schedule/fusion/merge_rules.h"
#include "schedule/fusion/row_ends.h"
#include "schedule/fusion/score_fusion.h"
#include "schedule/fusion/split_reduction.h"
#include "schedule/fusion/substitute.h"
#include "schedule/plan/buffer_slices.h"
#include "schedule/schedule.h"
#include "support/error.h"

namespace cxxinductor::schedule {
namespace {

constexpr int max_rounds = 64;

struct Candidate {
  double saved = 0;
  StepId first, second;
  bool siblings = false;
  size_t position = 0;  // of discovery: breaks ties
  friend bool operator<(const Candidate& a, const Candidate& b) { return a.saved != b.saved ? a.saved < b.saved : a.position > b.position; }
};

class Fuser {
 public:
  Fuser(Dependencies& dependencies, const FusionCosts& costs, const Options& options, const MergeRules& rules, FusionLimit& limit)
      : dependencies_(dependencies), costs_(costs), options_(options), rules_(rules), limit_(limit), first_inserted_(dependencies.step_count()) {}

  bool merge_pairs() {
    bool any = false;
    for (int round = 0; round < max_rounds; ++round) {
      bool changed = false;
      queue_ = std::priority_queue<Candidate>(std::less<Candidate>(), candidates());
      blocked_.clear();
      while (!queue_.empty()) {
        Candidate next = queue_.top();
        queue_.pop();
        changed = consider(next) || changed;
      }
      if (!changed) break;
      any = true;
    }
    return any;
  }

  // Of all pairs of regions that buffers lie between.
  std::vector<plan::MissedFusion> missed_fusions(const std::map<StepId, std::string>& names) const {
    // What became one step after merging keeps the reasons of its parts.
    std::map<std::pair<StepId, StepId>, std::string> reasons;
    for (const auto& [pair, reason] : reasons_) reasons.try_emplace({dependencies_.find(pair.first), dependencies_.find(pair.second)}, reason);
    for (const auto& [pair, reason] : reasons_)
      if (reasons.contains(pair)) reasons[pair] = reason;
    std::vector<plan::MissedFusion> found;
    for (const auto& [consumer, name] : names) {
      std::map<StepId, double> between;  // bytes, by producer
      for (loops::BufferId buffer : dependencies_.summary(consumer).reads)
        if (const auto producer = dependencies_.producer(buffer); producer && *producer != consumer) between[*producer] += costs_.buffer_bytes(buffer);
      for (const auto& [producer, bytes] : between) {
        const auto known = reasons.find({producer, consumer});
        found.push_back({names.at(producer), name,
                         producer.index() >= first_inserted_ ? "a reduction over blocks takes two kernels: of pieces, and of their results"
                         : known != reasons.end()            ? known->second
                                                             : "a matrix product reads its factors from memory",
                         static_cast<int64_t>(bytes)});
      }
    }
    return found;
  }

 private:
  const loops::Program& program() const { return dependencies_.program(); }

  double shared_bytes(const std::vector<loops::BufferId>& a, const std::vector<loops::BufferId>& b) const {
    std::vector<loops::BufferId> shared;
    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(shared));
    double bytes = 0;
    for (loops::BufferId buffer : shared) bytes += costs_.buffer_bytes(buffer);
    return bytes;
  }

  std::vector<Candidate> candidates() const {
    std::vector<Candidate> found;
    const std::vector<StepId> order = dependencies_.order();
    std::vector<loops::BufferId> read_buffers;
    for (StepId consumer : order) {
      if (!dependencies_.region(consumer)) continue;
      std::vector<StepId> producers;
      for (loops::BufferId buffer : dependencies_.summary(consumer).reads) {
        read_buffers.push_back(buffer);
        auto producer = dependencies_.producer(buffer);
        if (!producer || std::find(producers.begin(), producers.end(), *producer) != producers.end()) continue;
        producers.push_back(*producer);
        const RegionSummary &a = dependencies_.summary(*producer), &b = dependencies_.summary(consumer);
        found.push_back({2 * shared_bytes(a.writes, b.reads) + shared_bytes(a.reads, b.reads), *producer, consumer, false, found.size()});
      }
    }
    std::sort(read_buffers.begin(), read_buffers.end());
    read_buffers.erase(std::unique(read_buffers.begin(), read_buffers.end()), read_buffers.end());
    for (loops::BufferId buffer : read_buffers) add_siblings(buffer, found);
    return found;
  }

  // Neighbouring readers of one buffer.
  void add_siblings(loops::BufferId buffer, std::vector<Candidate>& found) const {
    std::vector<StepId> readers = dependencies_.readers(buffer);
    std::erase_if(readers, [&](StepId id) { return !dependencies_.region(id); });
    std::sort(readers.begin(), readers.end(), [&](StepId a, StepId b) { return dependencies_.before(a, b); });
    for (size_t i = 0; i + 1 < readers.size(); ++i) {
      const RegionSummary &a = dependencies_.summary(readers[i]), &b = dependencies_.summary(readers[i + 1]);
      if (intersect(a.writes, b.reads)) continue;  // a producer and its consumer
      found.push_back({shared_bytes(a.reads, b.reads), readers[i], readers[i + 1], true, found.size()});
    }
  }

  bool consider(const Candidate& candidate) {
    StepId first = dependencies_.find(candidate.first), second = dependencies_.find(candidate.second);
    if (first == second) return false;
    if (dependencies_.before(second, first)) {
      if (!candidate.siblings) return false;
      std::swap(first, second);
    }
    // Merges may have made one of two siblings depend on the other.
    const bool siblings = candidate.siblings && !intersect(dependencies_.summary(first).writes, dependencies_.summary(second).reads);
    const uint64_t key = (uint64_t{first.index()} << 32 | second.index()) * 0x9e3779b97f4a7c15ull ^
                         (uint64_t{dependencies_.version(first)} << 32 | dependencies_.version(second)) << 1 ^ static_cast<uint64_t>(siblings);
    if (hopeless_.contains(key)) return false;
    bool may_change = false;
    std::string reason = try_merge(first, second, siblings, &may_change);
    if (reason.empty()) {
      // The reason that blocked these two may no longer hold.
      for (StepId part : {first, second}) {
        for (const Candidate& waiting : blocked_[part]) queue_.push(waiting);
        blocked_.erase(part);
      }
      return true;
    }
    if (may_change) {
      blocked_[first].push_back(candidate);
      blocked_[second].push_back(candidate);
    } else {
      hopeless_.insert(key);
    }
    if (!siblings) reasons_[{first, second}] = std::move(reason);
    return false;
  }

  std::string name_of_step(StepId id) const {
    const loops::ExternCall* call = dependencies_.call(id);
    return call ? "the call " + call->callee : "another region";
  }

  // Empty when merged. may_change: other merges could remove the reason.
  std::string try_merge(StepId first, StepId second, bool siblings, bool* may_change) {
    const loops::Region &a = *dependencies_.region(first), &b = *dependencies_.region(second);
    if (a.device != b.device) return "they run on different devices";
    if (const std::string_view blocker = rules_.blocker(first, second); !blocker.empty()) return std::string(blocker);
    if (a.body.size() + b.body.size() > 2 * static_cast<size_t>(options_.max_fusion_size))
      return fmt::format("the body would have more than {} statements", options_.max_fusion_size);
    if (intersect(dependencies_.summary(first).writes, dependencies_.summary(second).writes)) return "both write one buffer, one after the other";
    if (dependencies_.order_of_raise_and_write(first, second)) return "a check of one may fail, which must not change what the other writes to an input";
    std::vector<StepId> between;
    *may_change = true;
    const auto& written = dependencies_.summary(first).writes;
    if (!siblings &&
        std::any_of(written.begin(), written.end(), [&](loops::BufferId buffer) { return ends_rows_of_select(dependencies_, first, second, buffer); }))
      return "it belongs to the rows before it";
    switch (dependencies_.path_between(first, second, &between)) {
      case Dependencies::Path::Exists:
        return name_of_step(between.front()) + " needs the producer and is needed by the consumer";
      case Dependencies::Path::TooFar:
        return "too many steps lie between them";
      case Dependencies::Path::None:
        break;
    }
    auto needed = [&](loops::BufferId buffer) { return dependencies_.has_other_users(buffer, first, second); };
    FusedBody body = siblings ? fuse_siblings(program(), a, b) : substitute_producer(program(), a, b, needed);
    *may_change = false;
    if (!body.region) return body.reason;
    if (!body.aligned) {
      const auto& writes = dependencies_.summary(first).writes;
      *may_change = std::any_of(writes.begin(), writes.end(), needed);
      if (*may_change) return "its elements are read in another arrangement, and others need them stored";
    }
    if (auto reason = fusion_blocker(program(), *body.region, costs_, options_)) return *reason;
    const double apart = costs_.region_cost(a) + costs_.region_cost(b) + costs_.launch_cost(a.device);
    if (costs_.region_cost(*body.region) >= apart) return "the fused region would cost more than its parts";
    if (!limit_.accept("merges", first, second)) return "option fusion_limit allows no more fusions";
    body.region->name.clear();  // named at the end
    dependencies_.merge(first, second, between, std::move(*body.region));
    return {};
  }

  Dependencies& dependencies_;
  const FusionCosts& costs_;
  const Options& options_;
  const MergeRules& rules_;
  FusionLimit& limit_;
  const size_t first_inserted_;  // of the steps that are no steps of the program
  std::priority_queue<Candidate> queue_;
  std::map<StepId, std::vector<Candidate>> blocked_;  // by either step: blocked for a reason that other merges may remove
  std::unordered_set<uint64_t> hopeless_;             // pairs of versions that are blocked for good
  std::map<std::pair<StepId, StepId>, std::string> reasons_;
};

bool has_choices(const Dependencies& dependencies) {
  for (StepId id : dependencies.order())
    if (const loops::Region* region = dependencies.region(id))
      for (const loops::Stmt& stmt : region->body)
        if (const auto* load = stmt.as<loops::Load>(); load && load->mask.valid()) return true;
  return false;
}

// The slices that select_kernels will choose if the program does not change.
std::set<loops::BufferId> find_parts(const Dependencies& dependencies, const Targets& targets) {
  std::set<loops::BufferId> found;
  if (!has_choices(dependencies)) return found;
  loops::Program program = dependencies.snapshot();
  std::vector<plan::MissedFusion> missed_fusions;
  for (const auto& [id, part] : alias_concat_operands(program, targets, missed_fusions)) found.insert(id);
  return found;
}

// Drops temporaries without accesses.
void compact_buffers(loops::Program& program) {
  IdVector<loops::BufferId, char> used(program.buffers.size(), 0);
  auto for_each = [&](auto&& visit) {
    for (loops::Step& step : program.steps) {
      if (auto* region = std::get_if<loops::Region>(&step)) {
        for (loops::Stmt& stmt : region->body) {
          if (auto* load = stmt.as<loops::Load>()) visit(load->buffer);
          if (auto* store = stmt.as<loops::Store>()) visit(store->buffer);
        }
        continue;
      }
      auto& call = std::get<loops::ExternCall>(step);
      for (auto& operand : call.operands)
        if (auto* view = std::get_if<loops::View>(&operand)) visit(view->buffer);
      for (loops::BufferId& result : call.results) visit(result);
    }
    for (loops::ProgramInput& input : program.inputs)
      if (input.kind == loops::ProgramInput::Kind::Tensor) visit(input.buffer);
    for (loops::ProgramOutput& output : program.outputs) {
      if (output.kind == loops::ProgramOutput::Kind::Tensor) visit(output.buffer);
      if (output.kind == loops::ProgramOutput::Kind::View) visit(output.view.buffer);
    }
  };
  for_each([&](loops::BufferId& id) { used[id] = 1; });
  IdVector<loops::BufferId, loops::BufferId> renumbered(program.buffers.size());
  IdVector<loops::BufferId, loops::Buffer> kept;
  for (size_t b = 0; b < program.buffers.size(); ++b)
    if (used[loops::BufferId(b)]) renumbered[loops::BufferId(b)] = kept.push_back(std::move(program.buffers[loops::BufferId(b)]));
  program.buffers = std::move(kept);
  for_each([&](loops::BufferId& id) { id = renumbered[id]; });
}

// f0, f1, ... for what was merged; the others keep their names.
std::map<StepId, std::string> name_regions(const Dependencies& dependencies) {
  std::set<std::string> taken;
  for (StepId id : dependencies.order())
    if (const loops::Region* region = dependencies.region(id)) taken.insert(region->name);
  std::map<StepId, std::string> names;
  int fused = 0;
  for (StepId id : dependencies.order()) {
    const loops::Region* region = dependencies.region(id);
    if (!region) continue;
    std::string name = region->name;
    while (name.empty() || (region->name.empty() && taken.contains(name))) name = fmt::format("f{}", fused++);
    names[id] = std::move(name);
  }
  return names;
}

// names: of regions; steps without one are calls.
FusionCount count_of(const FusionLimit& limit, const Dependencies& dependencies, const std::map<StepId, std::string>& names) {
  FusionCount count{limit.accepted(), {}};
  if (!limit.refused()) return count;
  const auto name = [&](StepId id) {
    const auto found = names.find(id);
    return found == names.end() ? "the call " + dependencies.call(id)->callee : "region @" + found->second;
  };
  const auto& [what, first, second] = *limit.refused();
  count.refused = fmt::format("{} {}{}", what, name(first), second.valid() ? " and " + name(second) : "");
  return count;
}

}  // namespace

loops::Program fuse(loops::Program program, const Targets& targets, const Options& options, std::vector<plan::MissedFusion>* missed_fusions,
                    LiveRangeLimit live_ranges, const std::vector<uint32_t>& late_inputs, FusionCount* count) {
  Dependencies dependencies(std::move(program));
  const FusionCosts costs(dependencies.program(), targets);
  const LiveRangeBudget live_range_budget(dependencies, costs, live_ranges);
  const MergeRules rules(dependencies, live_range_budget, late_inputs);
  FusionLimit limit(options.fusion_limit);
  Fuser fuser(dependencies, costs, options, rules, limit);
  inline_producers(dependencies, costs, options, live_range_budget, limit, Inlining::Early);
  fuser.merge_pairs();
  // Operands that become slices of a concatenation are stored once anyway.
  const std::set<loops::BufferId> parts = find_parts(dependencies, targets);
  if (inline_producers(dependencies, costs, options, live_range_budget, limit, Inlining::Late, parts)) fuser.merge_pairs();
  if (options.epilogue_fusion != "never" && lower_vector_products(dependencies, targets, limit)) fuser.merge_pairs();
  fuse_mixed_order_reductions(dependencies, costs, targets, options, rules, limit);
  lower_matmuls(dependencies, costs, targets, options, rules, limit);
  split_reductions(dependencies, costs, targets, limit);

  const std::vector<StepId> order = dependencies.order();
  const std::map<StepId, std::string> names = name_regions(dependencies);
  if (missed_fusions) *missed_fusions = fuser.missed_fusions(names);
  if (count) *count = count_of(limit, dependencies, names);
  loops::Program result = std::move(dependencies).finish();
  for (size_t i = 0; i < order.size(); ++i)
    if (auto* region = std::get_if<loops::Region>(&result.steps[i])) {
      region->name = names.at(order[i]);
      loops::number_variables(*region, result.assumptions);
    }
  compact_buffers(result);
  return result;
}

}  // namespace cxxinductor::schedule
