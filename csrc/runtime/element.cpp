#include "runtime/element.h"

#include <bit>
#include <cstring>

#include "support/error.h"

namespace cxxinductor::runtime {
namespace {

static_assert(std::endian::native == std::endian::little);  // the low bits of a number are its first bytes

size_t element_size(DType dtype) {
  if (is_opaque(dtype)) throw_unsupported("elements of dtype {} are opaque", to_string(dtype));
  return static_cast<size_t>(byte_size(dtype));
}

}  // namespace

Scalar read_element(DType dtype, const void* address) {
  uint64_t bits = 0;
  std::memcpy(&bits, address, element_size(dtype));
  return scalar_from_bits(dtype, bits);
}

void write_element(const Scalar& value, void* address) {
  const size_t size = element_size(value.dtype());
  const uint64_t bits = bits_of(value);
  std::memcpy(address, &bits, size);
}

}  // namespace cxxinductor::runtime
