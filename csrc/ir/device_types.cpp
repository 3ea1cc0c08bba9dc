#include "ir/device_types.h"

#include <array>
#include <charconv>

namespace cxxinductor {
namespace {

constexpr std::array rows{
    DeviceTypeInfo{DeviceType::Cpu, "cpu", 0, false, ".cpp", "", true, false},
    DeviceTypeInfo{DeviceType::Cuda, "cuda", 1, true, ".cu", "libtorch_cuda.so", false, true},
};

}  // namespace

std::span<const DeviceTypeInfo> device_types() { return rows; }
const DeviceTypeInfo& info(DeviceType type) { return rows[static_cast<size_t>(type)]; }

std::string_view to_string(DeviceType type) { return info(type).text; }

// There is one device without streams: the host.
std::string to_string(Device device) {
  const std::string text(to_string(device.type));
  return has_streams(device) ? text + ":" + std::to_string(device.index) : text;
}

std::optional<Device> find_device(std::string_view text) {
  const std::string_view type = text.substr(0, text.find(':'));
  for (const DeviceTypeInfo& row : rows) {
    if (row.text != type) continue;
    if (text.size() == type.size()) return Device{row.type, 0};
    if (!row.has_streams) return std::nullopt;
    const std::string_view number = text.substr(type.size() + 1);
    int index = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), index);
    if (error != std::errc() || end != number.data() + number.size() || index < 0 || index > 1023) return std::nullopt;
    return Device{row.type, index};
  }
  return std::nullopt;
}

}  // namespace cxxinductor
