#include "interp/memory.h"

#include <algorithm>
#include <cstring>

#include "support/error.h"

namespace cxxinductor::interp {
namespace {

std::byte* address_of(const MemRef& memref, std::span<const int64_t> coords) {
  CXXI_CHECK(memref.storage, "access to memory that is not allocated, or freed");
  const std::string& name = memref.storage->name;
  CXXI_CHECK(coords.size() == memref.sizes.size(), "{} coordinates for {} of rank {}", coords.size(), name, memref.sizes.size());
  int64_t element = 0;
  for (size_t d = 0; d < coords.size(); ++d) {
    CXXI_CHECK(coords[d] >= 0 && coords[d] < memref.sizes[d], "coordinate {} of dimension {} of {}, which has size {}", coords[d], d, name, memref.sizes[d]);
    element += coords[d] * memref.strides[d];
  }
  const int64_t bytes = byte_size(memref.dtype), first = memref.byte_offset + element * bytes;
  CXXI_CHECK(first >= 0 && first + bytes <= static_cast<int64_t>(memref.storage->bytes.size()), "element {} of a window on {} lies outside its {} bytes",
             element, name, memref.storage->bytes.size());
  return memref.storage->bytes.data() + first;
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

bool are_known(const std::vector<sym::Expr>& list, const Symbols& symbols) {
  return std::ranges::all_of(
      list, [&](sym::Expr e) { return std::ranges::all_of(e.free_symbols(), [&](sym::Expr symbol) { return symbols.contains(std::string(symbol.name())); }); });
}

int64_t element_count(const std::vector<int64_t>& sizes) {
  int64_t count = 1;
  for (int64_t size : sizes) count *= size;
  return count;
}

int64_t span_of(const MemRef& memref) {
  if (element_count(memref.sizes) == 0) return 0;
  int64_t span = 1;
  for (size_t d = 0; d < memref.sizes.size(); ++d) span += (memref.sizes[d] - 1) * memref.strides[d];
  return span;
}

std::shared_ptr<Storage> allocate(std::string name, int64_t bytes) {
  constexpr std::byte unwritten{0xff};
  return std::make_shared<Storage>(Storage{std::move(name), std::vector<std::byte>(static_cast<size_t>(bytes), unwritten)});
}

void allocate(MemRef& memref, std::string name) {
  memref.storage = allocate(std::move(name), span_of(memref) * byte_size(memref.dtype));
  memref.byte_offset = 0;
}

Scalar read(const MemRef& memref, std::span<const int64_t> coords) {
  uint64_t bits = 0;
  std::memcpy(&bits, address_of(memref, coords), static_cast<size_t>(byte_size(memref.dtype)));
  return scalar_from_bits(memref.dtype, bits);
}

void write(const MemRef& memref, std::span<const int64_t> coords, const Scalar& value) {
  CXXI_CHECK(value.dtype() == memref.dtype, "store of {} into memory of {}", to_string(value.dtype()), to_string(memref.dtype));
  const uint64_t bits = bits_of(value);
  std::memcpy(address_of(memref, coords), &bits, static_cast<size_t>(byte_size(memref.dtype)));
}

Tensor read_tensor(const MemRef& memref) {
  Tensor tensor{memref.dtype, memref.sizes, {}};
  for_each_point(memref.sizes, [&](const std::vector<int64_t>& coords, int64_t) { tensor.elements.push_back(read(memref, coords)); });
  return tensor;
}

void write_tensor(const MemRef& memref, const Tensor& tensor) {
  CXXI_CHECK(static_cast<int64_t>(tensor.elements.size()) == element_count(memref.sizes), "{} elements for {}", tensor.elements.size(),
             element_count(memref.sizes));
  for_each_point(memref.sizes, [&](const std::vector<int64_t>& coords, int64_t point) { write(memref, coords, tensor.elements[static_cast<size_t>(point)]); });
}

}  // namespace cxxinductor::interp
