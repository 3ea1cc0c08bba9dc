#include "kernels/serial_rows/serial_rows.h"
#include "unit/catch.h"

using namespace cxxinductor;
using namespace cxxinductor::kernels;

namespace {

const Target h200 = cuda_target("sm_90a", 132), a100 = cuda_target("sm_80", 108), small = cuda_target("sm_89", 128);

// Backward of a norm whose row has `columns` elements: two operands, and sums in f32.
std::optional<SerialRowShape> norm(int64_t columns, int bytes, size_t sums, const Target& target) {
  const int width = 16 / bytes;
  return serial_row_shape({columns / width, width, 2 * bytes, std::vector(sums, DType::F32)}, target);
}

}  // namespace

TEST_CASE("serial rows: short rows share a block, and sums are in registers while these suffice") {
  const auto thousand = norm(1024, 2, 2, h200);
  REQUIRE(thousand);
  CHECK(thousand->threads_per_row * thousand->rows_per_block == 512);
  CHECK(thousand->rows_per_block > 1);
  CHECK(thousand->shared_states == 0);
  const auto most = norm(8192, 2, 2, h200);
  REQUIRE(most);
  CHECK(most->threads_per_row == 512);
  CHECK(most->shared_states == 0);
}

TEST_CASE("serial rows: of longer rows sums go to shared memory, as many as must") {
  for (int64_t columns : {8200, 10240, 12288}) {
    const auto shape = norm(columns, 2, 2, h200);
    REQUIRE(shape);
    CHECK(shape->shared_states == 1);
  }
  for (const Target* target : {&h200, &a100}) {
    const auto shape = norm(16384, 2, 2, *target);
    REQUIRE(shape);
    CHECK(shape->shared_states == 2);
    CHECK(shape->rows_per_block == 1);
    CHECK(shape->items_per_thread == 4);
  }
  CHECK(norm(12288, 2, 1, h200)->shared_states == 0);
  CHECK(norm(16384, 2, 1, h200)->shared_states == 1);
  CHECK(norm(8192, 4, 2, h200)->shared_states == 1);
}

TEST_CASE("serial rows: rows that fit nowhere are refused") {
  CHECK_FALSE(norm(16392, 2, 2, h200));  // registers, for the row
  CHECK_FALSE(norm(16384, 4, 1, h200));
  CHECK_FALSE(norm(32768, 2, 1, h200));
  CHECK_FALSE(norm(16384, 2, 4, h200));  // shared memory
  CHECK_FALSE(norm(16384, 2, 2, small));
  CHECK_FALSE(norm(16384, 2, 2, cuda_target("sm_120", 170)));
  CHECK(norm(16384, 2, 1, small));
  CHECK(norm(12288, 2, 2, small));
}

TEST_CASE("serial rows: states of other sizes") {
  const SerialRowNeeds doubles{2048, 8, 4, {DType::F64, DType::F32}};  // 16384 elements
  CHECK(serial_row_shape(doubles, h200)->shared_states == 2);
  CHECK_FALSE(serial_row_shape(doubles, a100));
  CHECK(serial_row_shape({2048, 8, 4, {DType::Bool}}, small)->shared_states == 1);
}
