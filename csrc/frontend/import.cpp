#include "frontend/import.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "frontend/aten_table.h"
#include "frontend/externs.h"
#include "frontend/importer.h"
#include "ir/device_types.h"
#include "ir/graph/infer.h"
#include "ir/graph/symbols.h"
#include "ir/strides.h"
#include "model/foreach.h"
#include "support/error.h"
#include "sym/simplify.h"

namespace cxxinductor::frontend {
namespace {

bool takes(Accepts accepts, DType dtype) {
  if (accepts == Accepts::Any) return true;
  if (is_opaque(dtype)) return false;
  const bool narrow = dtype == DType::F8E4M3FN || dtype == DType::F8E5M2;
  return accepts == Accepts::Copies || !narrow;
}

class Import {
 public:
  Import(const CallGraph& calls, const SchemaSource& schemas, const ImportEnvironment& environment)
      : calls_(calls), schemas_(schemas), environment_(environment), values_(calls.values.size()), build_(graph_) {
    for (const CallValueInfo& info : calls.values) leaves_host_ = leaves_host_ || (info.kind == CallValueInfo::Kind::Tensor && !in_host_memory(info.device));
  }

  graph::Graph run() {
    graph_.name = calls_.name.empty() ? "graph" : calls_.name;
    graph_.assumptions = calls_.assumptions;
    graph_.origins = calls_.origins;
    for (size_t i = 0; i < calls_.inputs.size(); ++i) import_input(i);
    for (const Call& call : calls_.calls) import_call(call);
    for (const auto& [input, value] : calls_.mutations) record_mutation(input, tensor_of(value));
    for (const auto& [input, value] : mutated_) record_versions(input, value);
    for (size_t i = 0; i < calls_.outputs.size(); ++i) {
      import_output(calls_.outputs[i], calls_.flexible_outputs.count(static_cast<uint32_t>(i)) != 0);
    }
    return std::move(graph_);
  }

  // After run, which gave the graph away.
  std::vector<ImportedName> names(const graph::Graph& graph) const {
    std::vector<ImportedName> found;
    for (CallValue id = 0; id < values_.size(); ++id) {
      if (values_[id]) found.push_back({graph.values[*values_[id]].name, id});
    }
    // An output may be a copy that the import made.
    for (size_t i = 0; i < calls_.outputs.size(); ++i) {
      const OperandRef* ref = calls_.outputs[i].as<OperandRef>();
      if (ref != nullptr && graph.outputs[i].kind == graph::Output::Kind::Tensor) found.push_back({graph.values[graph.outputs[i].value].name, ref->operand});
    }
    return found;
  }

  const CallReasons& reasons() const { return reasons_; }

 private:
  void import_input(size_t position) {
    const CallValue id = calls_.inputs[position];
    const CallValueInfo& info = calls_.values[id];
    if (info.kind == CallValueInfo::Kind::Tensor) {
      const auto found = calls_.input_strides.find(static_cast<uint32_t>(position));
      const Sizes& strides = found == calls_.input_strides.end() ? info.strides : found->second;
      values_[id] = build_.input(info.name, info.dtype, info.device, info.sizes, strides_of_elements(info.sizes, strides));
      graph_.inputs.back().donated = calls_.donated.contains(static_cast<uint32_t>(position));
      graph_.inputs.back().frozen = calls_.frozen.contains(static_cast<uint32_t>(position));
      input_positions_[*values_[id]] = static_cast<uint32_t>(position);
      for (sym::Expr e : info.sizes) know_symbols(e);
      for (sym::Expr e : info.strides) know_symbols(e);
    } else if (info.kind == CallValueInfo::Kind::SymFloat) {
      values_[id] = build_.input(info.name, DType::F64, {}, {}, {});
    } else if (info.kind == CallValueInfo::Kind::SymInt && info.symbol.is_symbol()) {
      build_.symbol_input(std::string(info.symbol.name()), calls_.assumptions.range(info.symbol.name()));
      know_symbols(info.symbol);
    } else {  // read through tensors' sizes, or only handed on
      graph::Input input;
      input.kind = graph::Input::Kind::Opaque;
      graph_.inputs.push_back(input);
    }
    const bool named = position < calls_.input_sources.size() && !calls_.input_sources[position].empty();
    graph_.inputs.back().source = named ? calls_.input_sources[position] : info.name;
  }

  void know_symbols(sym::Expr e) {
    for (sym::Expr symbol : e.free_symbols()) known_.insert(std::string(symbol.name()));
  }

  bool is_known(sym::Expr e) const {
    const auto& symbols = e.free_symbols();
    return std::all_of(symbols.begin(), symbols.end(), [this](sym::Expr s) { return known_.count(std::string(s.name())) != 0; });
  }

  ValueId tensor_of(CallValue id) const {
    if (id >= values_.size() || !values_[id]) {
      throw_unsupported("%{} is used as a tensor but no call made it", id < values_.size() ? calls_.values[id].name : "?");
    }
    return *values_[id];
  }

  // Sizes read through metadata: their expressions are in every use already.
  bool is_symbolic(const Call& call) const {
    if (call.results.empty()) return false;
    for (CallValue id : call.results) {
      const CallValueInfo& info = calls_.values[id];
      if (info.kind != CallValueInfo::Kind::SymInt || !is_known(info.symbol)) return false;
    }
    return true;
  }

  bool is_copy_to_input(const Call& call) const {
    if (call.callee != "aten::copy_" || call.args.size() < 2) return false;
    const OperandRef* target = call.args[0].as<OperandRef>();
    return target != nullptr && values_[target->operand] && input_positions_.count(*values_[target->operand]) != 0 &&
           !is_opaque(calls_.values[target->operand].dtype);
  }

  // aten::copy_(input, value): the value, as the input's dtype and sizes, is the input's last version.
  void import_copy_to_input(const Call& call) {
    CallContext context(build_, calls_, environment_, call, values_);
    const ValueId input = context.tensor(0, "self");
    const graph::Value last = graph_.values[input];
    // Eager converts where the source is, too.
    const ValueId source = context.tensor(1, "src");
    ValueId value = build_.cast(context.scalar_constant_on_result_device(source).value_or(source), last.dtype);
    if (graph_.values[value].device != last.device) value = copied_to_device(build_, value, last.device);
    value = expanded(value, last.sizes);
    record_mutation(input_positions_.at(input), own_copy(value));
    for (CallValue result : call.results) values_[result] = value;
  }

  ValueId expanded(ValueId value, const Sizes& sizes) {
    if (graph::same_sizes(graph_.assumptions, graph_.values[value].sizes, sizes)) return value;
    return build_.expand(value, sizes);
  }

  // A value that nothing else claims the storage of: itself, unless it is an input, or part of one, or ends in an
  // input.
  ValueId own_copy(ValueId value) {
    ValueId root = value;
    while (graph_.values[root].producer.valid() && graph::is_view(node_of(root).kind)) {
      root = std::get<ValueId>(node_of(root).operands.front());
    }
    const bool taken = !graph_.values[root].producer.valid() || ends_in_input(root) || ends_in_input(value);
    return taken ? build_.elementwise(ScalarOp::Identity, {value}) : value;
  }

  const graph::Node& node_of(ValueId value) const { return graph_.nodes[graph_.values[value].producer]; }

  bool ends_in_input(ValueId value) const {
    return std::any_of(mutated_.begin(), mutated_.end(), [value](const auto& item) { return item.second == value; });
  }

  void record_mutation(uint32_t input, ValueId value) {
    const auto [found, fresh] = mutated_.try_emplace(input, value);
    if (!fresh) earlier_[input].push_back(std::exchange(found->second, value));
  }

  // Earlier versions matter where something may raise while an input holds them.
  void record_versions(uint32_t input, ValueId last) {
    std::vector<ValueId> versions = earlier_[input];
    versions.push_back(last);
    for (size_t i = 0; i + 1 < versions.size(); ++i)
      if (may_raise_between(versions[i], versions[i + 1])) build_.mutation(input, versions[i]);
    build_.mutation(input, last);
  }

  bool may_raise_between(ValueId made, ValueId next) const {
    const graph::NodeId first = graph_.values[made].producer, end = graph_.values[next].producer;
    if (!first.valid() || !end.valid()) return false;
    for (size_t n = first.index() + 1; n < end.index(); ++n)
      if (graph::may_raise(graph_, graph_.nodes[graph::NodeId(n)])) return true;
    return false;
  }

  void import_call(const Call& call) {
    build_.set_origin(call.origin);
    if (const auto each = model::calls_of_foreach(call)) {
      for (const Call& single : *each) import_call(single);
      return;
    }
    if (is_symbolic(call)) return;
    if (is_copy_to_input(call)) return import_copy_to_input(call);
    CallContext context(build_, calls_, environment_, call, values_);
    if (is_scalar_read(call)) {
      const sym::Expr symbol = calls_.values[call.results[0]].symbol;
      import_scalar_read(context, std::string(symbol.name()));
      record_reason(context);
      return know_symbols(symbol);
    }
    if (is_implied_assertion(call)) return keep_definitions(call.args[0]);
    const size_t nodes_before = graph_.nodes.size();
    Results results = defines_symbols(context) ? context.decline("the sizes of its result depend on the elements of its arguments") : import_natively(context);
    if (!results) {
      results = import_extern(context, calls_, schemas_);
      record_reason(context);
      add_definitions(context, graph_.nodes[graph::NodeId(graph_.nodes.size() - 1)]);
    }
    record_results(context, *results, nodes_before);
  }

  void record_reason(const CallContext& context) {
    const std::string& callee = context.call().callee;
    reasons_[callee].insert(context.declined().empty() ? std::string(reason_of_call(callee)) : context.declined());
  }

  bool is_scalar_read(const Call& call) const {
    if (call.callee != "aten::_local_scalar_dense" || call.results.size() != 1) return false;
    const CallValueInfo& info = calls_.values[call.results[0]];
    return info.kind == CallValueInfo::Kind::SymInt && info.symbol.is_symbol();
  }

  // The ranges of the symbols imply it. Those are checked where the symbols are defined.
  bool is_implied_assertion(const Call& call) const {
    if (call.callee != "aten::_assert_scalar" || call.args.empty()) return false;
    const auto* integer = call.args[0].as<int64_t>();
    const auto* condition = call.args[0].as<sym::Expr>();
    return integer ? *integer != 0 : condition && sym::prove_less(0, *condition, graph_.assumptions).value_or(false);
  }

  // Definitions check ranges that were asserted: they stay, although nothing else may use the symbols.
  void keep_definitions(const Arg& condition) {
    const auto* e = condition.as<sym::Expr>();
    if (!e) return;
    const graph::Definers definers = graph::find_definers(graph_);
    for (sym::Expr symbol : e->free_symbols())
      if (const auto found = definers.find(symbol.name()); found != definers.end()) graph_.nodes[found->second].as<graph::Extern>()->ordered = true;
  }

  bool defines_symbols(const CallContext& context) const {
    for (size_t i = 0; i < context.result_count(); ++i) {
      const CallValueInfo& info = context.result(i);
      if (!std::all_of(info.sizes.begin(), info.sizes.end(), [this](sym::Expr e) { return is_known(e); })) return true;
    }
    return false;
  }

  // Symbols that nothing before the call names are read off the sizes and strides that it gives its results.
  void add_definitions(const CallContext& context, graph::Node& node) {
    graph::Extern& callee = *node.as<graph::Extern>();
    for (const Operand& operand : node.operands)
      if (const auto* e = std::get_if<sym::Expr>(&operand); e && !is_known(*e))
        context.reject(fmt::format("takes the size {}, whose symbols nothing defines", to_string(*e)));
    for (size_t i = 0; i < context.result_count(); ++i) {
      const CallValueInfo& info = context.result(i);
      if (info.kind == CallValueInfo::Kind::SymInt && !is_known(info.symbol)) context.reject(fmt::format("returns the size {}", to_string(info.symbol)));
      for (size_t d = 0; d < 2 * info.sizes.size(); ++d) {
        const sym::Expr e = d < info.sizes.size() ? info.sizes[d] : info.strides[d - info.sizes.size()];
        if (!e.is_symbol() || is_known(e)) continue;
        callee.defines.push_back({std::string(e.name()), static_cast<int>(i), static_cast<int>(d)});
        callee.planned_out = false;
        know_symbols(e);
      }
    }
    for (size_t i = 0; i < context.result_count(); ++i)
      for (sym::Expr e : context.result(i).sizes)
        if (!is_known(e)) context.reject(fmt::format("has a result of size {}, whose symbols nothing defines", to_string(e)));
  }

  Results import_natively(CallContext& context) {
    const ImportRow* row = find_row(full_name(context.call()));
    if (row == nullptr) return std::nullopt;
    if (context.result_count() == 0) return context.decline("it has no result");
    for (size_t i = 0; i < context.result_count(); ++i) {
      const CallValueInfo& info = context.result(i);
      if (info.kind != CallValueInfo::Kind::Tensor) return context.decline("a result of it is not a tensor");
      if (!takes(row->accepts, info.dtype)) return context.decline(no_kernels_of(info.dtype));
    }
    for (const Arg& arg : context.call().args) {
      if (!fits(context, arg, *row)) return std::nullopt;
    }
    for (const auto& [name, arg] : context.call().kwargs) {
      if (!fits(context, arg, *row)) return std::nullopt;
    }
    // Constants are exempt: who uses them on another device has them there.
    const bool needs_cpu_kernel = leaves_host_ && in_host_memory(context.result().device) && row->accepts != Accepts::Any;
    if (needs_cpu_kernel && !environment_.cpu_kernels && !makes_a_number(context))
      return context.decline("it computes on the CPU, for which no compiler was found");
    return row->registered ? import_registered(*row, context) : row->importer(context);
  }

  Results import_registered(const ImportRow& row, CallContext& context) {
    const auto schema = schemas_.find(context.call().callee, context.call().overload);
    const std::optional<Call> call = schema ? with_positional_arguments(context.call(), *schema) : std::nullopt;
    if (!call) return context.decline("its schema does not state all of its arguments");
    CallContext positional(build_, calls_, environment_, *call, values_);
    Results results = row.importer(positional);
    return results ? results : context.decline(positional.declined());
  }

  static std::string no_kernels_of(DType dtype) { return fmt::format("kernels do not compute on {}", to_string(dtype)); }

  // A tensor of a dtype that the row takes, on the result's device; rank-0 CPU constants may stand in CUDA calls.
  bool fits(const CallContext& context, const Arg& arg, const ImportRow& row) const {
    if (const ArgList* list = arg.as<ArgList>()) {
      return std::all_of(list->begin(), list->end(), [&](const Arg& item) { return fits(context, item, row); });
    }
    const Accepts accepts = row.accepts;
    const OperandRef* ref = arg.as<OperandRef>();
    if (ref == nullptr) return true;
    const CallValueInfo& info = calls_.values[ref->operand];
    if (info.kind == CallValueInfo::Kind::SymInt) return true;
    if (info.kind == CallValueInfo::Kind::SymFloat && context.as_given_real(arg)) {
      if (!row.given_reals) context.decline("a number of it differs between calls");
      return row.given_reals;
    }
    if (info.kind != CallValueInfo::Kind::Tensor) {
      context.decline("an argument of it is neither a tensor nor an integer");
      return false;
    }
    if (!takes(accepts, info.dtype)) {
      context.decline(no_kernels_of(info.dtype));
      return false;
    }
    if (info.device == context.result().device || row.any_device) return true;
    if (accepts == Accepts::Arithmetic && row.host_scalars && is_host_scalar(context, *ref)) return true;
    if (row.host_constants && is_generated_on_host(context, *ref)) return true;
    if (accepts == Accepts::Arithmetic && is_host_constant(context, *ref)) return true;
    context.decline("its arguments are on different devices");
    return false;
  }

  // A tensor in the host's memory in a graph that uses other memory, and no constant.
  bool is_host_tensor(const CallContext& context, OperandRef ref) const {
    const CallValueInfo& info = calls_.values[ref.operand];
    return leaves_host_ && info.kind == CallValueInfo::Kind::Tensor && in_host_memory(info.device) && !is_host_constant(context, ref);
  }

  // A rank-0 tensor in the host's memory.
  bool is_host_scalar(const CallContext& context, OperandRef ref) const {
    const auto& id = values_[ref.operand];
    return id && is_host_tensor(context, ref) && context.value(*id).sizes.empty();
  }

  // Rank 0, and made of nothing or of such numbers.
  bool makes_a_number(const CallContext& context) const {
    const std::vector<Arg>& args = context.call().args;
    return context.result_count() == 1 && context.result().sizes.empty() && std::all_of(args.begin(), args.end(), [&](const Arg& arg) {
             const OperandRef* ref = arg.as<OperandRef>();
             return ref == nullptr || calls_.values[ref->operand].kind != CallValueInfo::Kind::Tensor || is_host_constant(context, *ref);
           });
  }

  bool is_generated_on_host(const CallContext& context, OperandRef ref) const {
    const auto& id = values_[ref.operand];
    return id && in_host_memory(context.value(*id).device) && context.is_generated(*id);
  }

  bool is_host_constant(const CallContext& context, OperandRef ref) const {
    const auto& id = values_[ref.operand];
    return id && in_host_memory(context.value(*id).device) && context.is_scalar_constant(*id);
  }

  void record_results(const CallContext& context, const std::vector<ValueId>& results, size_t nodes_before) {
    const Call& call = context.call();
    CXXI_CHECK(results.size() == call.results.size(), "{}: built {} results, the reader has {}", context.description(), results.size(), call.results.size());
    for (size_t i = 0; i < results.size(); ++i) {
      const CallValueInfo& info = context.result(i);
      if (info.kind != CallValueInfo::Kind::Tensor) continue;
      graph::Value& value = graph_.values[results[i]];
      check_result(context, value, info);
      values_[call.results[i]] = results[i];
      const bool made_here = value.producer.valid() && value.producer.index() >= nodes_before;
      if (made_here && !graph::is_view(graph_.nodes[value.producer].kind)) {
        value.device = info.device;
        value.layout.strides = strides_of_elements(info.sizes, info.strides);
      } else {
        values_[call.results[i]] = with_unit_strides(results[i], info, made_here);
      }
    }
  }

  // A view, or a value that was there before, with eager's strides in the dimensions of size 1: they place no elements, but
  // calls choose memory formats by them.
  ValueId with_unit_strides(ValueId id, const CallValueInfo& info, bool made_here) {
    Sizes strides = graph_.values[id].layout.strides;
    for (size_t d = 0; d < strides.size(); ++d)
      if (info.sizes[d].is_constant(1)) strides[d] = info.strides[d];
    if (strides == graph_.values[id].layout.strides) return id;
    if (!made_here) id = build_.reshape(id, graph_.values[id].sizes);
    graph_.values[id].layout.strides = std::move(strides);
    return id;
  }

  Sizes strides_of_elements(const Sizes& sizes, Sizes strides) const {
    const sym::Assumptions elements = assume_nonempty(sizes, graph_.assumptions);
    for (sym::Expr& stride : strides)
      if (!stride.is_constant() && !stride.is_symbol()) stride = sym::simplify(stride, elements);
    return strides;
  }

  void check_result(const CallContext& context, const graph::Value& value, const CallValueInfo& info) const {
    CXXI_CHECK(value.dtype == info.dtype, "{}: built {}, eager has {}", context.description(), to_string(value.dtype), to_string(info.dtype));
    bool same = value.sizes.size() == info.sizes.size();
    for (size_t d = 0; same && d < value.sizes.size(); ++d) {
      const sym::Expr difference = sym::simplify(value.sizes[d] - info.sizes[d], graph_.assumptions);
      same = !difference.is_constant() || difference.is_constant(0);
    }
    CXXI_CHECK(same, "{}: built other sizes than eager has", context.description());
  }

  void import_output(const Arg& arg, bool flexible_strides) {
    if (arg.is_none()) return build_.output_none();
    if (const auto* e = arg.as<sym::Expr>()) return build_.output_symbol(*e);
    if (const auto* integer = arg.as<int64_t>()) return build_.output_symbol(sym::Expr(*integer));
    const OperandRef* ref = arg.as<OperandRef>();
    if (ref == nullptr) throw_unsupported("a graph returns {}, which is no tensor, integer or None", to_string(arg));
    const CallValueInfo& info = calls_.values.at(ref->operand);
    if (info.kind == CallValueInfo::Kind::SymInt) return build_.output_symbol(info.symbol);
    if (info.kind == CallValueInfo::Kind::None) return build_.output_none();
    const ValueId value = tensor_of(ref->operand);
    const bool as_it_comes = flexible_strides && !ends_in_input(value);
    const ValueId given = as_it_comes ? value : with_strides(value, info.strides);
    // The caller makes its view of what an input holds by the strides and the offset that it finds here. Writes to one result show in another.
    if (given != value && !ends_in_input(value) && shares_storage(info))
      throw_unsupported("{} returns a view of an input or of another result whose strides cannot be shown", calls_.name);
    build_.output(given, as_it_comes);
  }

  // With an input or another result.
  bool shares_storage(const CallValueInfo& info) const {
    if (info.storage == 0) return false;
    const auto is_there = [&](CallValue value) { return calls_.values[value].storage == info.storage; };
    const auto is_result = [&](const Arg& output) { return output.as<OperandRef>() && is_there(output.as<OperandRef>()->operand); };
    return std::ranges::any_of(calls_.inputs, is_there) || std::ranges::count_if(calls_.outputs, is_result) > 1;
  }

  // The value with exactly these strides: itself where its layout can be fixed so, else a copy.
  ValueId with_strides(ValueId id, const Sizes& strides) {
    graph::Value& value = graph_.values[id];
    bool same = true;
    const sym::Assumptions elements = assume_nonempty(value.sizes, graph_.assumptions);
    for (size_t d = 0; d < strides.size(); ++d)  // one element lies alike under any stride
      same = same && (value.sizes[d].is_constant(1) || sym::prove_equal(value.layout.strides[d], strides[d], elements));
    const bool fixable = value.layout.kind == graph::Layout::Kind::Flexible && value.producer.valid() && !graph::is_view(graph_.nodes[value.producer].kind);
    if ((same || fixable) && !ends_in_input(id)) {
      if (value.producer.valid()) value.layout = {graph::Layout::Kind::Fixed, strides};
      return id;
    }
    build_.set_origin(OriginId());
    const ValueId copy = build_.elementwise(ScalarOp::Identity, {id});
    graph_.values[copy].layout = {graph::Layout::Kind::Fixed, strides};
    return copy;
  }

  const CallGraph& calls_;
  const SchemaSource& schemas_;
  const ImportEnvironment& environment_;
  ImportedValues values_;
  graph::Graph graph_;
  graph::Builder build_;
  bool leaves_host_ = false;
  std::map<ValueId, uint32_t> input_positions_;
  std::map<uint32_t, ValueId> mutated_;
  std::map<uint32_t, std::vector<ValueId>> earlier_;  // by input: versions before the last one
  std::set<std::string> known_;
  CallReasons reasons_;
};

}  // namespace

graph::Graph import_graph(const CallGraph& calls, const SchemaSource& schemas, const ImportEnvironment& environment, ImportNotes* notes) {
  Import import(calls, schemas, environment);
  graph::Graph graph = import.run();
  if (notes) *notes = {import.names(graph), import.reasons()};
  return graph;
}

}  // namespace cxxinductor::frontend
