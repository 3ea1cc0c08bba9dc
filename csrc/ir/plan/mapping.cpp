#include "ir/plan/mapping.h"

#include "ir/plan/plan.h"

namespace cxxinductor::plan {

ShapeTraits traits(const Mapping& mapping) {
  return std::visit([](const auto& shape) { return shape.traits; }, mapping.shape);
}

bool is_pointwise(const Mapping& mapping) { return traits(mapping).arrangement == Arrangement::Points; }
bool is_rows(const Mapping& mapping) { return traits(mapping).arrangement == Arrangement::Rows; }
bool is_columns(const Mapping& mapping) { return traits(mapping).arrangement == Arrangement::Columns; }
bool is_tiles(const Mapping& mapping) { return traits(mapping).arrangement == Arrangement::Tiles; }

bool is_simt(const Mapping& mapping) {
  return std::visit([](const auto& shape) { return shape.simt; }, mapping.shape);
}

bool is_persistent(const Mapping& mapping) {
  return std::visit(
      [](const auto& shape) {
        if constexpr (requires { shape.persistent; }) return bool{shape.persistent};
        return false;
      },
      mapping.shape);
}

bool is_sequential(const Mapping& mapping) {
  return std::visit(
      [](const auto& shape) {
        if constexpr (requires { shape.sequential; }) return shape.sequential;
        return false;
      },
      mapping.shape);
}

VarId vector_variable(const Mapping& mapping) {
  const std::vector<VarId>& vars = is_rows(mapping) ? mapping.row : mapping.space;
  return vars.empty() ? VarId() : vars.back();
}

VarId serial_variable(const Mapping& mapping) {
  return std::visit(
      [](const auto& shape) {
        if constexpr (requires { shape.serial; }) return shape.serial;
        return VarId();
      },
      mapping.shape);
}

VarId tile_variable(const Mapping& mapping) {
  return std::visit(
      [](const auto& shape) {
        if constexpr (requires { shape.tile_var; }) return shape.tile_var;
        return VarId();
      },
      mapping.shape);
}

int tile_size(const Mapping& mapping) {
  return std::visit(
      [](const auto& shape) {
        if constexpr (requires { shape.tile; }) return shape.tile;
        return 0;
      },
      mapping.shape);
}

int block_threads(const Mapping& mapping) {
  return std::visit(
      [&](const auto& shape) {
        if constexpr (shape.simt)
          return shape.threads(mapping.vector_width);
        else
          return 1;
      },
      mapping.shape);
}

int unrolled_groups(const Mapping& mapping) {
  return std::visit(
      [](const auto& shape) {
        if constexpr (requires { shape.unrolled_groups(); }) return shape.unrolled_groups();
        return 1;
      },
      mapping.shape);
}

int groups_of_thread(const Mapping& mapping) {
  return std::visit(
      [&](const auto& shape) {
        if constexpr (requires { shape.groups_of_thread(1); }) return shape.groups_of_thread(mapping.vector_width);
        return 0;
      },
      mapping.shape);
}

int grain(const Mapping& mapping) {
  return std::visit(
      [](const auto& shape) {
        if constexpr (requires { shape.grain; }) return shape.grain;
        return 1;
      },
      mapping.shape);
}

sym::Expr units(const Mapping& mapping, const loops::Region& region) {
  return std::visit([&](const auto& shape) { return shape.units(mapping, region); }, mapping.shape);
}

sym::Expr updates_of_state(const Mapping& mapping, const loops::Region& region) {
  return std::visit(
      [&](const auto& shape) {
        if constexpr (requires { shape.updates_of_state(mapping, region); }) return shape.updates_of_state(mapping, region);
        return sym::Expr(1);
      },
      mapping.shape);
}

bool has_dead_rows(const Kernel& kernel) {
  return std::visit(
      [&](const auto& shape) {
        if constexpr (shape.simt)
          return shape.has_dead_rows(kernel);
        else
          return false;
      },
      kernel.mapping.shape);
}

int64_t dynamic_shared_bytes(const Kernel& kernel) {
  return std::visit(
      [&](const auto& shape) {
        if constexpr (requires { shape.dynamic_shared_bytes(kernel); }) return shape.dynamic_shared_bytes(kernel);
        return int64_t{0};
      },
      kernel.mapping.shape);
}

sym::Expr points_of(const loops::Region& region, const std::vector<VarId>& vars) {
  sym::Expr points = 1;
  for (VarId v : vars) points = points * region.vars[v].extent;
  return points;
}

sym::Expr groups_of(const loops::Region& region, const std::vector<VarId>& vars, int width) {
  sym::Expr groups = 1;
  for (size_t d = 0; d < vars.size(); ++d) {
    const sym::Expr extent = region.vars[vars[d]].extent;
    groups = groups * (d + 1 == vars.size() ? sym::ceil_div(extent, width) : extent);
  }
  return groups;
}

}  // namespace cxxinductor::plan
