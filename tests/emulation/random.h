// Numbers that a seed gives: which thread runs next, and when asynchronous work is done.
#pragma once

#include <cstdint>

namespace cxxi_emulation {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  // 0 <= result < bound.
  unsigned int below(unsigned int bound) {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t mixed = (state_ ^ state_ >> 30) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
    return static_cast<unsigned int>((mixed >> 32) * bound >> 32);
  }

 private:
  uint64_t state_;
};

}  // namespace cxxi_emulation
