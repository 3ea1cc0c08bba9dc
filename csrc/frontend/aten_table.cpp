#include "frontend/aten_table.h"

#include <algorithm>

#include "frontend/import.h"
#include "model/foreach.h"
#include "support/fork_locks.h"

namespace cxxinductor::frontend {

const ImportTable& aten_table() {
  static constinit MadeOnce<ImportTable, ForkLock::Tables> table;
  return table.get([] {
    ImportTable rows;
    add_arithmetic_rows(rows);
    for (auto& [name, row] : rows) row.host_scalars = true;
    add_reduction_rows(rows);
    add_scan_rows(rows);
    add_softmax_rows(rows);
    add_norm_rows(rows);
    add_pooling_rows(rows);
    add_random_rows(rows);
    add_view_rows(rows);
    add_data_movement_rows(rows);
    add_indexing_rows(rows);
    add_scatter_rows(rows);
    add_creation_rows(rows);
    add_pointwise_rows(rows);  // last: the rows of ops.def fill what is left
    return rows;
  });
}

std::vector<std::string> overloads_imported_whole() {
  std::vector<std::string> names;
  for (const auto& [name, row] : aten_table()) names.push_back(name);
  for (std::string_view name : model::foreach_overloads()) names.emplace_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace cxxinductor::frontend
