// What the steps of a plan need to know and what they make known: expressions, buffers, symbols.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/plan/plan.h"

namespace cxxinductor::plan {

// Call visit with every expression of a step (of its specializations' conditions, too), and with every buffer it names.
void for_each_expression(const Step& step, const std::function<void(sym::Expr)>& visit);
void for_each_buffer(const Step& step, const std::function<void(BufferId)>& visit);
// Calls visit with the expressions of a buffer: its geometry and where it lies.
void for_each_expression(const Buffer& buffer, const std::function<void(sym::Expr)>& visit);

std::vector<std::string> symbols_defined_by(const Step& step);

// When the symbols that steps define become known: the first of the steps that define some does it at time 1, and so
// on. Inputs give the other symbols, at time 0.
using DefinitionTimes = std::map<std::string, uint32_t, std::less<>>;
DefinitionTimes find_definition_times(const Plan& plan);

}  // namespace cxxinductor::plan
