#include "model/control_flow.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "support/error.h"

namespace cxxinductor::model {
namespace {

using Kind = ControlFlow::Kind;

struct ControlFlowRow {
  std::string_view callee;
  Kind kind;
  // Positions of arguments; what an operator does not have is at -1.
  std::array<int, 2> subgraphs;
  int predicate, carried, rows, others;
  int count() const { return others + 1; }
};

const ControlFlowRow* find_row(std::string_view callee) {
  static constexpr std::array table{
      ControlFlowRow{"higher_order::cond", Kind::Cond, {1, 2}, 0, -1, -1, 3}, ControlFlowRow{"higher_order::while_loop", Kind::WhileLoop, {0, 1}, -1, 2, -1, 3},
      ControlFlowRow{"higher_order::scan", Kind::Scan, {0, -1}, -1, 1, 2, 3}, ControlFlowRow{"higher_order::map_impl", Kind::Map, {0, -1}, -1, -1, 1, 2},
      ControlFlowRow{"higher_order::associative_scan", Kind::AssociativeScan, {0, -1}, -1, -1, 1, 2}};
  const auto found = std::find_if(table.begin(), table.end(), [&](const ControlFlowRow& row) { return row.callee == callee; });
  return found == table.end() ? nullptr : &*found;
}

// Of one call: errors name it.
class Reader {
 public:
  Reader(const CallGraph& calls, const Call& call, const ControlFlowRow& row) : calls_(calls), call_(call), row_(row) {}

  ControlFlow read() {
    require(static_cast<int>(call_.args.size()) == row_.count() && call_.kwargs.empty(), "{} arguments", row_.count());
    ControlFlow found;
    found.kind = row_.kind;
    for (const int position : row_.subgraphs)
      if (position >= 0) found.subgraphs.push_back(subgraph_at(position));
    if (row_.predicate >= 0) found.predicate = call_.args[static_cast<size_t>(row_.predicate)];
    if (row_.carried >= 0) found.carried = list_at(row_.carried);
    if (row_.rows >= 0) found.rows = list_at(row_.rows);
    found.others = list_at(row_.others);
    check(found);
    return found;
  }

 private:
  template <class... Args>
  void require(bool holds, fmt::format_string<Args...> expected, Args&&... args) const {
    if (!holds) throw_user_error("{}: expected {}", describe(calls_, call_), fmt::format(expected, std::forward<Args>(args)...));
  }

  const CallGraph* subgraph_at(int position) const {
    const auto* name = call_.args[static_cast<size_t>(position)].as<std::string>();
    const auto found = name == nullptr ? calls_.subgraphs.end() : calls_.subgraphs.find(*name);
    require(found != calls_.subgraphs.end(), "a subgraph as argument {}", position);
    return found->second.get();
  }

  std::vector<Arg> list_at(int position) const {
    const auto* list = call_.args[static_cast<size_t>(position)].as<ArgList>();
    require(list != nullptr, "a list as argument {}", position);
    for (const Arg& item : *list)
      require(item.as<OperandRef>() != nullptr || item.as<sym::Expr>() != nullptr || item.as<int64_t>() != nullptr,
              "tensors and integers as operands, found {}", to_string(item));
    return *list;
  }

  bool is_tensor(const Arg& arg) const {
    const auto* ref = arg.as<OperandRef>();
    return ref != nullptr && calls_.values[ref->operand].kind == CallValueInfo::Kind::Tensor;
  }

  void check(const ControlFlow& found) const {
    std::vector<Arg> given = found.carried;
    given.insert(given.end(), found.rows.begin(), found.rows.end());
    if (found.kind == Kind::AssociativeScan) given.insert(given.end(), found.rows.begin(), found.rows.end());
    given.insert(given.end(), found.others.begin(), found.others.end());
    for (const CallGraph* subgraph : found.subgraphs) {
      require(subgraph->inputs.size() == given.size(), "{} operands of @{}, found {}", subgraph->inputs.size(), subgraph->name, given.size());
      for (size_t i = 0; i < given.size(); ++i) {
        const bool wants_tensor = subgraph->values[subgraph->inputs[i]].kind == CallValueInfo::Kind::Tensor;
        require(is_tensor(given[i]) == wants_tensor, "{} as operand {} of @{}", wants_tensor ? "a tensor" : "an integer", i, subgraph->name);
      }
    }
    for (const Arg& rows : found.rows) require(is_tensor(rows) && !calls_.values[rows.as<OperandRef>()->operand].sizes.empty(), "operands that have rows");
    require(row_.rows < 0 || !found.rows.empty(), "operands that have rows");
    const size_t results = found.kind == Kind::WhileLoop ? found.carried.size() : found.subgraphs.front()->outputs.size();
    require(call_.results.size() == results, "{} results, found {}", results, call_.results.size());
    const size_t condition_results = found.kind == Kind::WhileLoop ? 1 : results;
    require(found.subgraphs.front()->outputs.size() == condition_results && found.subgraphs.back()->outputs.size() == results, "subgraphs of {} results",
            results);
    require(found.kind != Kind::AssociativeScan || found.rows.size() == results, "{} results, one per operand that has rows", found.rows.size());
    require(found.kind != Kind::Scan || found.carried.size() <= results, "at least {} results", found.carried.size());
  }

  const CallGraph& calls_;
  const Call& call_;
  const ControlFlowRow& row_;
};

}  // namespace

bool is_control_flow(const Call& call) { return find_row(call.callee) != nullptr; }

ControlFlow read_control_flow(const CallGraph& calls, const Call& call) {
  const ControlFlowRow* row = find_row(call.callee);
  if (row == nullptr) throw_user_error("{}: expected an operator of control flow", describe(calls, call));
  return Reader(calls, call, *row).read();
}

}  // namespace cxxinductor::model
