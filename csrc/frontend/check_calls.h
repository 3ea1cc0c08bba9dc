// Calls in the text of a graph or plan, which is untrusted, against the schemas of what they call. What passes names an
// op that text may reach, gives it arguments that its schema has, and states the aliases and mutations that the schema
// states.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/plan/plan.h"
#include "model/call_graph.h"
#include "model/schema.h"

namespace cxxinductor::frontend {

// allowed: ops that may be called besides those that text may reach (ir/callees.h): "mylib::op", or "mylib" for all ops of a
// library. All take what their verifiers accept. UserError naming the op, what was expected and what was found.
void check_calls(const graph::Graph& graph, const model::SchemaSource& schemas, const std::vector<std::string>& allowed);
// Of a model's calls the names alone: aliases and mutations follow from the schemas. Calls of functions of this process, by their
// handles, are taken for ours: files hold no handles.
void check_calls(const model::CallGraph& calls, const model::SchemaSource& schemas, const std::vector<std::string>& allowed);
bool holds_handle(const Arg& arg);
// functions: of this process, which the plan's calls of functions may name.
void check_calls(const plan::Plan& plan, const model::SchemaSource& schemas, const std::vector<std::string>& allowed,
                 const std::vector<Handle>& functions = {});
constexpr std::string_view function_callee = "cxxinductor::call_function";

}  // namespace cxxinductor::frontend
