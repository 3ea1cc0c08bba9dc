// Which steps of a program need which symbols, and which calls define some: an order of steps besides that of buffers.
#pragma once

#include <map>
#include <set>
#include <string>

#include "ir/loops/loops.h"

namespace cxxinductor::loops {

// The steps that define symbols, as positions in Program::steps. Most programs have none.
using Definers = std::map<std::string, size_t, std::less<>>;
Definers find_definers(const Program& program);

// Those of the defined symbols that occur in a step: in its expressions or in the sizes and strides of buffers that it
// touches. What a call defines itself is among them.
std::set<std::string> used_symbols(const Program& program, const Step& step, const Definers& definers);

// Whether the call may find that its data are not what the program was compiled for: it defines symbols, or asserts.
bool checks_symbols(const ExternCall& call);

}  // namespace cxxinductor::loops
