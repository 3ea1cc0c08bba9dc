#include "ir/plan/mapping.h"

#include <algorithm>

#include "support/overloaded.h"

namespace cxxinductor::plan {

bool is_pointwise(const Mapping& mapping) { return mapping.as<Pointwise>() || mapping.as<CpuPointwise>(); }
bool is_rows(const Mapping& mapping) { return mapping.as<Rows>() || mapping.as<SerialRows>() || mapping.as<CpuRows>(); }
bool is_columns(const Mapping& mapping) { return mapping.as<Columns>() || mapping.as<CpuColumns>(); }
bool is_tiles(const Mapping& mapping) { return mapping.as<Tiles>() || mapping.as<CpuTiles>(); }

bool is_of_gpu(const Mapping& mapping) {
  return std::visit([](const auto& shape) { return shape.on_gpu; }, mapping.shape);
}

bool is_persistent(const Mapping& mapping) {
  if (const auto* rows = mapping.as<Rows>()) return rows->persistent;
  if (const auto* rows = mapping.as<CpuRows>()) return rows->persistent;
  return mapping.as<SerialRows>() != nullptr;
}

bool is_sequential(const Mapping& mapping) {
  return std::visit(
      [](const auto& shape) {
        if constexpr (requires { shape.sequential; })
          return shape.sequential;
        else
          return false;
      },
      mapping.shape);
}

VarId vector_variable(const Mapping& mapping) {
  const std::vector<VarId>& vars = is_rows(mapping) ? mapping.row : mapping.space;
  return vars.empty() ? VarId() : vars.back();
}

VarId serial_variable(const Mapping& mapping) {
  const auto* rows = mapping.as<SerialRows>();
  return rows ? rows->serial : VarId();
}

VarId tile_variable(const Mapping& mapping) {
  if (const auto* tiles = mapping.as<Tiles>()) return tiles->tile_var;
  const auto* tiles = mapping.as<CpuTiles>();
  return tiles ? tiles->tile_var : VarId();
}

int tile_size(const Mapping& mapping) {
  if (const auto* tiles = mapping.as<Tiles>()) return tiles->tile;
  const auto* tiles = mapping.as<CpuTiles>();
  return tiles ? tiles->tile : 0;
}

int block_threads(const Mapping& mapping) {
  const auto of_rows = [](const auto& rows) { return rows.threads_per_row * rows.rows_per_block; };
  return std::visit(
      Overloaded{[](const Pointwise& pointwise) { return pointwise.block_threads; },
                 [&](const Rows& rows) { return of_rows(rows); },
                 [&](const SerialRows& rows) { return of_rows(rows); },
                 [&](const Columns& columns) { return columns.threads_per_row * (columns.columns_per_block / mapping.vector_width); },
                 [](const Tiles& tiles) { return tiles.block_threads; },
                 [](const Matmul& matmul) { return 32 * matmul.warps_m * matmul.warps_n; },
                 [](const CpuPointwise&) { return 1; },
                 [](const CpuRows&) { return 1; },
                 [](const CpuColumns&) { return 1; },
                 [](const CpuTiles&) { return 1; }},
      mapping.shape);
}

int unrolled_groups(const Mapping& mapping) {
  return std::visit(Overloaded{[](const Pointwise& pointwise) { return pointwise.unroll; },
                               [](const Rows& rows) { return std::max(rows.in_flight, rows.items_per_thread); },
                               [](const SerialRows& rows) { return rows.items_per_thread; },
                               [](const Columns& columns) { return columns.in_flight; },
                               [](const Tiles&) { return 1; },
                               [](const Matmul& matmul) { return matmul.unroll; },
                               [](const CpuPointwise&) { return 1; },
                               [](const CpuRows&) { return 1; },
                               [](const CpuColumns&) { return 1; },
                               [](const CpuTiles&) { return 1; }},
                    mapping.shape);
}

int grain(const Mapping& mapping) {
  return std::visit(
      [](const auto& shape) {
        if constexpr (requires { shape.grain; })
          return shape.grain;
        else
          return 1;
      },
      mapping.shape);
}

}  // namespace cxxinductor::plan
