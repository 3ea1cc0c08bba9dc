// Makes packages.
#include <cxxinductor/package.h>

#include <algorithm>
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
  for (const std::string& arch : arguments.archs)
    if (std::ranges::none_of(container.sections(), [&](const package_file::Section& section) { return section.name.find(arch) != section.name.npos; }))
      std::cout << arch << ": not used, since no part of the model is on a device of this kind\n";
  if (container.signer()) std::cout << "signed with key " << package_file::to_hex(*container.signer()) << "\n";
  return success;
}

}  // namespace cxxinductor::cli
