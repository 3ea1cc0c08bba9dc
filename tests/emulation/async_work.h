// Work that a thread starts and later waits for: copies, products of warp groups. Each is done as early as it may be, as late as the waits
// allow, or at some time between, so that what is read or overwritten too early differs.
#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "emulation/random.h"

namespace cxxi_emulation {

enum class Timing { Early, Late, Between };

// Groups of work, oldest first; the last one is not yet committed. Work is done in order.
class AsyncWork {
 public:
  void start(Timing timing, Random& random, std::function<void()> work) {
    const bool now = timing == Timing::Early || (timing == Timing::Between && random.below(2) == 0);
    if (now && waiting_ == 0) {
      work();
    } else {
      groups_.back().push_back(std::move(work));
      ++waiting_;
    }
  }
  void commit() { groups_.emplace_back(); }
  // Until at most `pending` committed groups are under way.
  void wait(size_t pending) {
    for (; groups_.size() > pending + 1; groups_.pop_front()) {
      for (const auto& work : groups_.front()) work();
      waiting_ -= groups_.front().size();
    }
  }
  // What may happen while other threads run.
  void progress(Timing timing, Random& random) {
    if (timing == Timing::Between && groups_.size() > 1 && random.below(4) == 0) wait(groups_.size() - 2);
  }
  void clear() {
    groups_.assign(1, {});
    waiting_ = 0;
  }

 private:
  std::deque<std::vector<std::function<void()>>> groups_{1};
  size_t waiting_ = 0;  // in all groups
};

}  // namespace cxxi_emulation
