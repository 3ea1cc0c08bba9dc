// The accuracy of a kernel relative to eager, derived from its plan, for explain().
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/plan/plan.h"

namespace cxxinductor::driver {

enum class AccuracyLevel : uint8_t {
  Exact,         // moves, compares and converts: no rounding that could differ
  BitEqual,      // rounds where eager rounds, by the same functions
  LastBits,      // rounds where eager rounds; some functions may differ from eager's in the last bits
  OrderChanged,  // sums in another order than eager's
  Fast,          // numerics=fast: rounds less often than eager, contracts, approximates
};
std::string_view to_string(AccuracyLevel accuracy);  // "exact", "bit-equal", "last bits", "order changed", "fast"

struct NumericsGuarantee {
  AccuracyLevel accuracy = AccuracyLevel::Exact;
  // Reasons, one per line: what is summed in which precision, which functions, where values are rounded, indices checked.
  std::vector<std::string> details;
};

NumericsGuarantee numerics_guarantee_of(const plan::Kernel& kernel, const OriginTable& origins, bool eager_numerics);

}  // namespace cxxinductor::driver
