#include "kernels/region/rows_lie.h"

#include <algorithm>

#include "kernels/region/access.h"

namespace cxxinductor::kernels {
namespace {

using loops::Stmt;
using loops::VarId;

// Does the contiguous variable of most bytes of the widest-ranging loads lie across the row?
bool lies_across(const FlatRegion& flat) {
  if (flat.space.empty()) return false;
  int rank = 0;
  for (const Stmt& stmt : flat.region.body)
    if (stmt.as<loops::Load>()) rank = std::max(rank, stmt.vars.count());
  int along = 0, across = 0;
  for (const Stmt& stmt : flat.region.body) {
    if (!stmt.as<loops::Load>() || stmt.vars.count() < rank) continue;
    VarId v = contiguous_variable(flat, stmt);
    if (!v.valid()) continue;
    if (v == flat.space.back())
      across += byte_size(stmt.dtype);
    else if (flat.row_set().contains(v))
      along += byte_size(stmt.dtype);
  }
  // Few columns would leave most threads of a strip idle.
  return across > along && estimate(flat.extent(flat.space.back()), flat.assumptions) >= 8;
}

}  // namespace

RowsLie rows_lie(const FlatRegion& flat) {
  if (flat.serial.valid()) return RowsLie::AlongMemory;
  if (flat.row.empty()) return RowsLie::Nowhere;
  return lies_across(flat) ? RowsLie::AcrossMemory : RowsLie::AlongMemory;
}

bool have_rows_across_memory(const FlatRegion& flat, const Target&) { return rows_lie(flat) == RowsLie::AcrossMemory; }

}  // namespace cxxinductor::kernels
