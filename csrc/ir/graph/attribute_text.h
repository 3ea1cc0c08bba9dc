// Text of nodes' attributes, as their traits list them: "<dim=0, start=s0, step=1>", or nothing for a kind that has none.
#pragma once

#include <string>
#include <string_view>

#include "ir/graph/graph.h"
#include "support/text_cursor.h"

namespace cxxinductor::graph {

// "slice<dim=0, start=s0, step=1>"; of elementwise nodes and externs, which print otherwise, the keyword.
std::string print_kind(const NodeKind& kind);
// The kind of that keyword with the attributes that follow it. Elementwise nodes and externs are read by the graph's parser; `start` is where the
// word stands, for the message when there is no such kind.
NodeKind parse_kind(TextCursor& cursor, std::string_view keyword, TextCursor start);

}  // namespace cxxinductor::graph
