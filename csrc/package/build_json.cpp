#include "package/build_json.h"

namespace cxxinductor::package_file {

using readers::Field;
using readers::Json;

Json to_json(const Build& build) {
  Json archs = Json::array();
  for (const auto& [device, arch] : build.archs) archs.push_back({{"device", to_string(device)}, {"arch", arch}});
  return {{"archs", std::move(archs)}, {"deterministic", build.deterministic}, {"writes", build.writes}, {"plan", build.plan}};
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
  build.writes = field.at("writes").boolean();
  build.plan = field.at("plan").text();
  return build;
}

}  // namespace cxxinductor::package_file
