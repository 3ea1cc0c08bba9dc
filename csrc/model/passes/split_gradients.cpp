#include "model/passes/split_gradients.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "model/decompose/decompose.h"
#include "model/passes/values_to_keep.h"
#include "support/error.h"

namespace cxxinductor::model {
namespace {

constexpr size_t no_call = JointCalls::no_call;

void add_symbols(std::set<std::string>& symbols, sym::Expr e) {
  for (sym::Expr symbol : e.free_symbols()) symbols.insert(std::string(symbol.name()));
}

void add_symbols(std::set<std::string>& symbols, const Arg& arg) {
  if (const auto* e = arg.as<sym::Expr>()) add_symbols(symbols, *e);
  if (const auto* list = arg.as<ArgList>())
    for (const Arg& item : *list) add_symbols(symbols, item);
}

void add_symbols(std::set<std::string>& symbols, const CallValueInfo& info) {
  for (sym::Expr e : info.sizes) add_symbols(symbols, e);
  for (sym::Expr e : info.strides) add_symbols(symbols, e);
  add_symbols(symbols, info.storage_offset);
  if (info.kind == CallValueInfo::Kind::SymInt) add_symbols(symbols, info.symbol);
}

// Some calls of a graph as one of their own.
class Part {
 public:
  explicit Part(const CallGraph& whole) : whole_(whole) {
    part_.name = whole.name;
    part_.assumptions = whole.assumptions;
    part_.origins = whole.origins;
    part_.objects = whole.objects;
  }

  void add_input(CallValue value) {
    part_.inputs.push_back(define(value));
    part_.input_sources.emplace_back();
  }
  void add_symbol(const std::string& name) {
    CallValueInfo info;
    info.kind = CallValueInfo::Kind::SymInt;
    info.symbol = sym::Expr::symbol(name);
    part_.values.push_back(std::move(info));
    part_.inputs.push_back(static_cast<CallValue>(part_.values.size() - 1));
    part_.input_sources.emplace_back();
  }
  void add_call(const Call& call) {
    Call copy = call;
    for_each_operand_ref(copy, [this](OperandRef& ref) { ref.operand = numbers_.at(ref.operand); });
    for (CallValue& result : copy.results) result = define(result);
    part_.calls.push_back(std::move(copy));
  }
  void add_output(Arg output) {
    for_each_operand_ref(output, [this](OperandRef& ref) { ref.operand = numbers_.at(ref.operand); });
    part_.outputs.push_back(std::move(output));
  }
  void add_mutation(uint32_t input, CallValue value) { part_.mutations.emplace_back(input, numbers_.at(value)); }

  // Of all values, and of what calls and outputs say.
  std::set<std::string> symbols() const {
    std::set<std::string> symbols;
    for (const CallValueInfo& info : part_.values) add_symbols(symbols, info);
    for (const Call& call : part_.calls) {
      for (const Arg& arg : call.args) add_symbols(symbols, arg);
      for (const auto& [name, arg] : call.kwargs) add_symbols(symbols, arg);
    }
    for (const Arg& output : part_.outputs) add_symbols(symbols, output);
    return symbols;
  }
  CallGraph& graph() { return part_; }
  const CallGraph& graph() const { return part_; }

 private:
  CallValue define(CallValue value) {
    part_.values.push_back(whole_.values[value]);
    const auto number = static_cast<CallValue>(part_.values.size() - 1);
    numbers_[value] = number;
    return number;
  }

  const CallGraph& whole_;
  CallGraph part_;
  std::map<CallValue, CallValue> numbers_;  // of the whole -> of the part
};

class Splitter {
 public:
  Splitter(const CallGraph& joint, size_t results, const std::vector<uint32_t>& output_gradients, const SchemaSource& schemas)
      : joint_(joint), results_(results), output_gradients_(output_gradients), schemas_(schemas) {
    find_producers();
    find_dependent();
    for (size_t i = 0; i < results_; ++i) for_each_operand_ref(joint_.outputs[i], [this](OperandRef ref) { need_forward(ref.operand); });
    for (const auto& [input, value] : joint_.mutations) need_forward(value);
  }

  // What the backward pass reads where it computes nothing again that the forward pass needs but views: what eager keeps. Calls that
  // the forward pass does not need are autograd's, like the cosine in the gradient of a sine.
  std::set<CallValue> read_values() {
    need_gradients([this](CallValue value) {
      const size_t producer = producers_[value];
      return dependent_[value] || is_made_by_view(value) || (producer != no_call && !forward_calls_.contains(producer));
    });
    return std::exchange(kept_, {});
  }

  // exposed: values that are not to be kept.
  SplitGraphs run(std::set<CallValue> exposed) {
    need_gradients([this](CallValue value) { return bool{dependent_[value]}; });
    const std::set<CallValue> chosen =
        values_to_keep({joint_, schemas_, producers_, dependent_, forward_calls_, backward_calls_, std::exchange(kept_, {}), std::move(exposed)});
    need_gradients([&](CallValue value) { return !chosen.contains(value); });
    SplitGraphs split;
    split.kept = keep();
    split.backward = backward(split.kept);
    split.forward = forward();
    return split;
  }

 private:
  void find_producers() {
    producers_.assign(joint_.values.size(), no_call);
    for (size_t c = 0; c < joint_.calls.size(); ++c)
      for (CallValue result : joint_.calls[c].results) producers_[result] = c;
  }

  void find_dependent() {
    dependent_.assign(joint_.values.size(), false);
    for (uint32_t input : output_gradients_) dependent_[joint_.inputs[input]] = true;
    for (const Call& call : joint_.calls) {
      bool reads = false;
      for_each_operand_ref(call, [&](OperandRef ref) { reads |= dependent_[ref.operand]; });
      if (reads)
        for (CallValue result : call.results) dependent_[result] = true;
    }
  }

  void need_forward(CallValue value) {
    need(value, forward_calls_, [](CallValue) { return true; });
  }
  // The calls of gradients, up to values that are not computed: these are kept.
  template <class IsComputed>
  void need_gradients(IsComputed is_computed) {
    backward_calls_.clear();
    for (size_t i = results_; i < joint_.outputs.size(); ++i)
      for_each_operand_ref(joint_.outputs[i], [&](OperandRef ref) {
        need(ref.operand, backward_calls_, [&](CallValue each) {
          const bool computed = is_computed(each);
          if (!computed) kept_.insert(each);
          return computed;
        });
      });
  }

  // Adds the calls that the value comes from, as far as each value is to be computed.
  template <class IsComputed>
  void need(CallValue value, std::set<size_t>& calls, IsComputed is_computed) {
    std::vector<CallValue> open{value};
    while (!open.empty()) {
      const CallValue next = open.back();
      open.pop_back();
      const bool computed = is_computed(next);
      const size_t call = producers_[next];
      if (!computed || call == no_call || !calls.insert(call).second) continue;
      for_each_operand_ref(joint_.calls[call], [&](OperandRef ref) { open.push_back(ref.operand); });
    }
  }

  bool is_output_gradient(CallValue value) const {
    return std::any_of(output_gradients_.begin(), output_gradients_.end(), [&](uint32_t input) { return joint_.inputs[input] == value; });
  }

  bool is_made_by_view(CallValue value) const { return producers_[value] != no_call && is_view(joint_.calls[producers_[value]], schemas_); }

  // In the order in which they are made.
  std::vector<SplitGraphs::Kept> keep() {
    using Kept = SplitGraphs::Kept;
    std::vector<Kept> kept;
    for (CallValue value : kept_) {
      const auto input = std::find(joint_.inputs.begin(), joint_.inputs.end(), value);
      if (input != joint_.inputs.end()) {
        const auto position = static_cast<uint32_t>(input - joint_.inputs.begin());
        for (const auto& [written, last] : joint_.mutations)
          if (written == position) throw_unsupported("the backward pass reads an argument that the function writes to");
        kept.push_back({Kept::Of::Input, forward_position(position)});
        continue;
      }
      need_forward(value);
      const auto output = std::find_if(joint_.outputs.begin(), joint_.outputs.begin() + static_cast<ptrdiff_t>(results_), [&](const Arg& one) {
        const auto* ref = one.as<OperandRef>();
        return ref && ref->operand == value;
      });
      const bool is_result = output != joint_.outputs.begin() + static_cast<ptrdiff_t>(results_);
      if (!is_result) added_.push_back(value);
      kept.push_back({Kept::Of::Output, static_cast<uint32_t>(is_result ? output - joint_.outputs.begin() : results_ + added_.size() - 1)});
    }
    return kept;
  }

  // Without the gradients that came between the inputs.
  uint32_t forward_position(uint32_t joint_position) const {
    return joint_position - static_cast<uint32_t>(std::count_if(output_gradients_.begin(), output_gradients_.end(),
                                                                [&](uint32_t gradient) { return gradient < joint_position; }));
  }

  CallGraph backward(std::vector<SplitGraphs::Kept>& kept) {
    // Symbols come last among the kept: only a graph that is done tells which there are.
    const Part sketch = backward_part({});
    const std::set<std::string> given = sizes_of_inputs(sketch.graph());
    for (const std::string& symbol : sketch.symbols()) {
      if (given.contains(symbol)) continue;
      kept.push_back({SplitGraphs::Kept::Of::Output, static_cast<uint32_t>(results_ + added_.size() + symbols_.size())});
      symbols_.push_back(symbol);
    }
    return std::move(backward_part(symbols_).graph());
  }

  // Symbols that are sizes of inputs as they stand.
  static std::set<std::string> sizes_of_inputs(const CallGraph& calls) {
    std::set<std::string> found;
    for (CallValue input : calls.inputs)
      for (sym::Expr size : calls.values[input].sizes)
        if (size.is_symbol()) found.insert(std::string(size.name()));
    return found;
  }

  Part backward_part(const std::vector<std::string>& symbols) const {
    Part part(joint_);
    for (CallValue value : kept_) part.add_input(value);
    for (const std::string& symbol : symbols) part.add_symbol(symbol);
    for (uint32_t input : output_gradients_) part.add_input(joint_.inputs[input]);
    for (size_t call : backward_calls_) part.add_call(joint_.calls[call]);
    for (size_t i = results_; i < joint_.outputs.size(); ++i) part.add_output(joint_.outputs[i]);
    part.graph().name += "_backward";
    return part;
  }

  CallGraph forward() const {
    Part part(joint_);
    for (uint32_t i = 0; i < joint_.inputs.size(); ++i)
      if (!is_output_gradient(joint_.inputs[i])) part.add_input(joint_.inputs[i]);
    for (size_t call : forward_calls_) part.add_call(joint_.calls[call]);
    for (size_t i = 0; i < results_; ++i) part.add_output(joint_.outputs[i]);
    for (CallValue value : added_) part.add_output(OperandRef{value});
    for (const std::string& symbol : symbols_) part.add_output(sym::Expr::symbol(symbol));
    for (const auto& [input, value] : joint_.mutations) part.add_mutation(forward_position(input), value);
    return std::move(part.graph());
  }

  const CallGraph& joint_;
  const size_t results_;
  const std::vector<uint32_t>& output_gradients_;
  const SchemaSource& schemas_;
  std::vector<size_t> producers_;  // by value
  std::vector<bool> dependent_;    // by value: on the gradients of outputs
  std::set<size_t> forward_calls_, backward_calls_;
  std::set<CallValue> kept_;
  std::vector<CallValue> added_;      // kept ones that are no results
  std::vector<std::string> symbols_;  // that the backward graph names
};

}  // namespace

SplitGraphs split_gradients(const CallGraph& joint, size_t results, const std::vector<uint32_t>& output_gradients, const SchemaSource& schemas) {
  const std::set<CallValue> read = Splitter(joint, results, output_gradients, schemas).read_values();
  const CallGraph forms = decompose(decompose(joint, schemas), schemas, Fragments::RecomputeForms);
  // Passes over the calls leave inputs and results in their places.
  const std::vector<CallValue> bases = bases_of(joint, schemas), new_bases = bases_of(forms, schemas);
  std::set<CallValue> kept_in_eager, exposed;
  const auto add = [&](CallValue before, CallValue after) {
    if (forms.values[after].kind == CallValueInfo::Kind::Tensor) (read.contains(bases[before]) ? kept_in_eager : exposed).insert(new_bases[after]);
  };
  for (size_t i = 0; i < joint.inputs.size(); ++i) add(joint.inputs[i], forms.inputs[i]);
  for (size_t i = 0; i < results; ++i)
    if (const auto* before = joint.outputs[i].as<OperandRef>()) add(before->operand, forms.outputs[i].as<OperandRef>()->operand);
  for (CallValue value : kept_in_eager) exposed.erase(value);
  return Splitter(forms, results, output_gradients, schemas).run(std::move(exposed));
}

int64_t kept_bytes(const SplitGraphs& split) {
  int64_t bytes = 0;
  for (size_t i = 0; i < split.kept.size(); ++i) {
    const CallValueInfo& info = split.backward.values[split.backward.inputs[i]];
    if (info.kind == CallValueInfo::Kind::Tensor) bytes += sym::estimate(sym::product(info.sizes) * byte_size(info.dtype), split.backward.assumptions);
  }
  return bytes;
}

}  // namespace cxxinductor::model
