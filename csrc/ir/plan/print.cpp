#include <algorithm>

#include "ir/loops/region_text.h"
#include "ir/plan/memory.h"
#include "ir/plan/spelling.h"
#include "ir/plan/text.h"
#include "ir/program_text.h"
#include "ir/strides.h"
#include "support/error.h"
#include "support/text_writer.h"

namespace cxxinductor::plan {
namespace {

// The canonical form has no names and no origins: equal kernels of different layers give equal text.
class KernelPrinter {
 public:
  KernelPrinter(TextWriter& writer, const Kernel& kernel, const OriginTable* origins) : writer_(writer), kernel_(kernel), origins_(origins) {}

  void print() {
    std::vector<std::string> params;
    for (const Param& param : kernel_.params)
      params.push_back(fmt::format("{}{}{}{}{}", to_string(param.dtype), param.read ? " read" : "", param.written ? " written" : "",
                                   param.aligned ? " aligned" : "", param.by_value ? " by_value" : ""));
    writer_.line("kernel{} on {} ({}) symbols [{}]{} {{", origins_ ? " @" + kernel_.name : "", to_string(kernel_.device), fmt::join(params, ", "),
                 fmt::join(kernel_.symbols, ", "), print_where(kernel_.assumptions));
    writer_.indent();
    writer_.line("index_limit ({}){}{}{} bytes_read {} bytes_written {}", sym::to_string(kernel_.index_limit), kernel_.always_index32 ? " always_index32" : "",
                 kernel_.order_changed ? " order_changed" : "", kernel_.max_grouped != 1 ? fmt::format(" max_grouped {}", kernel_.max_grouped) : "",
                 kernel_.bytes_read_hint, kernel_.bytes_written_hint);
    print_body();
    print_mapping();
    for (const Segment& segment : kernel_.segments) {
      std::vector<std::string> stmts;
      for (StmtId id : segment.stmts) stmts.push_back(fmt::format("%{}", id.index()));
      writer_.line("{} [{}]{}", keyword_of(segment_keywords, segment.kind), fmt::join(stmts, ", "), field_text("loads_ahead", segment.loads_ahead, 0));
    }
    writer_.dedent();
    writer_.line("}}");
  }

 private:
  std::string var_name(VarId v) const { return kernel_.region.vars.contains(v) ? kernel_.region.vars[v].name : "?"; }
  std::string var_list(const std::vector<VarId>& vars) const {
    std::vector<std::string> names;
    for (VarId v : vars) names.push_back(var_name(v));
    return fmt::format("[{}]", fmt::join(names, ", "));
  }

  void print_mapping() {
    const Mapping& mapping = kernel_.mapping;
    std::visit(
        [&](const auto& shape) {
          std::string text = fmt::format("mapping {} space {}", shape.keyword, var_list(mapping.space));
          if (!mapping.row.empty()) text += " row " + var_list(mapping.row);
          text += field_text("vector_width", mapping.vector_width, 1) + field_text("vector_tail", mapping.vector_tail, false);
          const std::remove_cvref_t<decltype(shape)> defaults;
          for_each_field(shape, [&](const auto& field, const auto& value) { text += field_text(field.keyword, value, defaults.*field.member); });
          writer_.raw_line(text);
        },
        mapping.shape);
  }
  // Nothing for a value that is the default.
  std::string field_text(std::string_view keyword, int value, int usual) const { return value == usual ? "" : fmt::format(" {} {}", keyword, value); }
  std::string field_text(std::string_view keyword, bool value, bool usual) const { return value == usual ? "" : fmt::format(" {}", keyword); }
  std::string field_text(std::string_view keyword, VarId value, VarId usual) const {
    return value == usual ? "" : fmt::format(" {} {}", keyword, var_name(value));
  }

  void print_body() {
    loops::RegionPrinting how;
    how.buffer = [](loops::BufferId id) { return fmt::format("{}", id.index()); };
    how.annotation = [this](StmtId id) { return annotation(id); };
    how.origins = origins_;
    how.name = origins_ != nullptr;
    how.device = kernel_.device;
    print_region(writer_, kernel_.region, how);
  }

  std::string annotation(StmtId id) const {
    std::string text;
    const loops::Stmt& stmt = kernel_.region.body[id];
    bool accesses = stmt.as<loops::Load>() || stmt.as<loops::Store>();
    if (accesses && kernel_.offsets.contains(id)) text += fmt::format(" at ({})", loops::print_expr(kernel_.offsets[id]));
    if (accesses && kernel_.access.contains(id)) text += fmt::format(" {}", keyword_of(access_keywords, kernel_.access[id]));
    if (kernel_.memory_spaces.contains(id) && kernel_.memory_spaces[id] != MemorySpace::Local)
      text += fmt::format(" memory_space {}", keyword_of(memory_space_keywords, kernel_.memory_spaces[id]));
    if (std::find(kernel_.in_blocks.begin(), kernel_.in_blocks.end(), id) != kernel_.in_blocks.end()) text += " in_blocks";
    return text;
  }

  TextWriter& writer_;
  const Kernel& kernel_;
  const OriginTable* origins_;  // null for the canonical form
};

class Printer {
 public:
  explicit Printer(const Plan& plan) : plan_(plan) {
    CXXI_CHECK(!plan.devices.empty(), "a plan names no device");
    device_ = plan.devices.front();
  }

  std::string print() {
    std::vector<std::string> inputs;
    for (const Input& input : plan_.inputs) inputs.push_back(input_text(input));
    writer_.line("plan @{} for {}{} ({}){} {{", plan_.name, plan_.target, devices_text(), fmt::join(inputs, ", "), print_where(plan_.assumptions));
    writer_.indent();
    for (const SymbolSource& source : plan_.symbols)
      writer_.line("symbol {} = input {}{}", source.symbol, source.input, source.dim < 0 ? "" : fmt::format(" dim {}", source.dim));
    for (const Arena& arena : plan_.arenas) writer_.line("arena{} ({})", on(arena.device), sym::to_string(arena.bytes));
    print_eager_peaks(writer_, plan_.eager_peaks, device_);
    for (Device device : plan_.devices)
      if (const MemoryProfile memory = profile_memory(plan_, device); memory.peak > 0)
        writer_.line("; holds at most {} bytes{}, {} at least", memory.peak, on(device), memory.lower_bound);
    for (const Buffer& buffer : plan_.buffers)
      if (buffer.kind != Buffer::Kind::Input) writer_.line("buffer {}", buffer_text(buffer));
    for (const Kernel& kernel : plan_.kernels) KernelPrinter(writer_, kernel, &plan_.origins).print();
    for (const Step& step : plan_.steps) std::visit([this](const auto& kind) { print_step(kind); }, step);
    writer_.raw_line(print_return(plan_.outputs, [this](BufferId id) { return name(id); }));
    writer_.dedent();
    writer_.line("}}");
    return std::move(writer_).take();
  }

 private:
  // Nothing where the only device is the CPU.
  std::string devices_text() const {
    if (plan_.devices == std::vector<Device>{Device()}) return "";
    std::vector<std::string> names;
    for (Device device : plan_.devices) names.push_back(to_string(device));
    return fmt::format(" on {}", fmt::join(names, ", "));
  }
  std::string on(Device device) const { return device == device_ ? "" : " on " + to_string(device); }
  std::string name(BufferId id) const { return plan_.buffers.contains(id) ? "@" + plan_.buffers[id].name : "@?"; }

  std::string buffer_text(const Buffer& buffer) const {
    std::string text = fmt::format("@{}: {}{}", buffer.name, to_string(buffer.dtype), print_expr_list(buffer.sizes));
    if (buffer.strides != row_major_strides(buffer.sizes)) text += " strides " + print_expr_list(buffer.strides);
    text += on(buffer.device);
    text += fmt::format(" bytes ({})", sym::to_string(buffer.bytes));
    if (buffer.kind != Buffer::Kind::Input) text += fmt::format(" {}", keyword_of(buffer_keywords, buffer.kind));
    if (buffer.kind == Buffer::Kind::Arena)
      text += fmt::format("{} at ({})", buffer.arena == 0 ? "" : fmt::format(" {}", buffer.arena), sym::to_string(buffer.arena_offset));
    if (buffer.kind == Buffer::Kind::Slice) text += fmt::format(" of {} at ({})", name(buffer.base), sym::to_string(buffer.base_offset));
    return text;
  }

  std::string input_text(const Input& input) const {
    if (input.kind != Input::Kind::Tensor) return print_input(input, "", "");
    CXXI_CHECK(plan_.buffers.contains(input.buffer), "an input names no buffer");
    const Buffer& buffer = plan_.buffers[input.buffer];
    return print_input(input, buffer_text(buffer), buffer.name);
  }

  std::string step_text(const Allocate& allocate) const { return "allocate " + name(allocate.buffer); }
  std::string step_text(const Free& free) const { return "free " + name(free.buffer); }
  std::string step_text(const Reuse& reuse) const { return fmt::format("reuse {} as {}", name(reuse.from), name(reuse.to)); }
  std::string kernel_name(KernelId id) const { return plan_.kernels.contains(id) ? plan_.kernels[id].name : "?"; }
  std::string arguments_text(const Launch& launch) const {
    std::vector<std::string> args;
    for (BufferId arg : launch.args) args.push_back(name(arg));
    std::string text =
        fmt::format("({}) symbols {} grid {}", fmt::join(args, ", "), print_expr_list(launch.symbol_args), print_expr_list({launch.grid_x, launch.grid_y}));
    for (const Specialization& special : launch.specializations)
      text += fmt::format(" or @{} grid {}{}", kernel_name(special.kernel), print_expr_list({special.grid_x}), print_where(special.when));
    return text + print_origin(plan_.origins, launch.origin);
  }
  std::string step_text(const Launch& launch) const { return fmt::format("launch @{}{}", kernel_name(launch.kernel), arguments_text(launch)); }
  template <class Kind>
  void print_step(const Kind& step) {
    writer_.raw_line(step_text(step));
  }
  void print_step(const GroupedLaunch& group) {
    writer_.line("grouped_launch @{} {{", group.launches.empty() ? "?" : kernel_name(group.launches[0].kernel));
    writer_.indent();
    for (const Launch& launch : group.launches) writer_.raw_line(arguments_text(launch));
    writer_.dedent();
    writer_.line("}}");
  }
  std::string step_text(const ReadScalar& read) const {
    const Buffer* buffer = plan_.buffers.contains(read.from.buffer) ? &plan_.buffers[read.from.buffer] : nullptr;
    const bool whole = buffer && is_whole(read.from, *buffer);
    return fmt::format("read {} = {}{}", read.symbol, whole ? name(read.from.buffer) : print_view(read.from, [this](BufferId id) { return name(id); }),
                       print_origin(plan_.origins, read.origin));
  }
  std::string step_text(const Assert& assertion) const {
    return fmt::format("assert ({}) {}{}", sym::to_string(assertion.condition), quote(assertion.message), print_origin(plan_.origins, assertion.origin));
  }
  std::string step_text(const CallExtern& call) const {
    return print_extern<View>(
               call, [this](BufferId id) { return name(id); }, [this](BufferId id) { return plan_.buffers.contains(id) ? &plan_.buffers[id] : nullptr; }) +
           print_origin(plan_.origins, call.origin);
  }

  const Plan& plan_;
  Device device_;
  TextWriter writer_;
};

}  // namespace

std::string print(const Plan& plan) { return Printer(plan).print(); }

std::string print(const Kernel& kernel) {
  TextWriter writer;
  KernelPrinter(writer, kernel, nullptr).print();
  return std::move(writer).take();
}

}  // namespace cxxinductor::plan
