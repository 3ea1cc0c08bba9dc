#include "ir/plan/verify_symbols.h"

#include <fmt/format.h>

#include <set>

#include "ir/plan/memory.h"
#include "ir/plan/symbols.h"

namespace cxxinductor::plan {
namespace {

class SymbolVerifier {
 public:
  explicit SymbolVerifier(const Plan& plan) : plan_(plan), times_(find_definition_times(plan)) {}

  std::vector<std::string> run() {
    if (times_.empty()) return {};
    for (const Input& input : plan_.inputs)
      if (input.kind == Input::Kind::Tensor) need_buffer(input.buffer, "an input");
    const std::vector<std::vector<uint32_t>> arenas = arenas_by_first_use(plan_);
    for (size_t s = 0; s < plan_.steps.size(); ++s) visit(plan_.steps[s], arenas[s], fmt::format("step {}", s));
    return std::move(messages_);
  }

 private:
  template <class... Args>
  void report(const std::string& place, fmt::format_string<Args...> format, Args&&... args) {
    messages_.push_back(fmt::format("P20: {} {}", place, fmt::format(format, std::forward<Args>(args)...)));
  }

  void visit(const Step& step, const std::vector<uint32_t>& arenas, const std::string& place) {
    plan::for_each_expression(step, [&](sym::Expr e) { need(e, place); });
    for (uint32_t arena : arenas) need(plan_.arenas[arena].bytes, place);
    if (const auto* call = std::get_if<CallExtern>(&step)) check_definitions(*call, place);
    if (const auto* read = std::get_if<ReadScalar>(&step); read && !may_be_read(read->from.dtype))
      report(place, "reads {} off a tensor of {}", read->symbol, to_string(read->from.dtype));
    for (std::string& symbol : symbols_defined_by(step)) known_.insert(std::move(symbol));
    for_each_buffer(step, [&](BufferId id) { need_buffer(id, place); });
  }

  static bool may_be_read(DType dtype) { return dtype == DType::Bool || is_integer(dtype); }

  void check_definitions(const CallExtern& call, const std::string& place) {
    for (const Definition& definition : call.defines) {
      const auto result = static_cast<size_t>(definition.result), dim = static_cast<size_t>(definition.dim);
      const bool there = definition.result >= 0 && result < call.results.size() && !call.planned_out;
      const Buffer* buffer = there ? &plan_.buffers[call.results[result]] : nullptr;
      const size_t rank = buffer ? buffer->sizes.size() : 0;
      if (dim >= 2 * rank || (dim < rank ? buffer->sizes[dim] : buffer->strides[dim - rank]) != sym::Expr::symbol(definition.symbol))
        report(place, "defines {} by what is not that symbol", definition.symbol);
    }
  }

  void need(sym::Expr e, const std::string& place) {
    for (sym::Expr symbol : e.free_symbols())
      if (times_.contains(symbol.name()) && !known_.contains(symbol.name())) report(place, "uses {} before it is defined", symbol.name());
  }
  void need_buffer(BufferId id, const std::string& place) {
    const auto need_one = [&](BufferId buffer) { plan::for_each_expression(plan_.buffers[buffer], [&](sym::Expr e) { need(e, place); }); };
    need_one(id);
    for_each_base(plan_, id, need_one);
  }

  const Plan& plan_;
  DefinitionTimes times_;
  std::set<std::string, std::less<>> known_;
  std::vector<std::string> messages_;
};

}  // namespace

std::vector<std::string> verify_symbols(const Plan& plan) { return SymbolVerifier(plan).run(); }

}  // namespace cxxinductor::plan
