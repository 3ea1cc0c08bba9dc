#include <iostream>

#include "cli/model_file.h"
#include "cli/quiet.h"

namespace cxxinductor::cli {

int explain(const Arguments& arguments) {
  std::cout << load_quietly(arguments.file, library_options(arguments)).explain() << std::flush;
  return success;
}

}  // namespace cxxinductor::cli
