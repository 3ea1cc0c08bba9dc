// Kernel families: how regions become kernels of one shape (ir/plan/mapping.h). A family is one algorithm, of threads in blocks or of loops over
// vectors. It says which regions it computes, maps them and fills its template; the shape states what a mapping means.
//
// How to add one: docs/howto/kernel_family.md.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/plan/plan.h"
#include "ir/target.h"
#include "kernels/instance.h"
#include "kernels/region/flat_region.h"
#include "kernels/region/segments.h"

namespace cxxinductor::kernels {

struct KernelFamily;

struct MappedRegion {
  plan::Mapping mapping;
  Schedule schedule;
  const KernelFamily* family = nullptr;  // that mapped it; map_region sets it
};

struct KernelFamily {
  std::string_view name;  // the keyword of its shape
  bool simt = false;      // as its shape says: for targets whose kernels are threads (is_simt)

  // Executes the points of a row one after the other where a value depends on earlier ones. False: such regions are not offered to it.
  bool rows_in_order = false;

  // Regions that the family computes in one kernel where partial results and their sum, of two kernels, would else be faster. Null: none.
  bool (*keeps_whole)(const loops::Program& program, const loops::Region& region, const Target& target) = nullptr;
  // Brings a region (ordered and merged) into the form that the family computes. False: it is none, and nothing changed. Null: the family needs
  // no form of its own.
  bool (*arrange)(FlatRegion& flat, const Target& target) = nullptr;
  // Whether the family computes a region (named). Null: only regions that it arranged.
  bool (*accepts)(const FlatRegion& flat, const Target& target) = nullptr;
  // Unsupported where the region does not fit.
  MappedRegion (*map)(const FlatRegion& flat, const Target& target) = nullptr;
  // A form of the region that computes the same faster under such a mapping, to be mapped anew. Null: there is none.
  std::optional<FlatRegion> (*rewrite)(const FlatRegion& flat, const plan::Mapping& mapping) = nullptr;
  // Sets offsets, access and Param::aligned of a kernel with region, parameters and mapping. Null: describe_plain_accesses of region/access.h.
  void (*describe_accesses)(plan::Kernel& kernel, const FlatRegion& flat, const Target& target) = nullptr;
  // Launch::grid_x. Null: units of the mapping.
  sym::Expr (*grid)(const FlatRegion& flat, const plan::Mapping& mapping, const Target& target) = nullptr;
  // The bodies of a kernel's text, in their order, each with what it is for; instantiate puts no others into the template. Null: one for each segment
  // (lower_segment).
  std::vector<NamedBody> (*bodies)(const plan::Kernel& kernel) = nullptr;
  // Templates of the target that the family's template calls, besides those that any kernel may call, in the order in which they build on one another.
  // Null: those of reductions' states, where the kernel has such states.
  std::vector<std::string_view> (*library)(const plan::Kernel& kernel) = nullptr;
  // What stands in the family's template for a kernel of its shape.
  Instance (*instantiate)(const plan::Kernel& kernel, plan::Variant variant) = nullptr;
};

// In the order in which they are asked (families.def). The last one of either kind accepts everything.
std::span<const KernelFamily* const> families();

// The family of a kernel's shape.
const KernelFamily& family_of(const plan::Mapping& mapping);

// Arranges the region for the first family that has a form for it, and notes the family in the region; nothing where none has.
void arrange(FlatRegion& flat, const Target& target);

// Whether some family keeps the region whole.
bool is_kept_whole(const loops::Program& program, const loops::Region& region, const Target& target);

// Maps an arranged and named region by the first family that takes it; the region may get another form.
MappedRegion map_region(FlatRegion& flat, const Target& target);
// Of the kernel or mapping that the family made of the region.
void describe_accesses(const KernelFamily& family, plan::Kernel& kernel, const FlatRegion& flat, const Target& target);
sym::Expr grid_size(const KernelFamily& family, const FlatRegion& flat, const plan::Mapping& mapping, const Target& target);

// What a family's map begins with: the region's variables, and the widest vectors along the last of `along`, which is space or row.
plan::Mapping start_mapping(const FlatRegion& flat, const std::vector<loops::VarId>& along, const Target& target);

}  // namespace cxxinductor::kernels
