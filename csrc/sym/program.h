// Expressions compiled to a flat table, for run time: no allocation, no lock, no GiNaC, tens of nanoseconds.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sym/expr.h"

namespace cxxinductor::sym {

// The first inputs.size() slots of the workspace are the symbols, in order; then one slot an instruction.
class Program {
 public:
  Program() = default;
  // symbols: names in the order of the input slots. UserError if an expression uses another symbol.
  explicit Program(std::vector<std::string> symbols);
  // Slot that will hold the value of e after run(); equal subexpressions share a slot.
  uint32_t add(Expr e);
  size_t workspace_size() const { return symbols_.size() + code_.size(); }
  const std::vector<std::string>& symbols() const { return symbols_; }
  // workspace: workspace_size() values, the first symbols().size() filled by the caller. Throws UserError on a zero
  // divisor or overflow.
  void run(std::span<int64_t> workspace) const;

 private:
  struct Instruction {
    Kind kind;
    int64_t a;  // slot, or the value of a constant
    uint32_t b;
  };
  std::vector<std::string> symbols_;
  std::vector<Instruction> code_;
  std::unordered_map<Expr, uint32_t> slots_;
};

}  // namespace cxxinductor::sym
