// Invariants of the plan IR. P1 to P7 and P14 hold for each kernel (verify_kernel.cpp), the others for the plan.
//
//  P1  Names print and are unique: buffers, kernels (C identifiers), symbols.
//  P2  A kernel's region is valid (L1 to L8, L12, L13) over the kernel's parameters and symbols, and on the kernel's device.
//  P3  Each statement has an offset, a kind of access and a memory space; offsets and index_limit use variables and symbols
//      of the kernel.
//  P4  Every variable is in space or in row exactly once, or is the serial variable. Only shapes with rows have row variables. Fields are in range and agree with one another. Tiles and
//      states of columns fit in a block's shared memory, persistent rows of the CPU on a thread's stack. Reductions are over row
//      variables and give values that vary over space (and the serial variable), or are over the serial variable. A matmul has
//      the parts that matmul.h names.
//  P5  Segments compute every statement after its operands, in the order of the body. PerRow segments compute statements that
//      vary over space alone. The result of a reduction is read in a later segment. One segment computes each store, check,
//      reduction and persistent value. Only stores read a reduction over the serial variable, and these are the epilogue.
//  P6  A local value is read in the segment that computes it; row values do not vary over the row; only persistent mappings
//      have persistent values. Shared values are reductions over the serial variable, with one row per block at a time. What is
//      in blocks is a reduction of floats in a loop over rows.
//  P7  Parameters that a kernel loads or updates are declared read, those that it stores written. Parameters by value are of
//      kernels on devices with memory of their own, which load only their first element.
//  P8  Ids of buffers, kernels and inputs are in range; a donated input is a tensor.
//  P9  A launch gives each parameter a buffer of its dtype and device, and each symbol a value; a buffer that is written is
//      one argument only.
//  P10 Standalone buffers are allocated once, before their use; standalone and extern-owned ones are freed at most once, after
//      their last use; every buffer but an input is written before it is read.
//  P11 An arena buffer lies in its arena, on the arena's device, and those of one arena that live at the same time do not
//      overlap, as far as offsets and sizes are constant; outputs are not arena buffers.
//  P12 Every symbol has one source, an input that gives it or a step that defines it; expressions use only these.
//  P13 An extern names its callee; operand references, aliases and mutated operands are in range; results are extern-owned, or
//      allocated and planned. An operand of an opaque op (ir/callees.h) has memory of its own: no arena buffer, no slice.
//  P14 A kernel with write conflicts is sequential, unless it is of threads, which add up by atomics.
//  P15 A reused buffer and the one that takes over its memory are of one dtype, device and count of bytes and of kinds that go
//      together; a reused input is donated.
//  P16 A grouped launch has launches, all of one kernel and over blocks in one direction, whose table fits. Buffers that one of
//      them writes, no other uses. A kernel for grouped launches has no other launches.
//  P17 A slice lies in its base, which is an arena or standalone buffer or a slice of one, of the slice's dtype and device. The
//      slices of a base have as many elements as it has, and it is read after all of them are written.
//  P18 A specialization has the parameters and symbols of the launch's own kernel. Its assumptions follow from its properties
//      and the plan's assumptions, which are about the plan's symbols. Grouped launches have none; grids have one direction.
//  P19 The plan names one device or more, each once, and each buffer, kernel, arena and measured peak is on one of them. The
//      kernels of a device are all of threads, or none is.
//  P20 What a step needs to know is known: by then earlier steps have defined the symbols of its expressions, of its
//      buffers' geometry (for the results of an extern, it may do so itself) and of the arenas that it is the first to
//      use. A size or stride of a result that defines a symbol is that symbol; a value that does is an integer or bool.
#include "ir/plan/verify.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_set>

#include "ir/callees.h"
#include "ir/plan/grouped_launch.h"
#include "ir/plan/symbols.h"
#include "ir/plan/text.h"
#include "ir/plan/verify_kernel.h"
#include "ir/plan/verify_symbols.h"
#include "ir/text_parts.h"
#include "ir/verify_call.h"
#include "support/error.h"

namespace cxxinductor::plan {
namespace {

constexpr size_t never = static_cast<size_t>(-1);

class Verifier {
 public:
  explicit Verifier(const Plan& plan) : plan_(plan) {}

  std::vector<std::string> run() {
    check_names();
    for (const Kernel& kernel : plan_.kernels)
      for (std::string& message : verify_kernel(kernel, &plan_.origins)) messages_.push_back(std::move(message));
    check_ids();
    check_devices();
    if (!messages_.empty()) return std::move(messages_);  // nothing below may index with a bad id
    check_symbols();
    for (const Step& step : plan_.steps) {
      if (const auto* reuse = std::get_if<Reuse>(&step)) check_reuse(*reuse);
      for (const Launch& launch : launches_of(step)) check_launch(launch, std::holds_alternative<GroupedLaunch>(step));
      if (const auto* group = std::get_if<GroupedLaunch>(&step)) check_grouped_launch(*group);
      if (const auto* call = std::get_if<CallExtern>(&step)) check_extern(*call);
      if (const auto* read = std::get_if<ReadScalar>(&step)) check_view_exprs(read->from, "read of " + read->symbol);
      if (const auto* assertion = std::get_if<Assert>(&step)) check_exprs({assertion->condition}, "an assertion");
    }
    for (std::string& message : verify_symbols(plan_)) messages_.push_back(std::move(message));
    check_slices();
    check_liveness();
    check_arena();
    return std::move(messages_);
  }

 private:
  template <class... Args>
  void report(std::string_view invariant, const std::string& place, fmt::format_string<Args...> format, Args&&... args) {
    messages_.push_back(fmt::format("{}: {} {}", invariant, place, fmt::format(format, std::forward<Args>(args)...)));
  }
  std::string where(BufferId id) const { return "@" + plan_.buffers[id].name; }

  void check_names() {
    if (!is_text_name(plan_.name)) report("P1", "the plan", "has the name '{}'", plan_.name);
    if (!is_symbol_name(plan_.target)) report("P1", "the plan", "has the target '{}'", plan_.target);
    std::unordered_set<std::string> names;
    for (const Buffer& buffer : plan_.buffers) {
      if (!is_text_name(buffer.name) || !names.insert(buffer.name).second) report("P1", "@" + buffer.name, "is no name for a buffer or the name of two");
      if (buffer.strides.size() != buffer.sizes.size())
        report("P8", "@" + buffer.name, "has {} sizes and {} strides", buffer.sizes.size(), buffer.strides.size());
    }
    std::unordered_set<std::string> kernels;
    for (const Kernel& kernel : plan_.kernels)
      if (!kernels.insert(kernel.name).second) report("P1", "@" + kernel.name, "is the name of two kernels");
  }

  void check_buffer(BufferId id, const std::string& place) {
    if (!plan_.buffers.contains(id)) report("P8", place, "names no buffer");
  }
  void check_view(const View& view, const std::string& place) {
    check_buffer(view.buffer, place);
    if (view.sizes.size() != view.strides.size()) report("P8", place, "has {} sizes and {} strides", view.sizes.size(), view.strides.size());
  }

  void check_ids() {
    std::set<BufferId> inputs;
    for (const Input& input : plan_.inputs) {
      if (input.kind != Input::Kind::Tensor) {
        if (input.donated) report("P8", "an input", "is donated and not a tensor");
        continue;
      }
      check_buffer(input.buffer, "an input");
      if (plan_.buffers.contains(input.buffer) && plan_.buffers[input.buffer].kind != Buffer::Kind::Input)
        report("P8", where(input.buffer), "is an input and of another kind");
      if (!inputs.insert(input.buffer).second) report("P8", "an input", "is two inputs");
    }
    for (size_t b = 0; b < plan_.buffers.size(); ++b) {
      const Buffer& buffer = plan_.buffers[BufferId(b)];
      if (buffer.kind == Buffer::Kind::Input && !inputs.contains(BufferId(b))) report("P8", where(BufferId(b)), "is of the kind of inputs and none");
      if (buffer.kind == Buffer::Kind::Arena && buffer.arena >= plan_.arenas.size())
        report("P11", where(BufferId(b)), "is in arena {}: expected one of the {} that the plan declares", buffer.arena, plan_.arenas.size());
      if (buffer.kind != Buffer::Kind::Slice) continue;
      BufferId root(b);
      for_each_base(plan_, BufferId(b), [&](BufferId base) { root = base; });
      const Buffer::Kind kind = plan_.buffers[root].kind;
      if (kind != Buffer::Kind::Arena && kind != Buffer::Kind::Standalone) report("P17", where(BufferId(b)), "lies in no buffer that is there to hold it");
    }
    for (const Output& output : plan_.outputs) {
      if (output.kind == Output::Kind::Tensor) check_buffer(output.buffer, "an output");
      if (output.kind == Output::Kind::View) check_view(output.view, "an output");
    }
    for (const Step& step : plan_.steps) {
      if (const auto* allocate = std::get_if<Allocate>(&step)) check_buffer(allocate->buffer, "allocate");
      if (const auto* free = std::get_if<Free>(&step)) check_buffer(free->buffer, "free");
      if (const auto* reuse = std::get_if<Reuse>(&step)) {
        check_buffer(reuse->from, "reuse");
        check_buffer(reuse->to, "reuse");
      }
      for (const Launch& launch : launches_of(step)) {
        if (!plan_.kernels.contains(launch.kernel)) report("P8", "a launch", "names no kernel");
        for (const Specialization& special : launch.specializations)
          if (!plan_.kernels.contains(special.kernel)) report("P8", "a specialization", "names no kernel");
        for (BufferId id : launch.args) check_buffer(id, "a launch");
      }
      if (const auto* call = std::get_if<CallExtern>(&step)) {
        for (const auto& operand : call->operands)
          if (const auto* view = std::get_if<View>(&operand)) check_view(*view, "extern " + call->callee);
        for (BufferId id : call->results) check_buffer(id, "extern " + call->callee);
      }
      if (const auto* read = std::get_if<ReadScalar>(&step)) check_view(read->from, "read of " + read->symbol);
    }
  }

  void check_devices() {
    const std::set<Device> known(plan_.devices.begin(), plan_.devices.end());
    if (known.empty() || known.size() != plan_.devices.size()) report("P19", "the plan", "names no device, or one twice");
    const auto check = [&](Device device, const std::string& place) {
      if (!known.contains(device)) report("P19", place, "is on {}, which is not a device of the plan", to_string(device));
    };
    for (const Buffer& buffer : plan_.buffers) check(buffer.device, "@" + buffer.name);
    std::map<Device, bool> simt;
    for (const Kernel& kernel : plan_.kernels) {
      check(kernel.device, "@" + kernel.name);
      if (simt.emplace(kernel.device, is_simt(kernel.mapping)).first->second != is_simt(kernel.mapping))
        report("P19", "@" + kernel.name, "is {} threads, unlike other kernels on {}", is_simt(kernel.mapping) ? "of" : "not of", to_string(kernel.device));
    }
    for (size_t a = 0; a < plan_.arenas.size(); ++a) check(plan_.arenas[a].device, fmt::format("arena {}", a));
    for (const auto& [device, bytes] : plan_.eager_peaks) check(device, "the peak of eager");
  }

  void check_exprs(const std::vector<sym::Expr>& list, const std::string& place) {
    for (sym::Expr e : list)
      for (sym::Expr symbol : e.free_symbols())
        if (!symbols_.contains(std::string(symbol.name()))) report("P12", place, "uses the unknown symbol {}", symbol.name());
  }
  void check_view_exprs(const View& view, const std::string& place) {
    check_exprs(view.sizes, place);
    check_exprs(view.strides, place);
    check_exprs({view.offset}, place);
  }

  void check_source(const std::string& symbol) {
    if (!is_symbol_name(symbol) || !symbols_.insert(symbol).second) report("P12", symbol, "is no symbol or has two sources");
  }

  void check_symbols() {
    for (const Step& step : plan_.steps)
      for (const std::string& symbol : symbols_defined_by(step)) check_source(symbol);
    for (const SymbolSource& source : plan_.symbols) {
      check_source(source.symbol);
      if (source.input >= plan_.inputs.size()) {
        report("P12", source.symbol, "comes from input {} of {}", source.input, plan_.inputs.size());
        continue;
      }
      const Input& input = plan_.inputs[source.input];
      bool sound = source.dim < 0 ? input.kind == Input::Kind::Symbol
                                  : input.kind == Input::Kind::Tensor && static_cast<size_t>(source.dim) < 2 * plan_.buffers[input.buffer].sizes.size();
      if (!sound) report("P12", source.symbol, "comes from dimension {} of input {}, which has none", source.dim, source.input);
    }
    for (const Buffer& buffer : plan_.buffers) {
      check_exprs(buffer.sizes, "@" + buffer.name);
      check_exprs(buffer.strides, "@" + buffer.name);
      check_exprs({buffer.bytes, buffer.arena_offset, buffer.base_offset}, "@" + buffer.name);
    }
    for (size_t a = 0; a < plan_.arenas.size(); ++a) check_exprs({plan_.arenas[a].bytes}, fmt::format("arena {}", a));
    for (const Output& output : plan_.outputs) {
      if (output.kind == Output::Kind::Symbol) check_exprs({output.symbol}, "an output");
      if (output.kind == Output::Kind::View) check_view_exprs(output.view, "an output");
    }
  }

  void check_launch(const Launch& launch, bool grouped) {
    const Kernel& kernel = plan_.kernels[launch.kernel];
    std::string place = "launch of @" + kernel.name;
    if (grouped != (kernel.max_grouped > 1)) report("P16", place, "is {} grouped launch, the kernel is for {}", grouped ? "in a" : "in no", kernel.max_grouped);
    check_exprs(launch.symbol_args, place);
    check_exprs({launch.grid_x, launch.grid_y}, place);
    if (launch.symbol_args.size() != kernel.symbols.size())
      report("P9", place, "gives {} symbols, the kernel has {}", launch.symbol_args.size(), kernel.symbols.size());
    if (launch.args.size() != kernel.params.size()) {
      report("P9", place, "gives {} buffers, the kernel has {}", launch.args.size(), kernel.params.size());
      return;
    }
    for (size_t i = 0; i < launch.args.size(); ++i) {
      const Buffer& buffer = plan_.buffers[launch.args[i]];
      const Device device = kernel.params[i].by_value ? Device() : kernel.device;
      if (buffer.dtype != kernel.params[i].dtype || buffer.device != device)
        report("P9", place, "gives {} ({} on {}) for parameter {}, which is {} on {}", where(launch.args[i]), to_string(buffer.dtype), to_string(buffer.device),
               i, to_string(kernel.params[i].dtype), to_string(device));
      for (size_t j = 0; j < i; ++j)
        if (share_elements(plan_, launch.args[i], launch.args[j]) && (kernel.params[i].written || kernel.params[j].written))
          report("P9", place, "gives {} twice and writes it", where(launch.args[i]));
    }
    if (!launch.specializations.empty() && (grouped || !launch.grid_y.is_constant(1)))
      report("P18", place, "has specializations and is in a grouped launch, or its grid has two directions");
    for (const Specialization& special : launch.specializations) check_specialization(launch, special, place);
  }

  void check_specialization(const Launch& launch, const Specialization& special, const std::string& place) {
    const Kernel &own = plan_.kernels[launch.kernel], &kernel = plan_.kernels[special.kernel];
    check_exprs({special.grid_x}, place);
    const auto same_use = [](const Param& a, const Param& b) {
      return a.dtype == b.dtype && a.read == b.read && a.written == b.written && a.by_value == b.by_value;
    };
    if (kernel.device != own.device || kernel.symbols != own.symbols || kernel.max_grouped != 1 ||
        !std::equal(kernel.params.begin(), kernel.params.end(), own.params.begin(), own.params.end(), same_use)) {
      report("P18", place, "has the specialization @{}, which takes other arguments", kernel.name);
      return;
    }
    const auto known = [&](const std::string& symbol) {
      if (!symbols_.contains(symbol)) report("P18", place, "asks for properties of {}, no symbol of the plan", symbol);
    };
    for (const auto& [symbol, range] : special.when.ranges()) known(symbol);
    for (const auto& [symbol, divisor] : special.when.divisors()) known(symbol);
    const sym::Assumptions assumptions = joined(plan_.assumptions, special.when);
    for (size_t i = 0; i < kernel.symbols.size(); ++i) {
      const std::string& symbol = kernel.symbols[i];
      const sym::Interval needed = kernel.assumptions.range(symbol), given = bounds(launch.symbol_args[i], assumptions);
      if (given.low < needed.low || given.high > needed.high || !prove_divides(kernel.assumptions.divisor(symbol), launch.symbol_args[i], assumptions))
        report("P18", place, "has the specialization @{} for more than is known of {}", kernel.name, symbol);
    }
  }

  void check_reuse(const Reuse& reuse) {
    const Buffer &from = plan_.buffers[reuse.from], &to = plan_.buffers[reuse.to];
    const std::string place = fmt::format("reuse of {} as {}:", where(reuse.from), where(reuse.to));
    if (from.dtype != to.dtype || from.device != to.device || from.bytes != to.bytes)
      report("P15", place, "expected equal dtypes, devices and bytes, found {} on {} of {} bytes and {} on {} of {}", to_string(from.dtype),
             to_string(from.device), to_string(from.bytes), to_string(to.dtype), to_string(to.device), to_string(to.bytes));
    const auto expect = [&](bool holds, std::string_view expected) {
      if (!holds) report("P15", place, "expected {}, found {} and {}", expected, describe(reuse.from), describe(reuse.to));
    };
    switch (from.kind) {
      case Buffer::Kind::Arena:
        return expect(to.kind == Buffer::Kind::Arena && from.arena == to.arena && from.arena_offset == to.arena_offset,
                      "two buffers at one offset of an arena");
      case Buffer::Kind::Standalone:
      case Buffer::Kind::ExternOwned:
        return expect(to.kind == Buffer::Kind::Standalone, "a standalone buffer to take over memory of its own");
      case Buffer::Kind::Slice:
        return expect(false, "a buffer with memory of its own to be reused");
      case Buffer::Kind::Input:
        return expect(to.kind == Buffer::Kind::Standalone && is_donated(reuse.from), "a donated input and a standalone buffer");
    }
  }
  // With its kind and place, for messages.
  std::string describe(BufferId id) const {
    const Buffer& buffer = plan_.buffers[id];
    switch (buffer.kind) {
      case Buffer::Kind::Arena:
        return fmt::format("{} at ({}) of arena {}", where(id), to_string(buffer.arena_offset), buffer.arena);
      case Buffer::Kind::Standalone:
        return fmt::format("{}, standalone", where(id));
      case Buffer::Kind::ExternOwned:
        return fmt::format("{}, extern_owned", where(id));
      case Buffer::Kind::Slice:
        return fmt::format("{}, a slice of {}", where(id), where(buffer.base));
      case Buffer::Kind::Input:
        return fmt::format("{}, an input that is {}donated", where(id), is_donated(id) ? "" : "not ");
    }
    return "";
  }
  bool is_donated(BufferId id) const {
    return std::ranges::any_of(plan_.inputs, [&](const Input& input) { return input.kind == Input::Kind::Tensor && input.buffer == id && input.donated; });
  }

  void check_grouped_launch(const GroupedLaunch& group) {
    if (group.launches.empty()) {
      report("P16", "a grouped launch", "has no launches");
      return;
    }
    const Kernel& kernel = plan_.kernels[group.launches[0].kernel];
    const std::string place = "grouped launch of @" + kernel.name;
    if (!traits(kernel.mapping).grouped) report("P16", place, "is of a template, which takes no table");
    if (static_cast<size_t>(kernel.max_grouped) > grouped_capacity(kernel))
      report("P16", place, "has a table for {} launches, {} fit", kernel.max_grouped, grouped_capacity(kernel));
    std::map<BufferId, std::pair<size_t, bool>> users;  // the first launch that uses it; whether one writes it
    const auto meet = [&](BufferId id, size_t launch, bool writes) {
      auto found = users.find(id);
      if (found != users.end() && found->second.first != launch && (writes || found->second.second))
        report("P16", place, "has launches that share {}, which one writes", where(id));
    };
    for (size_t i = 0; i < group.launches.size(); ++i) {
      const Launch& launch = group.launches[i];
      if (launch.kernel != group.launches[0].kernel) report("P16", place, "launches another kernel, too");
      if (!launch.grid_y.is_constant(1)) report("P16", place, "has a launch over {} rows of blocks", to_string(launch.grid_y));
      for (size_t a = 0; a < std::min(launch.args.size(), kernel.params.size()); ++a) {
        const bool writes = kernel.params[a].written;
        meet(launch.args[a], i, writes);
        for_each_base(plan_, launch.args[a], [&](BufferId base) { meet(base, i, writes); });
        for (const auto& [id, user] : users)
          for_each_base(plan_, id, [&](BufferId base) {
            if (base == launch.args[a]) meet(id, i, writes);
          });
        users.try_emplace(launch.args[a], i, writes).first->second.second |= writes;
      }
    }
  }

  void check_extern(const CallExtern& call) {
    std::string place = "extern " + call.callee;
    for (const auto& operand : call.operands) {
      const auto* view = std::get_if<View>(&operand);
      if (!view) {
        check_exprs({std::get<sym::Expr>(operand)}, place);
        continue;
      }
      check_view_exprs(*view, place);
      const Buffer::Kind kind = plan_.buffers[view->buffer].kind;
      if (is_opaque_callee(call.callee) && (kind == Buffer::Kind::Arena || kind == Buffer::Kind::Slice))
        report("P13", place, "may keep {}, which has no owner", where(view->buffer));
    }
    for (BufferId id : call.results) {
      Buffer::Kind kind = plan_.buffers[id].kind;
      bool planned = kind == Buffer::Kind::Standalone || kind == Buffer::Kind::Arena || kind == Buffer::Kind::Slice;
      if (call.planned_out ? !planned : kind != Buffer::Kind::ExternOwned) report("P13", place, "returns {}, which is of the wrong kind", where(id));
    }
    const auto tensor = [&](size_t operand) { return is_tensor(call, operand); };
    const auto wrong = [&](const std::string& text) { report("P13", place, "{}", text); };
    const auto wrong_name = [&](const std::string& text) { report("P1", place, "{}", text); };
    verify_call(call, call.operands.size(), call.results.size(), tensor, wrong, wrong_name);
  }
  static bool is_tensor(const CallExtern& call, size_t operand) {
    return operand < call.operands.size() && std::holds_alternative<View>(call.operands[operand]);
  }

  // ---- P10: one walk over the steps --------------------------------------------------------------------------------

  struct Life {
    bool allocated = false, freed = false, written = false;
    size_t first = never, last = 0;  // steps that use it
  };

  void use(BufferId id, size_t step, bool reads, bool writes, const std::string& place) {
    if (reads && !is_written(id) && plan_.buffers[id].kind != Buffer::Kind::Input) report("P10", place, "reads {} before it is written", where(id));
    lives_[id.index()].written |= writes;
    hold(id, step, place);
    for_each_base(plan_, id, [&](BufferId base) { hold(base, step, place); });
  }
  void hold(BufferId id, size_t step, const std::string& place) {
    Life& life = lives_[id.index()];
    if (plan_.buffers[id].kind == Buffer::Kind::Standalone && !life.allocated) report("P10", place, "uses {} before it is allocated", where(id));
    if (life.freed) report("P10", place, "uses {} after it was freed", where(id));
    if (life.first == never) life.first = step;
    life.last = step;
  }
  bool is_written(BufferId id) const {
    if (lives_[id.index()].written) return true;
    const auto slices = slices_.find(id);
    return slices != slices_.end() && std::all_of(slices->second.begin(), slices->second.end(), [this](BufferId slice) { return is_written(slice); });
  }

  void visit(const Allocate& allocate, size_t) {
    Life& life = lives_[allocate.buffer.index()];
    if (plan_.buffers[allocate.buffer].kind != Buffer::Kind::Standalone || life.allocated)
      report("P10", where(allocate.buffer), "is allocated twice or not of the own kind");
    life.allocated = true;
  }
  void visit(const Free& free, size_t) {
    Life& life = lives_[free.buffer.index()];
    Buffer::Kind kind = plan_.buffers[free.buffer].kind;
    bool exists = kind == Buffer::Kind::Standalone ? life.allocated : kind == Buffer::Kind::ExternOwned && life.written;
    if (!exists || life.freed) report("P10", where(free.buffer), "is freed twice or not there to be freed");
    life.freed = true;
  }
  void visit(const Reuse& reuse, size_t step) {
    const Life before = lives_[reuse.from.index()];
    use(reuse.from, step, true, false, "reuse");
    Life& from = lives_[reuse.from.index()];
    from.freed = true;
    from.last = before.first == never ? step : before.last;  // its memory is the other's from this step on
    Life& to = lives_[reuse.to.index()];
    if (to.allocated || to.written || to.freed) report("P10", where(reuse.to), "takes memory over and has some or is used already");
    to.allocated = true;
    use(reuse.to, step, false, true, "reuse");
  }
  void visit(const Launch& launch, size_t step) {
    const Kernel& kernel = plan_.kernels[launch.kernel];
    std::string place = "launch of @" + kernel.name;
    for (size_t i = 0; i < std::min(launch.args.size(), kernel.params.size()); ++i)
      use(launch.args[i], step, kernel.params[i].read, kernel.params[i].written, place);
  }
  void visit(const GroupedLaunch& group, size_t step) {
    for (const Launch& launch : group.launches) visit(launch, step);
  }
  void visit(const ReadScalar& read, size_t step) { use(read.from.buffer, step, true, false, "read of " + read.symbol); }
  void visit(const Assert&, size_t) {}
  void visit(const CallExtern& call, size_t step) {
    std::string place = "extern " + call.callee;
    for (const auto& operand : call.operands)
      if (const auto* view = std::get_if<View>(&operand)) use(view->buffer, step, true, false, place);
    for (BufferId id : call.results) {
      if (plan_.buffers[id].kind == Buffer::Kind::ExternOwned && lives_[id.index()].written)
        report("P10", place, "returns {}, which an earlier step returned", where(id));
      use(id, step, false, true, place);
    }
  }

  void check_liveness() {
    lives_.resize(plan_.buffers.size());
    for (size_t s = 0; s < plan_.steps.size(); ++s) std::visit([&](const auto& step) { visit(step, s); }, plan_.steps[s]);
    for (const Output& output : plan_.outputs) {
      if (output.kind != Output::Kind::Tensor && output.kind != Output::Kind::View) continue;
      BufferId id = output.kind == Output::Kind::Tensor ? output.buffer : output.view.buffer;
      use(id, plan_.steps.size(), true, false, "return");
      if (plan_.buffers[id].kind == Buffer::Kind::Arena || plan_.buffers[id].kind == Buffer::Kind::Slice)
        report("P11", where(id), "is an output: expected a buffer that outlives the call, standalone or extern_owned, found {}", describe(id));
    }
  }

  // ---- P17 ---------------------------------------------------------------------------------------------------------

  void check_slices() {
    for (size_t b = 0; b < plan_.buffers.size(); ++b)
      if (plan_.buffers[BufferId(b)].kind == Buffer::Kind::Slice) slices_[plan_.buffers[BufferId(b)].base].push_back(BufferId(b));
    const auto elements = [](const Buffer& buffer) { return sym::product(buffer.sizes); };
    for (const auto& [base, slices] : slices_) {
      const Buffer& whole = plan_.buffers[base];
      sym::Expr sum = 0;
      for (BufferId id : slices) {
        const Buffer& slice = plan_.buffers[id];
        sum = sum + elements(slice);
        if (slice.dtype != whole.dtype || slice.device != whole.device) report("P17", where(id), "is of another dtype or device than {}", where(base));
        const sym::Expr end = slice.base_offset * byte_size(slice.dtype) + slice.bytes;
        if (is_negative(slice.base_offset) || is_negative(whole.bytes - end)) report("P17", where(id), "does not lie in {}", where(base));
      }
      const sym::Expr rest = sym::simplify(elements(whole) - sum, plan_.assumptions);
      if (rest.is_constant() && !rest.is_constant(0)) report("P17", where(base), "has {} elements more than its parts", to_string(rest));
    }
  }
  bool is_negative(sym::Expr e) const { return sym::prove_less(e, 0, plan_.assumptions).value_or(false); }

  // ---- P11 ---------------------------------------------------------------------------------------------------------

  void check_arena() {
    struct Range {
      BufferId id;
      uint32_t arena;
      int64_t begin, end;
    };
    std::vector<Range> ranges;
    for (size_t b = 0; b < plan_.buffers.size(); ++b) {
      BufferId id(b);
      const Buffer& buffer = plan_.buffers[id];
      if (buffer.kind != Buffer::Kind::Arena) continue;
      const Arena& arena = plan_.arenas[buffer.arena];
      if (buffer.device != arena.device)
        report("P11", where(id), "is on {}: expected an arena there, found arena {} on {}", to_string(buffer.device), buffer.arena, to_string(arena.device));
      if (!buffer.arena_offset.is_constant() || !buffer.bytes.is_constant()) continue;
      int64_t begin = buffer.arena_offset.constant(), bytes = buffer.bytes.constant(), end = 0;
      bool overflow = __builtin_add_overflow(begin, bytes, &end);
      if (overflow || begin < 0 || bytes < 0 || (arena.bytes.is_constant() && end > arena.bytes.constant()))
        report("P11", where(id), "has {} bytes from {} on: expected a place in the {} bytes of arena {}", bytes, begin, to_string(arena.bytes), buffer.arena);
      else if (bytes > 0 && lives_[b].first != never)
        ranges.push_back({id, buffer.arena, begin, end});
    }
    // By offset, so that only neighbours that may overlap are compared.
    std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return std::tie(a.arena, a.begin, a.id) < std::tie(b.arena, b.begin, b.id); });
    for (size_t i = 0; i < ranges.size(); ++i)
      for (size_t j = i + 1; j < ranges.size() && ranges[j].arena == ranges[i].arena && ranges[j].begin < ranges[i].end; ++j) {
        const Life& a = lives_[ranges[i].id.index()];
        const Life& b = lives_[ranges[j].id.index()];
        if (a.first <= b.last && b.first <= a.last)
          report("P11", where(ranges[j].id), "takes bytes {} to {} of arena {}: expected none of {} to {}, where {} lies at the same time", ranges[j].begin,
                 ranges[j].end, ranges[j].arena, ranges[i].begin, ranges[i].end, where(ranges[i].id));
      }
  }

  const Plan& plan_;
  std::unordered_set<std::string> symbols_;
  std::vector<Life> lives_;
  std::map<BufferId, std::vector<BufferId>> slices_;  // by base
  std::vector<std::string> messages_;
};

}  // namespace

std::vector<std::string> verify(const Plan& plan) { return Verifier(plan).run(); }

void verify_or_throw(const Plan& plan, std::string_view after) {
  std::vector<std::string> messages = verify(plan);
  if (messages.empty()) return;
  std::string text;
  try {
    text = print(plan);
  } catch (const InternalError& error) {
    text = fmt::format("(cannot be printed: {})", error.what());
  }
  throw_internal("plan verification failed after {}:\n  {}\n{}", after, fmt::join(messages, "\n  "), text);
}

}  // namespace cxxinductor::plan
