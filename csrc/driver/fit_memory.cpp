#include "driver/fit_memory.h"

#include <fmt/format.h>

#include <utility>

#include "ir/plan/memory.h"

namespace cxxinductor::driver {
namespace {

constexpr int64_t rounding = 4096;  // of blocks, ours being more and smaller ones than eager's
constexpr size_t live_range_limits[] = {64, 8, 0};
constexpr size_t most_pass_sets = 3;  // that are tried, that of all passes included
static_assert(most_pass_sets * (1 + std::size(live_range_limits)) <= 12, "fit_memory.h states how many plans are made");

int64_t bytes_beyond_eager(const PipelineState& planned) { return plan::bytes_beyond_eager(std::get<plan::Plan>(planned.form)); }

// Of the plans offered the one that exceeds eager least; of equal ones the first.
class BestPlan {
 public:
  explicit BestPlan(PipelineState planned) : state_(std::move(planned)), beyond_(bytes_beyond_eager(state_)) {}

  bool fits() const { return beyond_ <= rounding; }
  void offer(PipelineState planned) {
    const int64_t beyond = bytes_beyond_eager(planned);
    if (beyond >= beyond_) return;
    beyond_ = beyond;
    replaced_ = true;
    state_ = std::move(planned);
  }
  bool replaced() const { return replaced_; }
  PipelineState take() && { return std::move(state_); }

 private:
  PipelineState state_;
  int64_t beyond_;
  bool replaced_ = false;
};

// The state that the stage lower began with, of which this plan was made: without what that and later stages fill.
PipelineState before_lowering(PipelineState& planned, graph::Graph lowered) {
  Form plan = std::exchange(planned.form, {});  // which is not copied
  PipelineState state = planned;
  planned.form = std::move(plan);
  state.form = std::move(lowered);
  state.live_range_limit = {};
  state.fusions = {};
  state.missed_fusions.clear();
  state.region_times.clear();
  state.loops_passes.clear();
  state.graphs = {};
  return state;
}

// Graph passes that changed the graph and may have spent memory.
std::vector<std::string_view> memory_spenders(const PipelineState& planned) {
  std::vector<std::string_view> names;
  for (const passes::PassTime& pass : planned.graph_passes)
    if (pass.spends_memory) names.push_back(pass.name);
  return names;
}

void limit_live_ranges(const PipelineState& start, BestPlan& best) {
  if (!start.inputs.options.fusion) return;
  for (size_t limit : live_range_limits) {
    if (best.fits()) return;
    PipelineState attempt = start;
    attempt.live_range_limit = limit;
    run_stages(stages_between("lower", "merge-kernels"), attempt);
    best.offer(std::move(attempt));
  }
}

}  // namespace

bool fit_memory(PipelineState& state) {
  SourceGraphs graphs = std::exchange(state.graphs, {});
  if (bytes_beyond_eager(state) <= rounding || !graphs.lowered) return false;
  PipelineInputs inputs = state.inputs;
  const std::vector<std::string_view> spenders = graphs.imported ? memory_spenders(state) : std::vector<std::string_view>();
  const PipelineState first = before_lowering(state, std::move(*graphs.lowered));
  BestPlan best(std::move(state));
  limit_live_ranges(first, best);
  size_t sets = 1;
  for (size_t s = spenders.size(); s-- > 0 && sets < most_pass_sets && !best.fits(); ++sets) {
    inputs.options.skip_passes += fmt::format(",{}", spenders[s]);
    PipelineState planned{.inputs = inputs, .form = *graphs.imported};
    run_stages(stages_between("graph-passes", "merge-kernels"), planned);
    const PipelineState start = before_lowering(planned, std::move(*planned.graphs.lowered));
    best.offer(std::move(planned));
    limit_live_ranges(start, best);
  }
  const bool replaced = best.replaced();
  state = std::move(best).take();
  state.graphs = {};
  return replaced;
}

}  // namespace cxxinductor::driver
