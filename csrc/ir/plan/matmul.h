// The parts of a region that is a matrix product: one sum over one variable of cast<f32>(left) * cast<f32>(right), both of the
// same 16-bit float. Anything else that it computes is an epilogue of the sum, or a prologue of a factor: factors may be loads
// or computed.
//
// The scheduler finds such regions; the family fills its template with their parts.
#pragma once

#include <optional>
#include <vector>

#include "ir/matmul_tile.h"
#include "ir/plan/plan.h"

namespace cxxinductor::plan {

struct MatmulParts {
  StmtId sum;          // the Reduce
  StmtId left, right;  // the narrow factors
  StmtId kept;         // what leaves the tensor cores' registers: the narrow cast that is all that reads the sum, or the sum
  VarId k;
};

std::optional<MatmulParts> find_matmul(const loops::Region& region);
// Of a kernel mapped so: left varies over m, the last but one variable of space. InternalError where there are none.
MatmulParts matmul_parts(const Kernel& kernel);
VarId matmul_m(const Mapping& mapping);
VarId matmul_n(const Mapping& mapping);
void set_tile(Matmul& matmul, const MatmulTile& tile);
// Shared memory of a block: the stages of both factors' tiles, or the sums of a tile in rows; of warp groups: the stages, and a part of the
// sums for each warp. kept_bytes: of a sum.
int64_t matmul_shared_bytes(const MatmulTile& tile, int kept_bytes);
int64_t matmul_shared_bytes(const Kernel& kernel);
inline constexpr int64_t warpgroup_part_bytes = 16 * (128 + 16);  // rows of 128 bytes and 16 between them (cxxi_sum_parts)
inline constexpr int matmul_row_padding = 8;                      // elements between rows of sums, so that rows start in different banks

}  // namespace cxxinductor::plan
