// The segments of rows whose threads hold or read groups of a row: values of a template's part that rows and serial rows share.
#pragma once

#include "kernels/instance.h"

namespace cxxinductor::kernels {

// The threads of one row: how many there are, and the groups that each of them holds where rows are in registers.
struct RowThreads {
  int threads = 1, items = 1;
};

// {segments, persistent_values, items, threads_per_row, serial, warps, dead_rows}
Values row_loops(const plan::Kernel& kernel, RowThreads shape);

}  // namespace cxxinductor::kernels
