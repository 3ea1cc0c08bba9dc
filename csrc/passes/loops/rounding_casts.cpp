// Removes conversions to a narrower dtype and back: where the value is representable in the narrow dtype, and with
// numerics=fast between all ops. Factors of matrix products stay narrow, since tensor cores take no others.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "ir/device_types.h"
#include "ir/loops/stmt_traits.h"
#include "ir/plan/matmul.h"
#include "passes/loops/passes.h"

namespace cxxinductor::passes {
namespace {

using loops::Apply;
using loops::StmtId;

bool is_narrowing(DType narrow, DType wide) { return is_float(narrow) && is_float(wide) && compute_type(narrow) == wide && narrow != wide; }

// Ops that return one of their operands, or its negation: representable in every dtype that represents the operands.
bool selects(ScalarOp op) {
  return op == ScalarOp::Neg || op == ScalarOp::Abs || op == ScalarOp::Relu || op == ScalarOp::Maximum || op == ScalarOp::Minimum || op == ScalarOp::Where;
}

// The narrow factors of a matrix product that may become a kernel with tensor cores: one varies over rows, the other over columns.
std::array<StmtId, 2> matmul_factors(const loops::Region& region) {
  const auto parts = info(region.device.type).simt ? plan::find_matmul(region) : std::nullopt;
  if (!parts) return {};
  const loops::VarSet left = region.body[parts->left].vars, right = region.body[parts->right].vars;
  if (left.subset_of(right) || right.subset_of(left)) return {};
  return {parts->left, parts->right};
}

class Roundings {
 public:
  Roundings(loops::Region& region, bool drop_all)
      : region_(region), drop_all_(drop_all), factors_(matmul_factors(region)), narrow_(region.body.size()), same_(region.body.size()) {}

  bool run() {
    bool changed = false;
    for (size_t s = 0; s < region_.body.size(); ++s) {
      same_[s] = StmtId(s);
      changed = rename_operands(region_.body[StmtId(s)]) || changed;
      inspect(StmtId(s));
    }
    return changed;
  }

 private:
  bool rename_operands(loops::Stmt& stmt) {
    bool changed = false;
    auto rename = [&](StmtId& id) {
      if (same_[id.index()] == id) return;
      id = same_[id.index()];
      changed = true;
    };
    for_each_use(stmt, rename, [](sym::Expr&) {});
    return changed;
  }

  // narrow_: the float dtype in which the statement's value is known to be representable.
  void inspect(StmtId id) {
    const loops::Stmt& stmt = region_.body[id];
    const auto* apply = stmt.as<Apply>();
    if (!apply) return;
    if (apply->op != ScalarOp::Cast) {
      if (selects(apply->op)) narrow_[id.index()] = common(*apply);
      if (apply->op == ScalarOp::Mul) narrow_[id.index()] = scaled(*apply);
      return;
    }
    const StmtId inner = apply->operands[0];
    const DType from = region_.body[inner].dtype;
    if (!is_narrowing(from, stmt.dtype)) return;
    narrow_[id.index()] = from;
    const auto* rounding = region_.body[inner].as<Apply>();
    if (!rounding || rounding->op != ScalarOp::Cast || std::ranges::find(factors_, inner) != factors_.end()) return;
    const StmtId value = rounding->operands[0];
    if (region_.body[value].dtype == stmt.dtype && (drop_all_ || narrow_[value.index()] == from)) same_[id.index()] = value;
  }

  std::optional<DType> common(const Apply& apply) const {
    std::optional<DType> dtype;
    for (size_t i = apply.op == ScalarOp::Where ? 1 : 0; i < apply.operands.size(); ++i) {
      const auto& narrow = narrow_[apply.operands[i].index()];
      if (!narrow || (dtype && *dtype != *narrow)) return std::nullopt;
      dtype = narrow;
    }
    return dtype;
  }

  // A product with a power of two of at least one, if the narrow dtype has the exponents of the wide one: both overflow
  // at the same values.
  std::optional<DType> scaled(const Apply& apply) const {
    for (size_t i = 0; i < 2; ++i) {
      const auto* factor = region_.body[apply.operands[1 - i]].as<loops::Constant>();
      if (!factor || narrow_[apply.operands[i].index()] != DType::BF16 || !is_float(factor->value.dtype())) continue;
      int exponent = 0;
      const double mantissa = std::frexp(factor->value.real(), &exponent);
      if (std::fabs(mantissa) == 0.5 && exponent >= 1) return DType::BF16;
    }
    return std::nullopt;
  }

  loops::Region& region_;
  const bool drop_all_;
  const std::array<StmtId, 2> factors_;  // invalid where the region is no matrix product
  std::vector<std::optional<DType>> narrow_;
  std::vector<StmtId> same_;
};

}  // namespace

bool elide_rounding_casts(loops::Program& program, const Options& options) {
  bool changed = false;
  for (loops::Step& step : program.steps)
    if (auto* region = std::get_if<loops::Region>(&step)) changed = Roundings(*region, !options.eager_numerics()).run() || changed;
  return changed;
}

}  // namespace cxxinductor::passes
