// Runs the blocks of a launch one after the other, and the threads of each as fibres. A seed says who runs next and when asynchronous work is
// done. Not for speed, and without blocks that wait for one another.
#pragma once

#include <string>

#include "emulation/block.h"

namespace cxxi_emulation {

class Scheduler final : public Launcher {
 public:
  Scheduler(unsigned int threads, int64_t blocks, uint64_t seed) : threads_(threads), blocks_(blocks), seed_(seed) {}
  void run(const Launch& launch) override;
  // What went wrong first, or "".
  const std::string& error() const { return error_; }

 private:
  unsigned int threads_;
  int64_t blocks_;
  uint64_t seed_;
  std::string error_;
};

}  // namespace cxxi_emulation
