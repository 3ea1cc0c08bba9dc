// Calls -> graph IR: promotion as explicit casts, views as index maps, in-place updates as new values, allow-listed
// decompositions; everything else becomes an extern node. Throws Unsupported when a graph cannot be read at all.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "frontend/call_reasons.h"
#include "frontend/import_environment.h"
#include "ir/graph/graph.h"
#include "model/call_graph.h"
#include "model/schema.h"

namespace cxxinductor::frontend {

// A value of the graph by name (which passes and lowering keep, as a buffer's name too) and the call value that it
// holds.
struct ImportedName {
  std::string name;
  model::CallValue value;
};

struct ImportNotes {
  std::vector<ImportedName> names;  // every pair, for comparing a compiled graph with the calls
  CallReasons reasons;              // of calls that became externs
};

// notes: filled; may be null.
graph::Graph import_graph(const model::CallGraph& calls, const model::SchemaSource& schemas, const ImportEnvironment& environment,
                          ImportNotes* notes = nullptr);

// Overloads imported whole ("aten::gelu"), for the Python side: these must not be decomposed before import.
std::vector<std::string> overloads_imported_whole();
// Whether calls of an overload ("aten::gelu", or "aten::gelu_" in place) are best read whole: imported so, or kept as that call for a reason.
bool is_read_whole(std::string_view overload);

}  // namespace cxxinductor::frontend
