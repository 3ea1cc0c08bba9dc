#include "driver/kernel_check.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ir/loops/stmt_properties.h"
#include "support/error.h"

namespace cxxinductor::driver {
namespace {

constexpr size_t kMostOriginsNamed = 12;

double unit_of(DType compute) { return compute == DType::F64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon(); }

// Functions that the interpreter does not approximate as the device does.
bool approximates(ScalarOp op) {
  return op == ScalarOp::SinApprox || op == ScalarOp::CosApprox || op == ScalarOp::TanApprox || op == ScalarOp::ExpApprox || op == ScalarOp::LogApprox;
}

// How much a kernel's own rounding may grow until an output.
struct Noise {
  bool exact = true;              // rounds where its reference rounds, to the same numbers
  bool approximate = false;       // by parts in a million, which later ops may magnify without bound
  double narrowest_rounding = 0;  // relative, of the narrowest float that a value is rounded to
};

Noise noise_of(const plan::Kernel& kernel) {
  Noise noise{!kernel.order_changed};
  for (const loops::Stmt& stmt : kernel.region.body) {
    const auto* apply = stmt.as<loops::Apply>();
    if (!apply) continue;
    if (info(apply->op).traits.transcendental) noise.exact = false;
    noise.approximate |= approximates(apply->op);
    if (apply->op == ScalarOp::Cast && is_float(stmt.dtype))
      noise.narrowest_rounding = std::max(noise.narrowest_rounding, interp::relative_tolerance(stmt.dtype));
  }
  return noise;
}

void add_unique(std::vector<std::string>& list, std::string text) {
  if (!text.empty() && std::find(list.begin(), list.end(), text) == list.end()) list.push_back(std::move(text));
}

std::string described_calls(const plan::Plan& plan, const plan::Kernel& kernel) {
  std::vector<std::string> calls;
  for (const loops::Stmt& stmt : kernel.region.body) add_unique(calls, describe_origin(plan.origins, stmt.origin));
  const size_t more = calls.size() > kMostOriginsNamed ? calls.size() - kMostOriginsNamed : 0;
  calls.resize(calls.size() - more);
  return fmt::format("{}{}", fmt::join(calls, ", "), more == 0 ? "" : fmt::format(" and {} more", more));
}

}  // namespace

interp::Tolerance tolerance_for(const plan::Kernel& kernel, DType output, Scale scale, const Options& options) {
  if (!is_float(output)) return {};
  const Noise noise = noise_of(kernel);
  if (noise.approximate) return {0, std::numeric_limits<double>::infinity()};  // NaN is still seen
  const double loosened = (options.eager_numerics() ? 1 : 4) * static_cast<double>(options.check_tolerance);
  // Rounding errors of a sum grow as its partial sums do, with the root of their number.
  const double units = kernel.order_changed ? 16 + 4 * std::sqrt(static_cast<double>(scale.summed)) : 4;
  // Where the last bit differs, a value may round the other way, and a difference of values shows all of that.
  const double flip = noise.exact ? 0 : noise.narrowest_rounding;
  interp::Tolerance tolerance;
  tolerance.relative = std::max(interp::relative_tolerance(output) * (kernel.order_changed ? 4 : 1), flip) * loosened;
  tolerance.absolute = tolerance.relative * scale.output + (units * unit_of(compute_type(output)) + flip) * loosened * scale.input;
  return tolerance;
}

int64_t longest_sum(const plan::Kernel& kernel, const interp::Symbols& symbols) {
  int64_t longest = 1;
  const auto points = [&](plan::VarSet vars) {
    int64_t count = 1;
    for (size_t v = 0; v < kernel.region.vars.size(); ++v)
      if (vars.contains(plan::VarId(v))) count *= interp::evaluate(kernel.region.vars[plan::VarId(v)].extent, symbols);
    return count;
  };
  for (const loops::Stmt& stmt : kernel.region.body) {
    if (const auto state = row_state(stmt); state && info(state->reduction).order_matters) longest = std::max(longest, points(state->over));
    // All points of a scatter may write one element.
    if (const auto* store = stmt.as<loops::Store>(); store && store->conflict_order && counts_repeats(store->combine))
      longest = std::max(longest, points(stmt.vars));
  }
  return longest;
}

interp::Symbols launch_symbols(const plan::Plan& plan, const plan::Launch& launch, const interp::Symbols& symbols) {
  const plan::Kernel& kernel = plan.kernels[launch.kernel];
  interp::Symbols values;
  for (size_t i = 0; i < kernel.symbols.size(); ++i) values[kernel.symbols[i]] = interp::evaluate(launch.symbol_args[i], symbols);
  return values;
}

interp::Tolerance tolerance_for_extern(DType output, double output_magnitude, const Options& options) {
  // Another form of the op may be another algorithm: sums in another order.
  if (!is_float(output)) return {};
  const double relative = interp::relative_tolerance(output) * 4 * static_cast<double>(options.check_tolerance);
  return {relative, relative * output_magnitude};
}

std::string describe_origin(const OriginTable& origins, OriginId id) { return origins.contains(id) ? describe(origins[id]) : ""; }

std::string describe_mismatch(const plan::Plan& plan, size_t step, plan::BufferId output, const std::string& sizes, const interp::Difference& difference,
                              std::string_view check, std::string_view reference) {
  std::string text;
  OriginId origin;
  if (const auto launches = plan::launches_of(plan.steps[step]); !launches.empty()) {
    const auto found = std::find_if(launches.begin(), launches.end(),
                                    [&](const plan::Launch& launch) { return std::find(launch.args.begin(), launch.args.end(), output) != launch.args.end(); });
    const plan::Kernel& kernel = plan.kernels[launches[0].kernel];
    origin = found == launches.end() ? launches[0].origin : found->origin;
    text = fmt::format("check={}: kernel {} is the first whose output differs from {}\n  it computes: {}", check, kernel.name, reference,
                       described_calls(plan, kernel));
  } else {
    const auto& call = std::get<plan::CallExtern>(plan.steps[step]);
    origin = call.origin;
    text = fmt::format("check={}: the extern call {} is the first whose result differs from {}", check, call.callee, reference);
  }
  if (const std::string place = describe_origin(plan.origins, origin); !place.empty()) text += fmt::format("\n  for: {}", place);
  const plan::Buffer& buffer = plan.buffers[output];
  text += fmt::format("\n  output @{}: {}{}: {} of {} elements differ", buffer.name, to_string(buffer.dtype), sizes, difference.differing, difference.compared);
  text += fmt::format("\n  the worst, at [{}]: found {}, expected {} (error {:.3g})", fmt::join(difference.coords, ", "), to_string(difference.actual),
                      to_string(difference.expected), difference.error);
  return text + "\n  option dump=all writes the kernel's source";
}

}  // namespace cxxinductor::driver
