#include "schedule/fusion/split_reduction.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "ir/loops/region_rewrite.h"
#include "ir/loops/stmt_properties.h"
#include "ir/target.h"
#include "kernels/family.h"
#include "support/error.h"

namespace cxxinductor::schedule {
namespace {

using loops::BodyBuilder;
using loops::BufferId;
using loops::Renaming;
using loops::Stmt;
using loops::StmtId;
using loops::VarId;
using loops::VarSet;

constexpr double min_elements = 65536;  // below, one launch is faster than two
constexpr double min_row_piece = 4096, min_column_piece = 128;
// A strip of columns as wide as map_columns makes it, and blocks that keep a multiprocessor busy.
constexpr double columns_of_block = 64, blocks_of_multiprocessor = 8;

double bytes_read(const loops::Region& region, VarSet reduced, const FusionCosts& costs) {
  double bytes = 0;
  for (const Stmt& stmt : region.body)
    if (const auto* load = stmt.as<loops::Load>(); load && !(stmt.vars & reduced).empty())
      bytes += std::min(costs.points(region, stmt.vars) * byte_size(stmt.dtype), costs.buffer_bytes(load->buffer));
  return bytes;
}

// Into how many pieces each reduction should fall; 1: leave it.
double wanted_pieces(const loops::Program& program, const loops::Region& region, const FusionCosts& costs, const Target& target) {
  const RegionSummary summary = summarize(region);
  if (summary.reduced.empty() || !reductions_come_last(region) || kernels::is_kept_whole(program, region, target)) return 1;
  const double rows = costs.points(region, summary.all - summary.reduced), length = costs.points(region, summary.reduced);
  if (rows * length < min_elements) return 1;
  const double multiprocessors = target.multiprocessors;
  if (!reduces_across_columns(program, region)) {
    if (rows >= multiprocessors) return 1;
    return std::max(1.0, std::floor(std::min(2 * multiprocessors / std::max(1.0, rows), length / min_row_piece)));
  }
  const bool gpu = is_simt(target);
  const double blocks = std::ceil(rows / columns_of_block), full = multiprocessors * (gpu ? blocks_of_multiprocessor : 2);
  if (2 * blocks >= full) return 1;
  // The busiest multiprocessor reads this much alone; with pieces all read alike.
  const double bytes = bytes_read(region, summary.reduced, costs);
  const double alone = bytes / blocks * std::ceil(blocks / multiprocessors), shared = bytes / multiprocessors;
  if (gpu && (alone - shared) / target.machine.bytes_alone < target.machine.launch) return 1;
  return std::max(1.0, std::floor(std::min(full / std::max(1.0, blocks), length / min_column_piece)));
}

int64_t largest_divisor(int64_t n, int64_t most) {
  for (int64_t d = std::min(n, most); d > 1; --d)
    if (n % d == 0) return d;
  return 1;
}

// One variable of the reduction runs as outer * inner + position within the piece; those in `whole` lie outside of the pieces: each of
// their points has pieces of its own.
struct Pieces {
  VarId var;
  sym::Expr outer, inner;
  bool exact = true;  // outer * inner is the extent; else the last piece is cut by a mask
  VarSet whole;
};

// Outer variables that are too short for so many pieces, and pieces of the next one: of a batch of few images, rows of each image.
std::optional<Pieces> pieces_of_several(const loops::Region& region, VarSet reduced, double wanted) {
  VarSet whole;
  for (size_t v = 0; v < region.vars.size(); ++v) {
    const VarId var(v);
    const sym::Expr extent = region.vars[var].extent;
    if (!reduced.contains(var)) continue;
    if (!extent.is_constant()) return std::nullopt;
    const int64_t length = extent.constant();
    if (static_cast<double>(2 * length) <= wanted) {
      whole |= VarSet::of(var);
      wanted /= static_cast<double>(length);
      continue;
    }
    const int64_t count = largest_divisor(length, static_cast<int64_t>(wanted * 4 / 3));  // a length of few divisors has none that is near
    if (whole.empty() || static_cast<double>(2 * count) < wanted) return std::nullopt;
    return Pieces{.var = var, .outer = count, .inner = length / count, .whole = whole};
  }
  return std::nullopt;
}

Pieces choose_pieces(const loops::Region& region, VarSet reduced, double wanted, const sym::Assumptions& assumptions) {
  // The outermost variable that is long enough, else the longest.
  VarId var;
  double length = 0;
  for (size_t v = 0; v < region.vars.size(); ++v) {
    double extent = size_hint(region.vars[VarId(v)].extent, assumptions);
    if (!reduced.contains(VarId(v)) || length >= wanted || extent <= length) continue;
    var = VarId(v);
    length = extent;
  }
  const auto count = static_cast<int64_t>(std::min(wanted, length));
  const sym::Expr extent = region.vars[var].extent;
  if (extent.is_constant()) {
    const int64_t divisor = largest_divisor(extent.constant(), 2 * count);
    if (divisor * 2 >= count) return {var, divisor, extent.constant() / divisor, true, {}};
  }
  return {var, count, sym::ceil_div(extent, count), false, {}};
}

class ReductionSplitter {
 public:
  // over: the reductions that fall into pieces; serial: pieces of one variable alone, taken row by row (fuse_mixed_order_reductions.h).
  ReductionSplitter(Dependencies& dependencies, StepId step, VarSet over, const Pieces& pieces, bool columns, bool serial)
      : dependencies_(dependencies),
        step_(step),
        region_(*dependencies.region(step)),
        summary_(summarize(region_)),
        over_(over),
        pieces_(pieces),
        columns_(columns),
        serial_(serial) {}

  // Pieces that are not equally long need exact partial results: a moment is of so many elements, and a check may not run twice.
  bool is_legal() const {
    const bool moments = std::any_of(region_.body.begin(), region_.body.end(), [](const Stmt& stmt) {
      const auto* reduce = stmt.as<loops::Reduce>();
      return reduce && partials_of(reduce->reduction) == Partials::Moments;
    });
    return pieces_.exact || (summary_.checks == 0 && !moments);
  }

  void run() {
    classify();
    make_pieces();
    loops::Region whole = make_whole();
    dependencies_.insert_before(step_, std::move(pieces_region_));
    dependencies_.replace(step_, std::move(whole));
  }

 private:
  const sym::Assumptions& symbol_assumptions() const { return dependencies_.program().assumptions; }

  bool is_split(const Stmt& stmt) const {
    const auto* reduce = stmt.as<loops::Reduce>();
    return reduce && reduce->over == over_;
  }
  // Variables of the reductions that the pieces' results still have.
  bool is_kept(VarId v) const { return !over_.contains(v) || pieces_.whole.contains(v) || (serial_ && v != pieces_.var); }

  // Statements of the first region: the reductions, what they need, effects at every element, and every check that can
  // be made there, since what it guards may be read there.
  void classify() {
    const std::vector<bool> late = depend_on_reductions(region_);
    in_pieces_.assign(region_.body.size(), false);
    for (size_t s = region_.body.size(); s-- > 0;) {
      const Stmt& stmt = region_.body[StmtId(s)];
      if (is_split(stmt) || (is_effect(stmt) && !(stmt.vars & over_).empty())) in_pieces_[s] = true;
      if (stmt.as<loops::Check>() && !late[s]) in_pieces_[s] = true;
      if (!in_pieces_[s]) continue;
      for (StmtId operand : loops::operands(stmt)) in_pieces_[operand.index()] = true;
    }
  }

  void make_pieces() {
    pieces_region_ = {region_.name.empty() ? "" : region_.name + "_pieces", region_.device, {}, {}};
    loops::ExprMap values;
    std::string inner_name = loops::fresh_variable_name(region_.vars);
    for (size_t v = 0; v < region_.vars.size(); ++v) {
      const loops::Var& var = region_.vars[VarId(v)];
      pieces_region_.vars.push_back({var.name, VarId(v) == pieces_.var ? pieces_.outer : var.extent});
      if (VarId(v) == pieces_.var) pieces_region_.vars.push_back({inner_name, pieces_.inner, serial_});
    }
    piece_symbol_ = region_.symbol(pieces_.var);
    position_ = piece_symbol_ * pieces_.inner + sym::Expr::symbol(inner_name);
    values[piece_symbol_] = position_;
    BodyBuilder builder(pieces_region_, symbol_assumptions());
    Renaming renaming{std::vector<StmtId>(region_.body.size()), values, {}};
    for (size_t v = 0; v < region_.vars.size(); ++v) {
      sym::Expr symbol = VarId(v) == pieces_.var ? sym::Expr::symbol(inner_name) : region_.symbol(VarId(v));
      renaming.vars.push_back(pieces_.whole.contains(VarId(v)) ? VarSet{} : builder.vars_of_expr(symbol));
    }
    if (!pieces_.exact) mask_ = emit_mask(builder);
    for (size_t s = 0; s < region_.body.size(); ++s) {
      if (!in_pieces_[s]) continue;
      const Stmt& stmt = region_.body[StmtId(s)];
      Stmt now = builder.renamed(stmt, renaming);
      if (mask_.valid()) guard(builder, stmt, now);
      if (serial_ && is_split(stmt)) now.as<loops::Reduce>()->over = builder.vars_of_expr(sym::Expr::symbol(inner_name));
      StmtId id = builder.emit(std::move(now));
      builder.bind(StmtId(s), id, renaming);
      const auto* reduce = stmt.as<loops::Reduce>();
      if (!is_split(stmt)) continue;
      store_partial(builder, StmtId(s), id);
      if (partials_of(reduce->reduction) != Partials::Moments) continue;
      store_partial(builder, StmtId(s), builder.emit({loops::Project{id, 1}, stmt.dtype, {}, stmt.origin}));
    }
  }

  StmtId emit_mask(BodyBuilder& builder) const {
    StmtId at = builder.emit({loops::Index{position_}, DType::I64, {}, {}});
    StmtId end = builder.emit({loops::Index{region_.vars[pieces_.var].extent}, DType::I64, {}, {}});
    return builder.emit({loops::Apply{ScalarOp::Lt, {at, end}}, DType::Bool, {}, {}});
  }

  // The cut piece: nothing is read or stored past the end, and reductions see their neutral element there.
  void guard(BodyBuilder& builder, const Stmt& old, Stmt& now) const {
    if (!old.vars.contains(pieces_.var) && !old.as<loops::Reduce>()) return;
    auto both = [&](StmtId mask) { return mask.valid() ? builder.emit({loops::Apply{ScalarOp::LogicalAnd, {mask, mask_}}, DType::Bool, {}, {}}) : mask_; };
    if (auto* load = now.as<loops::Load>()) {
      if (!load->mask.valid()) load->other = Scalar::from_integer(now.dtype, 0);
      load->mask = both(load->mask);
    } else if (auto* store = now.as<loops::Store>()) {
      store->mask = both(store->mask);
    } else if (auto* reduce = now.as<loops::Reduce>()) {
      const DType dtype = builder.region().body[reduce->operand].dtype;
      Scalar neutral = cast(form(reduce->reduction).initial_state(dtype).at(0), dtype);
      StmtId no = builder.emit({loops::Constant{neutral}, dtype, {}, {}});
      reduce->operand = builder.emit({loops::Apply{ScalarOp::Where, {mask_, reduce->operand, no}}, dtype, {}, old.origin});
    }
  }

  void store_partial(BodyBuilder& builder, StmtId old, StmtId value) {
    const Stmt& stmt = builder.region().body[value];
    loops::Buffer buffer;
    buffer.name = fresh_buffer_name();
    buffer.dtype = stmt.dtype;
    buffer.device = region_.device;
    std::vector<sym::Expr> coords;
    auto add_dim = [&](sym::Expr coord, sym::Expr size) {
      coords.push_back(coord);
      buffer.sizes.push_back(size);
    };
    if (columns_) add_dim(piece_symbol_, pieces_.outer);
    // Rows that serial pieces leave apart lie outside of what is contiguous.
    for (const bool rows : {true, false})
      for (size_t v = 0; v < region_.vars.size(); ++v)
        if (is_kept(VarId(v)) && over_.contains(VarId(v)) == rows) add_dim(region_.symbol(VarId(v)), region_.vars[VarId(v)].extent);
    if (!columns_) add_dim(piece_symbol_, pieces_.outer);
    buffer.strides.assign(buffer.sizes.size(), 1);
    for (size_t d = buffer.sizes.size() - 1; d-- > 0;) buffer.strides[d] = buffer.strides[d + 1] * buffer.sizes[d + 1];
    const DType dtype = stmt.dtype;
    const OriginId origin = stmt.origin;
    BufferId id = dependencies_.add_buffer(std::move(buffer));
    builder.emit({loops::Store{id, coords, value, {}}, dtype, {}, origin});
    partials_.push_back({old, id, std::move(coords)});
  }

  std::string fresh_buffer_name() const {
    const auto& buffers = dependencies_.program().buffers;
    for (size_t n = buffers.size();; ++n) {
      std::string name = fmt::format("pieces.{}", n);
      if (std::none_of(buffers.begin(), buffers.end(), [&](const loops::Buffer& b) { return b.name == name; })) return name;
    }
  }

  // Reduces the pieces; everything else that one row needs follows.
  loops::Region make_whole() const {
    loops::Region result{region_.name, region_.device, {}, {}};
    for (size_t v = 0; v < region_.vars.size(); ++v) {
      if (VarId(v) == pieces_.var)
        result.vars.push_back({region_.vars[VarId(v)].name, pieces_.outer});
      else if (is_kept(VarId(v)))
        result.vars.push_back(region_.vars[VarId(v)]);
    }
    BodyBuilder builder(result, symbol_assumptions());
    Renaming renaming{std::vector<StmtId>(region_.body.size()), {}, {}};
    for (size_t v = 0; v < region_.vars.size(); ++v) renaming.vars.push_back(builder.vars_of_expr(region_.symbol(VarId(v))));
    for (size_t p = 0; p < partials_.size(); ++p) {
      const StmtId old = partials_[p].reduce;
      const Reduction reduction = region_.body[old].as<loops::Reduce>()->reduction;
      if (partials_of(reduction) == Partials::Moments)
        merge_moments(builder, p++, renaming);
      else
        builder.bind(old, reduce_pieces(builder, reduction, load_partial(builder, p)), renaming);
    }
    for (size_t s = 0; s < region_.body.size(); ++s) {
      const Stmt& stmt = region_.body[StmtId(s)];
      if (is_effect(stmt) && (stmt.vars & over_).empty()) emit_with_operands(builder, StmtId(s), renaming);
    }
    return result;
  }

  StmtId load_partial(BodyBuilder& builder, size_t p) const {
    const Stmt& stmt = region_.body[partials_[p].reduce];
    return builder.emit({loops::Load{partials_[p].buffer, partials_[p].coords, {}, {}}, stmt.dtype, {}, stmt.origin});
  }
  StmtId reduce_pieces(BodyBuilder& builder, Reduction reduction, StmtId operand) const {
    const DType dtype = result_dtype(reduction, builder.region().body[operand].dtype);
    VarSet over;
    for (size_t v = 0; v < region_.vars.size(); ++v)
      if (over_.contains(VarId(v)) && (VarId(v) == pieces_.var || is_kept(VarId(v)))) over |= builder.vars_of_expr(region_.symbol(VarId(v)));
    return builder.emit({loops::Reduce{reduction, operand, over}, dtype, {}, {}});
  }
  StmtId apply(BodyBuilder& builder, ScalarOp op, std::vector<StmtId> operands, DType dtype) const {
    return builder.emit({loops::Apply{op, std::move(operands)}, dtype, {}, {}});
  }

  // Pieces of n elements with means m_i and squared deviations d_i: the mean is that of the m_i, the squared deviation
  // sum(d_i) + n * sum((m_i - mean)^2).
  void merge_moments(BodyBuilder& builder, size_t p, Renaming& renaming) const {
    const StmtId old = partials_[p].reduce;
    const DType dtype = region_.body[old].dtype;
    auto as_scalar = [&](sym::Expr count) {
      StmtId index = builder.emit({loops::Index{count}, DType::I64, {}, {}});
      return apply(builder, ScalarOp::Cast, {index}, dtype);
    };
    sym::Expr piece_length = pieces_.inner, pieces = pieces_.outer;
    for (size_t v = 0; v < region_.vars.size(); ++v) {
      if (!over_.contains(VarId(v)) || VarId(v) == pieces_.var) continue;
      sym::Expr& factor = pieces_.whole.contains(VarId(v)) ? pieces : piece_length;
      factor = factor * region_.vars[VarId(v)].extent;
    }
    StmtId piece_mean = load_partial(builder, p), piece_deviation = load_partial(builder, p + 1);
    StmtId sum = reduce_pieces(builder, Reduction::Sum, piece_mean);
    StmtId mean = apply(builder, ScalarOp::Div, {sum, as_scalar(pieces)}, dtype);
    StmtId off = apply(builder, ScalarOp::Sub, {piece_mean, mean}, dtype);
    StmtId between = reduce_pieces(builder, Reduction::Sum, apply(builder, ScalarOp::Mul, {off, off}, dtype));
    StmtId within = reduce_pieces(builder, Reduction::Sum, piece_deviation);
    StmtId weighted = apply(builder, ScalarOp::Mul, {between, as_scalar(piece_length)}, dtype);
    StmtId deviation = apply(builder, ScalarOp::Add, {within, weighted}, dtype);
    builder.bind(old, mean, renaming);
    for (size_t s = 0; s < region_.body.size(); ++s) {
      const auto* project = region_.body[StmtId(s)].as<loops::Project>();
      if (project && project->of == old) builder.bind(StmtId(s), project->result == 0 ? mean : deviation, renaming);
    }
  }

  void emit_with_operands(BodyBuilder& builder, StmtId old, Renaming& renaming) const {
    if (renaming.statements[old.index()].valid()) return;
    for (StmtId operand : loops::operands(region_.body[old])) emit_with_operands(builder, operand, renaming);
    builder.emit_renamed(region_, old, renaming);
  }

  Dependencies& dependencies_;
  StepId step_;
  const loops::Region region_;
  const RegionSummary summary_;
  const VarSet over_;
  const Pieces pieces_;
  const bool columns_, serial_;
  std::vector<bool> in_pieces_;
  loops::Region pieces_region_;
  sym::Expr piece_symbol_, position_;
  StmtId mask_;
  struct Partial {
    StmtId reduce;  // of the region that is split; moments have two partials, mean and deviation
    BufferId buffer;
    std::vector<sym::Expr> coords;
  };
  std::vector<Partial> partials_;
};

}  // namespace

void split_serial_reduction(Dependencies& dependencies, StepId step, VarSet over, VarId var, int64_t pieces) {
  const sym::Expr extent = dependencies.region(step)->vars[var].extent;
  CXXI_CHECK(extent.is_constant() && extent.constant() % pieces == 0, "{} rows in {} pieces", sym::to_string(extent), pieces);
  const Pieces parts{var, pieces, extent.constant() / pieces, true, {}};
  ReductionSplitter(dependencies, step, over, parts, /*columns=*/true, /*serial=*/true).run();
}

void split_reductions(Dependencies& dependencies, const FusionCosts& costs, const Targets& targets, FusionLimit& limit) {
  for (StepId step : dependencies.order()) {
    const loops::Region* region = dependencies.region(step);
    if (!region) continue;
    const double wanted = wanted_pieces(dependencies.program(), *region, costs, targets.of(region->device));
    if (wanted < 2) continue;
    const VarSet reduced = dependencies.summary(step).reduced;
    bool uniform = true;  // of merged regions this holds; a region of one node reduces once
    for (const Stmt& stmt : region->body)
      if (const auto* reduce = stmt.as<loops::Reduce>()) uniform = uniform && reduce->over == reduced;
    if (!uniform) continue;
    const bool columns = reduces_across_columns(dependencies.program(), *region);
    const std::optional<Pieces> several = columns ? pieces_of_several(*region, reduced, wanted) : std::nullopt;
    const Pieces pieces = several ? *several : choose_pieces(*region, reduced, wanted, dependencies.program().assumptions);
    ReductionSplitter splitter(dependencies, step, reduced, pieces, columns, /*serial=*/false);
    if (splitter.is_legal() && limit.accept("splits the reductions of", step)) splitter.run();
  }
}

}  // namespace cxxinductor::schedule
