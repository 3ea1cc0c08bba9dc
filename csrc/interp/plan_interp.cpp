// Plans: buffers in the arena and allocations that the plan says, kernels by their segments and element offsets. So a
// wrong stride, an arena slot that is used twice, a value read in a segment that does not have it, a grid too small or a
// buffer freed too early give wrong values or an error here.
#include <algorithm>
#include <map>

#include "interp/calls.h"
#include "interp/kernel_interp.h"
#include "ir/plan/memory.h"
#include "ir/plan/symbols.h"
#include "sym/integer.h"

namespace cxxinductor::interp {
namespace {

class PlanRun {
 public:
  PlanRun(const plan::Plan& plan, const Arguments& arguments, const ExternHandler& externs)
      : plan_(plan), symbols_(arguments.symbols), externs_(externs), written_(plan.buffers.size(), false) {
    check_symbols(arguments);
    buffers_.resize(plan.buffers.size());
    made_.resize(plan.buffers.size(), false);
    make_windows();
    bind_inputs(plan, arguments, buffers_);
  }

  std::vector<Tensor> run() {
    const std::vector<std::vector<uint32_t>> arenas = plan::arenas_by_first_use(plan_);
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      make_windows();
      for (uint32_t arena : arenas[s]) take_arena(arena);
      std::visit([&](const auto& kind) { execute(kind); }, plan_.steps[s]);
    }
    std::vector<Tensor> results;
    for (const plan::Output& output : plan_.outputs) results.push_back(read_output(output, buffers_, symbols_));
    append_mutated_inputs(plan_, written_, buffers_, results);
    return results;
  }

 private:
  // Symbols that the plan reads off tensor arguments must be what the caller says.
  void check_symbols(const Arguments& arguments) const {
    std::vector<const Tensor*> tensors;  // null for inputs that are none
    size_t next = 0;
    for (const plan::Input& input : plan_.inputs) {
      const bool is_tensor = input.kind == plan::Input::Kind::Tensor && next < arguments.tensors.size();
      tensors.push_back(is_tensor ? &arguments.tensors[next++] : nullptr);
    }
    for (const plan::SymbolSource& source : plan_.symbols) {
      const Tensor* tensor = tensors.at(source.input);
      if (!tensor || source.dim < 0 || source.dim >= static_cast<int>(tensor->sizes.size())) continue;
      const int64_t found = tensor->sizes[static_cast<size_t>(source.dim)];
      const int64_t given = evaluate(sym::Expr::symbol(source.symbol), arguments.symbols);
      CXXI_CHECK(found == given, "symbol {} is {}, but dimension {} of input {} is {}", source.symbol, given, source.dim, source.input, found);
    }
  }

  MemRef& buffer(plan::BufferId id) { return buffers_[id.index()]; }

  // Of the buffers whose geometry is known by now.
  void make_windows() {
    for (size_t b = 0; b < buffers_.size(); ++b) {
      const plan::Buffer& declared = plan_.buffers[plan::BufferId(b)];
      bool known = !made_[b];
      plan::for_each_expression(declared, [&](sym::Expr e) { known = known && are_known({e}, symbols_); });
      if (!known) continue;
      made_[b] = true;
      MemRef& memref = buffers_[b];
      memref = {nullptr, declared.dtype, 0, evaluate(declared.sizes, symbols_), evaluate(declared.strides, symbols_)};
      const int64_t bytes = evaluate(declared.bytes, symbols_), needed = span_of(memref) * byte_size(declared.dtype);
      CXXI_CHECK(bytes >= needed, "buffer {} has {} bytes and needs {}", declared.name, bytes, needed);
      plan::BufferId root(b);
      plan::for_each_base(plan_, root, [&](plan::BufferId base) {
        memref.byte_offset += evaluate(plan_.buffers[root].base_offset, symbols_) * byte_size(declared.dtype);
        root = base;
      });
      if (root.index() != b) slices_[root].push_back(b);
    }
  }

  // byte_offset of a part: in the root's memory, to which the root's own place is added once it is known.
  void take_arena(uint32_t number) {
    const auto arena = allocate(fmt::format("{}'s arena {}", plan_.name, number), evaluate(plan_.arenas[number].bytes, symbols_));
    for (size_t b = 0; b < plan_.buffers.size(); ++b) {
      const plan::Buffer& declared = plan_.buffers[plan::BufferId(b)];
      if (declared.kind != plan::Buffer::Kind::Arena || declared.arena != number) continue;
      buffers_[b].storage = arena;
      buffers_[b].byte_offset = evaluate(declared.arena_offset, symbols_);
      const auto slices = slices_.find(plan::BufferId(b));
      if (slices == slices_.end()) continue;
      for (size_t slice : slices->second) {
        buffers_[slice].storage = arena;
        buffers_[slice].byte_offset += buffers_[b].byte_offset;
      }
    }
  }

  void execute(const plan::Allocate& step) {
    allocate(buffer(step.buffer), plan_.buffers[step.buffer].name);
    share_with_slices(step.buffer);
  }
  void execute(const plan::Free& step) {
    buffer(step.buffer).storage = nullptr;
    share_with_slices(step.buffer);
  }
  void share_with_slices(plan::BufferId id) {
    if (const auto found = slices_.find(id); found != slices_.end())
      for (size_t slice : found->second) buffers_[slice].storage = buffer(id).storage;
  }

  void execute(const plan::Reuse& step) {
    MemRef &from = buffer(step.from), &to = buffer(step.to);
    CXXI_CHECK(from.storage, "{} is reused and not there", plan_.buffers[step.from].name);
    to.storage = from.storage;
    to.byte_offset = from.byte_offset;
    if (plan_.buffers[step.from].kind != plan::Buffer::Kind::Input) from.storage = nullptr;
  }

  void execute(const plan::CallExtern& call) {
    for (uint32_t operand : call.mutated_operands) written_[std::get<plan::View>(call.operands[operand]).buffer.index()] = true;
    call_extern(call, buffers_, plan_.assumptions, symbols_, externs_, [&](plan::BufferId result, const Tensor& tensor) {
      make_windows();
      const plan::Buffer& declared = plan_.buffers[result];
      check_argument(tensor, fmt::format("{} (result of {})", declared.name, call.callee), declared.dtype, buffer(result).sizes);
      if (declared.kind == plan::Buffer::Kind::ExternOwned) allocate(buffer(result), declared.name);
      write_tensor(buffer(result), tensor);
    });
  }

  void execute(const plan::ReadScalar& read) {
    const Tensor tensor = read_tensor(memref_of(read.from, buffer(read.from.buffer), symbols_));
    define(read.symbol, plan_.assumptions, cast(tensor.elements.at(0), DType::I64).integer(), symbols_);
  }
  void execute(const plan::Assert& assertion) const {
    if (evaluate(assertion.condition, symbols_) == 0) throw FailedAssertion(assertion.message);
  }

  bool holds(const sym::Assumptions& assumptions) const {
    const auto value = [&](const std::string& symbol) { return evaluate(sym::Expr::symbol(symbol), symbols_); };
    return std::all_of(assumptions.ranges().begin(), assumptions.ranges().end(),
                       [&](const auto& entry) { return entry.second.low <= value(entry.first) && value(entry.first) <= entry.second.high; }) &&
           std::all_of(assumptions.divisors().begin(), assumptions.divisors().end(), [&](const auto& entry) { return value(entry.first) % entry.second == 0; });
  }

  void execute(const plan::Launch& launch) {
    for (const plan::Specialization& special : launch.specializations)
      if (holds(special.when)) return execute(plan::specialized(launch, special));
    const plan::Kernel& kernel = plan_.kernels[launch.kernel];
    CXXI_CHECK(launch.args.size() == kernel.params.size() && launch.symbol_args.size() == kernel.symbols.size(), "launch of {} with {} buffers and {} symbols",
               kernel.name, launch.args.size(), launch.symbol_args.size());
    Symbols symbols;
    for (size_t i = 0; i < kernel.symbols.size(); ++i) symbols[kernel.symbols[i]] = evaluate(launch.symbol_args[i], symbols_);
    const int64_t expected = evaluate(units(kernel.mapping, kernel.region), symbols);
    const int64_t grid = evaluate(launch.grid_x, symbols_) * evaluate(launch.grid_y, symbols_);
    CXXI_CHECK(grid == expected, "launch of {} over {} units, its mapping needs {}", kernel.name, grid, expected);
    RegionMemory memory;
    memory.offsets = &kernel.offsets;
    for (size_t i = 0; i < launch.args.size(); ++i) {
      MemRef flat = buffer(launch.args[i]);
      flat.sizes = {span_of(flat)};
      flat.strides = {1};
      memory.memrefs.push_back(std::move(flat));
      if (kernel.params[i].written) written_[launch.args[i].index()] = true;
    }
    run_kernel(kernel, symbols, memory);
  }

  void execute(const plan::GroupedLaunch& group) {
    for (const plan::Launch& launch : group.launches) execute(launch);
  }

  const plan::Plan& plan_;
  Symbols symbols_;  // those that steps have defined so far, too
  const ExternHandler& externs_;
  std::vector<MemRef> buffers_;
  std::vector<bool> made_;                                // by buffer: it has its window
  std::map<plan::BufferId, std::vector<size_t>> slices_;  // by the buffer whose memory they lie in
  std::vector<bool> written_;
};

}  // namespace

std::vector<Tensor> run(const plan::Plan& plan, const Arguments& arguments, const ExternHandler& externs) { return PlanRun(plan, arguments, externs).run(); }

}  // namespace cxxinductor::interp
