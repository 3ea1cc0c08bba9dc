#include "interp/memory.h"

#include <cstring>

#include "support/error.h"

namespace cxxinductor::interp {
namespace {

std::byte* address_of(const Window& window, std::span<const int64_t> coords) {
  CXXI_CHECK(window.storage, "access to memory that is not allocated, or freed");
  const std::string& name = window.storage->name;
  CXXI_CHECK(coords.size() == window.sizes.size(), "{} coordinates for {} of rank {}", coords.size(), name,
             window.sizes.size());
  int64_t element = 0;
  for (size_t d = 0; d < coords.size(); ++d) {
    CXXI_CHECK(coords[d] >= 0 && coords[d] < window.sizes[d], "coordinate {} of dimension {} of {}, which has size {}",
               coords[d], d, name, window.sizes[d]);
    element += coords[d] * window.strides[d];
  }
  const int64_t bytes = byte_size(window.dtype), first = window.byte_offset + element * bytes;
  CXXI_CHECK(first >= 0 && first + bytes <= static_cast<int64_t>(window.storage->bytes.size()),
             "element {} of a window on {} lies outside its {} bytes", element, name, window.storage->bytes.size());
  return window.storage->bytes.data() + first;
}

}  // namespace

int64_t evaluate(sym::Expr e, const Symbols& symbols) {
  return sym::evaluate(e, [&](std::string_view name) {
    const auto found = symbols.find(std::string(name));
    if (found == symbols.end()) throw_user_error("expected a value of symbol {}, found none", name);
    return found->second;
  });
}

std::vector<int64_t> evaluate(const std::vector<sym::Expr>& list, const Symbols& symbols) {
  std::vector<int64_t> values;
  for (sym::Expr e : list) values.push_back(evaluate(e, symbols));
  return values;
}

int64_t element_count(const std::vector<int64_t>& sizes) {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  return count;
}

int64_t span_of(const Window& window) {
  if (element_count(window.sizes) == 0) return 0;
  int64_t span = 1;
  for (size_t d = 0; d < window.sizes.size(); ++d) span += (window.sizes[d] - 1) * window.strides[d];
  return span;
}

std::shared_ptr<Storage> allocate(std::string name, int64_t bytes) {
  constexpr std::byte unwritten{0xff};
  return std::make_shared<Storage>(
      Storage{std::move(name), std::vector<std::byte>(static_cast<size_t>(bytes), unwritten)});
}

void allocate(Window& window, std::string name) {
  window.storage = allocate(std::move(name), span_of(window) * byte_size(window.dtype));
  window.byte_offset = 0;
}

Scalar read(const Window& window, std::span<const int64_t> coords) {
  uint64_t bits = 0;
  std::memcpy(&bits, address_of(window, coords), static_cast<size_t>(byte_size(window.dtype)));
  return scalar_from_bits(window.dtype, bits);
}

void write(const Window& window, std::span<const int64_t> coords, const Scalar& value) {
  CXXI_CHECK(value.dtype() == window.dtype, "store of {} into memory of {}", to_string(value.dtype()),
             to_string(window.dtype));
  const uint64_t bits = bits_of(value);
  std::memcpy(address_of(window, coords), &bits, static_cast<size_t>(byte_size(window.dtype)));
}

Tensor read_tensor(const Window& window) {
  Tensor tensor{window.dtype, window.sizes, {}};
  for_each_point(window.sizes,
                 [&](const std::vector<int64_t>& coords, int64_t) { tensor.elements.push_back(read(window, coords)); });
  return tensor;
}

void write_tensor(const Window& window, const Tensor& tensor) {
  CXXI_CHECK(static_cast<int64_t>(tensor.elements.size()) == element_count(window.sizes), "{} elements for {}",
             tensor.elements.size(), element_count(window.sizes));
  for_each_point(window.sizes, [&](const std::vector<int64_t>& coords, int64_t point) {
    write(window, coords, tensor.elements[static_cast<size_t>(point)]);
  });
}

}  // namespace cxxinductor::interp
