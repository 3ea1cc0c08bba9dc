// Invariants of the loops IR. L1 to L8, L12 and L13 hold for each region (verify_region.cpp), the others for the program.
//
//  L1  Ids are in range; a statement's operands precede it and have values; at most 32 variables.
//  L2  Names print and are unique: buffers and regions of a program, variables of a region; a variable is not a symbol.
//  L3  A statement's `vars` is what its operands, coordinates and mask give.
//  L4  Dtypes: a load has its buffer's, a store its value's; ops and sum-like reductions take compute types that their
//      row accepts; masks and conditions are bool; checked indices are integers; opaque dtypes have no statements.
//  L5  An access has one coordinate per dimension.
//  L6  A region loads a buffer that it stores only where it stores it, and earlier (an input updated in place).
//  L7  Expressions use variables of the region, symbols of the program and integer statements.
//  L8  A reduction is over variables of its operand; a projection reads a result that its reduction has.
//  L9  Every buffer but an input is stored by exactly one step, before any step reads or updates it; an input by any
//      number.
//  L10 An extern names its callee; operand references, aliases and mutated operands are in range; views have one stride
//      per dimension.
//  L11 Each input buffer is one tensor input; outputs name buffers; what is donated is a tensor input.
//  L12 A region has at most one serial variable; reductions over it are over no other, and are only stored.
//  L13 An update (a store that leaves the rest of its buffer, combines or has write conflicts) is its region's only store
//      of that buffer; the buffer's dtype can be combined so; with write conflicts, their order runs over all of the
//      store's variables and the region does not load the buffer.
//  L14 A symbol that a call defines is not a symbol of an input. It is defined once and used only by later steps and in
//      the call's results. The size or stride that defines it is the symbol itself; a value is that of the call's one
//      operand.
#include "ir/loops/verify.h"

#include <set>
#include <unordered_set>

#include "ir/loops/symbols.h"
#include "ir/loops/text.h"
#include "ir/loops/verify_region.h"
#include "ir/text_parts.h"
#include "ir/verify_call.h"
#include "support/error.h"

namespace cxxinductor::loops {
namespace {

class Verifier {
 public:
  explicit Verifier(const Program& program) : program_(program) {}

  std::vector<std::string> run() {
    check_signature();
    if (!messages_.empty()) return std::move(messages_);
    check_symbols();
    for (const Step& step : program_.steps) {
      if (const auto* region = std::get_if<Region>(&step))
        check_region(*region);
      else
        check_extern(std::get<ExternCall>(step));
    }
    if (!messages_.empty()) return std::move(messages_);
    check_dataflow();
    check_definitions();
    return std::move(messages_);
  }

 private:
  template <class... Args>
  void report(std::string_view invariant, const std::string& place, fmt::format_string<Args...> format, Args&&... args) {
    messages_.push_back(fmt::format("{}: {} {}", invariant, place, fmt::format(format, std::forward<Args>(args)...)));
  }
  std::string where(BufferId id) const { return "@" + program_.buffers[id].name; }

  void check_signature() {
    if (!is_text_name(program_.name)) report("L2", "the program", "has the name '{}'", program_.name);
    std::unordered_set<std::string> names;
    for (const Buffer& buffer : program_.buffers) {
      if (!is_text_name(buffer.name)) report("L2", "@" + buffer.name, "has a name that does not print");
      if (!names.insert(buffer.name).second) report("L2", "@" + buffer.name, "is the name of two buffers");
      if (buffer.strides.size() != buffer.sizes.size())
        report("L5", "@" + buffer.name, "has {} sizes and {} strides", buffer.sizes.size(), buffer.strides.size());
    }
    std::set<BufferId> inputs;
    for (const ProgramInput& input : program_.inputs) {
      if (input.kind == ProgramInput::Kind::Symbol && !is_symbol_name(input.symbol)) report("L2", "an input", "has the symbol '{}'", input.symbol);
      if (input.kind != ProgramInput::Kind::Tensor) {
        if (input.donated) report("L11", "an input", "is donated and not a tensor");
        continue;
      }
      if (!program_.buffers.contains(input.buffer))
        report("L11", "an input", "names no buffer");
      else if (program_.buffers[input.buffer].role != Buffer::Role::Input)
        report("L11", where(input.buffer), "is an input and has another role");
      else if (!inputs.insert(input.buffer).second)
        report("L11", where(input.buffer), "is two inputs");
    }
    for (size_t b = 0; b < program_.buffers.size(); ++b)
      if (program_.buffers[BufferId(b)].role == Buffer::Role::Input && !inputs.contains(BufferId(b)))
        report("L11", where(BufferId(b)), "has the role of an input and is none");
    for (const ProgramOutput& output : program_.outputs) {
      if (output.kind == ProgramOutput::Kind::Tensor && !program_.buffers.contains(output.buffer)) report("L11", "an output", "names no buffer");
      if (output.kind == ProgramOutput::Kind::View) check_view(output.view, "an output");
    }
  }

  void check_view(const View& view, const std::string& place) {
    if (!program_.buffers.contains(view.buffer)) report("L11", place, "names no buffer");
    if (view.sizes.size() != view.strides.size()) report("L10", place, "has {} sizes and {} strides", view.sizes.size(), view.strides.size());
  }

  void declare(const Buffer& buffer) {
    for (const auto* list : {&buffer.sizes, &buffer.strides})
      for (sym::Expr e : *list)
        for (sym::Expr symbol : e.free_symbols())
          if (is_symbol_name(symbol.name())) context_.symbols.insert(std::string(symbol.name()));
  }
  void check_exprs(const std::vector<sym::Expr>& list, const std::string& place) {
    for (sym::Expr e : list)
      for (sym::Expr symbol : e.free_symbols())
        if (!context_.symbols.contains(std::string(symbol.name()))) report("L7", place, "uses the unknown symbol {}", symbol.name());
  }
  void check_view_exprs(const View& view, const std::string& place) {
    check_exprs(view.sizes, place);
    check_exprs(view.strides, place);
    check_exprs({view.offset}, place);
  }

  void check_symbols() {
    for (const auto& [symbol, range] : program_.assumptions.ranges()) context_.symbols.insert(symbol);
    for (const auto& [symbol, divisor] : program_.assumptions.divisors()) context_.symbols.insert(symbol);
    for (const ProgramInput& input : program_.inputs) {
      if (input.kind == ProgramInput::Kind::Symbol) context_.symbols.insert(input.symbol);
      if (input.kind == ProgramInput::Kind::Tensor) declare(program_.buffers[input.buffer]);
    }
    for (const auto& [symbol, step] : find_definers(program_)) context_.symbols.insert(symbol);
    for (const Buffer& buffer : program_.buffers) {
      check_exprs(buffer.sizes, "@" + buffer.name);
      check_exprs(buffer.strides, "@" + buffer.name);
      context_.buffers.push_back({buffer.dtype, buffer.sizes.size(), buffer.name});
    }
    for (const ProgramOutput& output : program_.outputs) {
      if (output.kind == ProgramOutput::Kind::Symbol) check_exprs({output.symbol}, "an output");
      if (output.kind == ProgramOutput::Kind::View) check_view_exprs(output.view, "an output");
    }
    context_.origins = &program_.origins;
  }

  void check_region(const Region& region) {
    if (!region_names_.insert(region.name).second) report("L2", "@" + region.name, "is the name of two regions");
    for (std::string& message : verify_region(region, context_)) messages_.push_back(std::move(message));
  }

  void check_extern(const ExternCall& call) {
    std::string place = fmt::format("extern {}", call.callee);
    for (const auto& operand : call.operands) {
      if (const auto* view = std::get_if<View>(&operand)) {
        check_view(*view, place);
        check_view_exprs(*view, place);
      } else {
        check_exprs({std::get<sym::Expr>(operand)}, place);
      }
    }
    for (BufferId result : call.results)
      if (!program_.buffers.contains(result)) report("L1", place, "has a result that does not exist");
    const auto tensor = [&](size_t operand) { return is_tensor(call, operand); };
    const auto wrong = [&](const std::string& text) { report("L10", place, "{}", text); };
    const auto wrong_name = [&](const std::string& text) { report("L2", place, "{}", text); };
    verify_call(call, call.operands.size(), call.results.size(), tensor, wrong, wrong_name);
  }
  static bool is_tensor(const ExternCall& call, size_t operand) {
    return operand < call.operands.size() && std::holds_alternative<View>(call.operands[operand]);
  }

  void check_dataflow() {
    std::vector<int> stores(program_.buffers.size(), 0);
    auto read = [&](BufferId id, const std::string& place) {
      if (program_.buffers[id].role != Buffer::Role::Input && stores[id.index()] == 0) report("L9", place, "reads {} before it is stored", where(id));
    };
    auto store = [&](BufferId id, const std::string& place) {
      if (++stores[id.index()] == 2 && program_.buffers[id].role != Buffer::Role::Input)
        report("L9", place, "stores {}, which an earlier step stores", where(id));
    };
    for (const Step& step : program_.steps) {
      if (const auto* region = std::get_if<Region>(&step)) {
        std::string place = "region @" + region->name;
        std::set<BufferId> stored;
        for (const Access& access : accesses(*region)) {
          const auto* writes = region->body[access.stmt].as<Store>();
          if (writes && !writes->update)
            stored.insert(access.buffer);
          else
            read(access.buffer, place);
        }
        for (BufferId id : stored) store(id, place);
        continue;
      }
      const auto& call = std::get<ExternCall>(step);
      std::string place = fmt::format("extern {}", call.callee);
      for (const auto& operand : call.operands)
        if (const auto* view = std::get_if<View>(&operand)) read(view->buffer, place);
      for (BufferId id : call.results) {
        if (program_.buffers[id].role == Buffer::Role::Input) report("L9", place, "returns into the input {}", where(id));
        store(id, place);
      }
    }
    for (const ProgramOutput& output : program_.outputs) {
      if (output.kind == ProgramOutput::Kind::Tensor) read(output.buffer, "an output");
      if (output.kind == ProgramOutput::Kind::View) read(output.view.buffer, "an output");
    }
  }

  void check_definitions() {
    const Definers definers = find_definers(program_);
    if (definers.empty()) return;
    const auto defined = [&](std::string_view symbol) { return definers.contains(symbol); };
    for (const ProgramInput& input : program_.inputs) {
      const Buffer* buffer = input.kind == ProgramInput::Kind::Tensor ? &program_.buffers[input.buffer] : nullptr;
      bool found = input.kind == ProgramInput::Kind::Symbol && defined(input.symbol);
      for (const auto* list : {buffer ? &buffer->sizes : nullptr, buffer ? &buffer->strides : nullptr})
        for (sym::Expr e : list ? *list : std::vector<sym::Expr>())
          for (sym::Expr symbol : e.free_symbols()) found = found || defined(symbol.name());
      if (found) report("L14", "an input", "has a symbol that a call defines");
    }
    std::set<std::string, std::less<>> known;
    for (const Step& step : program_.steps) {
      const auto* call = std::get_if<ExternCall>(&step);
      const std::string place = call ? "extern " + call->callee : "region @" + std::get<Region>(step).name;
      if (call)
        for (const Definition& definition : call->defines) {
          if (!known.insert(definition.symbol).second) report("L14", place, "defines {}, which is defined before", definition.symbol);
          check_definition(definition, *call, place);
        }
      for (const std::string& symbol : used_symbols(program_, step, definers))
        if (!known.contains(symbol)) report("L14", place, "uses {} before it is defined", symbol);
    }
  }
  void check_definition(const Definition& definition, const ExternCall& call, const std::string& place) {
    if (!is_symbol_name(definition.symbol)) report("L2", place, "defines the symbol '{}'", definition.symbol);
    if (definition.result < 0) {
      if (call.operands.size() != 1 || !is_tensor(call, 0) || !call.results.empty() || call.defines.size() != 1)
        report("L14", place, "defines {} as a value and is no call on one tensor", definition.symbol);
      return;
    }
    const auto result = static_cast<size_t>(definition.result), dim = static_cast<size_t>(definition.dim);
    const Buffer* buffer = result < call.results.size() ? &program_.buffers[call.results[result]] : nullptr;
    const size_t rank = buffer ? buffer->sizes.size() : 0;
    if (dim >= 2 * rank || (dim < rank ? buffer->sizes[dim] : buffer->strides[dim - rank]) != sym::Expr::symbol(definition.symbol))
      report("L14", place, "defines {} by what is not that symbol", definition.symbol);
  }

  const Program& program_;
  RegionContext context_;
  std::unordered_set<std::string> region_names_;
  std::vector<std::string> messages_;
};

}  // namespace

std::vector<std::string> verify(const Program& program) { return Verifier(program).run(); }

void verify_or_throw(const Program& program, std::string_view after) {
  std::vector<std::string> messages = verify(program);
  if (messages.empty()) return;
  std::string text;
  try {
    text = print(program);
  } catch (const InternalError& error) {
    text = fmt::format("(cannot be printed: {})", error.what());
  }
  throw_internal("program verification failed after {}:\n  {}\n{}", after, fmt::join(messages, "\n  "), text);
}

}  // namespace cxxinductor::loops
