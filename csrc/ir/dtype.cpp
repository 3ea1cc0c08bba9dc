#include "ir/dtype.h"

#include <array>
#include <charconv>

namespace cxxinductor {
namespace {

constexpr std::array dtype_rows{
#define DTYPE(name, text, torch_number, bytes, dtype_class, compute, doc) \
  DTypeInfo{DType::name, text, torch_number, bytes, DTypeClass::dtype_class, DType::compute, doc},
#include "ir/dtypes.def"
#undef DTYPE
};

}  // namespace

const DTypeInfo& info(DType dtype) { return dtype_rows[static_cast<size_t>(dtype)]; }

std::optional<DType> find_dtype(std::string_view text) {
  for (const DTypeInfo& row : dtype_rows) {
    if (row.text == text) return row.dtype;
  }
  return std::nullopt;
}

std::optional<DType> dtype_from_torch(int scalar_type) {
  for (const DTypeInfo& row : dtype_rows) {
    if (row.torch_scalar_type == scalar_type) return row.dtype;
  }
  return std::nullopt;
}

std::string_view to_string(DeviceType type) { return type == DeviceType::Cpu ? "cpu" : "cuda"; }

std::string to_string(Device device) {
  return device.type == DeviceType::Cpu ? "cpu" : "cuda:" + std::to_string(device.index);
}

std::optional<Device> find_device(std::string_view text) {
  if (text == "cpu") return Device{DeviceType::Cpu, 0};
  constexpr std::string_view cuda = "cuda";
  if (!text.starts_with(cuda)) return std::nullopt;
  text.remove_prefix(cuda.size());
  if (text.empty()) return Device{DeviceType::Cuda, 0};
  int index = 0;
  const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), index);
  if (text[0] != ':' || error != std::errc() || end != text.data() + text.size() || index < 0 || index > 1023)
    return std::nullopt;
  return Device{DeviceType::Cuda, index};
}

}  // namespace cxxinductor
