// Memory as the loops and plan IRs see it: bytes, and strided windows on them. Not for tensors of the graph IR, which
// have no storage.
//
// Fresh memory is filled with a pattern that reads as NaN or -1. Every access is checked against the window's sizes and
// the bytes behind it.
#pragma once

#include <memory>
#include <span>

#include "interp/interp.h"

namespace cxxinductor::interp {

struct Storage {
  std::string name;  // for messages
  std::vector<std::byte> bytes;
};
struct MemRef {
  std::shared_ptr<Storage> storage;  // null: not allocated, or freed
  DType dtype = DType::F32;
  int64_t byte_offset = 0;
  std::vector<int64_t> sizes, strides;  // strides in elements
};

int64_t evaluate(sym::Expr e, const Symbols& symbols);
std::vector<int64_t> evaluate(const std::vector<sym::Expr>& list, const Symbols& symbols);
int64_t element_count(const std::vector<int64_t>& sizes);
// Elements from the lowest address of the window to its highest, at least 1 unless it is empty.
int64_t span_of(const MemRef& memref);
bool are_known(const std::vector<sym::Expr>& list, const Symbols& symbols);  // all their symbols have values

std::shared_ptr<Storage> allocate(std::string name, int64_t bytes);
void allocate(MemRef& memref, std::string name);  // storage of its span

Scalar read(const MemRef& memref, std::span<const int64_t> coords);
void write(const MemRef& memref, std::span<const int64_t> coords, const Scalar& value);
Tensor read_tensor(const MemRef& memref);
void write_tensor(const MemRef& memref, const Tensor& tensor);

// Visits the points of a box in row-major order: body(coords, number of the point).
template <class Body>
void for_each_point(const std::vector<int64_t>& sizes, Body body) {
  const int64_t count = element_count(sizes);
  std::vector<int64_t> coords(sizes.size(), 0);
  for (int64_t point = 0; point < count; ++point) {
    body(coords, point);
    for (size_t d = sizes.size(); d-- > 0;) {
      if (++coords[d] < sizes[d]) break;
      coords[d] = 0;
    }
  }
}

}  // namespace cxxinductor::interp
