// Rows that are added where an index says, as one sum over all rows for each place: of the rows with another index it adds 0.
//
// Eager sorts the indices first, a dozen launches, so that its sums have one order in every run. These have one too. They read all rows
// once per place, which pays where places are few: biases by relative position, embeddings of token types.
#pragma once

#include "frontend/importer.h"

namespace cxxinductor::frontend {

// Whether that is expected to be faster than sorting. rows: their number, then the sizes of one.
bool may_sum_all_rows(const Sizes& rows, sym::Expr places);

// result[p, ...] = sum over n with index[n] == p of rows[n, ...], in the rows' dtype. wrap: negative indices count from the end.
ValueId sum_all_rows(CallContext& context, ValueId rows, ValueId index, sym::Expr places, bool wrap);

bool is_zeros(const graph::Graph& graph, ValueId id);

}  // namespace cxxinductor::frontend
