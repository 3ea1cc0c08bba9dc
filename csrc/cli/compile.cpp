// Makes packages.
#include <cxxinductor/package.h>

#include <iostream>

#include "api/mapped_file.h"
#include "cli/model_file.h"
#include "package/container.h"

namespace cxxinductor::cli {

int compile(const Arguments& arguments) {
  package(arguments.file, arguments.package, {arguments.archs, arguments.weights == "beside", arguments.signing_key}, library_options(arguments));
  const api::Bytes file = api::map_file(arguments.package);
  const package_file::Container container(file.span);
  std::cout << arguments.package << ": " << size_text(static_cast<int64_t>(file.span.size()));
  for (const package_file::Section& section : container.sections())
    if (section.kind == package_file::SectionKind::Plan) std::cout << ", " << section.name;
  std::cout << "\n";
  if (container.signer()) std::cout << "signed with key " << package_file::to_hex(*container.signer()) << "\n";
  return success;
}

}  // namespace cxxinductor::cli
