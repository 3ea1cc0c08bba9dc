#include "torch_bridge/control_flow.h"

#include <ATen/ops/stack.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "frontend/check_calls.h"
#include "ir/arg_expressions.h"
#include "model/control_flow.h"
#include "support/error.h"
#include "torch_bridge/functions.h"
#include "torch_bridge/input_symbols.h"

namespace cxxinductor::torch_bridge {

using model::Call;
using model::CallGraph;
using model::CallValueInfo;
using model::ControlFlow;
using Kind = ControlFlow::Kind;
using Values = std::vector<c10::IValue>;

namespace {

// ---- Subgraphs -----------------------------------------------------------------------------------------------------

// Symbols of the graph around it that it reads: nothing in it gives their value before.
std::vector<std::string> symbols_from_outside(const CallGraph& calls) {
  std::set<std::string, std::less<>> known;
  std::vector<std::string> missing;
  const auto need = [&](sym::Expr e) {
    for (sym::Expr symbol : e.free_symbols())
      if (known.emplace(symbol.name()).second) missing.emplace_back(symbol.name());
  };
  const auto learn = [&](const CallValueInfo& info) {
    for (sym::Expr e : info.sizes)
      if (e.is_symbol()) known.emplace(e.name());
    if (info.kind == CallValueInfo::Kind::SymInt && info.symbol.is_symbol()) known.emplace(info.symbol.name());
  };
  for (model::CallValue input : calls.inputs) learn(calls.values[input]);
  for (model::CallValue input : calls.inputs) {
    const CallValueInfo& info = calls.values[input];
    for (sym::Expr e : info.sizes) need(e);
    for (sym::Expr e : info.strides) need(e);
    if (info.kind == CallValueInfo::Kind::SymInt) need(info.symbol);
  }
  for (const Call& call : calls.calls) {
    for_each_expression(call, need);
    for (model::CallValue result : call.results) learn(calls.values[result]);
  }
  for (const Arg& output : calls.outputs) for_each_expression(output, need);
  return missing;
}

// A subgraph, ready to run on what an operator hands to it.
class Step {
 public:
  Step(const CallGraph& calls, std::shared_ptr<const FileModel> compiled) : layouts_(calls), compiled_(std::move(compiled)) {}

  // symbols: values of those that come from outside.
  Values run(Values inputs, const Values& symbols) const {
    inputs.insert(inputs.end(), symbols.begin(), symbols.end());
    layouts_.lay_out(inputs);
    return compiled_->run(std::move(inputs));
  }

 private:
  InputSymbols layouts_;
  std::shared_ptr<const FileModel> compiled_;
};

// ---- Operators -----------------------------------------------------------------------------------------------------

// Operands arrive as tensors and integers, in two lists.
struct Place {
  bool is_tensor = false;
  size_t position = 0;
};
using Places = std::vector<Place>;

struct Operator {
  Kind kind = Kind::Cond;
  Place predicate;
  Places carried, rows, others;
  std::vector<Step> steps;
  std::vector<Places> symbols;  // by step

  std::vector<at::Tensor> run(const std::vector<at::Tensor>& tensors, const std::vector<int64_t>& integers) const;

 private:
  class Run;
};

bool is_true(const c10::IValue& value) {
  if (value.isInt()) return value.toInt() != 0;
  if (!value.isTensor() || value.toTensor().numel() != 1) throw_user_error("a condition: expected a tensor of one element");
  return value.toTensor().item().toBool();
}

// Results that share no memory with what is there already.
class OwnedResults {
 public:
  explicit OwnedResults(const std::vector<at::Tensor>& operands) {
    for (const at::Tensor& operand : operands) add(operand);
  }
  void push_back(const c10::IValue& value) {
    if (!value.isTensor()) throw_unsupported("control flow with results of type {}", value.tagKind());
    at::Tensor result = value.toTensor();
    if (!add(result)) result = result.clone();
    results_.push_back(std::move(result));
  }
  std::vector<at::Tensor> take() && { return std::move(results_); }

 private:
  bool add(const at::Tensor& tensor) { return !tensor.defined() || tensor.numel() == 0 || memory_.insert(tensor.storage().unsafeGetStorageImpl()).second; }

  std::set<const void*> memory_;
  std::vector<at::Tensor> results_;
};

class Operator::Run {
 public:
  Run(const Operator& op, const std::vector<at::Tensor>& tensors, const std::vector<int64_t>& integers) : op_(op), tensors_(tensors), integers_(integers) {}

  Values results() const {
    switch (op_.kind) {
      case Kind::Cond:
        return step(is_true(value(op_.predicate)) ? 0 : 1, {});
      case Kind::WhileLoop:
        return while_loop();
      case Kind::Scan:
      case Kind::Map:
        return scan();
      case Kind::AssociativeScan:
        return associative_scan();
    }
    throw_internal("an operator of control flow of kind {}", static_cast<int>(op_.kind));
  }

 private:
  c10::IValue value(const Place& place) const { return place.is_tensor ? c10::IValue(tensors_.at(place.position)) : c10::IValue(integers_.at(place.position)); }
  Values values(const Places& places) const {
    Values found;
    for (const Place& place : places) found.push_back(value(place));
    return found;
  }

  // first: operands in front of those that are the same in each step.
  Values step(size_t number, Values first) const {
    for (const Place& place : op_.others) first.push_back(value(place));
    return op_.steps[number].run(std::move(first), values(op_.symbols[number]));
  }

  Values while_loop() const {
    Values carried = values(op_.carried);
    while (is_true(step(0, carried).at(0))) carried = step(1, carried);
    return carried;
  }

  // A map carries nothing from step to step.
  Values scan() const {
    Values carried = values(op_.carried);
    const int64_t length = row_count();
    std::vector<std::vector<at::Tensor>> stacks;
    for (int64_t i = 0; i < length; ++i) {
      Values inputs = carried;
      add_row(i, inputs);
      Values results = step(0, std::move(inputs));
      stacks.resize(results.size() - carried.size());
      for (size_t s = 0; s < stacks.size(); ++s) stacks[s].push_back(results[carried.size() + s].toTensor());
      results.resize(carried.size());
      carried = std::move(results);
    }
    for (const std::vector<at::Tensor>& stack : stacks) carried.emplace_back(at::stack(stack));
    return carried;
  }

  // From the first row to the last, where eager combines in the order of a tree.
  Values associative_scan() const {
    const int64_t length = row_count();
    Values combined;
    add_row(0, combined);
    std::vector<std::vector<at::Tensor>> stacks(combined.size());
    for (int64_t i = 0;; ++i) {
      for (size_t s = 0; s < stacks.size(); ++s) stacks[s].push_back(combined[s].toTensor());
      if (i + 1 == length) break;
      add_row(i + 1, combined);
      combined = step(0, std::move(combined));
    }
    combined.clear();
    for (const std::vector<at::Tensor>& stack : stacks) combined.emplace_back(at::stack(stack));
    return combined;
  }

  int64_t row_count() const {
    const int64_t count = tensors_.at(op_.rows.front().position).size(0);
    for (const Place& rows : op_.rows)
      if (const int64_t other = tensors_.at(rows.position).size(0); other != count) throw_user_error("control flow over {} and {} rows", count, other);
    if (count == 0) throw_unsupported("control flow over no rows");
    return count;
  }

  void add_row(int64_t i, Values& inputs) const {
    for (const Place& rows : op_.rows) inputs.emplace_back(tensors_.at(rows.position).select(0, i));
  }

  const Operator& op_;
  const std::vector<at::Tensor>& tensors_;
  const std::vector<int64_t>& integers_;
};

std::vector<at::Tensor> Operator::run(const std::vector<at::Tensor>& tensors, const std::vector<int64_t>& integers) const {
  OwnedResults results(tensors);
  for (const c10::IValue& value : Run(*this, tensors, integers).results()) results.push_back(value);
  return std::move(results).take();
}

// ---- Calls ---------------------------------------------------------------------------------------------------------

// Operands of a call of control flow, as the arguments of call_function.
class Operands {
 public:
  Place place_of(const Arg& operand) {
    const bool is_tensor = operand.as<OperandRef>() != nullptr;
    ArgList& list = is_tensor ? tensors_ : integers_;
    list.push_back(operand);
    return {is_tensor, list.size() - 1};
  }
  Places places_of(const std::vector<Arg>& operands) {
    Places places;
    for (const Arg& operand : operands) places.push_back(place_of(operand));
    return places;
  }
  std::vector<Arg> arguments(uint32_t function) && { return {Handle{function}, std::move(tensors_), std::move(integers_)}; }

 private:
  ArgList tensors_, integers_;
};

// Handles name functions of this process, of which files know nothing.
void refuse_handles(const CallGraph& calls, const Call& call) {
  const auto refuse = [&](const Arg& arg) {
    if (frontend::holds_handle(arg)) throw_user_error("{}: expected no object of this process, found one", describe(calls, call));
  };
  for (const Arg& arg : call.args) refuse(arg);
  for (const auto& [keyword, arg] : call.kwargs) refuse(arg);
}

}  // namespace

CallGraph with_functions(const CallGraph& calls, const std::function<std::shared_ptr<const FileModel>(CallGraph subgraph)>& make) {
  CallGraph out = calls;
  out.subgraphs.clear();
  for (Call& call : out.calls) {
    refuse_handles(calls, call);
    if (!model::is_higher_order(call)) continue;
    if (!model::is_control_flow(call)) throw_unsupported("{}", describe(calls, call));
    for (model::CallValue result : call.results)
      if (calls.values[result].kind != CallValueInfo::Kind::Tensor) throw_unsupported("{}: results that are no tensors", describe(calls, call));
    const ControlFlow found = model::read_control_flow(calls, call);
    Operands operands;
    auto op = std::make_shared<Operator>();
    op->kind = found.kind;
    if (found.kind == Kind::Cond) op->predicate = operands.place_of(found.predicate);
    op->carried = operands.places_of(found.carried);
    op->rows = operands.places_of(found.rows);
    op->others = operands.places_of(found.others);
    for (const CallGraph* read : found.subgraphs) {
      CallGraph subgraph = with_functions(*read, make);
      const std::vector<std::string> symbols = symbols_from_outside(subgraph);
      add_symbol_inputs(subgraph, symbols);
      Places& places = op->symbols.emplace_back();
      for (const std::string& symbol : symbols) places.push_back(operands.place_of(sym::Expr::symbol(symbol)));
      const CallGraph signature = subgraph;
      op->steps.emplace_back(signature, make(std::move(subgraph)));
    }
    const RegisteredFunction function =
        register_function([op](const std::vector<at::Tensor>& tensors, const std::vector<int64_t>& integers) { return op->run(tensors, integers); });
    call.callee = frontend::function_callee;
    call.args = std::move(operands).arguments(function.number);
    call.result_is_list = true;
    out.objects.push_back(function.owner);
  }
  return out;
}

}  // namespace cxxinductor::torch_bridge
