#include "kernels/registry.h"

#include <algorithm>
#include <array>

#include "ir/loops/stmt_properties.h"
#include "kernels/region/access.h"
#include "support/error.h"

namespace cxxinductor::kernels {
namespace {

const std::array all{
#define FAMILY(name) &family::name,
#include "kernels/families.def"
#undef FAMILY
};

bool is_offered(const KernelFamily& family, const FlatRegion& flat, const Target& target) {
  return family.simt == is_simt(target) && (family.rows_in_order || only_reduces(flat.region));
}

const KernelFamily& family_for(const FlatRegion& flat, const Target& target) {
  if (flat.arranged_for) return *flat.arranged_for;
  for (const KernelFamily* family : all)
    if (is_offered(*family, flat, target) && family->accepts && family->accepts(flat, target)) return *family;
  throw_internal("no family of kernels takes region {}{}", flat.region.name,
                 only_reduces(flat.region) ? "" : ", which has values that are known before a row ends: a family has to have rows_in_order and to accept it");
}

MappedRegion map_by_family(const FlatRegion& flat, const Target& target) {
  const KernelFamily& family = family_for(flat, target);
  MappedRegion mapped = family.map(flat, target);
  const loops::VarId v = vector_variable(mapped.mapping);
  mapped.mapping.vector_tail = v.valid() && !prove_divides(mapped.mapping.vector_width, flat.extent(v), flat.assumptions);
  mapped.family = &family;
  return mapped;
}

}  // namespace

std::span<const KernelFamily* const> families() { return all; }

const KernelFamily& family_of(const plan::Mapping& mapping) {
  const std::string_view keyword = std::visit([](const auto& shape) { return shape.keyword; }, mapping.shape);
  for (const KernelFamily* family : all)
    if (family->name == keyword) return *family;
  throw_internal("no family makes kernels of shape {}", keyword);
}

void arrange(FlatRegion& flat, const Target& target) {
  for (const KernelFamily* family : all) {
    if (!is_offered(*family, flat, target) || !family->arrange || !family->arrange(flat, target)) continue;
    flat.arranged_for = family;
    return;
  }
}

bool is_kept_whole(const loops::Program& program, const loops::Region& region, const Target& target) {
  return std::ranges::any_of(
      all, [&](const KernelFamily* family) { return family->simt == is_simt(target) && family->keeps_whole && family->keeps_whole(program, region, target); });
}

MappedRegion map_region(FlatRegion& flat, const Target& target) {
  MappedRegion mapped = map_by_family(flat, target);
  if (!mapped.family->rewrite) return mapped;
  auto rewritten = mapped.family->rewrite(flat, mapped.mapping);
  if (!rewritten) return mapped;
  flat = std::move(*rewritten);
  return map_by_family(flat, target);
}

void describe_accesses(const KernelFamily& family, plan::Kernel& kernel, const FlatRegion& flat, const Target& target) {
  (family.describe_accesses ? family.describe_accesses : describe_plain_accesses)(kernel, flat, target);
}

sym::Expr grid_size(const KernelFamily& family, const FlatRegion& flat, const plan::Mapping& mapping, const Target& target) {
  return simplify(family.grid ? family.grid(flat, mapping, target) : units(mapping, flat.region), flat.assumptions);
}

plan::Mapping start_mapping(const FlatRegion& flat, const std::vector<loops::VarId>& along, const Target& target) {
  plan::Mapping mapping;
  mapping.space = flat.space;
  mapping.row = flat.row;
  mapping.vector_width = choose_vector_width(flat, along.empty() ? loops::VarId() : along.back(), target);
  return mapping;
}

}  // namespace cxxinductor::kernels
