#include "frontend/aten_table.h"

#include <algorithm>

#include "frontend/import.h"
#include "ir/registered_ops.h"
#include "model/effects.h"
#include "model/foreach.h"
#include "support/fork_locks.h"

namespace cxxinductor::frontend {

const ImportTable& aten_table() {
  static constinit MadeOnce<ImportTable, ForkLock::Tables> table;
  return table.get([] {
    ImportTable rows;
    add_arithmetic_rows(rows);
    for (auto& [name, row] : rows) row.host_scalars = row.given_reals = true;
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

const ImportRow* find_row(std::string_view overload) {
  if (const auto row = aten_table().find(overload); row != aten_table().end()) return &row->second;
  static constinit MadeOnce<ImportRow, ForkLock::Tables> scalar_op, reduction;
  if (find_registered_scalar_op(overload)) return &scalar_op.get(registered_scalar_op_row);
  if (find_registered_reduction(overload)) return &reduction.get(registered_reduction_row);
  return nullptr;
}

std::vector<std::string> overloads_imported_whole() {
  std::vector<std::string> names;
  for (const auto& [name, row] : aten_table()) names.push_back(name);
  for (std::string_view name : model::foreach_overloads()) names.emplace_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

bool is_read_whole(std::string_view overload) {
  const size_t dot = std::min(overload.find('.'), overload.size());
  const std::string callee(model::functional_callee(overload.substr(0, dot)));
  const std::string name = callee + std::string(overload.substr(dot));
  if (find_row(name) || arrives_whole(callee)) return true;
  if (!callee.starts_with("aten::_foreach_")) return false;
  const std::vector<std::string_view> of_lists = model::foreach_overloads();
  return std::find(of_lists.begin(), of_lists.end(), name) != of_lists.end();
}

}  // namespace cxxinductor::frontend
