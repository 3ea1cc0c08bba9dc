// Counts the decisions of one run of the fuser that option fusion_limit counts (schedule.h, FusionCount), and refuses those beyond it.
//
// A decision asks right before it changes the program, once nothing else speaks against it. After the first refusal nothing changes any
// more, so the result for a limit is a prefix of the whole run.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "schedule/fusion/dependencies.h"

namespace cxxinductor::schedule {

class FusionLimit {
 public:
  struct Refused {
    std::string_view what;  // "merge", "compute in the reader", ...
    StepId first, second;   // the second is invalid where there is one step
  };

  explicit FusionLimit(int64_t most) : most_(most) {}

  bool accept(std::string_view what, StepId first, StepId second = {}) {
    if (most_ < 0 || accepted_ < static_cast<size_t>(most_)) {
      ++accepted_;
      return true;
    }
    if (!refused_) refused_ = Refused{what, first, second};
    return false;
  }

  size_t accepted() const { return accepted_; }
  const std::optional<Refused>& refused() const { return refused_; }

 private:
  const int64_t most_;
  size_t accepted_ = 0;
  std::optional<Refused> refused_;
};

}  // namespace cxxinductor::schedule
