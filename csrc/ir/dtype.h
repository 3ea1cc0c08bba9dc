// Element types, one row each in dtypes.def, and devices.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cxxinductor {

enum class DType : uint8_t {
#define DTYPE(name, ...) name,
#include "ir/dtypes.def"
#undef DTYPE
};

enum class DTypeClass : uint8_t { Float, Signed, Unsigned, Boolean, Opaque };

struct DTypeInfo {
  DType dtype;
  std::string_view text;
  std::string_view c;     // type of an element in generated kernels; empty: none
  int torch_scalar_type;  // c10::ScalarType's number
  int bytes;
  DTypeClass dtype_class;
  DType compute;
  std::string_view doc;
};

const DTypeInfo& info(DType dtype);
std::optional<DType> find_dtype(std::string_view text);
std::optional<DType> dtype_from_torch(int scalar_type);
inline DType compute_type(DType dtype) { return info(dtype).compute; }
inline int byte_size(DType dtype) { return info(dtype).bytes; }
inline bool is_float(DType dtype) { return info(dtype).dtype_class == DTypeClass::Float; }
inline bool is_opaque(DType dtype) { return info(dtype).dtype_class == DTypeClass::Opaque; }
inline bool is_integer(DType dtype) { return info(dtype).dtype_class == DTypeClass::Signed || info(dtype).dtype_class == DTypeClass::Unsigned; }
inline std::string_view to_string(DType dtype) { return info(dtype).text; }

enum class DeviceType : uint8_t { Cpu, Cuda };
std::string_view to_string(DeviceType type);  // "cpu", "cuda"
struct Device {
  DeviceType type = DeviceType::Cpu;
  int index = 0;  // CUDA ordinal; 0 for the CPU
  friend auto operator<=>(Device, Device) = default;
};
std::string to_string(Device device);  // "cpu", "cuda:0"
std::optional<Device> find_device(std::string_view text);

}  // namespace cxxinductor
