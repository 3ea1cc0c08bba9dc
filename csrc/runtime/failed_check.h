// What a check of an index that failed becomes: an error of the type that eager raises, with op, index, bound and model
// line.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "ir/plan/plan.h"
#include "support/error.h"

namespace cxxinductor::runtime {

// An element of a tensor of indices lies outside what it indexes.
class IndexOutOfRange : public UserError {
 public:
  using UserError::UserError;
};

// The same, reported by a device that runs behind the host: an earlier launch failed.
class DeviceIndexOutOfRange : public IndexOutOfRange {
 public:
  using IndexOutOfRange::IndexOutOfRange;
};

// What the checks of a kernel say when they fail, by statement.
struct CheckText {
  std::string what, place;
  bool wraps = false;  // a negative index had the bound added before it was checked
};
using CheckTexts = std::map<int64_t, CheckText>;
CheckTexts check_texts(const plan::Kernel& kernel, const OriginTable& origins);

struct FailedCheck {
  int64_t check = 0;  // the statement
  int64_t index = 0, bound = 0;
};
// A kernel of threads in blocks leaves a failed check in so many ints: at 0 that a thread has claimed it, the check at 1, the index at 2 and the bound at 4,
// low halves first. The one at 6 is written last, and is 0 while none has failed.
inline constexpr size_t check_record_ints = 8;
std::optional<FailedCheck> read_check_record(const volatile int* record);

// "aten.index.Tensor: index %i of dimension 0 of size 8: index 9 is out of bounds, expected 0 <= index < 8
// (model.py:12)".
std::string describe_failed_check(const CheckTexts& texts, const FailedCheck& failed);

}  // namespace cxxinductor::runtime
