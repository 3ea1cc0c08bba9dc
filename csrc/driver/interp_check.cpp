#include "driver/interp_check.h"

#include <algorithm>
#include <optional>

#include "driver/kernel_check.h"
#include "interp/difference.h"
#include "support/error.h"

namespace cxxinductor::driver {
namespace {

using interp::MemRef;
using interp::Symbols;

// The bytes of a buffer, copied to the host.
std::shared_ptr<interp::Storage> copy_of(const runtime::CallView& call, plan::BufferId id, int64_t bytes) {
  const plan::Buffer& buffer = call.plan.buffers[id];
  auto storage = interp::allocate(buffer.name, bytes);
  if (bytes == 0) return storage;
  const int64_t stride = 1;
  runtime::TensorView to, from;
  to.data = storage->bytes.data();
  from.data = call.addresses[id.index()];
  from.device = buffer.device;
  for (runtime::TensorView* view : {&to, &from}) {
    view->dtype = DType::U8;
    view->sizes = {&bytes, 1};
    view->strides = {&stride, 1};
  }
  call.host.copy_strided(to, from);
  return storage;
}

MemRef copied_memref(const runtime::CallView& call, plan::BufferId id, const Symbols& symbols) {
  const plan::Buffer& buffer = call.plan.buffers[id];
  MemRef memref{nullptr, buffer.dtype, 0, interp::evaluate(buffer.sizes, symbols), interp::evaluate(buffer.strides, symbols)};
  memref.storage = copy_of(call, id, interp::span_of(memref) * byte_size(buffer.dtype));
  return memref;
}

MemRef flat(MemRef memref) {
  memref.sizes = {interp::span_of(memref)};
  memref.strides = {1};
  return memref;
}

int64_t extent(const plan::Kernel& kernel, plan::VarId var, const Symbols& symbols) { return interp::evaluate(kernel.region.vars[var].extent, symbols); }

int64_t points_of(const plan::Kernel& kernel, const std::vector<plan::VarId>& vars, const Symbols& symbols) {
  int64_t points = 1;
  for (plan::VarId var : vars) points *= extent(kernel, var, symbols);
  return points;
}

bool has_write_conflicts(const plan::Kernel& kernel) {
  return std::any_of(kernel.region.body.begin(), kernel.region.body.end(), [](const loops::Stmt& stmt) {
    const auto* store = stmt.as<loops::Store>();
    return store && store->conflict_order;
  });
}

// The whole kernel if it is small, else its first and last points; none when a row alone is too long.
std::vector<plan::Kernel> parts_to_run(const plan::Kernel& kernel, const Symbols& symbols, InterpLimits limits) {
  int64_t row = points_of(kernel, kernel.mapping.row, symbols);
  if (const plan::VarId serial = plan::serial_variable(kernel.mapping); serial.valid()) row *= extent(kernel, serial, symbols);
  int64_t points = row * points_of(kernel, kernel.mapping.space, symbols);
  if (points <= limits.points) return {kernel};
  // With write conflicts, an element is the result of all points that write it.
  if (has_write_conflicts(kernel)) return {};
  if (row > std::max(limits.row_points, limits.points)) return {};
  plan::Kernel first = kernel, last = kernel;
  for (plan::VarId var : kernel.mapping.space) {
    const int64_t size = extent(kernel, var, symbols), rest = points / size;
    const int64_t count = std::clamp<int64_t>(limits.points / 2 / std::max<int64_t>(rest, 1), 1, size);
    first = interp::part_of(first, var, 0, count);
    last = interp::part_of(last, var, size - count, count);
    points = rest * count;
    if (points <= limits.points / 2) break;
  }
  return {first, last};
}

bool overlap(const runtime::CallView& call, plan::BufferId a, int64_t a_bytes, plan::BufferId b, int64_t b_bytes) {
  const auto* first = static_cast<const std::byte*>(call.addresses[a.index()]);
  const auto* second = static_cast<const std::byte*>(call.addresses[b.index()]);
  return first < second + b_bytes && second < first + a_bytes;
}

// An element that the kernel changed without a store for it, if there is one.
std::optional<int64_t> stray_store(const MemRef& before, const MemRef& after, const std::vector<bool>& written) {
  const auto bytes = static_cast<size_t>(byte_size(before.dtype));
  for (size_t e = 0; e < written.size(); ++e) {
    const auto at = static_cast<std::ptrdiff_t>(e * bytes);
    const auto old = before.storage->bytes.begin() + at;
    if (!written[e] && !std::equal(old, old + static_cast<std::ptrdiff_t>(bytes), after.storage->bytes.begin() + at)) return static_cast<int64_t>(e);
  }
  return std::nullopt;
}

}  // namespace

InterpCheck::InterpCheck(const Options& options, std::function<void(std::string)> note, InterpLimits limits)
    : options_(options), note_(std::move(note)), limits_(limits) {}

void InterpCheck::before_step(const runtime::CallView& call, size_t step) {
  const auto launches = plan::launches_of(call.plan.steps[step]);
  if (launches.empty()) return;
  for (size_t i = symbols_.size(); i < call.symbols.size(); ++i) symbols_[call.symbol_names[i]] = call.symbols[i];
  memrefs_.clear();
  for (const plan::Launch& launch : launches) {
    memrefs_.emplace_back();
    for (plan::BufferId arg : launch.args) memrefs_.back().push_back(copied_memref(call, arg, symbols_));
  }
}

void InterpCheck::after_step(const runtime::CallView& call, size_t step) {
  const auto launches = plan::launches_of(call.plan.steps[step]);
  for (size_t i = 0; i < launches.size(); ++i) check_launch(call, step, launches[i], memrefs_[i]);
  memrefs_.clear();
}

// `before`: the buffers of the launch, one per parameter, with their memory before the kernel.
void InterpCheck::check_launch(const runtime::CallView& call, size_t step, const plan::Launch& launch, const std::vector<MemRef>& before) {
  if (interp::evaluate(launch.grid_x, symbols_) <= 0 || interp::evaluate(launch.grid_y, symbols_) <= 0) return;
  const plan::Kernel& kernel = call.plan.kernels[launch.kernel];
  const Symbols symbols = launch_symbols(call.plan, launch, symbols_);
  const std::vector<plan::Kernel> parts = parts_to_run(kernel, symbols, limits_);
  if (parts.empty()) {
    note_(fmt::format("check=interp: kernel {} was not checked: {} points is too long for the interpreter", kernel.name,
                      has_write_conflicts(kernel) ? fmt::format("a scatter of {}", points_of(kernel, kernel.mapping.space, symbols))
                                                  : fmt::format("a row of {}", points_of(kernel, kernel.mapping.row, symbols))));
    return;
  }

  // The expected memory after the kernel.
  std::vector<MemRef> expected = before;
  double input_magnitude = 0;
  std::vector<std::vector<bool>> written;
  interp::RegionMemory memory;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (kernel.params[i].read && is_float(expected[i].dtype)) input_magnitude = std::max(input_magnitude, interp::magnitude(before[i]));
    if (kernel.params[i].written) expected[i].storage = std::make_shared<interp::Storage>(*before[i].storage);
    memory.memrefs.push_back(flat(expected[i]));
    written.emplace_back(static_cast<size_t>(memory.memrefs.back().sizes[0]));
  }
  memory.written = &written;
  for (const plan::Kernel& part : parts) {
    memory.offsets = &part.offsets;
    interp::run_kernel(part, symbols, memory);
  }

  for (size_t i = 0; i < expected.size(); ++i) {
    if (!kernel.params[i].written) continue;
    const MemRef actual = copied_memref(call, launch.args[i], symbols_);
    const Scale scale{interp::magnitude(expected[i], &written[i]), input_magnitude, longest_sum(kernel, symbols)};
    const interp::Tolerance tolerance = tolerance_for(kernel, actual.dtype, scale, options_);
    const interp::Difference difference = interp::find_difference(expected[i], actual, tolerance, &written[i]);
    const std::string sizes = fmt::format("[{}]", fmt::join(actual.sizes, ", "));
    if (difference.differing > 0) throw KernelMismatch(describe_mismatch(call.plan, step, launch.args[i], sizes, difference, "interp", "the interpreter's"));
    // Other launches of a group may write between the elements of a slice.
    const bool is_slice = call.plan.buffers[launch.args[i]].kind == plan::Buffer::Kind::Slice;
    bool shared = parts.size() > 1 || (is_slice && std::holds_alternative<plan::GroupedLaunch>(call.plan.steps[step]));
    for (size_t j = 0; j < expected.size(); ++j) {
      shared |= j != i && overlap(call, launch.args[i], static_cast<int64_t>(before[i].storage->bytes.size()), launch.args[j],
                                  static_cast<int64_t>(before[j].storage->bytes.size()));
    }
    if (shared) continue;
    if (const auto element = stray_store(before[i], actual, written[i]))
      throw KernelMismatch(fmt::format("check=interp: kernel {} changes element {} of @{}: {}{}, which it should not write", kernel.name, *element,
                                       call.plan.buffers[launch.args[i]].name, to_string(actual.dtype), sizes));
  }
  ++checked_;
}

}  // namespace cxxinductor::driver
