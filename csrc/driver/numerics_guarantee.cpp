#include "driver/numerics_guarantee.h"

#include <map>

#include "ir/device_types.h"
#include "ir/loops/stmt_properties.h"
#include "support/error.h"

namespace cxxinductor::driver {
namespace {

// Things counted, printed as "gelu, tanh x 2" in the order of first sight.
class Tally {
 public:
  void add(const std::string& what) {
    if (counts_[what]++ == 0) order_.push_back(what);
  }
  bool empty() const { return order_.empty(); }
  std::string text() const {
    std::vector<std::string> items;
    for (const std::string& what : order_) items.push_back(counts_.at(what) == 1 ? what : fmt::format("{} x {}", what, counts_.at(what)));
    return fmt::format("{}", fmt::join(items, ", "));
  }

 private:
  std::vector<std::string> order_;
  std::map<std::string, int> counts_;
};

bool rounds(DType from, DType to) { return is_float(to) && (!is_float(from) || byte_size(to) < byte_size(from)); }

class NumericsReader {
 public:
  NumericsReader(const plan::Kernel& kernel, const OriginTable& origins, bool eager_numerics)
      : kernel_(kernel), origins_(origins), eager_numerics_(eager_numerics) {}

  NumericsGuarantee read() {
    for (const loops::Stmt& stmt : kernel_.region.body) {
      if (const auto* apply = stmt.as<loops::Apply>()) read_apply(stmt, *apply);
      if (const auto state = row_state(stmt)) read_state(stmt, *state);
      if (const auto* store = stmt.as<loops::Store>()) read_store(stmt, *store);
      if (stmt.as<loops::Check>()) ++checks_;
    }
    NumericsGuarantee guarantee;
    guarantee.accuracy = accuracy();
    guarantee.details = std::move(sums_);
    if (!functions_.empty()) guarantee.details.push_back(functions_line());
    for (const auto& [dtype, calls] : roundings_) {
      guarantee.details.push_back(fmt::format("rounds to {}{}: {}", to_string(dtype), eager_numerics_ ? " where eager does" : "", calls.text()));
    }
    if (!draws_.empty())
      guarantee.details.push_back(fmt::format("a call of Philox an element, also where eager's threads take several numbers of one: {}", draws_.text()));
    if (checks_ > 0) guarantee.details.push_back(fmt::format("{} indices checked while it runs", checks_));
    return guarantee;
  }

 private:
  const DeviceTypeInfo& device() const { return info(kernel_.device.type); }

  std::string call_of(const loops::Stmt& stmt) const {
    if (!stmt.origin.valid() || !origins_.contains(stmt.origin)) return "a call unknown";
    return origins_[stmt.origin].call;
  }

  void read_apply(const loops::Stmt& stmt, const loops::Apply& apply) {
    const DType operand = kernel_.region.body[apply.operands[0]].dtype;
    if (apply.op == ScalarOp::Cast) {
      if (rounds(operand, stmt.dtype)) roundings_[stmt.dtype].add(call_of(stmt));
      return;
    }
    if (apply.op == ScalarOp::PhiloxPair) draws_.add(call_of(stmt));
    const ScalarOpInfo& row = info(apply.op);
    if (is_float(stmt.dtype) && row.rule == TypeRule::Same) computes_ = true;
    if (row.traits.transcendental && is_float(operand)) functions_.add(std::string(row.name));
  }

  void read_state(const loops::Stmt& stmt, const loops::RowState& state) {
    const ReductionInfo& row = info(state.reduction);
    const DType operand = kernel_.region.body[state.operand].dtype;
    if (!row.order_matters || !is_float(operand)) return;
    computes_ = true;
    sym::Expr count = 1;
    for (size_t v = 0; v < kernel_.region.vars.size(); ++v)
      if (state.over.contains(plan::VarId(v))) count = count * kernel_.region.vars[plan::VarId(v)].extent;
    sums_.push_back(fmt::format("{} of {} elements in {}{}: {}", row.name, sym::to_string(count), to_string(operand),
                                kernel_.order_changed ? ", in another order than eager's" : "", call_of(stmt)));
  }

  void read_store(const loops::Stmt& stmt, const loops::Store& store) {
    if (!counts_repeats(store.combine) || !is_float(stmt.dtype)) return;
    computes_ = true;
    if (store.conflict_order)
      sums_.push_back(fmt::format("{} into {} where indices say{}: {}", name_of(store.combine), to_string(stmt.dtype),
                                  device().scatters_in_order ? ", in eager's order" : ", by atomics, in any order, as eager's", call_of(stmt)));
  }

  // Eager's CPU kernels call Sleef for whole vectors and libm for what is left over; its CUDA kernels call what ours
  // call.
  std::string functions_line() const {
    if (!eager_numerics_) return fmt::format("functions that may be approximated: {}", functions_.text());
    if (!device().functions_bit_equal) return fmt::format("functions within a unit or two of eager's last bit: {}", functions_.text());
    return fmt::format("functions as eager computes them: {}", functions_.text());
  }

  AccuracyLevel accuracy() const {
    if (!computes_ && functions_.empty() && !kernel_.order_changed) return AccuracyLevel::Exact;
    if (!eager_numerics_) return AccuracyLevel::Fast;
    if (kernel_.order_changed) return AccuracyLevel::OrderChanged;
    return !device().functions_bit_equal && !functions_.empty() ? AccuracyLevel::LastBits : AccuracyLevel::BitEqual;
  }

  const plan::Kernel& kernel_;
  const OriginTable& origins_;
  const bool eager_numerics_;
  std::vector<std::string> sums_;
  Tally functions_, draws_;
  std::map<DType, Tally> roundings_;
  bool computes_ = false;
  int checks_ = 0;
};

}  // namespace

std::string_view to_string(AccuracyLevel accuracy) {
  switch (accuracy) {
    case AccuracyLevel::Exact:
      return "exact";
    case AccuracyLevel::BitEqual:
      return "bit-equal";
    case AccuracyLevel::LastBits:
      return "last bits";
    case AccuracyLevel::OrderChanged:
      return "order changed";
    case AccuracyLevel::Fast:
      return "fast";
  }
  return "";
}

NumericsGuarantee numerics_guarantee_of(const plan::Kernel& kernel, const OriginTable& origins, bool eager_numerics) {
  return NumericsReader(kernel, origins, eager_numerics).read();
}

}  // namespace cxxinductor::driver
