// The plan of a program as it stands, without fusion: driver::plan_of runs the shipped stages.
#pragma once

#include <utility>

#include "schedule/schedule.h"

namespace cxxinductor::schedule::test {

inline plan::Plan make_plan(loops::Program program, const Targets& targets, const Options& options = {}) {
  SelectedKernels selected = select_kernels(std::move(program), targets);
  plan::Plan plan = place_memory(std::move(selected.plan));
  merge_kernels(plan, targets, options);
  plan.missed_fusions = name_kernels(std::move(selected.missed_fusions), plan, selected.region_times);
  return plan;
}

}  // namespace cxxinductor::schedule::test
