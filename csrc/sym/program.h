// Expressions compiled to a flat table, for run time: no allocation, no lock, no GiNaC, tens of nanoseconds.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sym/expr.h"

namespace cxxinductor::sym {

// The first symbols.size() slots of the workspace are the symbols, in order; then one slot per instruction. Symbols may
// become known at several times, 0 first: a stretch of the program is what can be computed at one time and not before.
class Program {
 public:
  Program() = default;
  // symbols: names in the order of the input slots. times: when each is known; empty: all at time 0. UserError if an
  // expression uses another symbol.
  explicit Program(std::vector<std::string> symbols, std::vector<uint32_t> times = {});
  // Slot that will hold the value of e after run(); equal subexpressions share a slot.
  uint32_t add(Expr e);
  size_t workspace_size() const { return times_.size(); }
  const std::vector<std::string>& symbols() const { return symbols_; }
  uint32_t time_of(uint32_t slot) const { return times_[slot]; }
  // workspace: workspace_size() values; the caller has filled the symbols that are known at this time, and run the
  // earlier stretches. Throws UserError on a zero divisor or overflow.
  void run(std::span<int64_t> workspace, uint32_t time = 0) const;

 private:
  struct Instruction {
    Kind kind;
    uint32_t out;  // slot
    int64_t a;     // slot, or the value of a constant
    uint32_t b;
  };
  std::vector<std::string> symbols_;
  std::vector<uint32_t> times_;                 // by slot
  std::vector<std::vector<Instruction>> code_;  // by time
  std::unordered_map<Expr, uint32_t> slots_;
};

}  // namespace cxxinductor::sym
