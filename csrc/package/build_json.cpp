#include "package/build_json.h"

namespace cxxinductor::package_file {

using readers::Field;
using readers::Json;

namespace {

Json to_json(const BuiltPlan& built) { return {{"plan", built.plan}, {"needs_calls", built.needs_calls}}; }

BuiltPlan read_built_plan(const Field& field) { return {std::string(field.at("plan").text()), field.at("needs_calls").boolean()}; }

}  // namespace

Json to_json(const Build& build) {
  Json archs = Json::array(), subgraphs = Json::array();
  for (const auto& [device, arch] : build.archs) archs.push_back({{"device", to_string(device)}, {"arch", arch}});
  for (const BuiltPlan& subgraph : build.subgraphs) subgraphs.push_back(to_json(subgraph));
  return {{"archs", std::move(archs)}, {"deterministic", build.deterministic}, {"main", to_json(build.main)}, {"subgraphs", std::move(subgraphs)}};
}

Build read_build(const Field& field) {
  Build build;
  field.at("archs").for_each_item([&](const Field& item) {
    const auto device = find_device(item.at("device").text());
    if (!device) item.at("device").fail("a device");
    build.archs.emplace_back(*device, item.at("arch").text());
  });
  field.at("archs").require(!build.archs.empty(), "at least one");
  build.deterministic = field.at("deterministic").boolean();
  build.main = read_built_plan(field.at("main"));
  field.at("subgraphs").for_each_item([&](const Field& subgraph) { build.subgraphs.push_back(read_built_plan(subgraph)); });
  return build;
}

}  // namespace cxxinductor::package_file
