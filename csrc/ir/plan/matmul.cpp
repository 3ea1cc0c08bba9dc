#include "ir/plan/matmul.h"

#include <algorithm>

#include "support/error.h"

namespace cxxinductor::plan {
namespace {

bool is_narrow(DType dtype) { return dtype == DType::F16 || dtype == DType::BF16; }

// The narrow value that a statement widens to f32.
StmtId widened(const loops::Region& region, StmtId id) {
  const loops::Stmt& stmt = region.body[id];
  const auto* cast = stmt.as<loops::Apply>();
  if (!cast || cast->op != ScalarOp::Cast || stmt.dtype != DType::F32) return {};
  return is_narrow(region.body[cast->operands[0]].dtype) ? cast->operands[0] : StmtId();
}

// The cast to a narrow float that is the only reader of the sum.
StmtId kept_value(const loops::Region& region, StmtId sum) {
  StmtId reader;
  for (size_t s = 0; s < region.body.size(); ++s) {
    const std::vector<StmtId> operands = loops::operands(region.body[StmtId(s)]);
    if (std::find(operands.begin(), operands.end(), sum) == operands.end()) continue;
    if (reader.valid()) return sum;
    reader = StmtId(s);
  }
  if (!reader.valid()) return sum;
  const auto* cast = region.body[reader].as<loops::Apply>();
  return cast && cast->op == ScalarOp::Cast && is_narrow(region.body[reader].dtype) ? reader : sum;
}

}  // namespace

std::optional<MatmulParts> find_matmul(const loops::Region& region) {
  MatmulParts parts;
  for (size_t s = 0; s < region.body.size(); ++s) {
    if (!region.body[StmtId(s)].as<loops::Reduce>()) continue;
    if (parts.sum.valid()) return std::nullopt;
    parts.sum = StmtId(s);
  }
  if (!parts.sum.valid()) return std::nullopt;
  const auto& reduce = *region.body[parts.sum].as<loops::Reduce>();
  if (reduce.reduction != Reduction::Sum || region.body[parts.sum].dtype != DType::F32 || reduce.over.count() != 1) return std::nullopt;
  for (size_t v = 0; v < region.vars.size(); ++v)
    if (reduce.over.contains(VarId(v))) parts.k = VarId(v);
  const auto* product = region.body[reduce.operand].as<loops::Apply>();
  if (!product || product->op != ScalarOp::Mul) return std::nullopt;
  parts.left = widened(region, product->operands[0]);
  parts.right = widened(region, product->operands[1]);
  if (!parts.left.valid() || !parts.right.valid()) return std::nullopt;
  const loops::Stmt &left = region.body[parts.left], &right = region.body[parts.right];
  if (left.dtype != right.dtype || !left.vars.contains(parts.k) || !right.vars.contains(parts.k)) return std::nullopt;
  parts.kept = kept_value(region, parts.sum);
  return parts;
}

VarId matmul_m(const Mapping& mapping) { return mapping.space.at(mapping.space.size() - 2); }
VarId matmul_n(const Mapping& mapping) { return mapping.space.at(mapping.space.size() - 1); }

void set_tile(Matmul& matmul, const MatmulTile& tile) {
  matmul.tile_m = tile.m;
  matmul.tile_n = tile.n;
  matmul.tile_k = tile.k;
  matmul.warps_m = tile.warps_m;
  matmul.warps_n = tile.warps_n;
  matmul.stages = tile.stages;
  matmul.warpgroups = tile.warpgroups;
}

MatmulParts matmul_parts(const Kernel& kernel) {
  auto parts = find_matmul(kernel.region);
  CXXI_CHECK(parts && kernel.mapping.space.size() >= 2, "kernel {} is mapped as a product and is none", kernel.name);
  if (kernel.region.body[parts->right].vars.contains(matmul_m(kernel.mapping))) std::swap(parts->left, parts->right);
  return *parts;
}

int64_t matmul_shared_bytes(const MatmulTile& tile, int kept_bytes) {
  const int64_t factors = int64_t{2} * tile.stages * (tile.m + tile.n) * tile.k;
  if (tile.warpgroups) return factors + tile.warps_m * warpgroup_part_bytes;
  return std::max(factors, int64_t{kept_bytes} * tile.m * (tile.n + matmul_row_padding));
}

int64_t matmul_shared_bytes(const Kernel& kernel) {
  const auto& matmul = kernel.mapping.get<Matmul>();
  const DType kept = kernel.region.body[matmul_parts(kernel).kept].dtype;
  const MatmulTile tile{.m = matmul.tile_m,
                        .n = matmul.tile_n,
                        .k = matmul.tile_k,
                        .warps_m = matmul.warps_m,
                        .warps_n = matmul.warps_n,
                        .stages = matmul.stages,
                        .registers = 0,
                        .warpgroups = matmul.warpgroups};
  return matmul_shared_bytes(tile, byte_size(kept));
}

}  // namespace cxxinductor::plan
