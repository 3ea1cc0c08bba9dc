// Results are handled from the last to the first: a result that is a slice itself is placed before its own slices.
#include "schedule/plan/buffer_slices.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "ir/callees.h"
#include "ir/library_ops.h"
#include "ir/loops/index_algebra.h"
#include "ir/loops/region_rewrite.h"
#include "ir/loops/symbols.h"
#include "schedule/fusion/dependencies.h"
#include "schedule/fusion/score_fusion.h"
#include "schedule/plan/liveness.h"
#include "schedule/plan/partition_region.h"
#include "schedule/plan/select_regions.h"
#include "support/error.h"

namespace cxxinductor::schedule {
namespace {

using loops::ExternCall;
using loops::Region;
using loops::Stmt;
using loops::StmtId;
using loops::VarId;
using sym::Expr;

constexpr int64_t access_bytes = 16;     // of a wide access; libraries of products align to as much
constexpr int64_t library_bytes = 32;    // other libraries choose their algorithms by alignments up to this
constexpr double shortest_run = 32;      // contiguous bytes; below, stores fill sectors of memory in parts
constexpr size_t most_work = 4'000'000;  // steps examined for all results

// A step's use of a buffer.
struct Use {
  enum class Kind : uint8_t { Load, Store, Update, Operand, Mutated, Result, Alias };
  size_t step;
  Kind kind;
};

double hint(Expr e, const sym::Assumptions& assumptions) { return std::max(0.0, size_hint(e, assumptions)); }

bool is_library_matmul(const ExternCall& call) {
  return call.overload.empty() && is_call_of(call, OpFamily::Matmul) && !library_op(call)->find(ArgRole::Addend);
}

bool takes_pitched_operands(const ExternCall& call) {
  return is_library_matmul(call) || (call.planned_out && is_call_of(call, OpFamily::Matmul) && library_op(call)->find(ArgRole::Addend));
}

int64_t alignment_of_result(const ExternCall& call) { return takes_pitched_operands(call) ? access_bytes : library_bytes; }

class Placer {
 public:
  Placer(loops::Program& program, const Targets& targets, std::vector<plan::MissedFusion>& missed_fusions)
      : program_(program), targets_(targets), missed_fusions_(missed_fusions), costs_(program, targets), live_out_(program.buffers.size()) {
    for (const loops::ProgramOutput& output : program.outputs) {
      if (output.kind == loops::ProgramOutput::Kind::Tensor) live_out_[output.buffer] = 1;
      if (output.kind == loops::ProgramOutput::Kind::View) live_out_[output.view.buffer] = 1;
    }
    find_uses();
  }

  BufferSlices run() {
    size_t work = 0;
    for (size_t step = program_.steps.size(); step-- > 0 && work < most_work;) {
      const auto* region = std::get_if<Region>(&program_.steps[step]);
      if (!region) continue;
      for (loops::BufferId result : summarize(*region).writes)
        if (consider(step, result)) {
          work += program_.steps.size();
          break;
        }
    }
    return std::move(slices_);
  }

 private:
  const sym::Assumptions& assumptions() const { return program_.assumptions; }
  const loops::Buffer& buffer(loops::BufferId id) const { return program_.buffers[id]; }
  Expr simplified(Expr e) const { return sym::simplify(loops::expand(e), assumptions()); }

  void find_uses() {
    uses_ = IdVector<loops::BufferId, std::vector<Use>>(program_.buffers.size());
    definers_ = loops::find_definers(program_);
    for (size_t s = 0; s < program_.steps.size(); ++s) {
      if (const auto* region = std::get_if<Region>(&program_.steps[s])) {
        for (const Stmt& stmt : region->body) {
          if (const auto* load = stmt.as<loops::Load>()) uses_[load->buffer].push_back({s, Use::Kind::Load});
          if (const auto* store = stmt.as<loops::Store>()) uses_[store->buffer].push_back({s, store->update ? Use::Kind::Update : Use::Kind::Store});
        }
        continue;
      }
      const auto& call = std::get<ExternCall>(program_.steps[s]);
      const auto note = [&](size_t operand, Use::Kind kind) {
        if (const auto* view = std::get_if<loops::View>(&call.operands[operand])) uses_[view->buffer].push_back({s, kind});
      };
      for (size_t i = 0; i < call.operands.size(); ++i) note(i, Use::Kind::Operand);
      for (uint32_t i : call.mutated_operands) note(i, Use::Kind::Mutated);
      for (int i : call.alias_of)
        if (i >= 0) note(static_cast<size_t>(i), Use::Kind::Alias);
      for (loops::BufferId result : call.results) uses_[result].push_back({s, Use::Kind::Result});
    }
  }

  static bool writes(const Use& use) {
    return use.kind == Use::Kind::Store || use.kind == Use::Kind::Update || use.kind == Use::Kind::Mutated || use.kind == Use::Kind::Result;
  }

  // The step that computes an operand of the select region `step`; nothing if the operand must have its own memory.
  std::optional<size_t> maker_of(loops::BufferId id, size_t step) const {
    if (buffer(id).role != loops::Buffer::Role::Temporary || live_out_[id] || slices_.contains(id)) return std::nullopt;
    std::optional<size_t> maker;
    for (const Use& use : uses_[id]) {
      if (use.kind == Use::Kind::Mutated || use.kind == Use::Kind::Alias) return std::nullopt;
      if (!writes(use)) continue;
      if (use.step >= step) return std::nullopt;
      if (use.kind != Use::Kind::Update) maker = use.step;
    }
    if (!maker) return std::nullopt;
    const auto* call = std::get_if<ExternCall>(&program_.steps[*maker]);
    if (call && (!call->planned_out || call->results.size() != 1)) return std::nullopt;
    if (!call && loops::serial_var(std::get<Region>(program_.steps[*maker])).valid()) return std::nullopt;
    return maker;
  }

  bool consider(size_t step, loops::BufferId result) {
    const auto may_be_slice = [&](loops::BufferId id) { return maker_of(id, step).has_value(); };
    std::optional<SelectRegion> select = find_select_region(program_, step, result, may_be_slice);
    return select && settle(*select) && place(*select);
  }

  // ---- Profit ------------------------------------------------------------------------------------------------------

  // Removes the operand from ranges for which a copy is better; returns whether slices remain.
  bool settle(SelectRegion& select) {
    const double copied = select.alone ? 2 : 1;  // times that the copy moves an operand's bytes
    for (SelectRange& range : select.ranges) {
      if (!range.operand.valid()) continue;
      std::string reason = blocker(select, range);
      if (reason.empty() && copied * costs_.buffer_bytes(range.operand) <= lost_by_maker(select, range))
        reason = "who makes it would be slower by more than the copy costs";
      if (!reason.empty()) drop(select, range, reason);
    }
    keep_peak(select);
    double gain = 0;
    for (const SelectRange& range : select.ranges)
      if (range.operand.valid()) gain += copied * costs_.buffer_bytes(range.operand) - lost_by_maker(select, range);
    const auto uncovered = static_cast<double>(uncovered_ranges(select).size());
    if (select.alone) gain -= (uncovered - 1) * costs_.launch_cost(buffer(select.result).device);
    if (uncovered > 0 && !select.alone) drop_all(select, "what copies it makes something else, too");
    if (gain <= 0) drop_all(select, "the rest would be more kernels, which cost more than the copy");
    return std::any_of(select.ranges.begin(), select.ranges.end(), [](const SelectRange& p) { return p.operand.valid(); });
  }

  void drop(const SelectRegion& select, SelectRange& range, const std::string& reason) {
    const auto name = [&](size_t step) {
      const auto* region = std::get_if<Region>(&program_.steps[step]);
      return region ? region->name : std::get<ExternCall>(program_.steps[step]).callee;
    };
    missed_fusions_.push_back({name(*maker_of(range.operand, select.step)), name(select.step),
                               fmt::format("@{} is copied into @{}: {}", buffer(range.operand).name, buffer(select.result).name, reason),
                               static_cast<int64_t>(costs_.buffer_bytes(range.operand))});
    range.operand = {};
  }
  void drop_all(SelectRegion& select, const std::string& reason) {
    for (SelectRange& range : select.ranges)
      if (range.operand.valid()) drop(select, range, reason);
  }

  bool is_same_layout(const SelectRange& range) const {
    const loops::Buffer& from = buffer(range.operand);
    for (size_t d = 0; d < from.sizes.size(); ++d)
      if (!from.sizes[d].is_constant(1) && !sym::prove_equal(from.strides[d], range.strides[d], assumptions())) return false;
    return true;
  }

  // Elements from the start of the innermost dimension, in units of the stride 1.
  std::optional<size_t> inner_dimension(const SelectRange& range) const {
    for (size_t d = range.strides.size(); d-- > 0;)
      if (range.strides[d].is_constant(1) && !buffer(range.operand).sizes[d].is_constant(1)) return d;
    return std::nullopt;
  }

  // Every row begins and ends at a multiple of so many bytes. Loops over vectors do not need that.
  bool is_aligned(const SelectRegion& select, const SelectRange& range, int64_t bytes = access_bytes) const {
    const loops::Buffer& from = buffer(range.operand);
    if (!is_simt(targets_.of(from.device))) return true;
    const int64_t elements = bytes / byte_size(from.dtype);
    Expr offset = range.offset;
    for (loops::BufferId id = select.result; slices_.contains(id); id = slices_.at(id).base) offset = offset + slices_.at(id).offset;
    if (!sym::prove_divides(elements, simplified(offset), assumptions())) return false;
    if (is_same_layout(range)) return true;
    const auto inner = inner_dimension(range);
    if (!inner || !sym::prove_divides(elements, from.sizes[*inner], assumptions())) return false;
    for (size_t d = 0; d < range.strides.size(); ++d)
      if (d != *inner && !from.sizes[d].is_constant(1) && !sym::prove_divides(elements, range.strides[d], assumptions())) return false;
    return true;
  }

  // The memory that the result lies in can be allocated, and the piece's place in it computed, before the step.
  bool is_known_before(const SelectRegion& select, const SelectRange& range, size_t step) const {
    if (definers_.empty()) return true;
    std::vector<Expr> needed = range.strides;
    needed.push_back(range.offset);
    for (loops::BufferId id = select.result; id.valid(); id = slices_.contains(id) ? slices_.at(id).base : loops::BufferId())
      needed.insert(needed.end(), buffer(id).sizes.begin(), buffer(id).sizes.end());
    return std::ranges::all_of(needed, [&](Expr e) {
      return std::ranges::all_of(e.free_symbols(), [&](Expr symbol) {
        const auto definer = definers_.find(symbol.name());
        return definer == definers_.end() || definer->second < step;
      });
    });
  }

  std::string blocker(const SelectRegion& select, const SelectRange& range) const {
    const loops::BufferId id = range.operand;
    const size_t maker = *maker_of(id, select.step);
    const bool same = is_same_layout(range), aligned = is_aligned(select, range);
    if (!is_known_before(select, range, maker)) return "the size of the result is not known yet";
    for (const Use& use : uses_[select.result])
      if (writes(use) && use.step != select.step)
        for (const Use& other : uses_[id])
          if (other.step >= use.step) return "it is needed after the result changes";
    const auto inner = inner_dimension(range);
    if (!same && !inner) return "its elements would not lie side by side";
    if (const auto* call = std::get_if<ExternCall>(&program_.steps[maker])) {
      if (!is_aligned(select, range, alignment_of_result(*call))) return "a library writes it, which wants it aligned";
      if (!same && !is_library_matmul(*call)) return "a call writes it that may want it contiguous";
    } else if (!aligned) {
      if (!reduced_vars(std::get<Region>(program_.steps[maker])).empty()) return "its rows would not be aligned";
    }
    if (!same && hint(buffer(id).sizes[*inner], assumptions()) * byte_size(buffer(id).dtype) < shortest_run) return "its rows are short";
    for (const Use& use : uses_[id]) {
      if (use.kind != Use::Kind::Operand) continue;
      const auto& call = std::get<ExternCall>(program_.steps[use.step]);
      if (is_opaque_callee(call.callee)) return "a call reads it that may keep it";
      if (!can_read(call, range, same, aligned)) return "a call reads it that may want it contiguous";
    }
    return "";
  }

  bool can_read(const ExternCall& call, const SelectRange& range, bool same, bool aligned) const {
    if (!aligned) return false;
    if (same) return true;
    if (!takes_pitched_operands(call)) return false;
    for (const auto& operand : call.operands)
      if (const auto* view = std::get_if<loops::View>(&operand); view && view->buffer == range.operand)
        if (!restrided(*view, range)) return false;
    return true;
  }

  // The view with the new strides, dimension by dimension of the buffer.
  std::optional<std::vector<Expr>> restrided(const loops::View& view, const SelectRange& range) const {
    const loops::Buffer& from = buffer(range.operand);
    if (!view.offset.is_constant(0) || view.dtype != from.dtype) return std::nullopt;
    std::vector<Expr> strides;
    std::vector<bool> used(from.sizes.size(), false);
    for (size_t v = 0; v < view.sizes.size(); ++v) {
      if (view.sizes[v].is_constant(1)) {
        strides.push_back(view.strides[v]);
        continue;
      }
      size_t d = 0;
      while (d < used.size() && (used[d] || from.sizes[d] != view.sizes[v] || from.strides[d] != view.strides[v])) ++d;
      if (d == used.size()) return std::nullopt;
      used[d] = true;
      strides.push_back(range.strides[d]);
    }
    return strides;
  }

  // Cost, in bytes, of slower accesses in the producer.
  double lost_by_maker(const SelectRegion& select, const SelectRange& range) {
    const auto* region = std::get_if<Region>(&program_.steps[*maker_of(range.operand, select.step)]);
    if (!region) return 0;
    const double before = costs_.region_cost(*region);
    std::vector<Expr> strides = range.strides;
    std::swap(program_.buffers[range.operand].strides, strides);
    const double after = costs_.region_cost(*region);
    std::swap(program_.buffers[range.operand].strides, strides);
    return after - before + (is_aligned(select, range) ? 0 : before);
  }

  DevicePeaks peaks(const BufferSlices& slices) const {
    std::vector<int> times(program_.steps.size());
    std::iota(times.begin(), times.end(), 0);
    return find_peaks(program_, infer_liveness(program_, times, slices), static_cast<int>(times.size()));
  }

  // A result is alive from its first slice on: operands that are computed too early are not aliased.
  void keep_peak(SelectRegion& select) {
    const DevicePeaks most = peaks(slices_);
    while (true) {
      BufferSlices slices = slices_;
      SelectRange* earliest = nullptr;
      for (SelectRange& range : select.ranges) {
        if (!range.operand.valid()) continue;
        slices[range.operand] = {select.result, range.offset};
        if (!earliest || *maker_of(range.operand, select.step) < *maker_of(earliest->operand, select.step)) earliest = &range;
      }
      if (!earliest || !exceed(peaks(slices), most)) return;
      drop(select, *earliest, "the result would be there too early");
    }
  }

  // ---- Rewrite -----------------------------------------------------------------------------------------------------

  bool place(const SelectRegion& select) {
    std::vector<loops::Step> uncovered;
    std::vector<std::pair<loops::Buffer, Expr>> buffers;
    for (const auto& [begin, extent] : uncovered_ranges(select)) {
      auto rest = make_rest(select, begin, simplified(extent), uncovered.size());
      if (!rest) return false;
      uncovered.emplace_back(std::move(rest->region));
      buffers.emplace_back(std::move(rest->buffer), rest->offset);
    }
    for (size_t i = 0; i < buffers.size(); ++i) {
      const loops::BufferId id = program_.buffers.push_back(std::move(buffers[i].first));
      live_out_.push_back(0);
      slices_[id] = {select.result, buffers[i].second};
      for (Stmt& stmt : std::get<Region>(uncovered[i]).body)
        if (auto* store = stmt.as<loops::Store>()) store->buffer = id;
    }
    for (const SelectRange& range : select.ranges) {
      if (!range.operand.valid()) continue;
      restride_readers(range);
      program_.buffers[range.operand].strides = range.strides;
      slices_[range.operand] = {select.result, range.offset};
    }
    const auto at = program_.steps.begin() + static_cast<std::ptrdiff_t>(select.step);
    if (select.alone) {
      program_.steps.erase(at);
      program_.steps.insert(at, std::make_move_iterator(uncovered.begin()), std::make_move_iterator(uncovered.end()));
    } else {
      *at = reading(select);
    }
    find_uses();
    return true;
  }

  struct Rest {
    Region region;  // stores the result's elements at the buffer's coordinates
    loops::Buffer buffer;
    Expr offset;
  };

  std::optional<Rest> make_rest(const SelectRegion& select, Expr begin, Expr extent, size_t number) const {
    Rest rest{partition_region(select.region, select.var, begin, extent, assumptions()), buffer(select.result), {}};
    const loops::Space space(rest.region, assumptions());
    const Expr symbol = select.region.symbol(select.var);
    for (const Stmt& stmt : select.region.body) {
      const auto* whole = stmt.as<loops::Store>();
      if (!whole) continue;
      const auto dim = only_coordinate(whole->coords, symbol);
      Expr weight, others;
      if (!dim || !sym::split_linear(whole->coords[*dim], symbol, &weight, &others)) return std::nullopt;
      rest.buffer.sizes[*dim] = simplified(weight * extent);
      rest.offset = simplified(weight * begin * rest.buffer.strides[*dim]);
      for (Stmt& cut : rest.region.body)
        if (auto* store = cut.as<loops::Store>()) {
          store->coords[*dim] = space.simplify(loops::expand(store->coords[*dim] - weight * begin));
          if (!space.is_bijection(store->coords, rest.buffer.sizes)) return std::nullopt;
        }
    }
    rest.buffer.role = loops::Buffer::Role::Temporary;
    rest.buffer.name = fresh_name(buffer(select.result).name + ".rest" + (number ? std::to_string(number) : ""));
    if (number) rest.region.name = fresh_region_name(rest.region.name + "_" + std::to_string(number));
    return rest;
  }

  std::string fresh_name(std::string name) const {
    while (std::any_of(program_.buffers.begin(), program_.buffers.end(), [&](const loops::Buffer& b) { return b.name == name; })) name += "_";
    return name;
  }
  std::string fresh_region_name(std::string name) const {
    const auto taken = [&](const loops::Step& step) {
      const auto* region = std::get_if<Region>(&step);
      return region && region->name == name;
    };
    while (std::any_of(program_.steps.begin(), program_.steps.end(), taken)) name += "_";
    return name;
  }

  void restride_readers(const SelectRange& range) {
    if (is_same_layout(range)) return;
    for (const Use& use : uses_[range.operand]) {
      if (use.kind != Use::Kind::Operand) continue;
      for (auto& operand : std::get<ExternCall>(program_.steps[use.step]).operands)
        if (auto* view = std::get_if<loops::View>(&operand); view && view->buffer == range.operand)
          if (auto strides = restrided(*view, range)) view->strides = std::move(*strides);
    }
  }

  // The region without its store of the result, which is complete before it and which it reads instead.
  Region reading(const SelectRegion& select) const;

  loops::Program& program_;
  const Targets& targets_;
  std::vector<plan::MissedFusion>& missed_fusions_;
  FusionCosts costs_;
  IdVector<loops::BufferId, char> live_out_;
  loops::Definers definers_;
  IdVector<loops::BufferId, std::vector<Use>> uses_;
  BufferSlices slices_;
};

Region Placer::reading(const SelectRegion& select) const {
  const Region& from = std::get<Region>(program_.steps[select.step]);
  const loops::Store* gone = nullptr;
  for (const Stmt& stmt : from.body)
    if (const auto* store = stmt.as<loops::Store>(); store && store->buffer == select.result) gone = store;
  // The value, and the value that it was rounded from: other statements may use either; for elements of operands they are
  // equal.
  StmtId wide = gone->value;
  if (const auto* rounding = from.body[wide].as<loops::Apply>(); rounding && rounding->op == ScalarOp::Cast)
    if (compute_type(from.body[wide].dtype) == from.body[rounding->operands[0]].dtype) wide = rounding->operands[0];
  Region result{from.name, from.device, from.vars, {}};
  loops::BodyBuilder builder(result, assumptions());
  loops::Renaming renaming = loops::identity_renaming(from);
  const DType dtype = buffer(select.result).dtype;
  for (size_t s = 0; s < from.body.size(); ++s) {
    const Stmt& stmt = from.body[StmtId(s)];
    if (stmt.as<loops::Store>() == gone) continue;
    if (StmtId(s) != wide && StmtId(s) != gone->value) {
      builder.emit_renamed(from, StmtId(s), renaming);
      continue;
    }
    StmtId value = builder.emit({loops::Load{select.result, gone->coords, {}, {}}, dtype, {}, stmt.origin});
    if (stmt.dtype != dtype) value = builder.emit({loops::Apply{ScalarOp::Cast, {value}}, stmt.dtype, {}, stmt.origin});
    builder.bind(StmtId(s), value, renaming);
  }
  loops::remove_dead_statements(result);
  return result;
}

}  // namespace

loops::BufferId root_of(const BufferSlices& slices, loops::BufferId id) {
  for (auto found = slices.find(id); found != slices.end(); found = slices.find(id)) id = found->second.base;
  return id;
}

bool is_inside(const BufferSlices& slices, loops::BufferId id, const std::set<loops::BufferId>& bases) {
  for (auto found = slices.find(id); found != slices.end(); found = slices.find(id)) {
    id = found->second.base;
    if (bases.contains(id)) return true;
  }
  return false;
}

BufferSlices alias_concat_operands(loops::Program& program, const Targets& targets, std::vector<plan::MissedFusion>& missed_fusions) {
  return Placer(program, targets, missed_fusions).run();
}

}  // namespace cxxinductor::schedule
