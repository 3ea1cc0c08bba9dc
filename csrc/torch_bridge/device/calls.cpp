#include "torch_bridge/device/calls.h"

#include <bit>
#include <utility>

#include "support/error.h"
#include "torch_bridge/device/op_info.h"

namespace cxxinductor::torch_bridge {
namespace {

// The argument at a position of the schema; null where the call leaves it out.
Arg* argument_of(model::Call* call, const c10::FunctionSchema& schema, size_t position) {
  if (call == nullptr) return nullptr;
  if (position < call->args.size()) return &call->args[position];
  for (auto& [name, arg] : call->kwargs)
    if (name == schema.arguments()[position].name()) return &arg;
  return nullptr;
}

Arg* item_of(Arg* list, size_t position) {
  auto* items = list == nullptr ? nullptr : std::get_if<ArgList>(&list->value);
  return items == nullptr ? nullptr : &items->at(position);
}

// Walks along a code and the arguments that it names.
class NumberWalk {
 public:
  NumberWalk(const CallCode& code, const NumberVisitor& integer, const NumberVisitor& real) : words_(code.words), on_integer_(integer), on_real_(real) {}

  // False: no call is left.
  bool skip_to_call() {
    while (position_ < words_.size()) {
      const int64_t word = next();
      if (word == CodeWord::Call) return true;
      const int64_t count_or_dtype = next();
      if (word == CodeWord::FixedReals)
        position_ += static_cast<size_t>(count_or_dtype);
      else
        integers_ += 2 * static_cast<size_t>(next());  // sizes and strides of an input
    }
    return false;
  }

  // call: null where its arguments are of no interest.
  void walk(model::Call* call) {
    call_ = call;
    const auto& info = *std::bit_cast<const OpInfo*>(next());
    const c10::FunctionSchema& schema = info.op.schema();
    for (size_t i = 0; i < schema.arguments().size(); ++i) walk_argument(&schema.arguments()[i], argument_of(call, schema, i));
  }

 private:
  int64_t next() { return words_[position_++]; }

  void walk_argument(const c10::Argument* formal, Arg* arg) {
    switch (const auto word = static_cast<CodeWord>(next())) {
      case CodeWord::Scalar:
        return walk_argument(formal, arg);
      case CodeWord::Integer:
        return on_integer_(integers_++, {call_, formal, arg});
      case CodeWord::Real:
        return on_real_(reals_++, {call_, formal, arg});
      case CodeWord::Integers:
      case CodeWord::List: {
        const auto count = static_cast<size_t>(next());
        for (size_t i = 0; i < count; ++i) {
          Arg* item = item_of(arg, i);
          if (word == CodeWord::List)
            walk_argument(nullptr, item);
          else
            on_integer_(integers_++, {call_, nullptr, item});
        }
        return;
      }
      case CodeWord::Text:
        position_ += static_cast<size_t>(next());
        return;
      case CodeWord::Complex:
        position_ += 2;
        return;
      case CodeWord::Operand:
      case CodeWord::Enum:
      case CodeWord::Bool:
        position_ += 1;
        return;
      case CodeWord::None:
      case CodeWord::DeviceWord:
      case CodeWord::FixedReals:
      case CodeWord::Input:
      case CodeWord::CpuInput:
      case CodeWord::Call:
        return;
    }
  }

  const std::vector<int64_t>& words_;
  const NumberVisitor &on_integer_, &on_real_;
  model::Call* call_ = nullptr;
  size_t position_ = 0, integers_ = 0, reals_ = 0;
};

}  // namespace

void NumberSlot::set(double number) const {
  const auto is_default = [&] {
    return arg_ == nullptr && formal_ != nullptr && formal_->default_value() && formal_->default_value()->isDouble() &&
           std::bit_cast<int64_t>(formal_->default_value()->toDouble()) == std::bit_cast<int64_t>(number);
  };
  if (!is_default()) set(Arg(number));
}

void NumberSlot::set(Arg number) const {
  if (arg_ != nullptr) {
    *arg_ = std::move(number);
  } else {
    if (formal_ == nullptr) throw_unsupported("{}: a number of a list that is left out differs", full_name(*call_));
    call_->kwargs.emplace_back(formal_->name(), std::move(number));
  }
}

void for_each_number(const CallCode& code, std::vector<model::Call>& calls, const NumberVisitor& integer, const NumberVisitor& real) {
  NumberWalk walk(code, integer, real);
  for (model::Call& call : calls)
    if (walk.skip_to_call()) walk.walk(&call);
}

std::vector<size_t> integer_arguments(const CallCode& code) {
  std::vector<size_t> positions;
  const NumberVisitor integer = [&](size_t position, const NumberSlot&) { positions.push_back(position); };
  const NumberVisitor real = [](size_t, const NumberSlot&) {};
  NumberWalk walk(code, integer, real);
  while (walk.skip_to_call()) walk.walk(nullptr);
  return positions;
}

RecordedCalls RecordedCalls::prefix(size_t count, std::vector<double> reals) const {
  const End end = count == 0 ? End{} : ends[count - 1];
  RecordedCalls first;
  const auto copy = [](const auto& from, size_t length, auto& to) { to.assign(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(length)); };
  copy(code.words, end.words, first.code.words);
  copy(code.numbers, end.numbers, first.code.numbers);
  copy(ends, count, first.ends);
  copy(values, end.values, first.values);
  copy(graph.values, end.values, first.graph.values);
  copy(graph.calls, count, first.graph.calls);
  for (const model::CallValue input : graph.inputs)
    if (input < end.values) first.graph.inputs.push_back(input);
  first.graph.input_sources.resize(first.graph.inputs.size());
  first.code.reals = std::move(reals);
  for_each_number(
      first.code, first.graph.calls, [](size_t, const NumberSlot&) {}, [&](size_t position, const NumberSlot& slot) { slot.set(first.code.reals[position]); });
  return first;
}

}  // namespace cxxinductor::torch_bridge
