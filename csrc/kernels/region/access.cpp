#include "kernels/region/access.h"

#include <algorithm>

#include "ir/target.h"

namespace cxxinductor::kernels {

using loops::Stmt;
using loops::VarId;
using loops::VarSet;
using plan::AccessKind;

namespace {

VarSet mask_vars(const loops::Region& region, const Stmt& stmt) {
  loops::StmtId mask;
  if (const auto* load = stmt.as<loops::Load>()) mask = load->mask;
  if (const auto* store = stmt.as<loops::Store>()) mask = store->mask;
  return mask.valid() ? region.body[mask].vars : VarSet();
}

// Accesses along v with coefficient 1, which groups of some width could make wide.
std::vector<const Stmt*> contiguous_accesses(const FlatRegion& flat, VarId v) {
  std::vector<const Stmt*> found;
  for (const loops::Access& access : accesses(flat.region)) {
    const Stmt& stmt = flat.region.body[access.stmt];
    if (!stmt.vars.contains(v)) continue;
    std::optional<Linear> linear = linear_in(flat.region, offset_of(stmt), v);
    if (linear && linear->coefficient.is_constant(1)) found.push_back(&stmt);
  }
  return found;
}

bool width_pays(const FlatRegion& flat, const std::vector<const Stmt*>& contiguous, VarId v, int width) {
  for (const Stmt& stmt : flat.region.body)
    if (stmt.as<loops::Store>() && classify_access(flat, stmt, v, width, true) == AccessKind::Strided) return false;
  int wide_bytes = 0, narrow_bytes = 0;
  for (const Stmt* stmt : contiguous)
    (classify_access(flat, *stmt, v, width, true) == AccessKind::Vector ? wide_bytes : narrow_bytes) += byte_size(stmt->dtype);
  // At a tie too: a wide store with as many narrow loads reaches the bandwidth of memory.
  return wide_bytes >= narrow_bytes;
}

}  // namespace

AccessKind classify_access(const FlatRegion& flat, const Stmt& stmt, VarId v, int width, bool aligned_only) {
  if (!v.valid() || !stmt.vars.contains(v)) return AccessKind::Broadcast;
  if (mask_vars(flat.region, stmt).contains(v)) return AccessKind::Strided;
  if (const auto* store = stmt.as<loops::Store>(); store && store->combine != Combine::Overwrite) return AccessKind::Strided;
  std::optional<Linear> linear = linear_in(flat.region, offset_of(stmt), v);
  if (!linear || !linear->coefficient.is_constant(1)) return AccessKind::Strided;
  if (aligned_only && !prove_divides(width, linear->rest, flat.assumptions)) return AccessKind::Strided;
  return AccessKind::Vector;
}

VarId contiguous_variable(const FlatRegion& flat, const Stmt& stmt) {
  for (size_t v = 0; v < flat.region.vars.size(); ++v) {
    std::optional<Linear> linear = linear_in(flat.region, offset_of(stmt), VarId(v));
    if (linear && linear->coefficient.is_constant(1)) return VarId(v);
  }
  return {};
}

bool is_staged(const FlatRegion& flat, const Stmt& stmt, VarId c, VarId tile_var) {
  const auto* load = stmt.as<loops::Load>();
  if (!load || load->mask.valid() || !stmt.vars.contains(c) || !stmt.vars.contains(tile_var)) return false;
  if (loops::depends_on_data(offset_of(stmt))) return false;
  std::optional<Linear> along = linear_in(flat.region, offset_of(stmt), tile_var);
  std::optional<Linear> across = linear_in(flat.region, offset_of(stmt), c);
  return along && along->coefficient.is_constant(1) && across;
}

bool is_tiled(const FlatRegion& flat, const Stmt& stmt, VarId c, VarId tile_var) {
  return is_staged(flat, stmt, c, tile_var) && contiguous_variable(flat, stmt) == tile_var;
}

int choose_vector_width(const FlatRegion& flat, VarId v, const Target& target) {
  if (!v.valid()) return 1;
  if (!is_simt(target)) {
    // As many lanes as the widest values have in one vector; integers of 64 bits, which are mostly indices, take several.
    int widest = 1;
    for (const Stmt& stmt : flat.region.body) widest = std::max(widest, stmt.dtype == DType::F64 ? 8 : std::min(byte_size(compute_type(stmt.dtype)), 4));
    return target.vector_bytes / widest;
  }
  std::vector<const Stmt*> contiguous = contiguous_accesses(flat, v);
  if (contiguous.empty()) return 1;
  int narrowest = 16, widest = 1;
  for (const Stmt* stmt : contiguous) {
    narrowest = std::min(narrowest, byte_size(stmt->dtype));
    widest = std::max(widest, byte_size(stmt->dtype));
  }
  // The narrowest type fills one access, the widest takes two at most.
  int width = std::min({target.vector_bytes / narrowest, 2 * target.vector_bytes / widest, 8});
  sym::Interval extent = bounds(flat.extent(v), flat.assumptions);
  while (width > 1 && (extent.high < width || !width_pays(flat, contiguous, v, width))) width /= 2;
  return width;
}

VarId transposed_variable(const FlatRegion& flat) {
  if (flat.space.size() < 2) return {};
  VarId c = flat.space.back();
  if (estimate(flat.extent(c), flat.assumptions) < 16) return {};
  for (const Stmt& stmt : flat.region.body)
    if (stmt.as<loops::Store>() && contiguous_variable(flat, stmt) != c) return {};
  IdVector<VarId, int> bytes(flat.region.vars.size());
  VarId best;
  for (const Stmt& stmt : flat.region.body) {
    if (!stmt.as<loops::Load>()) continue;
    VarId v = contiguous_variable(flat, stmt);
    if (!v.valid() || v == c || estimate(flat.extent(v), flat.assumptions) < 16) continue;
    if (!is_staged(flat, stmt, c, v)) continue;
    bytes[v] += byte_size(stmt.dtype);
    if (!best.valid() || bytes[v] > bytes[best]) best = v;
  }
  return best;
}

void describe_access(plan::Kernel& kernel, const loops::Access& access, AccessKind kind, int width, const Target& target) {
  kernel.offsets[access.stmt] = offset_of(kernel.region.body[access.stmt]);
  kernel.access[access.stmt] = kind;
  const bool wide = kind == AccessKind::Staged || kind == AccessKind::Vector;
  if (wide && is_simt(target) && width > 1) kernel.params[access.buffer.index()].aligned = true;
}

void describe_plain_accesses(plan::Kernel& kernel, const FlatRegion& flat, const Target& target) {
  const int width = kernel.mapping.vector_width;
  const VarId v = vector_variable(kernel.mapping);
  for (const loops::Access& access : accesses(kernel.region))
    describe_access(kernel, access, classify_access(flat, kernel.region.body[access.stmt], v, width, is_simt(target)), width, target);
}

}  // namespace cxxinductor::kernels
