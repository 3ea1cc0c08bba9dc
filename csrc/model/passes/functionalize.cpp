#include "model/passes/functionalize.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "ir/text_parts.h"
#include "model/effects.h"
#include "model/infer/infer.h"
#include "model/infer/layout.h"
#include "model/infer/table.h"
#include "model/passes/view_inverse.h"
#include "support/error.h"

namespace cxxinductor::model {
namespace {

// The form of a call that returns what the call writes.
struct FunctionalForm {
  Call call;
  // By written operand, in the order of the schema: the result that has its new elements.
  std::vector<size_t> written_results;
  size_t result_count = 0;
};

// Forms that names do not tell.
struct NamedForm {
  std::string_view op, callee, overload;
  std::array<size_t, 2> written_results;  // equal: one is
  size_t result_count;
};

const NamedForm* find_named_form(std::string_view op) {
  static constexpr std::array forms{
      NamedForm{"aten::_native_batch_norm_legit", "aten::_native_batch_norm_legit_functional", "", {3, 4}, 5},
      NamedForm{"aten::_batch_norm_with_update", "aten::_batch_norm_with_update_functional", "", {4, 5}, 6},
      NamedForm{"aten::rrelu_with_noise", "aten::rrelu_with_noise_functional", "", {1, 1}, 2},
      NamedForm{"aten::rrelu_with_noise_", "aten::rrelu_with_noise_functional", "", {0, 1}, 2},
      NamedForm{"aten::bernoulli_.float", "aten::bernoulli", "p", {0, 0}, 1},
      NamedForm{"aten::normal_", "aten::normal_functional", "", {0, 0}, 1},
      NamedForm{"aten::pow_.Scalar", "aten::pow", "Tensor_Scalar", {0, 0}, 1},
      NamedForm{"aten::pow_.Tensor", "aten::pow", "Tensor_Tensor", {0, 0}, 1},
      NamedForm{"aten::ldexp_", "aten::ldexp", "Tensor", {0, 0}, 1},
      NamedForm{"aten::floor_divide_.Tensor", "aten::floor_divide", "", {0, 0}, 1},
  };
  const auto found = std::find_if(forms.begin(), forms.end(), [&](const NamedForm& form) { return form.op == op; });
  return found == forms.end() ? nullptr : found;
}

bool writes(const Schema& schema) {
  return std::any_of(schema.arguments.begin(), schema.arguments.end(), [](const SchemaArgument& argument) { return argument.written; });
}

// Overloads of one name may be different ops: pow_.Scalar has a number as its exponent, pow.Scalar as its base.
bool take_the_same(const Schema& a, const Schema& b) {
  return std::equal(a.arguments.begin(), a.arguments.end(), b.arguments.begin(), b.arguments.end(),
                    [](const SchemaArgument& x, const SchemaArgument& y) { return x.name == y.name && x.is_tensor == y.is_tensor && x.is_list == y.is_list; });
}

// The overload that takes the same arguments but those that a call with out= writes.
std::optional<std::string> overload_without_out(const Call& call, const Schema& schema, const SchemaSource& schemas) {
  if (!call.overload.ends_with("out")) return std::nullopt;
  std::vector<std::string> taken;
  for (const SchemaArgument& argument : schema.arguments)
    if (!argument.out) taken.push_back(argument.name);
  std::string stem = call.overload.substr(0, call.overload.size() - std::string_view("out").size());
  if (stem.ends_with('_')) stem.pop_back();
  for (const std::string& overload : {stem, "dim_" + stem, std::string("Tensor"), std::string("Scalar"), std::string("default")}) {
    const auto found = schemas.find(call.callee, overload);
    if (!found || writes(*found) || found->arguments.size() != taken.size()) continue;
    if (std::equal(taken.begin(), taken.end(), found->arguments.begin(),
                   [](const std::string& name, const SchemaArgument& argument) { return name == argument.name; }))
      return overload == "default" ? std::string() : overload;
  }
  return std::nullopt;
}

// out= arguments come last, and calls name them.
std::optional<FunctionalForm> form_without_out(FunctionalForm form, const Schema& schema, const SchemaSource& schemas) {
  const auto overload = overload_without_out(form.call, schema, schemas);
  if (!overload) return std::nullopt;
  form.call.overload = *overload;
  const auto is_out = [&](std::string_view name) {
    return std::any_of(schema.arguments.begin(), schema.arguments.end(), [&](const SchemaArgument& argument) { return argument.out && argument.name == name; });
  };
  std::erase_if(form.call.kwargs, [&](const auto& keyword) { return is_out(keyword.first); });
  form.result_count = schema.returns.size();
  for (size_t i = 0; i < form.result_count; ++i) form.written_results.push_back(i);
  return form;
}

// Arguments that have a default in the schema of the call alone.
void add_defaults(Call& form, const Schema& schema, const std::optional<Schema>& functional) {
  if (!functional) return;
  for (size_t i = form.args.size(); i < std::min(schema.arguments.size(), functional->arguments.size()); ++i) {
    const SchemaArgument &given = schema.arguments[i], &wanted = functional->arguments[i];
    if (given.name != wanted.name || wanted.default_value || !given.default_value || wanted.kwarg_only) return;
    form.args.push_back(*given.default_value);
  }
}

std::optional<FunctionalForm> functional_form(const Call& call, const Schema& schema, const SchemaSource& schemas) {
  FunctionalForm form{call, {}, call.results.size()};
  if (const NamedForm* named = find_named_form(full_name(call))) {
    form.call.callee = named->callee;
    form.call.overload = named->overload;
    form.written_results = {named->written_results.front()};
    if (named->written_results[1] != named->written_results[0]) form.written_results.push_back(named->written_results[1]);
    form.result_count = named->result_count;
    add_defaults(form.call, schema, schemas.find(form.call.callee, form.call.overload));
    return form;
  }
  form.call.callee = functional_callee(call.callee);
  if (form.call.callee == call.callee) return form_without_out(std::move(form), schema, schemas);
  const auto found = schemas.find(form.call.callee, form.call.overload);
  if (!found || writes(*found) || changes_metadata(call.callee) || !take_the_same(schema, *found)) return std::nullopt;
  // An op in place returns its argument, lists of them nothing.
  const bool of_lists = !schema.arguments.empty() && schema.arguments.front().is_list;
  form.call.result_is_list = of_lists;
  if (of_lists) {
    const auto* list = call.args.empty() ? nullptr : call.args.front().as<ArgList>();
    if (list == nullptr) return std::nullopt;
    form.result_count = list->size();
  } else {
    form.result_count = 1;
  }
  for (size_t i = 0; i < form.result_count; ++i) form.written_results.push_back(i);
  return form;
}

class Functionalizer {
 public:
  Functionalizer(const CallGraph& read, const SchemaSource& schemas) : read_(read), schemas_(schemas), states_(read.values.size()) {}

  CallGraph run() {
    out_ = read_;
    out_.calls.clear();
    out_.values.clear();
    uint32_t last = 0;
    for (const CallValueInfo& info : read_.values) last = std::max(last, info.storage);
    for (CallValue id = 0; id < read_.values.size(); ++id) {
      states_[id].storage = read_.values[id].storage != 0 ? read_.values[id].storage : ++last;
      states_[id].root = id;
    }
    for (CallValue& input : out_.inputs) input = add_input(input);
    for (const Call& call : read_.calls) add(call);
    for (Arg& output : out_.outputs) for_each_operand_ref(output, [this](OperandRef& ref) { ref.operand = returned(ref.operand); });
    add_mutations();
    return std::move(out_);
  }

 private:
  // Of a value of read_.
  struct State {
    uint32_t storage = 0;
    CallValue current = 0;          // of out_: its elements as of `version`
    int version = 0;                // of its storage
    bool written = false;           // `current` is what a write gave, not a view
    CallValue root = 0;             // itself, or the value that it is the whole of: the argument of an op in place
    std::optional<CallValue> base;  // the value that it is a view of
    const Call* view = nullptr;     // which is its call
    size_t result = 0;              // and its position among the results
  };

  CallValue add_value(CallValueInfo info) {
    if (versions_.contains(info.storage)) info.storage = 0;  // what it shared memory with has other elements now
    out_.values.push_back(std::move(info));
    return static_cast<CallValue>(out_.values.size() - 1);
  }

  // A new tensor with the metadata of another.
  CallValue add_unnamed(CallValueInfo info) {
    info.name.clear();
    info.storage = 0;
    return add_value(std::move(info));
  }

  CallValue add_input(CallValue input) {
    State& state = states_[input];
    state.current = add_value(read_.values[input]);
    const auto [first, fresh] = roots_.emplace(state.storage, input);
    if (!fresh) join(input, first->second);
    return state.current;
  }

  // Another input with the same memory. Writes need them to be equal.
  void join(CallValue input, CallValue first) {
    const CallValueInfo &a = read_.values[input], &b = read_.values[first];
    if (show_the_same(a, b))
      states_[input].root = first;
    else
      overlapping_.insert(states_[input].storage);
  }

  CallValue root_of(CallValue value) const {
    while (states_[value].root != value) value = states_[value].root;
    return value;
  }

  // The value of out_ that has its elements now.
  CallValue fresh(CallValue value) {
    if (states_[value].root != value && versions_.contains(states_[value].storage)) return fresh(root_of(value));
    State& state = states_[value];
    const auto version = versions_.find(state.storage);
    if (version == versions_.end() || state.version == version->second || !state.base) return state.current;
    Call call = *state.view;
    const CallValue base = fresh(*state.base);
    replace_operands(call, *state.base, base);
    for (size_t r = 0; r < call.results.size(); ++r) {
      const CallValue shown = state.view->results[r];
      call.results[r] = add_unnamed(read_.values[shown]);
      states_[shown].current = call.results[r];
      states_[shown].version = version->second;
      states_[shown].written = false;
    }
    out_.calls.push_back(std::move(call));
    return state.current;
  }

  // Of an output, whose caller sees what it shares memory with: a view of the last version, not what a write to it
  // gave.
  CallValue returned(CallValue value) {
    value = root_of(value);
    std::vector<CallValue> views;
    for (CallValue at = value; versions_.contains(states_[at].storage) && states_[at].base; at = root_of(*states_[at].base)) {
      views.push_back(at);
      if (states_[at].written)
        for (CallValue view : views) states_[view].version = -1;
    }
    return fresh(value);
  }

  void replace_operands(Call& call, CallValue base, CallValue current) {
    for_each_operand_ref(call, [&](OperandRef& ref) { ref.operand = ref.operand == base ? current : fresh(ref.operand); });
  }

  void add(const Call& call) {
    const auto schema = schemas_.find(call.callee, call.overload);
    if (!schema) return add_pure(call, CallEffects{std::vector<int>(call.results.size(), -1), {}});
    const CallEffects effects = effects_of_call(call.args, call.kwargs, *schema, call.results.size());
    if (effects.mutated_operands.empty()) return add_pure(call, effects);
    add_write(call, *schema, effects);
  }

  void add_pure(const Call& call, const CallEffects& effects) {
    Call copy = call;
    for_each_operand_ref(copy, [this](OperandRef& ref) { ref.operand = fresh(ref.operand); });
    for (size_t r = 0; r < call.results.size(); ++r) {
      State& state = states_[call.results[r]];
      copy.results[r] = state.current = add_value(read_.values[call.results[r]]);
      if (const auto version = versions_.find(state.storage); version != versions_.end()) state.version = version->second;
      const int alias = effects.alias_of[r];
      if (alias < 0 || states_[static_cast<CallValue>(alias)].storage != state.storage) continue;
      state.base = static_cast<CallValue>(alias);
      state.view = &call;
      state.result = r;
    }
    out_.calls.push_back(std::move(copy));
  }

  void add_write(const Call& call, const Schema& schema, const CallEffects& effects) {
    auto form = functional_form(call, schema, schemas_);
    const std::vector<CallValue> written = written_operands(call, schema);
    if (!form) return add_write_to_copies(call, effects, written);
    std::set<uint32_t> storages;
    for (CallValue value : written) {
      check_random(call, value);
      if (!storages.insert(states_[value].storage).second) throw_unsupported("{}: it writes to two tensors of one memory", describe(read_, call));
    }
    for_each_operand_ref(form->call, [this](OperandRef& ref) { ref.operand = fresh(ref.operand); });
    define_results(call, written, *form);
    const std::vector<CallValue> results = form->call.results;
    const OriginId origin = call.origin;
    out_.calls.push_back(std::move(form->call));
    for (size_t w = 0; w < written.size(); ++w) write(written[w], laid_out_as(written[w], results[form->written_results[w]], origin), origin);
    // Results of the call that are its arguments; others have been defined.
    for (size_t r = 0; r < call.results.size(); ++r)
      if (const int alias = effects.alias_of[r]; alias >= 0) states_[call.results[r]].root = root_of(static_cast<CallValue>(alias));
  }

  // A call that no other op stands for: it writes to copies of what it writes to and of all that this is a view of.
  void add_write_to_copies(const Call& call, const CallEffects& effects, const std::vector<CallValue>& written) {
    if (call.callee.starts_with("aten::") || changes_metadata(call.callee))
      throw_unsupported("{}: it writes to an argument and has no form that returns it", describe(read_, call));
    std::map<uint32_t, std::pair<CallValue, CallValue>> copies;  // by storage: a value of read_ that shows all of it, its copy of out_
    for (CallValue value : written) {
      if (overlapping_.contains(states_[value].storage)) throw_unsupported("a write to an input whose memory another input shows in another form");
      CallValue whole = root_of(value);
      while (states_[whole].base) whole = root_of(*states_[whole].base);
      const auto [copy, fresh_one] = copies.try_emplace(states_[value].storage, whole, 0);
      if (fresh_one)
        copy->second.second = copy_of(whole, call.origin);
      else if (copy->second.first != whole)
        throw_unsupported("{}: it writes to two tensors of one memory", describe(read_, call));
    }
    Call on_copies = call;
    for_each_operand_ref(on_copies, [&](OperandRef& ref) {
      const auto copy = copies.find(states_[ref.operand].storage);
      ref.operand = copy == copies.end() ? fresh(ref.operand) : view_of_copy(ref.operand, copy->second);
    });
    for (size_t r = 0; r < call.results.size(); ++r) {
      State& state = states_[call.results[r]];
      if (const int alias = effects.alias_of[r]; alias >= 0) state.root = root_of(static_cast<CallValue>(alias));
      on_copies.results[r] = state.current = add_value(read_.values[call.results[r]]);
    }
    out_.calls.push_back(std::move(on_copies));
    for (const auto& [storage, copy] : copies) {
      const auto& [whole, current] = copy;
      states_[whole].current = current;
      states_[whole].version = ++versions_[storage];
      states_[whole].written = true;
    }
  }

  // In the strides of the tensor.
  CallValue copy_of(CallValue whole, OriginId origin) {
    ProvenSizes sizes(read_.assumptions);
    if (!is_dense(read_.values[whole], sizes))
      throw_unsupported("a call of a custom op that writes to a tensor with strides {}", print_expr_list(read_.values[whole].strides));
    Call copy;
    copy.callee = "aten::clone";
    copy.args = {OperandRef{fresh(whole)}};
    copy.origin = origin;
    CallValueInfo info = read_.values[whole];
    info.storage_offset = 0;
    copy.results = {add_unnamed(std::move(info))};
    out_.calls.push_back(std::move(copy));
    return out_.calls.back().results.front();
  }

  // What `value` shows of a tensor, of the copy of that. copy: the tensor (of read_) and the copy.
  CallValue view_of_copy(CallValue value, const std::pair<CallValue, CallValue>& copy) {
    value = root_of(value);
    if (value == copy.first) return copy.second;
    const State& state = states_[value];
    if (!state.base) throw_unsupported("a call of a custom op that writes to memory of tensor '{}'", read_.values[value].name);
    Call view = *state.view;
    const CallValue base = view_of_copy(*state.base, copy);
    replace_operands(view, *state.base, base);
    for (CallValue& shown : view.results) shown = add_unnamed(read_.values[shown]);
    out_.calls.push_back(std::move(view));
    return out_.calls.back().results[state.result];
  }

  // What returns random numbers draws them for a copy, which has no gaps: in the order of memory, as eager does. But
  // normal_ takes another way where there are gaps, and bernoulli.p draws in the order of rows.
  void check_random(const Call& call, CallValue written) const {
    const CallValueInfo& info = read_.values[written];
    ProvenSizes sizes(read_.assumptions);
    if ((call.callee == "aten::normal_" && !is_dense(info, sizes)) || (full_name(call) == "aten::bernoulli_.float" && !is_contiguous(info, sizes)))
      throw_unsupported("{}: it writes random numbers to strides {}", describe(read_, call), print_expr_list(info.strides));
  }

  // In the order of the schema, lists by item.
  std::vector<CallValue> written_operands(const Call& call, const Schema& schema) const {
    std::vector<CallValue> written;
    const auto collect = [&](OperandRef ref) { written.push_back(ref.operand); };
    for (size_t i = 0; i < schema.arguments.size(); ++i) {
      if (!schema.arguments[i].written) continue;
      if (i < call.args.size()) for_each_operand_ref(call.args[i], collect);
      for (const auto& [name, arg] : call.kwargs)
        if (name == schema.arguments[i].name) for_each_operand_ref(arg, collect);
    }
    return written;
  }

  void define_results(const Call& call, const std::vector<CallValue>& written, FunctionalForm& form) {
    form.call.results.clear();
    ProvenSizes sizes(read_.assumptions);
    const auto inferred = infer(out_, form.call, schemas_, sizes);
    for (size_t r = 0; r < form.result_count; ++r) {
      const auto position = std::find(form.written_results.begin(), form.written_results.end(), r);
      if (position == form.written_results.end()) {  // a result of the call beside what it writes
        State& state = states_[call.results[r]];
        form.call.results.push_back(state.current = add_value(read_.values[call.results[r]]));
      } else if (inferred && inferred->size() == form.result_count) {
        form.call.results.push_back(add_unnamed((*inferred)[r]));
      } else {
        form.call.results.push_back(add_unnamed(read_.values[written.at(static_cast<size_t>(position - form.written_results.begin()))]));
      }
    }
  }

  // As a tensor with the metadata of the value that it is written to.
  CallValue laid_out_as(CallValue written, CallValue result, OriginId origin) {
    const CallValueInfo &wanted = read_.values[written], &found = out_.values[result];
    if (wanted.dtype == found.dtype && wanted.sizes == found.sizes && wanted.strides == found.strides) return result;
    Call copy;
    copy.callee = "aten::copy";
    copy.args = {OperandRef{fresh(written)}, OperandRef{result}};
    copy.origin = origin;
    copy.results = {add_unnamed(wanted)};
    out_.calls.push_back(std::move(copy));
    return out_.calls.back().results.front();
  }

  // `value` (of read_) and what it is a view of get new elements.
  void write(CallValue value, CallValue changed, OriginId origin) {
    value = root_of(value);
    const uint32_t storage = states_[value].storage;
    if (overlapping_.contains(storage)) throw_unsupported("a write to an input whose memory another input shows in another form");
    std::vector<std::pair<CallValue, CallValue>> path{{value, changed}};  // of read_, of out_
    for (CallValue at = value; states_[at].base;) {
      const State& state = states_[at];
      const CallValue base = root_of(*state.base), before = fresh(base);
      Call view = *state.view;
      for (CallValue& shown : view.results) shown = states_[shown].current;
      Call scatter = inverse_of_view(out_, view, state.result, before, path.back().second);
      scatter.origin = origin;
      scatter.results = {add_unnamed(read_.values[base])};
      path.emplace_back(base, scatter.results.front());
      out_.calls.push_back(std::move(scatter));
      at = base;
    }
    const int version = ++versions_[storage];
    for (const auto& [old, current] : path) {
      states_[old].current = current;
      states_[old].version = version;
      states_[old].written = true;
    }
  }

  void add_mutations() {
    std::map<uint32_t, CallValue> last;
    for (const auto& [input, value] : read_.mutations) last[input] = fresh(value);
    for (uint32_t i = 0; i < read_.inputs.size(); ++i) {
      const CallValue input = read_.inputs[i];
      if (versions_.contains(states_[input].storage)) last[i] = fresh(input);
    }
    out_.mutations.assign(last.begin(), last.end());
  }

  const CallGraph& read_;
  const SchemaSource& schemas_;
  CallGraph out_;
  std::vector<State> states_;
  std::map<uint32_t, int> versions_;     // by storage: how many writes
  std::map<uint32_t, CallValue> roots_;  // by storage: the first input
  std::set<uint32_t> overlapping_;       // storages that inputs show in several forms
};

}  // namespace

std::pair<std::string, std::string> functional_name(const Call& call, const SchemaSource& schemas) {
  if (const NamedForm* named = find_named_form(full_name(call))) return {std::string(named->callee), std::string(named->overload)};
  if (const auto schema = schemas.find(call.callee, call.overload))
    if (const auto overload = overload_without_out(call, *schema, schemas)) return {call.callee, *overload};
  return {std::string(functional_callee(call.callee)), call.overload};
}

CallGraph functionalize(const CallGraph& calls, const SchemaSource& schemas) { return Functionalizer(calls, schemas).run(); }

}  // namespace cxxinductor::model
