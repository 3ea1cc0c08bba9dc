#include "ir/registered_ops.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>

#include "ir/scalar_statements.h"
#include "support/error.h"
#include "support/error_context.h"
#include "support/fork_locks.h"

namespace cxxinductor {
namespace {

// Rows that are only added. Reading takes no lock.
template <class Row, size_t capacity>
class RowList {
 public:
  size_t size() const { return size_.load(std::memory_order_acquire); }
  const Row& operator[](size_t index) const {
    CXXI_CHECK(index < size(), "row {} of {} registered ones", index, size());
    return *rows_[index].load(std::memory_order_relaxed);
  }
  template <class Matches>
  std::optional<size_t> find(Matches matches) const {
    for (size_t i = 0; i < size(); ++i)
      if (matches((*this)[i])) return i;
    return std::nullopt;
  }
  // The position of the row, or of the one with the same overload, which has to state the same.
  size_t add(std::unique_ptr<const Row> row) {
    const ForkGuard guard(ForkLock::Leaf);
    if (const auto found = find([&](const Row& old) { return old.overload == row->overload; })) {
      if ((*this)[*found].text != row->text)
        throw_user_error("{} is registered already, with another definition; it stays registered until the process ends", row->overload);
      return *found;
    }
    const size_t index = size();
    if (index == capacity) throw_user_error("{} cannot be registered: {} are, and there is room for no more", row->overload, capacity);
    rows_[index].store(row.release(), std::memory_order_relaxed);
    size_.store(index + 1, std::memory_order_release);
    return index;
  }

 private:
  std::array<std::atomic<const Row*>, capacity> rows_{};
  std::atomic<size_t> size_{0};
};

// Texts that views of the row refer to.
struct ScalarRow {
  std::string overload, name, cuda, cpu, cuda_source, cpu_source, text;
  bool standard_result = false;
  std::optional<ScalarStatements> definition;
  ScalarOpInfo row;
};
struct ReductionRow {
  RegisteredReduction texts;
  std::string overload, name, text;
  ReductionForm form;
  ReductionInfo row;
};

constinit RowList<ScalarRow, 1024> scalar_rows;
constinit RowList<ReductionRow, 128> reduction_list;

// "mylib::swish.Tensor" as "mylib.swish.Tensor": an identifier of the text forms, and never one of ours, which have no dot.
std::string text_name(std::string_view overload) {
  const auto is_word = [](std::string_view text) {
    return !text.empty() && (text[0] < '0' || text[0] > '9') &&
           std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.'; });
  };
  const size_t at = overload.find("::");
  if (at == overload.npos || !is_word(overload.substr(0, at)) || !is_word(overload.substr(at + 2)))
    throw_user_error("expected the name of an op such as mylib::swish, found '{}'", overload);
  if (overload.substr(0, at) == "aten") throw_user_error("{} is an op of PyTorch; register an op of your own library", overload);
  return fmt::format("{}.{}", overload.substr(0, at), overload.substr(at + 2));
}

// Empty, or with a placeholder for each operand, and no other.
void require_spelling(std::string_view overload, std::string_view target, std::string_view text, size_t arity) {
  if (text.empty()) return;
  std::string rest(text);
  for (size_t i = 0; i <= arity; ++i) {
    const std::string placeholder = i < arity ? fmt::format("{{{}}}", i) : "{T}";
    bool found = false;
    for (size_t at = rest.find(placeholder); at != rest.npos; at = rest.find(placeholder)) {
      rest.erase(at, placeholder.size());
      found = true;
    }
    if (!found && i < arity) throw_user_error("{}: expected {} in the expression for {}, found '{}'", overload, placeholder, target, text);
  }
  if (rest.find_first_of("{}") != rest.npos)
    throw_user_error("{}: the expression for {} has braces that are no operand: move it into a function, found '{}'", overload, target, text);
}

TypeSet type_set(OperandTypes types) {
  switch (types) {
    case OperandTypes::Floating:
      return TypeSet::Floating;
    case OperandTypes::Integral:
      return TypeSet::Integral;
    case OperandTypes::Numeric:
      return TypeSet::Numeric;
  }
  throw_user_error("expected floating, integral or numeric operands");
}

}  // namespace

ScalarOp add_scalar_op(const RegisteredOp& given) {
  auto made = std::make_unique<ScalarRow>();
  made->overload = given.overload;
  made->name = text_name(given.overload);
  const size_t arity = given.arguments.size();
  if (arity < 1 || arity > 5) throw_user_error("{}: expected one to five operands, found {}", given.overload, arity);
  require_spelling(given.overload, "CUDA", given.cuda, arity);
  require_spelling(given.overload, "the CPU", given.cpu, arity);
  if (given.cuda.empty() && given.cpu.empty()) throw_user_error("{}: expected an expression for CUDA or the CPU", given.overload);
  made->standard_result = given.standard_result;
  made->cuda = given.cuda;
  made->cpu = given.cpu;
  made->cuda_source = given.cuda_source;
  made->cpu_source = given.cpu_source;
  if (!given.definition.empty()) {
    std::vector<TypedName> inputs;
    for (const std::string& argument : given.arguments) inputs.push_back({argument, std::nullopt});
    const TypedName result[] = {{"result", std::nullopt}};
    made->definition = naming(fmt::format("{}, definition", given.overload), [&] { return ScalarStatements::parse(given.definition, inputs, result); });
    for (const DType dtype : {DType::F32, DType::I64})
      if (const auto op = made->definition->refuses(dtype); op && accepts(type_set(given.types), dtype))
        throw_user_error("{}: types that include {} are stated, but the definition has {}, which does not take them", given.overload, to_string(dtype),
                         info(*op).name);
  }
  // Separated by what no text of a row has.
  made->text =
      fmt::format("{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}", given.overload, fmt::join(given.arguments, ","), static_cast<int>(given.types),
                  given.transcendental, given.standard_result, given.cuda, given.cpu, given.cuda_source, given.cpu_source, given.definition);
  made->row = {.name = made->name,
               .arity = static_cast<int>(arity),
               .types = type_set(given.types),
               .traits = {.transcendental = given.transcendental},
               .cuda_real = made->cuda,
               .cuda_integer = made->cuda,
               .cpu_real = made->cpu,
               .cpu_integer = made->cpu,
               .registered = true,
               .cuda_source = made->cuda_source,
               .cpu_source = made->cpu_source,
               .definition = made->definition ? &*made->definition : nullptr,
               .doc = "registered by the user"};
  return static_cast<ScalarOp>(scalar_ops().size() + scalar_rows.add(std::move(made)));
}

Reduction add_reduction(const RegisteredReduction& given) {
  auto made = std::make_unique<ReductionRow>();
  made->overload = given.overload;
  made->name = text_name(given.overload);
  made->texts = given;
  made->form = naming(given.overload, [&] { return parse_reduction_form(given.state, given.results, given.start, given.lift, given.merge, given.finish); });
  made->text = fmt::format("{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}\x1f{}", given.overload, given.state, given.results, given.start, given.lift,
                           given.merge, given.finish, given.order_matters, given.standard_result);
  const RegisteredReduction& texts = made->texts;
  made->row = {.name = made->name,
               .state = texts.state,
               .results = texts.results,
               .start = texts.start,
               .lift = texts.lift,
               .merge = texts.merge,
               .finish = texts.finish,
               .order_matters = texts.order_matters,
               .doc = "registered by the user"};
  return static_cast<Reduction>(reduction_rows().size() + reduction_list.add(std::move(made)));
}

std::optional<ScalarOp> find_registered_scalar_op(std::string_view overload) {
  const auto found = scalar_rows.find([&](const ScalarRow& row) { return row.overload == overload; });
  return found ? std::optional(static_cast<ScalarOp>(scalar_ops().size() + *found)) : std::nullopt;
}

std::optional<Reduction> find_registered_reduction(std::string_view overload) {
  const auto found = reduction_list.find([&](const ReductionRow& row) { return row.overload == overload; });
  return found ? std::optional(static_cast<Reduction>(reduction_rows().size() + *found)) : std::nullopt;
}

std::string_view registered_text(ScalarOp op) {
  const size_t index = static_cast<size_t>(op);
  return index < scalar_ops().size() ? std::string_view() : scalar_rows[index - scalar_ops().size()].text;
}

std::string_view registered_text(Reduction reduction) {
  const size_t index = static_cast<size_t>(reduction);
  return index < reduction_rows().size() ? std::string_view() : reduction_list[index - reduction_rows().size()].text;
}

std::vector<std::string_view> registered_texts() {
  std::vector<std::string_view> texts;
  for (size_t i = 0; i < scalar_rows.size(); ++i) texts.push_back(scalar_rows[i].text);
  for (size_t i = 0; i < reduction_list.size(); ++i) texts.push_back(reduction_list[i].text);
  return texts;
}

bool has_standard_result(ScalarOp op) {
  const size_t own = scalar_ops().size(), row = static_cast<size_t>(op);
  CXXI_CHECK(row >= own, "{} is no registered op", info(op).name);
  return scalar_rows[row - own].standard_result;
}
bool has_standard_result(Reduction reduction) {
  const size_t own = reduction_rows().size(), row = static_cast<size_t>(reduction);
  CXXI_CHECK(row >= own, "{} is no registered reduction", info(reduction).name);
  return reduction_list[row - own].texts.standard_result;
}

const ScalarOpInfo& registered_scalar_op(size_t index) { return scalar_rows[index].row; }
const ReductionInfo& registered_reduction(size_t index) { return reduction_list[index].row; }
const ReductionForm& registered_reduction_form(size_t index) { return reduction_list[index].form; }

std::optional<size_t> find_registered_scalar_op_named(std::string_view name) {
  return scalar_rows.find([&](const ScalarRow& row) { return row.name == name; });
}
std::optional<size_t> find_registered_reduction_named(std::string_view name) {
  return reduction_list.find([&](const ReductionRow& row) { return row.name == name; });
}

}  // namespace cxxinductor
