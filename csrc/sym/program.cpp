#include "sym/program.h"

#include <algorithm>

#include "sym/integer.h"

namespace cxxinductor::sym {
Program::Program(std::vector<std::string> symbols, std::vector<uint32_t> times) : symbols_(std::move(symbols)), times_(std::move(times)), code_(1) {
  times_.resize(symbols_.size(), 0);
  for (uint32_t time : times_) code_.resize(std::max<size_t>(code_.size(), time + 1));
  for (size_t i = 0; i < symbols_.size(); ++i) slots_.emplace(Expr::symbol(symbols_[i]), static_cast<uint32_t>(i));
}

uint32_t Program::add(Expr e) {
  if (auto found = slots_.find(e); found != slots_.end()) return found->second;
  const auto emit = [&](Kind kind, int64_t a, uint32_t b, uint32_t time) {
    const auto out = static_cast<uint32_t>(times_.size());
    code_.at(time).push_back({kind, out, a, b});
    times_.push_back(time);
    return out;
  };
  uint32_t slot = 0;
  if (e.is_constant()) {
    slot = emit(Kind::Constant, e.constant(), 0, 0);
  } else if (e.is_symbol()) {
    throw_user_error("the symbol {} has no source at run time", e.name());
  } else {
    slot = add(e.operands()[0]);
    for (Expr operand : e.operands().subspan(1)) {
      const uint32_t other = add(operand);
      slot = emit(e.kind(), static_cast<int64_t>(slot), other, std::max(times_[slot], times_[other]));
    }
  }
  slots_.emplace(e, slot);
  return slot;
}

void Program::run(std::span<int64_t> workspace, uint32_t time) const {
  if (time >= code_.size()) return;
  for (const Instruction& i : code_[time]) {
    int64_t& out = workspace[i.out];
    if (i.kind == Kind::Constant) {
      out = i.a;
      continue;
    }
    const int64_t a = workspace[static_cast<size_t>(i.a)], b = workspace[i.b];
    bool overflow = false;
    switch (i.kind) {
      case Kind::Add:
        overflow = __builtin_add_overflow(a, b, &out);
        break;
      case Kind::Mul:
        overflow = __builtin_mul_overflow(a, b, &out);
        break;
      case Kind::FloorDiv:
        out = floor_quotient(a, b);
        break;
      case Kind::Mod:
        out = floor_remainder(a, b);
        break;
      case Kind::Min:
        out = std::min(a, b);
        break;
      case Kind::Max:
        out = std::max(a, b);
        break;
      case Kind::Constant:
      case Kind::Symbol:
        break;
    }
    if (overflow) throw_user_error("a size overflows 64 bits");
  }
}

}  // namespace cxxinductor::sym
