// Text of a call, which is the same in the three IRs: callee, arguments, operands, and what is known of the results.
// Limits and errors are those of text_parts.h.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/call.h"
#include "support/text_cursor.h"

namespace cxxinductor {

// `extern "aten::mm"($0, $1) with (%a, %b) alias [-1, 0] mutates [1] defines [u0 = value] planned_out`. `operands` are spelled by the caller.
std::string print_call(const Call& call, const std::vector<std::string>& operands);

// Reads what print_call writes, after "extern". parse_operands reads the list with its parentheses, where there is one.
Call parse_call(TextCursor& cursor, size_t results, const std::function<void()>& parse_operands);

}  // namespace cxxinductor
