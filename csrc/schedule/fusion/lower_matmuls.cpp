#include "schedule/fusion/lower_matmuls.h"

#include <algorithm>

#include "ir/matmul_rows.h"
#include "kernels/matmul/matmul.h"
#include "schedule/fusion/can_fuse.h"
#include "schedule/fusion/matmul_region.h"
#include "schedule/fusion/substitute.h"
#include "support/error.h"

namespace cxxinductor::schedule {
namespace {

using kernels::estimate_matmul;
using kernels::library_time;
using kernels::MatmulEstimate;
using kernels::MatmulSize;
using loops::BufferId;
using loops::View;
using sym::Expr;

// Predicted speedup required to replace the library's call: the cost models are accurate to a few per cent.
constexpr double least_gain = 1.08;
// Instructions per element besides the product's arithmetic: of an epilogue's ordinary steps, of its transcendental steps,
// and of the passage through shared memory.
constexpr double step_instructions = 2, transcendental_instructions = 25, passing_instructions = 8;

// What lengths of rows, and the ways from one to the next, are multiples of: the one for which the library takes the longest.
int64_t row_bytes(const loops::Program& program, const std::vector<Expr>& sizes, const std::vector<Expr>& strides, DType dtype) {
  const size_t rank = sizes.size();
  const size_t along = is_turned(strides) ? rank - 2 : rank - 1, across = is_turned(strides) ? rank - 1 : rank - 2;
  const auto bytes = [&](const Expr& length) { return sym::known_divisor(length, program.assumptions) * byte_size(dtype); };
  const int64_t length = bytes(sizes[along]), step = sizes[across].is_constant(1) ? length : bytes(strides[across]);
  return unaligned_slowdown(length) > unaligned_slowdown(step) ? length : step;
}

// Of the call alone.
double library_seconds(const loops::Program& program, const MatmulCall& call, const MatmulSize& size, const Target& target) {
  double slowdown = 1;
  for (const View* view : {call.left, call.right})
    slowdown = std::max(slowdown, unaligned_slowdown(row_bytes(program, view->sizes, view->strides, view->dtype)));
  const loops::Buffer& result = program.buffers[call.result];
  const int64_t bytes = row_bytes(program, result.sizes, result.strides, result.dtype);
  const bool splits = slowdown == 1 && !call.added && result.sizes.size() == 2 && !is_turned(call.left->strides) && is_turned(call.right->strides) &&
                      is_split_worth(2 * size.m * size.n * size.k, bytes);
  if (splits) return split_product_slowdown * library_time(size, target, 1) + split_product_seconds;
  return library_time(size, target, std::max(slowdown, unaligned_result_slowdown(bytes)));
}

// The library chooses a kernel per size; a generated kernel has one tile for all sizes.
bool has_known_sizes(const loops::Region& region) {
  return std::all_of(region.vars.begin(), region.vars.end(), [](const loops::Var& var) { return var.extent.is_constant(); });
}

// Stores with write conflicts wait for memory, not for the product, and would block the shared memory of the next tile.
bool scatters(const loops::Region& region) {
  return std::any_of(region.body.begin(), region.body.end(), [](const loops::Stmt& stmt) {
    const auto* store = stmt.as<loops::Store>();
    return store && store->conflict_order;
  });
}

class MatmulLowering {
 public:
  MatmulLowering(Dependencies& dependencies, const FusionCosts& costs, const Targets& targets, const Options& options, const MergeRules& rules,
                 FusionLimit& limit)
      : dependencies_(dependencies), costs_(costs), targets_(targets), options_(options), rules_(rules), limit_(limit) {}

  void consider(StepId step) {
    const loops::ExternCall* call = dependencies_.call(step);
    if (!call) return;
    const auto product = matmul_call(program(), *call, targets_);
    if (!product) return;
    auto region = write_matmul_region(program(), *product, call->origin);
    if (!region) return;
    const Target& target = targets_.of(region->device);
    const auto alone = estimate_matmul(program(), *region, target);
    if (!alone || (options_.epilogue_fusion == "auto" && !has_known_sizes(*region))) return;
    const double library = library_seconds(program(), *product, alone->size, target);
    if (fuse_epilogue(step, product->result, *region, library)) return;
    const double work = elements(product->result) * passing_instructions;
    if (!is_chosen(library, alone->seconds + seconds_of(work, target)) || !limit_.accept("makes a region of", step)) return;
    dependencies_.replace(step, std::move(*region));
  }

 private:
  const loops::Program& program() const { return dependencies_.program(); }
  double elements(BufferId buffer) const { return costs_.buffer_bytes(buffer) / byte_size(program().buffers[buffer].dtype); }
  static double seconds_of(double instructions, const Target& target) { return instructions / (target.multiprocessors * target.machine.instructions); }
  bool is_chosen(double apart, double together) const { return options_.epilogue_fusion == "always" || apart >= least_gain * together; }

  // library: the seconds of the call alone.
  bool fuse_epilogue(StepId step, BufferId result, const loops::Region& region, double library) {
    const Target& target = targets_.of(region.device);
    std::vector<StepId> readers = dependencies_.readers(result);
    std::sort(readers.begin(), readers.end(), [&](StepId a, StepId b) { return dependencies_.before(a, b); });
    for (StepId reader : readers) {
      const loops::Region* consumer = dependencies_.region(reader);
      std::vector<StepId> between;
      if (!consumer || consumer->device != region.device || scatters(*consumer) || !rules_.blocker(step, reader).empty() ||
          dependencies_.path_between(step, reader, &between) != Dependencies::Path::None)
        continue;
      auto needed = [&](BufferId buffer) { return dependencies_.has_other_users(buffer, step, reader); };
      FusedBody body = substitute_producer(program(), region, *consumer, needed);
      if (!body.region || !body.aligned || fusion_blocker(program(), *body.region, costs_, options_)) continue;
      const auto fused = estimate_matmul(program(), *body.region, target);
      if (!fused) continue;
      const double apart = library + (costs_.launch_cost(region.device) + costs_.region_cost(*consumer)) / target.bytes_per_second();
      if (!is_chosen(apart, time_with_epilogue(*fused, *consumer, result, needed(result)))) continue;
      if (!limit_.accept("merges", step, reader)) return false;
      body.region->name.clear();  // named with the others
      dependencies_.merge(step, reader, between, std::move(*body.region));
      return true;
    }
    return false;
  }

  // The template's own time counts one result; the consumer's traffic is that of its kernel without the result's way
  // through memory.
  double time_with_epilogue(const MatmulEstimate& fused, const loops::Region& consumer, BufferId result, bool stored) const {
    const Target& target = targets_.of(consumer.device);
    const double passed = costs_.buffer_bytes(result);
    const double moved = std::max(0.0, costs_.region_cost(consumer) - 2 * passed) + (stored ? passed : 0);
    const RegionSummary summary = summarize(consumer);
    const double instructions = passing_instructions + step_instructions * summary.applies + transcendental_instructions * summary.transcendental;
    return fused.seconds + moved / target.bytes_per_second() + seconds_of(elements(result) * instructions, target);
  }

  Dependencies& dependencies_;
  const FusionCosts& costs_;
  const Targets& targets_;
  const Options& options_;
  const MergeRules& rules_;
  FusionLimit& limit_;
};

}  // namespace

void lower_matmuls(Dependencies& dependencies, const FusionCosts& costs, const Targets& targets, const Options& options, const MergeRules& rules,
                   FusionLimit& limit) {
  if (options.epilogue_fusion == "never") return;
  MatmulLowering lowering(dependencies, costs, targets, options, rules, limit);
  for (StepId step : dependencies.order())
    if (dependencies.alive(step)) lowering.consider(step);
}

}  // namespace cxxinductor::schedule
