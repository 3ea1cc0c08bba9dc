// What holds of a call in every IR: operand references, keywords, alias and mutation facts are in range.
#pragma once

#include <functional>
#include <string>

#include "ir/call.h"

namespace cxxinductor {

// is_tensor(i): operand i is a tensor. report(text): says what is wrong; report_name(text): the same of names that do not print.
using ReportCall = std::function<void(const std::string&)>;
void verify_call(const Call& call, size_t operands, size_t results, const std::function<bool(size_t)>& is_tensor, const ReportCall& report,
                 const ReportCall& report_name);

}  // namespace cxxinductor
