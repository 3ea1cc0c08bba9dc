#include "interp/difference.h"

#include <limits>

#include "unit/catch.h"

using namespace cxxinductor;
using interp::MemRef;

namespace {

MemRef memref(DType dtype, std::vector<int64_t> sizes, const std::vector<double>& numbers) {
  MemRef made{nullptr, dtype, 0, std::move(sizes), {}};
  made.strides.assign(made.sizes.size(), 1);
  for (size_t d = made.sizes.size(); d-- > 1;) made.strides[d - 1] = made.strides[d] * made.sizes[d];
  interp::allocate(made, "x");
  interp::for_each_point(made.sizes, [&](const std::vector<int64_t>& coords, int64_t point) {
    interp::write(made, coords, Scalar::from_real(dtype, numbers[static_cast<size_t>(point)]));
  });
  return made;
}

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("the worst element is remembered", "[interp][check]") {
  const MemRef x = memref(DType::F32, {2, 3}, {1, 2, 3, 4, 5, 6}), y = memref(DType::F32, {2, 3}, {1, 2.5, 3, 4, 5, 8});
  const interp::Difference found = interp::find_difference(x, y, {.relative = 1e-5, .absolute = 0});
  CHECK(found.compared == 6);
  CHECK(found.differing == 2);
  CHECK(found.coords == std::vector<int64_t>{1, 2});
  CHECK(found.expected.real() == 6);
  CHECK(found.actual.real() == 8);
  CHECK(found.error == 2);
  CHECK(interp::find_difference(x, y, {.relative = 0.5, .absolute = 0}).differing == 0);
  CHECK(interp::find_difference(x, y, {.relative = 0, .absolute = 1}).differing == 1);
}

TEST_CASE("special values: zeros of either sign and NaN are equal, infinities differ from numbers", "[interp][check]") {
  const MemRef x = memref(DType::F32, {4}, {0, not_a_number, infinity, 1});
  CHECK(interp::find_difference(x, memref(DType::F32, {4}, {-0.0, not_a_number, infinity, 1}), {}).differing == 0);
  const auto found = interp::find_difference(x, memref(DType::F32, {4}, {0, 1, 3e38, not_a_number}), {.relative = 1, .absolute = 1});
  CHECK(found.differing == 3);
  CHECK(found.error == infinity);
}

TEST_CASE("integers are equal or wrong, and only the elements asked for count", "[interp][check]") {
  const MemRef x = memref(DType::I32, {4}, {1, 2, 3, 4}), y = memref(DType::I32, {4}, {1, 3, 3, 5});
  CHECK(interp::find_difference(x, y, {.relative = 1, .absolute = 9}).differing == 2);
  const std::vector<bool> only{true, true, true, false};
  CHECK(interp::find_difference(x, y, {}, &only).differing == 1);
  CHECK(interp::find_difference(x, y, {}, &only).compared == 3);
}

TEST_CASE("magnitude leaves out what is not finite or not asked for", "[interp][check]") {
  const MemRef x = memref(DType::F32, {4}, {3, not_a_number, -3, 100});
  const std::vector<bool> only{true, true, true, false};
  CHECK(interp::magnitude(x, &only) == 3);
  CHECK(interp::magnitude(memref(DType::F32, {0}, {})) == 0);
}
