#include "schedule/fusion/inline_producers.h"

#include <algorithm>

#include "ir/device_types.h"
#include "ir/loops/region_rewrite.h"
#include "schedule/fusion/can_fuse.h"
#include "schedule/fusion/row_ends.h"
#include "schedule/fusion/substitute.h"

namespace cxxinductor::schedule {
namespace {

constexpr int max_applies = 24;
constexpr size_t max_readers = 64, max_readers_of_constants = 4096;
constexpr double small_share = 0.25;  // loads of a broadcast, against what it stores
constexpr double part_read = 0.5;     // of a buffer's elements, below which recomputing a part is acceptable

using loops::Stmt;

loops::Region without_store(const loops::Program& program, const loops::Region& region, loops::BufferId buffer) {
  loops::Region result{region.name, region.device, region.vars, {}};
  loops::BodyBuilder builder(result, program.assumptions);
  loops::Renaming renaming = loops::identity_renaming(region);
  for (size_t s = 0; s < region.body.size(); ++s) {
    const auto* store = region.body[loops::StmtId(s)].as<loops::Store>();
    if (!store || store->buffer != buffer) builder.emit_renamed(region, loops::StmtId(s), renaming);
  }
  loops::remove_dead_statements(result);
  return result;
}

bool reads_by_data(const loops::Region& region) {
  for (const Stmt& stmt : region.body) {
    const auto* load = stmt.as<loops::Load>();
    if (load && std::any_of(load->coords.begin(), load->coords.end(), loops::depends_on_data)) return true;
  }
  return false;
}

class ProducerInliner {
 public:
  ProducerInliner(Dependencies& dependencies, const FusionCosts& costs, const Options& options, const LiveRangeBudget& live_range_budget, FusionLimit& limit,
                  Inlining when, const std::set<loops::BufferId>& kept)
      : dependencies_(dependencies), costs_(costs), options_(options), live_range_budget_(live_range_budget), limit_(limit), when_(when), kept_(kept) {}

  bool run() {
    std::vector<StepId> order = dependencies_.order();
    // Consumers first: a chain of producers then moves into its readers one by one.
    for (size_t i = order.size(); i-- > 0;) {
      if (!dependencies_.region(order[i])) continue;
      const std::vector<loops::BufferId> writes = dependencies_.summary(order[i]).writes;
      for (loops::BufferId buffer : writes)
        if (!kept_.contains(buffer) && dependencies_.producer(buffer) == order[i]) consider(order[i], buffer);
    }
    return changed_;
  }

 private:
  struct Reader {
    StepId step;
    std::optional<loops::Region> region;  // with the producer inlined, where that is legal
    double gain = 0;
    double share = 1;  // of the buffer's elements that it reads
    bool rearranged = false;
  };

  const loops::Program& program() const { return dependencies_.program(); }

  // A number in the host's memory: kernels of other devices take it by value.
  bool is_number(loops::BufferId id) const {
    const loops::Buffer& buffer = program().buffers[id];
    return buffer.sizes.empty() && in_host_memory(buffer.device) && buffer.role == loops::Buffer::Role::Input;
  }

  bool reads_numbers_alone(const RegionSummary& summary) const {
    return std::all_of(summary.reads.begin(), summary.reads.end(), [this](loops::BufferId id) { return is_number(id); });
  }

  bool is_cheap_by_itself(const loops::Region& slice, const RegionSummary& summary, loops::BufferId buffer, size_t reader_count) const {
    if (summary.transcendental > 0) return false;
    if (reads_numbers_alone(summary)) return true;
    double loaded = 0;
    for (loops::BufferId read : summary.reads) loaded += costs_.buffer_bytes(read);
    const double stored = costs_.buffer_bytes(buffer);
    if (summary.applies <= 8 && loaded <= small_share * stored) return true;
    const bool converts = std::all_of(slice.body.begin(), slice.body.end(), [](const Stmt& stmt) {
      const auto* apply = stmt.as<loops::Apply>();
      return !apply || apply->op == ScalarOp::Cast;
    });
    return converts && summary.reads.size() == 1 && (loaded <= stored || reader_count <= 2);
  }

  void look_at_uses(const loops::Region& region, loops::BufferId buffer, Reader& reader) const {
    const loops::Space space(region, program().assumptions);
    const std::vector<sym::Expr>* first = nullptr;
    double read = 0;
    for (const Stmt& stmt : region.body) {
      const auto* load = stmt.as<loops::Load>();
      if (!load || load->buffer != buffer) continue;
      read += costs_.points(region, stmt.vars);
      if (load->mask.valid() || (first && *first != load->coords) || !space.is_bijection(load->coords, program().buffers[buffer].sizes))
        reader.rearranged = true;
      first = &load->coords;
    }
    const double elements = costs_.buffer_bytes(buffer) / byte_size(program().buffers[buffer].dtype);
    reader.share = elements > 0 ? read / elements : 1;
  }

  Reader inspect(StepId producer, const loops::Region& slice, const RegionSummary& summary, loops::BufferId buffer, StepId step) const {
    Reader reader;
    reader.step = step;
    const loops::Region* region = dependencies_.region(step);
    if (!region || region->device != slice.device) return reader;
    if (!live_range_budget_.allow_inlining(summary.reads, buffer, step)) return reader;
    if (region->body.size() + slice.body.size() > static_cast<size_t>(options_.max_fusion_size)) return reader;
    // What updates the buffer needs it in memory.
    const auto& writes = dependencies_.summary(step).writes;
    if (std::binary_search(writes.begin(), writes.end(), buffer)) return reader;
    for (loops::BufferId read : summary.reads)
      if (dependencies_.overwritten_between(read, producer, step)) return reader;
    look_at_uses(*region, buffer, reader);
    FusedBody body = inline_producer(program(), slice, *region);
    // The consumer reduces over its whole space as it is, so this repeats nothing.
    if (body.region) loops::spread_reductions(*body.region, program().assumptions);
    if (!body.region || fusion_blocker(program(), *body.region, costs_, options_)) return reader;
    reader.gain = costs_.region_cost(*region) - costs_.region_cost(*body.region);
    reader.region = std::move(body.region);
    return reader;
  }

  void consider(StepId producer, loops::BufferId buffer) {
    if (!dependencies_.alive(producer)) return;
    const loops::Region& region = *dependencies_.region(producer);
    const bool whole = dependencies_.summary(producer).pointwise() && dependencies_.summary(producer).writes.size() == 1;
    if (!whole && when_ == Inlining::Early) return;
    const loops::Region slice = whole ? region : slice_for_store(program(), region, buffer);
    const RegionSummary summary = summarize(slice);
    // A slice has no checks: what the region checks before it reads must not be read elsewhere.
    if (!whole && dependencies_.summary(producer).checks > 0 && reads_by_data(slice)) return;
    if (!summary.pointwise() || summary.applies > max_applies) return;
    const std::vector<StepId> steps = dependencies_.readers(buffer);
    if (steps.empty() || steps.size() > (reads_numbers_alone(summary) ? max_readers_of_constants : max_readers)) return;
    const bool cheap = is_cheap_by_itself(slice, summary, buffer, steps.size());
    std::vector<Reader> readers;
    bool any_rearranged = false;
    for (StepId step : steps) {
      if (step == producer) return;
      if (when_ == Inlining::Early && ((!cheap && !is_rearranged(step, buffer)) || ends_rows_of_select(dependencies_, producer, step, buffer))) {
        readers.push_back({step, {}, 0, 1, false});
        continue;
      }
      readers.push_back(inspect(producer, slice, summary, buffer, step));
      any_rearranged = any_rearranged || readers.back().rearranged;
    }
    if (when_ == Inlining::Early && !cheap && !any_rearranged) return;
    apply(producer, buffer, whole, cheap, std::move(readers));
  }

  bool is_rearranged(StepId step, loops::BufferId buffer) const {
    Reader reader;
    if (const loops::Region* region = dependencies_.region(step)) look_at_uses(*region, buffer, reader);
    return reader.rearranged;
  }

  void apply(StepId producer, loops::BufferId buffer, bool whole, bool cheap, std::vector<Reader> readers) {
    const loops::Region& region = *dependencies_.region(producer);
    const bool all =
        !dependencies_.has_users_beyond_readers(buffer) && std::all_of(readers.begin(), readers.end(), [](const Reader& r) { return r.region.has_value(); });
    double gain = 0;
    for (const Reader& reader : readers) gain += reader.gain;
    std::optional<loops::Region> rest;
    if (all) {
      gain += costs_.region_cost(region);
      if (!whole) rest = without_store(program(), region, buffer);
      gain += whole ? costs_.launch_cost(region.device) : -costs_.region_cost(*rest);
    }
    const bool everywhere = all && gain > 0;
    const double launch = costs_.launch_cost(region.device);
    for (Reader& reader : readers) {
      if (!reader.region) continue;
      const bool part = reader.rearranged && reader.share <= part_read && reader.gain > -launch;
      const bool alone = when_ == Inlining::Late ? reader.gain > 0 : part || (cheap && reader.gain > 0);
      if ((!everywhere && !alone) || !limit_.accept("computes", producer, reader.step)) continue;
      dependencies_.replace_after_inlining(reader.step, producer, std::move(*reader.region));
      changed_ = true;
    }
    if (!dependencies_.readers(buffer).empty() || dependencies_.has_users_beyond_readers(buffer)) return;
    if (whole)
      dependencies_.remove(producer);
    else
      dependencies_.replace(producer, rest ? std::move(*rest) : without_store(program(), region, buffer));
    changed_ = true;
  }

  Dependencies& dependencies_;
  const FusionCosts& costs_;
  const Options& options_;
  const LiveRangeBudget& live_range_budget_;
  FusionLimit& limit_;
  Inlining when_;
  const std::set<loops::BufferId>& kept_;
  bool changed_ = false;
};

}  // namespace

bool inline_producers(Dependencies& dependencies, const FusionCosts& costs, const Options& options, const LiveRangeBudget& live_range_budget,
                      FusionLimit& limit, Inlining when, const std::set<loops::BufferId>& kept) {
  return ProducerInliner(dependencies, costs, options, live_range_budget, limit, when, kept).run();
}

}  // namespace cxxinductor::schedule
