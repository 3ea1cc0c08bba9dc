// Computes i64 values in i32 where the sizes and types that they come from keep them in its range, on GPUs, whose arithmetic is 32 bits wide:
// an addition of i64 takes two instructions there, a division dozens. Positions within the windows of a pool are such values.
#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "ir/device_types.h"
#include "ir/loops/region_rewrite.h"
#include "passes/loops/passes.h"
#include "sym/integer.h"
#include "sym/simplify.h"

namespace cxxinductor::passes {
namespace {

using loops::Apply;
using loops::Stmt;
using loops::StmtId;
using sym::Interval;

constexpr Interval narrow_range{std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};

bool is_narrow(const std::optional<Interval>& range) { return range && range->low >= narrow_range.low && range->high <= narrow_range.high; }

std::optional<Interval> range_of_type(DType dtype) {
  switch (dtype) {
    case DType::Bool:
      return Interval{0, 1};
    case DType::I8:
      return Interval{std::numeric_limits<int8_t>::min(), std::numeric_limits<int8_t>::max()};
    case DType::U8:
      return Interval{0, std::numeric_limits<uint8_t>::max()};
    case DType::I16:
      return Interval{std::numeric_limits<int16_t>::min(), std::numeric_limits<int16_t>::max()};
    case DType::I32:
      return narrow_range;
    default:
      return std::nullopt;
  }
}

Interval over(std::initializer_list<int64_t> values) { return {std::min(values), std::max(values)}; }

// Of operands within narrow_range: no sum or product of two leaves i64.
std::optional<Interval> range_of(ScalarOp op, const Interval& a, const Interval& b) {
  switch (op) {
    case ScalarOp::Add:
      return Interval{a.low + b.low, a.high + b.high};
    case ScalarOp::Sub:
      return Interval{a.low - b.high, a.high - b.low};
    case ScalarOp::Mul:
      return over({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
    case ScalarOp::FloorDiv:
      if (b.low <= 0) return std::nullopt;
      return over(
          {sym::floor_quotient(a.low, b.low), sym::floor_quotient(a.low, b.high), sym::floor_quotient(a.high, b.low), sym::floor_quotient(a.high, b.high)});
    case ScalarOp::Remainder:
      if (b.low <= 0) return std::nullopt;
      return Interval{0, b.high - 1};
    case ScalarOp::Minimum:
      return Interval{std::min(a.low, b.low), std::min(a.high, b.high)};
    case ScalarOp::Maximum:
      return Interval{std::max(a.low, b.low), std::max(a.high, b.high)};
    default:
      return std::nullopt;
  }
}

bool is_comparison(ScalarOp op) {
  return op == ScalarOp::Eq || op == ScalarOp::Ne || op == ScalarOp::Lt || op == ScalarOp::Le || op == ScalarOp::Gt || op == ScalarOp::Ge;
}

class Narrower {
 public:
  Narrower(const loops::Region& region, const sym::Assumptions& assumptions)
      : region_(region),
        assumptions_(assumptions),
        result_{region.name, region.device, region.vars, {}},
        builder_(result_, assumptions),
        renaming_(loops::identity_renaming(region)),
        ranges_(region.body.size()),
        narrowed_(region.body.size()) {
    for (size_t v = 0; v < region.vars.size(); ++v) {
      const int64_t end = sym::bounds(region.vars[loops::VarId(v)].extent, assumptions).high;
      assumptions_.set_range(region.symbol(loops::VarId(v)).name(), {0, std::max<int64_t>(end, 1) - 1});
    }
  }

  bool run() {
    for (size_t s = 0; s < region_.body.size(); ++s) emit(StmtId(s));
    return changed_;
  }
  loops::Region take() { return std::move(result_); }

 private:
  void emit(StmtId old) {
    const Stmt& stmt = region_.body[old];
    std::optional<Interval>& range = ranges_[old.index()];
    range = range_of(stmt);
    if (const auto* apply = stmt.as<Apply>(); apply && gains(*apply, stmt.dtype, range)) {
      changed_ = true;
      std::vector<StmtId> operands;
      for (StmtId operand : apply->operands) operands.push_back(region_.body[operand].dtype == DType::I64 ? narrowed(operand) : now(operand));
      const bool wide = stmt.dtype == DType::I64;
      const StmtId id = builder_.emit({Apply{apply->op, std::move(operands)}, wide ? DType::I32 : stmt.dtype, {}, stmt.origin});
      if (wide) narrowed_[old.index()] = id;
      // Readers of the i64; without any, it is removed.
      builder_.bind(old, wide ? builder_.emit({Apply{ScalarOp::Cast, {id}}, DType::I64, {}, stmt.origin}) : id, renaming_);
    } else {
      builder_.emit_renamed(region_, old, renaming_);
    }
    if (stmt.dtype == DType::I64 && is_narrow(range)) assumptions_.set_range(loops::statement_symbol(old).name(), *range);
  }

  StmtId now(StmtId old) const { return renaming_.statements[old.index()]; }

  StmtId narrowed(StmtId old) {
    StmtId& found = narrowed_[old.index()];
    if (found.valid()) return found;
    const Stmt& stmt = region_.body[old];
    if (const auto* constant = stmt.as<loops::Constant>())
      return found = builder_.emit({loops::Constant{Scalar::from_integer(DType::I32, constant->value.integer())}, DType::I32, {}, stmt.origin});
    const auto* apply = stmt.as<Apply>();
    const bool widened = apply && apply->op == ScalarOp::Cast && is_integer(region_.body[apply->operands[0]].dtype);
    const StmtId from = now(widened ? apply->operands[0] : old);
    if (result_.body[from].dtype == DType::I32) return found = from;
    return found = builder_.emit({Apply{ScalarOp::Cast, {from}}, DType::I32, {}, stmt.origin});
  }

  std::optional<Interval> range_of(const Stmt& stmt) const {
    if (stmt.dtype != DType::I64) return range_of_type(stmt.dtype);
    if (const auto* constant = stmt.as<loops::Constant>()) return Interval{constant->value.integer(), constant->value.integer()};
    if (const auto* index = stmt.as<loops::Index>()) return sym::bounds(index->value, assumptions_);
    const auto* apply = stmt.as<Apply>();
    if (!apply) return std::nullopt;
    const auto of = [&](size_t i) { return ranges_[apply->operands[i].index()]; };
    if (apply->op == ScalarOp::Cast || apply->op == ScalarOp::Identity) return of(0);
    if (apply->op == ScalarOp::Where && is_narrow(of(1)) && is_narrow(of(2)))
      return Interval{std::min(of(1)->low, of(2)->low), std::max(of(1)->high, of(2)->high)};
    if (apply->operands.size() != 2 || !is_narrow(of(0)) || !is_narrow(of(1))) return std::nullopt;
    return passes::range_of(apply->op, *of(0), *of(1));
  }

  // Arithmetic and comparisons of i64 that i32 does as well.
  bool gains(const Apply& apply, DType dtype, const std::optional<Interval>& range) const {
    const bool is_arithmetic = dtype == DType::I64 && apply.op != ScalarOp::Cast && is_narrow(range);
    if (!is_arithmetic && !(is_comparison(apply.op) && region_.body[apply.operands[0]].dtype == DType::I64)) return false;
    // Comparisons of positions alone say which part of a concatenation or a pad is meant: plans look for them.
    const auto is_position = [&](StmtId operand) { return region_.body[operand].as<loops::Index>() || region_.body[operand].as<loops::Constant>(); };
    if (std::all_of(apply.operands.begin(), apply.operands.end(), is_position)) return false;
    return std::all_of(apply.operands.begin(), apply.operands.end(), [&](StmtId operand) {
      return region_.body[operand].dtype == DType::Bool || (region_.body[operand].dtype == DType::I64 && is_narrow(ranges_[operand.index()]));
    });
  }

  const loops::Region& region_;
  sym::Assumptions assumptions_;
  loops::Region result_;
  loops::BodyBuilder builder_;
  loops::Renaming renaming_;
  std::vector<std::optional<Interval>> ranges_;
  std::vector<StmtId> narrowed_;  // i32 statements of the new body, by i64 statements of the old one
  bool changed_ = false;
};

}  // namespace

bool narrow_integers(loops::Program& program, const Options&) {
  bool changed = false;
  for (loops::Step& step : program.steps) {
    auto* region = std::get_if<loops::Region>(&step);
    if (!region || !has_streams(region->device)) continue;
    Narrower narrower(*region, program.assumptions);
    if (!narrower.run()) continue;
    *region = narrower.take();
    loops::remove_dead_statements(*region);
    changed = true;
  }
  return changed;
}

}  // namespace cxxinductor::passes
