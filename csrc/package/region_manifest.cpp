#include "package/region_manifest.h"

#include <limits>
#include <span>

#include "package/build_json.h"
#include "package/digest.h"
#include "readers/pt2/printable.h"
#include "support/error.h"

namespace cxxinductor::package_file {
namespace {

using readers::Field;
using readers::Json;

constexpr int64_t most_symbols = 4096;

Json to_json(const RegionForm& form) {
  Json arguments = Json::array(), builds = Json::array();
  for (const RegionArgument& argument : form.arguments) arguments.push_back({{"kind", argument.kind}, {"sizes", argument.sizes}});
  for (const Build& build : form.builds) builds.push_back(package_file::to_json(build));
  return {{"region", form.region}, {"arguments", std::move(arguments)}, {"symbols", form.symbols}, {"calls", form.calls}, {"builds", std::move(builds)}};
}

RegionForm read_form(const Field& field) {
  RegionForm form;
  form.region = field.at("region").text();
  form.symbols = static_cast<uint32_t>(field.at("symbols").integer(0, most_symbols));
  field.at("arguments").for_each_item([&](const Field& item) {
    RegionArgument& argument = form.arguments.emplace_back();
    argument.kind = item.at("kind").text();
    item.at("sizes").for_each_item(
        [&](const Field& size) { argument.sizes.push_back(size.integer(-static_cast<int64_t>(form.symbols), std::numeric_limits<int64_t>::max())); });
  });
  form.calls = to_hex(parse_public_key(field.at("calls").text(), field.at("calls").place()));
  field.at("builds").for_each_item([&](const Field& build) {
    form.builds.push_back(read_build(build));
    build.at("subgraphs").require(form.builds.back().subgraphs.empty(), "none: regions are without control flow");
  });
  return form;
}

}  // namespace

std::string text_digest(std::string_view text) {
  Hasher hasher;
  hasher.add(std::as_bytes(std::span(text)));
  return to_hex(hasher.finish());
}

std::string print_region_manifest(const RegionManifest& manifest) {
  Json forms = Json::array();
  for (const RegionForm& form : manifest.forms) forms.push_back(to_json(form));
  return Json({{"library_version", manifest.library_version}, {"forms", std::move(forms)}}).dump(1);
}

RegionManifest read_region_manifest(std::string_view text) {
  const readers::Document document("manifest", text);
  const Field root(document);
  RegionManifest manifest;
  manifest.library_version = readers::printable(root.at("library_version").text());
  root.at("forms").for_each_item([&](const Field& form) { manifest.forms.push_back(read_form(form)); });
  return manifest;
}

}  // namespace cxxinductor::package_file
