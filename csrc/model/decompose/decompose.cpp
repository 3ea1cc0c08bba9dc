#include "model/decompose/decompose.h"

#include <algorithm>
#include <utility>

#include "model/decompose/fragment.h"
#include "support/error.h"
#include "support/fork_locks.h"

namespace cxxinductor::model {
namespace {

struct Tables {
  DecomposeTable decompositions, recompute_forms;
};

const DecomposeTable& rules_of(Fragments table) {
  static constinit MadeOnce<Tables, ForkLock::Tables> made;
  const Tables& tables = made.get([] {
    Tables filled;
    add_loss_decompositions(filled.decompositions);
    add_movement_decompositions(filled.decompositions);
    add_norm_decompositions(filled.decompositions);
    add_recompute_forms(filled.recompute_forms);
    return filled;
  });
  return table == Fragments::Decompositions ? tables.decompositions : tables.recompute_forms;
}

// Forms for the backward pass call the same op, of whose results less has to be kept.
bool decomposes_in_turn(Fragments table) { return table == Fragments::Decompositions; }

class Decomposer {
 public:
  // in_turn: calls that fragments make are decomposed, too.
  Decomposer(const CallGraph& calls, const SchemaSource& schemas, const DecomposeTable& table, bool in_turn)
      : out_(calls), schemas_(schemas), table_(table), in_turn_(in_turn), rules_(schemas), sizes_(out_.assumptions) {}

  CallGraph run() {
    add_calls_from(0);
    for (Arg& output : out_.outputs) for_each_operand_ref(output, [this](OperandRef& ref) { ref.operand = current_[ref.operand]; });
    for (auto& [input, last] : out_.mutations) last = current_[last];
    drop_unused_values();
    return std::move(out_);
  }

  size_t replaced() const { return replaced_; }

 private:
  // Takes the calls from `first` on off the end, and adds each of them again, or its fragment.
  void add_calls_from(size_t first) {
    std::vector<Call> taken(std::make_move_iterator(out_.calls.begin() + static_cast<ptrdiff_t>(first)), std::make_move_iterator(out_.calls.end()));
    out_.calls.resize(first);
    for (CallValue id = static_cast<CallValue>(current_.size()); id < out_.values.size(); ++id) current_.push_back(id);
    for (Call& call : taken) {
      for_each_operand_ref(call, [this](OperandRef& ref) { ref.operand = current_[ref.operand]; });
      if (replace(call))
        ++replaced_;
      else
        out_.calls.push_back(std::move(call));
    }
  }

  bool replace(const Call& call) {
    const auto row = table_.find(full_name(call));
    if (row == table_.end()) return false;
    const auto schema = schemas_.find(call.callee, call.overload);
    if (!schema) return false;
    const size_t values = out_.values.size(), calls = out_.calls.size();
    Fragment fragment(out_, call, *schema, rules_, sizes_);
    bool done = false;
    try {
      const Replacement found = row->second(fragment);
      done = found && take(call, fragment, *found);
    } catch (const Fragment::NoRule&) {
    } catch (const UserError&) {  // sizes that no rule takes: the call raises as eager does
    }
    if (done) {
      if (in_turn_) decompose_fragment(call, calls);
      return true;
    }
    out_.values.resize(values);
    out_.calls.resize(calls);
    return false;
  }

  // The calls of the fragment of `call`, which begins at `first`, in turn.
  void decompose_fragment(const Call& call, size_t first) {
    const std::string name = full_name(call);
    if (std::ranges::find(open_, name) != open_.end()) throw_internal("{}: its decomposition calls it again: {} -> {}", name, fmt::join(open_, " -> "), name);
    open_.push_back(name);
    add_calls_from(first);
    open_.pop_back();
    for (CallValue result : call.results) current_[result] = current_[current_[result]];
  }

  // The replacements, in the types and layouts that the call's results have.
  bool take(const Call& call, Fragment& fragment, std::vector<Arg> found) {
    if (found.size() != call.results.size()) throw_internal("{}: its rule makes {} results", describe(out_, call), found.size());
    for (size_t r = 0; r < found.size(); ++r) {
      const CallValueInfo wanted = fragment.result(r);
      if (wanted.kind == CallValueInfo::Kind::None || found[r].is_none()) continue;
      found[r] = fragment.cast(found[r], wanted.dtype);
      if (is_laid_out(wanted, fragment.info(found[r]))) continue;
      const auto format = format_of(wanted);
      if (!format) return false;
      found[r] = fragment("aten::clone", {found[r]}, {{"memory_format", MemoryFormatArg{*format}}});
      if (!is_laid_out(wanted, fragment.info(found[r]))) return false;
    }
    for (size_t r = 0; r < found.size(); ++r)
      if (found[r].is_none() && out_.values[call.results[r]].kind != CallValueInfo::Kind::None) return false;
    for (size_t r = 0; r < found.size(); ++r) {
      if (found[r].is_none()) continue;
      const CallValue result = call.results[r], value = found[r].as<OperandRef>()->operand;
      current_[result] = value;
      if (out_.values[value].name.empty()) std::swap(out_.values[value].name, out_.values[result].name);
    }
    return true;
  }

  bool is_laid_out(const CallValueInfo& wanted, const CallValueInfo& found) {
    if (wanted.sizes.size() != found.sizes.size()) return false;
    for (size_t d = 0; d < wanted.sizes.size(); ++d) {
      if (!sizes_.are_equal(wanted.sizes[d], found.sizes[d])) return false;
      if (!sizes_.are_equal(wanted.strides[d], found.strides[d]) && !sizes_.are_equal(wanted.sizes[d], 1)) return false;
    }
    return wanted.device == found.device;
  }

  std::optional<int> format_of(const CallValueInfo& wanted) {
    if (is_contiguous(wanted, sizes_)) return static_cast<int>(MemoryFormat::Contiguous);
    const size_t rank = wanted.sizes.size();
    if ((rank == 4 || rank == 5) && is_channels_last_contiguous(wanted, sizes_))
      return static_cast<int>(rank == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d);
    return std::nullopt;
  }

  // Those of calls that are replaced: every value is an input or a call's result.
  void drop_unused_values() {
    std::vector<CallValue> number(out_.values.size(), 0);
    std::vector<CallValueInfo> kept;
    const auto keep = [&](CallValue& value) {
      number[value] = static_cast<CallValue>(kept.size());
      kept.push_back(std::move(out_.values[value]));
      value = number[value];
    };
    for (CallValue& input : out_.inputs) keep(input);
    for (Call& call : out_.calls) {
      for_each_operand_ref(call, [&](OperandRef& ref) { ref.operand = number[ref.operand]; });
      for (CallValue& result : call.results) keep(result);
    }
    for (Arg& output : out_.outputs) for_each_operand_ref(output, [&](OperandRef& ref) { ref.operand = number[ref.operand]; });
    for (auto& [input, last] : out_.mutations) last = number[last];
    out_.values = std::move(kept);
  }

  CallGraph out_;
  const SchemaSource& schemas_;
  const DecomposeTable& table_;
  const bool in_turn_;
  RuleCache rules_;
  ProvenSizes sizes_;
  std::vector<CallValue> current_;  // what stands for each value
  std::vector<std::string> open_;   // ops whose fragments are decomposed now, each in that of the one before
  size_t replaced_ = 0;             // calls
};

}  // namespace

CallGraph decompose(const CallGraph& calls, const SchemaSource& schemas, Fragments table) {
  return Decomposer(calls, schemas, rules_of(table), decomposes_in_turn(table)).run();
}

CallGraph decompose(const CallGraph& calls, const SchemaSource& schemas, const DecomposeTable& table) { return Decomposer(calls, schemas, table, true).run(); }

std::optional<CallGraph> fragment_of(CallGraph graph, const SchemaSource& schemas, Fragments table) {
  if (graph.calls.size() != 1) throw_user_error("expected a graph of 1 call, found {}", graph.calls.size());
  Call& call = graph.calls.front();
  if (!rules_of(table).contains(full_name(call))) return std::nullopt;
  if (call.results.empty()) {
    ProvenSizes sizes(graph.assumptions);
    const auto results = infer(graph, call, schemas, sizes);
    if (!results) return std::nullopt;
    for (const CallValueInfo& info : *results) {
      call.results.push_back(static_cast<CallValue>(graph.values.size()));
      graph.values.push_back(info);
    }
  }
  for (CallValue result : call.results) graph.outputs.push_back(graph.values[result].kind == CallValueInfo::Kind::None ? Arg() : Arg(OperandRef{result}));
  Decomposer decomposer(graph, schemas, rules_of(table), decomposes_in_turn(table));
  CallGraph found = decomposer.run();
  return decomposer.replaced() == 0 ? std::nullopt : std::optional(std::move(found));
}

std::vector<std::string> ops_with_fragments(Fragments table) {
  std::vector<std::string> names;
  for (const auto& [name, rule] : rules_of(table)) names.push_back(name);
  return names;
}

}  // namespace cxxinductor::model
