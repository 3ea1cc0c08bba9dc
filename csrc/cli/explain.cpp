#include <iostream>
#include <string>

#include "cli/model_file.h"
#include "cli/quiet.h"

namespace cxxinductor::cli {

int explain(const Arguments& arguments) {
  const std::string text = load_quietly(arguments.file, library_options(arguments)).explain();
  std::cout << text << (text.ends_with('\n') ? "" : "\n") << std::flush;
  return success;
}

}  // namespace cxxinductor::cli
