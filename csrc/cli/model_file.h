// A model's file as the subcommands see it: what it declares, and the model compiled from it.
#pragma once

#include <cxxinductor/cxxinductor.h>

#include <span>
#include <string>
#include <vector>

#include "api/mapped_file.h"
#include "cli/commands.h"
#include "readers/pt2/read_pt2.h"

namespace cxxinductor::cli {

struct ModelFile {
  api::Bytes bytes;
  readers::Program program;
};
ModelFile read_model(const std::string& path);

// Those of the environment, then those of the command line.
Options library_options(const Arguments& arguments);

std::string size_text(int64_t bytes);  // "12 bytes", "1.50 MB"
// A summary of each, and the file that --outputs names.
void print_outputs(const std::vector<c10::IValue>& outputs, const Arguments& arguments);
// "f32[4, 2] on cpu" of a tensor, the value of anything else.
std::string value_text(const c10::IValue& value);

}  // namespace cxxinductor::cli
