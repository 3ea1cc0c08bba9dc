#include "torch_bridge/split_product.h"

#include <ATen/ops/mm.h>

#include <algorithm>
#include <numeric>

#include "ir/matmul_rows.h"

namespace cxxinductor::torch_bridge {
namespace {

int64_t aligned_elements(const at::Tensor& tensor) { return matmul_row_bytes / static_cast<int64_t>(tensor.element_size()); }

bool starts_aligned(const at::Tensor& tensor) { return reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % matmul_row_bytes == 0; }

}  // namespace

bool splits_product(const at::Tensor& result, const at::Tensor& left, const at::Tensor& right) {
  if (!result.is_cuda() || result.element_size() != 2 || result.stride(1) != 1) return false;
  const int64_t unit = aligned_elements(result), elements = std::gcd(result.stride(0), result.size(1));
  const int64_t bytes = std::gcd(elements * 2, int64_t{matmul_row_bytes});
  if (bytes == matmul_row_bytes || result.size(1) < 2 * unit) return false;
  if (left.stride(1) != 1 || right.stride(0) != 1 || left.size(1) % unit != 0 || left.stride(0) % unit != 0 || right.stride(1) % unit != 0) return false;
  const double operations = 2.0 * static_cast<double>(result.numel()) * static_cast<double>(left.size(1));
  return is_split_worth(operations, bytes) && starts_aligned(left) && starts_aligned(right);
}

void split_product(const at::Tensor& result, const at::Tensor& left, const at::Tensor& right) {
  const int64_t unit = aligned_elements(result), columns = result.size(1);
  const int64_t classes = std::min(unit / std::gcd(result.stride(0), unit), result.size(0));
  const int64_t width = (columns - (unit - 1)) / unit * unit;  // aligned, wherever a row starts
  const auto multiply = [&](int64_t row, int64_t step, int64_t column, int64_t count) {
    at::Tensor part = result.slice(0, row, std::nullopt, step).narrow(1, column, count);
    at::mm_out(part, left.slice(0, row, std::nullopt, step), right.narrow(1, column, count));
  };
  // Columns at the ends, of all rows: few. What belongs to aligned parts is written again.
  multiply(0, 1, 0, unit - 1);
  multiply(0, 1, width, columns - width);
  const int64_t start = static_cast<int64_t>(reinterpret_cast<uintptr_t>(result.const_data_ptr()) / result.element_size() % unsigned(unit));
  for (int64_t row = 0; row < classes; ++row) {
    const int64_t past = (start + row * result.stride(0)) % unit;  // a boundary
    multiply(row, classes, past == 0 ? 0 : unit - past, width);
  }
}

}  // namespace cxxinductor::torch_bridge
