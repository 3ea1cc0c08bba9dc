#include "kernels/matmul/matmul.h"

#include <algorithm>
#include <array>

#include "ir/plan/matmul.h"
#include "kernels/region/access.h"
#include "kernels/region/region_edit.h"
#include "kernels/registry.h"
#include "support/error.h"

namespace cxxinductor::kernels {
namespace {

using loops::Stmt;
using loops::StmtId;
using loops::VarId;
using loops::VarSet;
using plan::AccessKind;
using sym::Expr;

constexpr int64_t least_extent = 16;  // of m, n and k, as estimated; below, a tile is mostly empty

// ---- Factors ----------------------------------------------------------------------------------------------------

bool is_direct(const Stmt& stmt) {
  const auto* load = stmt.as<loops::Load>();
  return load && !load->mask.valid() && !loops::depends_on_data(offset_of(stmt));
}

// Can a load be read in chunks along `inner`, rows of chunks being `outer`?
bool lies_along(const FlatRegion& flat, const Stmt& stmt, VarId inner, VarId outer, bool aligned) {
  const auto along = linear_in(flat.region, offset_of(stmt), inner);
  if (!along || !along->coefficient.is_constant(1) || (aligned && !prove_divides(factor_width, along->rest, flat.assumptions))) return false;
  return linear_in(flat.region, along->rest, outer).has_value();
}

// Bytes per element that a computed factor loads in whole chunks along v.
int wide_bytes(const FlatRegion& flat, StmtId factor, VarId v) {
  const std::vector<bool> needed = loops::backward_slice(flat.region, factor);
  int bytes = 0;
  for (size_t s = 0; s < needed.size(); ++s) {
    const Stmt& stmt = flat.region.body[StmtId(s)];
    if (needed[s] && stmt.as<loops::Load>() && classify_access(flat, stmt, v, factor_width, true) == AccessKind::Vector) bytes += byte_size(stmt.dtype);
  }
  return bytes;
}

// Does a factor run along k in memory, or along `across`? Nothing: along neither in chunks. small: of small products chunks may be unaligned. They are
// read element by element then; the library has no better way.
std::optional<bool> runs_along_k(const FlatRegion& flat, StmtId factor, VarId k, VarId across, bool small) {
  const Stmt& stmt = flat.region.body[factor];
  if (is_direct(stmt)) {
    for (const bool aligned : {true, false}) {
      if (!aligned && !small) break;
      if (lies_along(flat, stmt, k, across, aligned)) return true;
      if (lies_along(flat, stmt, across, k, aligned)) return false;
    }
    return std::nullopt;
  }
  const int along = wide_bytes(flat, factor, k), over = wide_bytes(flat, factor, across);
  if (along == 0 && over == 0) return std::nullopt;
  return along >= over;
}

// All loads of both factors come in chunks along one variable.
bool share_chunks(const FlatRegion& flat, const plan::MatmulParts& parts, bool left_along_k, bool right_along_k) {
  if (left_along_k && right_along_k) return true;
  const std::vector<bool> left = loops::backward_slice(flat.region, parts.left), right = loops::backward_slice(flat.region, parts.right);
  for (size_t s = 0; s < left.size(); ++s)
    if (left[s] && right[s] && flat.region.body[StmtId(s)].vars.contains(parts.k)) return false;
  return true;
}

// ---- Variables --------------------------------------------------------------------------------------------------

struct Arrangement {
  plan::MatmulParts parts;
  std::vector<VarId> batch, m, n;
};

// Statements that give the sum may run several times and in chunks; nothing else may vary over k, and nothing that the
// region writes may be a factor.
bool is_pure_matmul(const FlatRegion& flat, const plan::MatmulParts& parts) {
  const std::vector<bool> needed = loops::backward_slice(flat.region, parts.sum);
  for (size_t s = 0; s < needed.size(); ++s) {
    const Stmt& stmt = flat.region.body[StmtId(s)];
    if (!needed[s] && stmt.vars.contains(parts.k)) return false;
    const auto* store = stmt.as<loops::Store>();
    if (!store) continue;
    for (size_t t = 0; t < needed.size(); ++t) {
      const auto* load = flat.region.body[StmtId(t)].as<loops::Load>();
      if (needed[t] && load && load->buffer == store->buffer) return false;
    }
  }
  return true;
}

std::optional<Arrangement> sort_variables(const FlatRegion& flat) {
  const auto parts = plan::find_matmul(flat.region);
  if (!parts || flat.row.size() != 1 || flat.space.empty() || !is_pure_matmul(flat, *parts)) return std::nullopt;
  Arrangement found{*parts, {}, {}, {}};
  VarSet left = flat.region.body[parts->left].vars, right = flat.region.body[parts->right].vars;
  // Neighbouring columns are neighbours in memory.
  if (left.contains(flat.space.back()) && !right.contains(flat.space.back())) {
    std::swap(left, right);
    std::swap(found.parts.left, found.parts.right);
  }
  for (VarId v : flat.space) {
    if (!left.contains(v) && !right.contains(v)) return std::nullopt;
    (left.contains(v) && right.contains(v) ? found.batch : left.contains(v) ? found.m : found.n).push_back(v);
  }
  if (found.m.empty() || found.n.empty()) return std::nullopt;
  return found;
}

// How many of the last variables count through a stored factor's rows as one variable would.
size_t run_length(const FlatRegion& flat, StmtId factor, const std::vector<VarId>& vars) {
  const Stmt& stmt = flat.region.body[factor];
  if (!is_direct(stmt)) return vars.size();
  const Expr offset = offset_of(stmt);
  size_t length = 1;
  while (length < vars.size()) {
    const VarId inner = vars[vars.size() - length], outer = vars[vars.size() - length - 1];
    const auto step = linear_in(flat.region, offset, inner), stride = linear_in(flat.region, offset, outer);
    if (!step || !stride || !prove_equal(stride->coefficient, step->coefficient * flat.extent(inner), flat.assumptions)) break;
    ++length;
  }
  return length;
}

// Makes one variable of the last `count` of `from`; the ones before join the batch.
class VariableMerger {
 public:
  explicit VariableMerger(const FlatRegion& flat) : flat_(flat) {}

  VarId keep(VarId v) { return vars_.push_back(flat_.region.vars[v]); }
  VarId merge(const std::vector<VarId>& run) {
    if (run.size() == 1) return keep(run.front());
    std::string name;
    Expr extent = 1;
    for (VarId v : run) {
      name += (name.empty() ? "" : ".") + flat_.region.vars[v].name;
      extent = extent * flat_.extent(v);
    }
    const Expr merged = Expr::symbol(name);
    Expr inner = 1;
    for (size_t i = run.size(); i-- > 0;) {
      const Expr high = inner.is_constant(1) ? merged : floor_div(merged, inner);
      replacements_.emplace(flat_.region.vars[run[i]].name, i > 0 ? mod(high, flat_.extent(run[i])) : high);
      inner = inner * flat_.extent(run[i]);
    }
    return vars_.push_back({name, simplify(extent, flat_.program_assumptions)});
  }
  const IdVector<VarId, loops::Var>& vars() const { return vars_; }
  const sym::Substitution& replacements() const { return replacements_; }

 private:
  const FlatRegion& flat_;
  IdVector<VarId, loops::Var> vars_;
  sym::Substitution replacements_;
};

// A stored factor's offset with one variable in place of a run: exactly linear, whatever simplification makes of it.
Expr offset_through(const FlatRegion& flat, StmtId factor, const std::vector<VarId>& run, Expr merged) {
  const Expr offset = offset_of(flat.region.body[factor]);
  sym::Substitution zero;
  for (VarId v : run) zero.emplace(flat.region.vars[v].name, Expr(0));
  return substitute(offset, zero) + linear_in(flat.region, offset, run.back())->coefficient * merged;
}

// Of an arranged region.
MatmulSize size_of(const FlatRegion& flat, VarId k) {
  const auto extent = [&](VarId v) { return static_cast<double>(estimate(flat.extent(v), flat.assumptions)); };
  double batch = 1;
  for (size_t v = 0; v + 2 < flat.space.size(); ++v) batch *= extent(flat.space[v]);
  return {batch, extent(flat.space[flat.space.size() - 2]), extent(flat.space.back()), extent(k)};
}

// Whatever the symbols are.
bool is_small(const FlatRegion& flat, VarId k) {
  const auto small = [&](VarId v) { return flat.extent(v).is_constant() && flat.extent(v).constant() <= small_product_extent; };
  return small(flat.space[flat.space.size() - 2]) && small(flat.space.back()) && small(k);
}

int kept_bytes(const FlatRegion& flat, const plan::MatmulParts& parts) { return byte_size(flat.region.body[parts.kept].dtype); }

// Brings a flat region (ordered, merged) into the form of plan::Matmul: space is the batch, then m, then n.
// Returns false and changes nothing if the template cannot compute the region, or if it is too small for the tiles.
bool arrange_matmul(FlatRegion& flat, const Target& target) {
  if (target.machine.mma_flops == 0) return false;
  const auto found = sort_variables(flat);
  if (!found) return false;
  FlatRegion arranged = flat;
  VariableMerger merger(flat);
  std::vector<VarId> space;
  std::array<std::vector<VarId>, 2> runs;
  std::array<StmtId, 2> factors = {found->parts.left, found->parts.right};
  for (VarId v : found->batch) space.push_back(merger.keep(v));
  for (size_t side = 0; side < 2; ++side) {
    const std::vector<VarId>& vars = side == 0 ? found->m : found->n;
    const auto start = vars.end() - static_cast<ptrdiff_t>(run_length(flat, factors[side], vars));
    for (auto v = vars.begin(); v != start; ++v) space.push_back(merger.keep(*v));
    runs[side].assign(start, vars.end());
  }
  for (const std::vector<VarId>& run : runs) space.push_back(merger.merge(run));
  const VarId k = merger.keep(found->parts.k);
  const VarId m = space[space.size() - 2], n = space.back();
  replace_variables(arranged, merger.vars(), space, {k}, {}, merger.replacements());
  for (size_t side = 0; side < 2; ++side) {
    Stmt& stmt = arranged.region.body[factors[side]];
    if (runs[side].size() > 1 && is_direct(flat.region.body[factors[side]]))
      stmt.as<loops::Load>()->coords = {offset_through(flat, factors[side], runs[side], arranged.region.symbol(side == 0 ? m : n))};
  }
  for (VarId v : {m, n, k})
    if (estimate(arranged.extent(v), arranged.assumptions) < least_extent) return false;
  const bool small = is_small(arranged, k);
  const auto left = runs_along_k(arranged, factors[0], k, m, small), right = runs_along_k(arranged, factors[1], k, n, small);
  if (!left || !right || !share_chunks(arranged, *plan::find_matmul(arranged.region), *left, *right)) return false;
  flat = std::move(arranged);
  return true;
}

MappedRegion map_matmul(const FlatRegion& flat, const Target& target) {
  MappedRegion mapped;
  plan::Mapping& mapping = mapped.mapping;
  plan::Matmul& matmul = mapping.shape.emplace<plan::Matmul>();
  mapping.space = flat.space;
  mapping.row = flat.row;
  plan::MatmulParts parts = *plan::find_matmul(flat.region);
  const VarId m = plan::matmul_m(mapping), n = plan::matmul_n(mapping);
  if (flat.region.body[parts.right].vars.contains(m)) std::swap(parts.left, parts.right);
  const bool small = is_small(flat, parts.k);
  matmul.left_along_k = *runs_along_k(flat, parts.left, parts.k, m, small);
  matmul.right_along_k = *runs_along_k(flat, parts.right, parts.k, n, small);

  const MatmulTile tile = best_tile(size_of(flat, parts.k), kept_bytes(flat, parts), target);
  plan::set_tile(matmul, tile);
  matmul.group_m = 8;
  mapping.vector_width = choose_vector_width(flat, n, target);
  mapping.vector_tail = !prove_divides(mapping.vector_width, flat.extent(n), flat.assumptions);

  const std::vector<bool> needed = loops::backward_slice(flat.region, parts.sum);
  std::vector<bool> after(needed.size(), false);
  bool transcendental = false;
  for (size_t s = needed.size(); s-- > 0;) {
    const Stmt& stmt = flat.region.body[StmtId(s)];
    if (!needed[s]) after[s] = true;
    if (!after[s]) continue;
    if (const auto* apply = stmt.as<loops::Apply>()) transcendental |= info(apply->op).traits.transcendental;
    for (StmtId operand : loops::operands(stmt))
      if (operand != parts.sum) after[operand.index()] = true;
  }
  matmul.unroll = transcendental ? 1 : 4;
  mapped.schedule.memory_spaces.resize(needed.size(), plan::MemorySpace::Local);
  mapped.schedule.memory_spaces[parts.sum] = plan::MemorySpace::Row;
  mapped.schedule.segments.resize(2);
  mapped.schedule.segments[1].kind = plan::Segment::Kind::PerRow;
  for (size_t s = 0; s < needed.size(); ++s) {
    if (needed[s]) mapped.schedule.segments[0].stmts.push_back(StmtId(s));
    if (after[s]) mapped.schedule.segments[1].stmts.push_back(StmtId(s));
  }
  return mapped;
}

// Blocks of a product by warp groups that run at a time: each computes tile after tile.
int blocks_abreast(const plan::Matmul& matmul, const Target& target) {
  const auto tile = std::find_if(matmul_tiles.begin(), matmul_tiles.end(), [&](const MatmulTile& candidate) {
    return candidate.warpgroups == matmul.warpgroups && candidate.m == matmul.tile_m && candidate.n == matmul.tile_n && candidate.k == matmul.tile_k &&
           candidate.warps_m == matmul.warps_m && candidate.stages == matmul.stages;
  });
  CXXI_CHECK(tile != matmul_tiles.end(), "{} x {} x {} in {} stages is no tile of the template's", matmul.tile_m, matmul.tile_n, matmul.tile_k, matmul.stages);
  return target.multiprocessors * blocks_per_multiprocessor(*tile, target);
}

Expr matmul_grid(const FlatRegion& flat, const plan::Mapping& mapping, const Target& target) {
  const auto& matmul = mapping.get<plan::Matmul>();
  const Expr tiles = units(mapping, flat.region);
  return matmul.warpgroups ? sym::min(tiles, blocks_abreast(matmul, target)) : tiles;
}

void describe_matmul_accesses(plan::Kernel& kernel, const FlatRegion& flat, const Target&) {
  const plan::MatmulParts parts = plan::matmul_parts(kernel);
  const plan::Mapping& mapping = kernel.mapping;
  const auto& matmul = mapping.get<plan::Matmul>();
  const VarId m = plan::matmul_m(mapping), n = plan::matmul_n(mapping);
  const std::vector<bool> left = loops::backward_slice(kernel.region, parts.left), right = loops::backward_slice(kernel.region, parts.right);
  for (const loops::Access& access : accesses(kernel.region)) {
    const Stmt& stmt = kernel.region.body[access.stmt];
    const bool of_left = left[access.stmt.index()], of_right = right[access.stmt.index()];
    const bool along_k = (of_left && matmul.left_along_k) || (of_right && matmul.right_along_k);
    const VarId of_side = of_left ? m : n, along = along_k ? parts.k : of_side;
    const int width = of_left || of_right ? factor_width : mapping.vector_width;
    AccessKind kind = classify_access(flat, stmt, along, width, true);
    const bool is_factor = access.stmt == parts.left || access.stmt == parts.right;
    if (is_factor && is_direct(stmt) && lies_along(flat, stmt, along, along_k ? of_side : parts.k, true)) kind = AccessKind::Staged;
    kernel.offsets[access.stmt] = offset_of(stmt);
    kernel.access[access.stmt] = kind;
    if (kind == AccessKind::Staged || (kind == AccessKind::Vector && width > 1)) kernel.params[access.buffer.index()].aligned = true;
  }
}

}  // namespace

std::optional<MatmulEstimate> estimate_matmul(const loops::Program& program, const loops::Region& region, const Target& target) {
  // Most regions are not products; that is checked before they are arranged.
  const auto reduces = [](const Stmt& stmt) { return stmt.as<loops::Reduce>() != nullptr; };
  const auto sum = std::find_if(region.body.begin(), region.body.end(), reduces);
  if (target.machine.mma_flops == 0 || sum == region.body.end() || std::count_if(sum, region.body.end(), reduces) != 1) return std::nullopt;
  const auto* product = region.body[sum->as<loops::Reduce>()->operand].as<loops::Apply>();
  if (!product || product->op != ScalarOp::Mul) return std::nullopt;
  FlatRegion flat = flatten(program, region, program.assumptions);
  order_variables(flat, target);
  merge_variables(flat);
  if (!arrange_matmul(flat, target)) return std::nullopt;
  const plan::MatmulParts parts = *plan::find_matmul(flat.region);
  const MatmulSize size = size_of(flat, parts.k);
  return MatmulEstimate{size, template_time(size, best_tile(size, kept_bytes(flat, parts), target), target)};
}

namespace {

bool is_product_of_tiles(const loops::Program& program, const loops::Region& region, const Target& target) {
  return estimate_matmul(program, region, target).has_value();
}

}  // namespace

const KernelFamily family::matmul{.name = plan::Matmul::keyword,
                                  .simt = true,
                                  .keeps_whole = is_product_of_tiles,
                                  .arrange = arrange_matmul,
                                  .map = map_matmul,
                                  .describe_accesses = describe_matmul_accesses,
                                  .grid = matmul_grid,
                                  .bodies = matmul_bodies,
                                  .library = matmul_library,
                                  .instantiate = instantiate_matmul};

}  // namespace cxxinductor::kernels
