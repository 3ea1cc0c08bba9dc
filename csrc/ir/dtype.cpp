#include "ir/dtype.h"

#include <array>

namespace cxxinductor {
namespace {

constexpr std::array dtype_rows{
#define DTYPE(name, text, c, torch_number, bytes, dtype_class, compute, doc) \
  DTypeInfo{DType::name, text, c, torch_number, bytes, DTypeClass::dtype_class, DType::compute, doc},
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

}  // namespace cxxinductor
