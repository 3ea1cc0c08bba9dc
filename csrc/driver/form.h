// A program in any of the forms that stages take and make: printed, parsed and verified without asking which one it is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "ir/graph/graph.h"
#include "ir/loops/loops.h"
#include "ir/plan/plan.h"
#include "model/call_graph.h"

namespace cxxinductor::driver {

// The last is text that no stage takes: kernel source.
using Form = std::variant<model::CallGraph, graph::Graph, loops::Program, plan::Plan, std::string>;
enum class FormKind : uint8_t { Calls, Graph, Loops, Plan, Text };  // the alternatives of Form, in their order

FormKind kind_of(const Form& form);
std::string_view to_string(FormKind kind);  // "calls", "graph", "loops", "plan", "text"

// The first word of an IR's text states its kind; UserError where it is none of them.
FormKind kind_of_text(std::string_view text);
Form parse_form(std::string_view text);
std::string print(const Form& form);
// InternalError with every message and the text; `after` names the stage.
void verify_or_throw(const Form& form, std::string_view after);

}  // namespace cxxinductor::driver
