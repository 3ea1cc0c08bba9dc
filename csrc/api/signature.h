// A file's signature as PyTorch's values and as text.
#pragma once

#include <ATen/core/ivalue.h>

#include <string>

#include "readers/pt2/read_pt2.h"

namespace cxxinductor::api {

c10::IValue literal_value(const std::string& name, const Arg& arg);  // Unsupported for what is not a number, a text or none

// Of an input of run, and of a result: "x: f32[b, 3] on cpu where 1 <= b <= 8", "symint(2*b)", "bool", the constant itself.
std::string input_type(const readers::Program& program, const readers::InputSpec& spec);
std::string output_type(const readers::Program& program, const readers::OutputSpec& spec);

}  // namespace cxxinductor::api
