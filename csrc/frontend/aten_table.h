// Every ATen overload that the front-end imports natively, by family. What has no row here becomes an extern node.
#pragma once

#include "frontend/importer.h"

namespace cxxinductor::frontend {

const ImportTable& aten_table();  // built once, then constant
// The row of an overload, of the table or of a registered op (ir/registered_ops.h); null: it becomes an extern node.
const ImportRow* find_row(std::string_view overload);

void add_arithmetic_rows(ImportTable& table);  // add, sub, mul, div, pow: special forms
void add_pointwise_rows(ImportTable& table);   // activations with defaults, clamp, where; then the rows of ops.def
void add_reduction_rows(ImportTable& table);
void add_scan_rows(ImportTable& table);  // cumsum, cumprod
void add_softmax_rows(ImportTable& table);
void add_norm_rows(ImportTable& table);
void add_pooling_rows(ImportTable& table);
void add_random_rows(ImportTable& table);
void add_view_rows(ImportTable& table);
void add_data_movement_rows(ImportTable& table);  // cat, stack, pad, repeat, copies and casts
void add_indexing_rows(ImportTable& table);
void add_scatter_rows(ImportTable& table);
void add_creation_rows(ImportTable& table);
// Of all registered scalar ops, and of all registered reductions. Their calls have all arguments by position.
ImportRow registered_scalar_op_row();
ImportRow registered_reduction_row();
// The call with the schema's arguments by position: those that it has by name, and defaults of those that it leaves out. None where the schema has
// arguments that neither states.
std::optional<Call> with_positional_arguments(const Call& call, const Schema& schema);

}  // namespace cxxinductor::frontend
