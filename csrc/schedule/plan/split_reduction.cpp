#include "schedule/plan/split_reduction.h"

#include <algorithm>

#include "schedule/plan/mapping.h"
#include "schedule/plan/region_edit.h"
#include "support/error.h"

namespace cxxinductor::schedule {
namespace {

using loops::Stmt;
using loops::StmtId;
using loops::VarId;
using sym::Expr;

constexpr std::string_view part_name = "split.part";

bool can_split(const FlatRegion& flat, const MappedRegion& mapped) {
  int sweeps = 0;
  for (const plan::Segment& segment : mapped.schedule.segments) sweeps += segment.kind == plan::Segment::Kind::Sweep;
  return sweeps == 1 && std::all_of(flat.region.body.begin(), flat.region.body.end(), [](const Stmt& stmt) {
           const auto* reduce = stmt.as<loops::Reduce>();
           return !reduce || info(reduce->reduction).state == 1;
         });
}

// Parts of the first row variable, at most as many as give every multiprocessor its blocks; 1: leave it whole.
int64_t count_parts(const FlatRegion& flat, const MappedRegion& mapped, const Target& target) {
  Expr first = flat.extent(flat.row.front()), length = points(flat, flat.row);
  Expr blocks = grid_size(flat, mapped.mapping, target);
  if (!first.is_constant() || !length.is_constant() || !blocks.is_constant() || length.is_constant(0)) return 1;
  bool columns = mapped.mapping.kind == plan::MappingKind::Columns;
  if (blocks.is_constant(0) || blocks.constant() >= target.multiprocessors) return 1;
  int64_t wanted = int64_t{4} * target.multiprocessors / blocks.constant();
  int64_t smallest_part = columns ? 64 : 4096;
  int64_t most = std::min({wanted, first.constant(), length.constant() / smallest_part});
  for (int64_t parts = most; parts > 1; --parts)
    if (first.constant() % parts == 0) return parts;
  return 1;
}

// Where partial results lie: parts outermost if columns are contiguous, innermost if rows are.
Expr partial_offset(const FlatRegion& flat, Expr part, int64_t parts, bool columns) {
  Expr linear = 0;
  for (VarId v : flat.space) linear = linear * flat.extent(v) + flat.region.symbol(v);
  return columns ? part * points(flat, flat.space) + linear : linear * parts + part;
}

class Splitter {
 public:
  Splitter(const FlatRegion& flat, loops::BufferId next_buffer, int64_t parts, bool columns)
      : flat_(flat), next_buffer_(next_buffer), parts_(parts), columns_(columns) {}

  SplitReduction split() {
    SplitReduction result{flat_, flat_, {}};
    build_partial(result);
    build_combine(result.combine);
    return result;
  }

 private:
  Expr part() const { return Expr::symbol(part_name); }
  bool is_once_action(const Stmt& stmt) const {
    return !flat_.is_row_varying(stmt) && (stmt.as<loops::Store>() || stmt.as<loops::Check>());
  }

  void build_partial(SplitReduction& result) {
    const loops::Region& region = flat_.region;
    BodyCopier copier(region);
    for (size_t s = 0; s < region.body.size(); ++s) {
      const Stmt& stmt = region.body[StmtId(s)];
      if (is_once_action(stmt)) continue;
      StmtId value = copier.copy(StmtId(s));
      if (!stmt.as<loops::Reduce>()) continue;
      loops::BufferId buffer(next_buffer_.index() + result.temporaries.size());
      copier.insert({loops::Store{buffer, {partial_offset(flat_, part(), parts_, columns_)}, value, {}},
                     stmt.dtype,
                     {},
                     stmt.origin});
      result.temporaries.push_back(temporary(stmt.dtype, buffer));
    }
    FlatRegion& partial = result.partial;
    partial.region.body = copier.body();
    drop_dead(partial.region);
    IdVector<VarId, loops::Var> vars = flat_.region.vars;
    VarId first = flat_.row.front();
    int64_t length = flat_.extent(first).constant() / parts_;
    vars[first].extent = length;
    std::vector<VarId> space = flat_.space;
    VarId part_var = vars.push_back({std::string(part_name), parts_});
    space.insert(columns_ ? space.begin() : space.end(), part_var);
    sym::Substitution shifted{{vars[first].name, part() * length + flat_.region.symbol(first)}};
    replace_variables(partial, std::move(vars), std::move(space), flat_.row, shifted);
  }

  loops::Buffer temporary(DType dtype, loops::BufferId id) const {
    loops::Buffer buffer;
    buffer.name = fmt::format("partial{}", id.index());
    buffer.dtype = dtype;
    buffer.device = flat_.region.device;
    buffer.sizes = {simplify(points(flat_, flat_.space) * parts_, flat_.program_facts)};
    buffer.strides = {1};
    return buffer;
  }

  void build_combine(FlatRegion& combine) {
    const loops::Region& region = flat_.region;
    BodyCopier copier(region);
    size_t buffer = next_buffer_.index();
    for (size_t s = 0; s < region.body.size(); ++s) {
      const Stmt& stmt = region.body[StmtId(s)];
      const auto* reduce = stmt.as<loops::Reduce>();
      if (reduce) {
        Expr offset = partial_offset(flat_, part(), parts_, columns_);
        StmtId load =
            copier.insert({loops::Load{loops::BufferId(buffer++), {offset}, {}, {}}, stmt.dtype, {}, stmt.origin});
        copier.replace(StmtId(s),
                       copier.insert({loops::Reduce{reduce->reduction, load, {}}, stmt.dtype, {}, stmt.origin}));
      } else if (!flat_.is_row_varying(stmt)) {
        copier.copy(StmtId(s));
      }
    }
    combine.region.body = copier.body();
    drop_dead(combine.region);
    IdVector<VarId, loops::Var> vars;
    std::vector<VarId> space;
    for (VarId v : flat_.space) space.push_back(vars.push_back(flat_.region.vars[v]));
    VarId part_var = vars.push_back({std::string(part_name), parts_});
    replace_variables(combine, std::move(vars), std::move(space), {part_var}, {});
  }

  const FlatRegion& flat_;
  loops::BufferId next_buffer_;
  int64_t parts_;
  bool columns_;
};

}  // namespace

std::optional<SplitReduction> split_reduction(const FlatRegion& flat, const Target& target,
                                              loops::BufferId next_buffer) {
  if (flat.row.empty() || !is_throughput_device(target)) return {};
  MappedRegion whole = map_region(flat, target);
  if (!can_split(flat, whole)) return {};
  int64_t parts = count_parts(flat, whole, target);
  if (parts <= 1) return {};
  return Splitter(flat, next_buffer, parts, whole.mapping.kind == plan::MappingKind::Columns).split();
}

}  // namespace cxxinductor::schedule
