// A region as a kernel of the plan, with the launch that runs it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/plan/plan.h"
#include "ir/target.h"
#include "kernels/region/flat_region.h"

namespace cxxinductor::schedule {

// The region as a kernel for sizes with more properties (plan::Specialization), with the same parameters and symbols.
struct SpecialKernel {
  plan::Kernel kernel;
  sym::Expr grid_x;
  sym::Assumptions when;
};

struct MappedKernel {
  plan::Kernel kernel;                // without a name
  std::vector<loops::BufferId> args;  // the program's buffers, one per parameter
  std::vector<sym::Expr> symbol_args;
  sym::Expr grid_x;
  OriginId origin;                             // of the statement that says most about the kernel
  std::string hint;                            // C identifier made from what the kernel computes: "layer_norm_gelu"
  std::vector<SpecialKernel> specializations;  // best first
};

// A region in the form that kernels are made of; target: of the region's device.
// assumptions: as flatten takes them.
kernels::FlatRegion prepare_region(const loops::Program& program, const loops::Region& region, const Target& target, const sym::Assumptions& assumptions);

MappedKernel build_kernel(const loops::Program& program, kernels::FlatRegion flat, const Target& target);

// A kernel for all regions that differ from this one only in the number of elements, which is a symbol of the kernel and an
// argument of the launch. None unless the region runs over one variable of constant extent and each of its
// accesses either goes along with it or stays.
std::optional<MappedKernel> build_sized_kernel(const loops::Program& program, const kernels::FlatRegion& flat, const Target& target);

// Elements from a tensor's first to one past its last, as stored; exact for dense tensors, an upper bound otherwise.
sym::Expr storage_extent(const std::vector<sym::Expr>& sizes, const std::vector<sym::Expr>& strides, const sym::Assumptions& assumptions);

}  // namespace cxxinductor::schedule
