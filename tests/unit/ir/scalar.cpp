// Values of narrow floats: what is stored reads back, and what lies between two values goes to the nearer one.
#include "ir/scalar.h"

#include <cmath>

#include "unit/catch.h"

using namespace cxxinductor;

namespace {

// Bits of the dtype's positive finite values, ascending as the values do: 0 to the largest.
uint64_t finite_values(DType dtype) {
  switch (dtype) {
    case DType::F16:
      return 0x7c00;
    case DType::BF16:
      return 0x7f80;
    case DType::F8E4M3FN:
      return 0x7f;
    default:
      return 0x7c;  // F8E5M2
  }
}

double value_of(DType dtype, uint64_t bits) { return scalar_from_bits(dtype, bits).real(); }

}  // namespace

TEST_CASE("narrow floats keep their values and round to the nearest one, ties to even bits") {
  for (const DType dtype : {DType::F16, DType::BF16, DType::F8E4M3FN, DType::F8E5M2}) {
    INFO(to_string(dtype));
    const uint64_t count = finite_values(dtype), sign = uint64_t{1} << (8 * byte_size(dtype) - 1);
    size_t wrong = 0;
    for (uint64_t bits = 0; bits < count; ++bits) {
      const double value = value_of(dtype, bits);
      for (const uint64_t stored : {bits, bits | sign}) wrong += bits_of(scalar_from_bits(dtype, stored)) != stored;
      if (bits + 1 == count) break;
      // Floats lie closer than the values of these dtypes: next to the middle there are some.
      const double above = value_of(dtype, bits + 1), middle = (value + above) / 2;
      const auto below_middle = std::nextafter(static_cast<float>(middle), -1.0f), above_middle = std::nextafter(static_cast<float>(middle), INFINITY);
      wrong += round_to(dtype, middle) != (bits % 2 == 0 ? value : above);
      wrong += round_to(dtype, -middle) != -(bits % 2 == 0 ? value : above);
      if (below_middle > value) wrong += round_to(dtype, below_middle) != value;
      if (above_middle < above) wrong += round_to(dtype, above_middle) != above;
    }
    CHECK(wrong == 0);
    CHECK(std::signbit(round_to(dtype, -1e-40)));
    CHECK(std::isnan(round_to(dtype, NAN)));
    const double beyond = round_to(dtype, -INFINITY);
    CHECK((dtype == DType::F8E4M3FN ? std::isnan(beyond) : beyond == -INFINITY));
    // The largest value, and half a step further, where the next one would be if the exponent had no end.
    const double largest = value_of(dtype, count - 1), step = largest - value_of(dtype, count - 2);
    CHECK(round_to(dtype, largest + step / 4) == largest);
    CHECK(!std::isfinite(round_to(dtype, largest + step * 3 / 4)));
  }
}
