#include "ir/device_types.h"

#include "unit/catch.h"

using namespace cxxinductor;

TEST_CASE("rows stand in the order of the enumeration") {
  for (size_t i = 0; i < device_types().size(); ++i) CHECK(static_cast<size_t>(device_types()[i].type) == i);
}

TEST_CASE("texts of devices are read back") {
  CHECK(to_string(Device{DeviceType::Cpu, 0}) == "cpu");
  CHECK(to_string(Device{DeviceType::Cuda, 3}) == "cuda:3");
  CHECK(find_device("cpu") == Device{DeviceType::Cpu, 0});
  CHECK(find_device("cuda") == Device{DeviceType::Cuda, 0});
  CHECK(find_device("cuda:12") == Device{DeviceType::Cuda, 12});
  for (const char* text : {"", ":", "cpu:0", "cuda:", "cuda:x", "cuda:-1", "cuda:1024", "cuda:1 ", "cuda:1:2", "xpu:0"}) {
    INFO(text);
    CHECK_FALSE(find_device(text));
  }
}
