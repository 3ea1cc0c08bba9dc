// Bodies as CUDA C++: a spelling of each kind of step.
#pragma once

#include <string>

#include "codegen/cuda/cuda_text.h"

namespace cxxinductor::codegen {

// What the loops around a body call its places.
struct FragmentNames {
  std::string item;      // entry of the arrays of Persistent values and of the next row's loads: "[k]"
  std::string group;     // entry of the arrays of groups that are loaded ahead: "[u]"
  std::string position;  // of the fragment's first element in the row, for reductions
};

void print_steps(CudaText& text, const kernels::Body& body, const FragmentNames& names);
// Steps that load groups into arrays, which are declared around them.
void print_loads(CudaText& text, const kernels::Slot& slot, const std::vector<kernels::Step>& loads, const FragmentNames& names);

// Writes the loop around a body: once for the loads that are made ahead, where there are any, and once for its steps, so that the loads of
// `count` fragments are under way together. around(loading, inside) writes one loop; it calls inside() for what stands in it.
template <class Around>
void print_fragments(CudaText& text, const kernels::Body& body, const FragmentNames& names, int count, Around around) {
  for (const kernels::Place& place : body.slot.ahead)
    if (place.where == kernels::Where::Ahead)
      text.out.line("{} g{}[{}] = {{}};", text.storage(body.slot, place.value), place.value.index(), count);
  if (!body.ahead.empty()) around(true, [&] { print_loads(text, body.slot, body.ahead, names); });
  around(false, [&] { print_steps(text, body, names); });
}

}  // namespace cxxinductor::codegen
