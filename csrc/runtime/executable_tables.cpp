#include "runtime/executable_tables.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/device_types.h"
#include "ir/plan/memory.h"
#include "ir/plan/symbols.h"
#include "runtime/failed_check.h"
#include "support/error.h"

namespace cxxinductor::runtime {
namespace {

std::vector<std::string> symbol_names(const plan::Plan& plan) {
  std::vector<std::string> names;
  for (const plan::SymbolSource& source : plan.symbols) {
    if (std::find(names.begin(), names.end(), source.symbol) == names.end()) names.push_back(source.symbol);
  }
  return names;
}

void add_read(const plan::Step& step, std::set<uint32_t>& read) {
  if (const auto* reuse = std::get_if<plan::Reuse>(&step)) read.insert(reuse->from.index());
  for (const plan::Launch& launch : plan::launches_of(step))
    for (plan::BufferId arg : launch.args) read.insert(arg.index());
  if (const auto* call = std::get_if<plan::CallExtern>(&step)) {
    for (const auto& operand : call->operands) {
      if (const auto* view = std::get_if<plan::View>(&operand)) read.insert(view->buffer.index());
    }
  }
  if (const auto* scalar = std::get_if<plan::ReadScalar>(&step)) read.insert(scalar->from.buffer.index());
}

class TableBuilder {
 public:
  TableBuilder(const plan::Plan& plan, Host& host) : plan_(plan), host_(host) {
    names_ = symbol_names(plan);
    std::vector<uint32_t> times(names_.size(), 0);
    for (const plan::Step& step : plan.steps) {
      const std::vector<std::string> defined = plan::symbols_defined_by(step);
      if (!defined.empty()) ++moments_;
      names_.insert(names_.end(), defined.begin(), defined.end());
      times.resize(names_.size(), moments_);
    }
    tables_.program = sym::Program(names_, std::move(times));
    tables_.moments.resize(1);
    for (const plan::Step& step : plan.steps) {
      add_read(step, read_);
      for (const plan::Launch& launch : plan::launches_of(step))
        for (plan::BufferId arg : launch.args) launched_.insert(arg.index());
    }
    for (const plan::Output& output : plan.outputs) {
      if (output.kind == plan::Output::Kind::Tensor) read_.insert(output.buffer.index());
      if (output.kind == plan::Output::Kind::View) read_.insert(output.view.buffer.index());
    }
  }

  Tables build() {
    add_buffers();
    add_inputs();
    for (const plan::Step& step : plan_.steps) std::visit([this](const auto& s) { add_step(s); }, step);
    add_outputs();
    add_releases();
    add_arenas();
    for (uint32_t c = 0; c < condition_times_.size(); ++c) tables_.moments.at(condition_times_[c]).conditions.push_back(c);
    CXXI_CHECK(tables_.moments.size() == moments_ + 1, "{} steps define symbols, {} were found", moments_, tables_.moments.size() - 1);
    return std::move(tables_);
  }

 private:
  Slot slot(sym::Expr e) { return tables_.program.add(e); }

  Geometry geometry(const std::vector<sym::Expr>& sizes, const std::vector<sym::Expr>& strides) {
    CXXI_CHECK(sizes.size() == strides.size(), "{} sizes and {} strides", sizes.size(), strides.size());
    const Geometry result{static_cast<uint32_t>(tables_.dims.size()), static_cast<uint32_t>(sizes.size())};
    for (sym::Expr e : sizes) tables_.dims.push_back(slot(e));
    for (sym::Expr e : strides) tables_.dims.push_back(slot(e));
    return result;
  }

  void add_buffers() {
    for (const plan::Buffer& buffer : plan_.buffers) {
      BufferRecord record{buffer.kind, buffer.dtype, buffer.device, geometry(buffer.sizes, buffer.strides)};
      record.bytes = slot(buffer.bytes);
      if (buffer.kind == plan::Buffer::Kind::Arena) record.arena_offset = slot(buffer.arena_offset);
      tables_.buffers.push_back(record);
    }
    add_slices();
  }

  void add_slices() {
    std::map<uint32_t, std::vector<SliceRecord>> slices;
    for (size_t b = 0; b < plan_.buffers.size(); ++b) {
      plan::BufferId root(b);
      sym::Expr offset = 0;
      plan::for_each_base(plan_, root, [&](plan::BufferId base) {
        offset = offset + plan_.buffers[root].base_offset;
        root = base;
      });
      if (root.index() != b) slices[root.index()].push_back({static_cast<uint32_t>(b), slot(offset)});
    }
    for (const auto& [root, inside] : slices) {
      tables_.buffers[root].slices_first = static_cast<uint32_t>(tables_.slices.size());
      tables_.buffers[root].slices_count = static_cast<uint32_t>(inside.size());
      tables_.slices.insert(tables_.slices.end(), inside.begin(), inside.end());
    }
  }

  void add_inputs() {
    for (const plan::Input& input : plan_.inputs) {
      const bool tensor = input.kind == plan::Input::Kind::Tensor;
      tables_.input_buffers.push_back(tensor ? static_cast<int64_t>(input.buffer.index()) : -1);
      tables_.donated_inputs.push_back(input.donated);
    }
    for (const plan::SymbolSource& source : plan_.symbols) {
      CXXI_CHECK(source.input < plan_.inputs.size(), "symbol {} comes from input {}", source.symbol, source.input);
      const plan::Input& input = plan_.inputs[source.input];
      SymbolBinding binding{0, source.input, source.dim, 0, plan_.assumptions.range(source.symbol), plan_.assumptions.divisor(source.symbol)};
      binding.slot = static_cast<Slot>(std::find(names_.begin(), names_.end(), source.symbol) - names_.begin());
      if (source.dim >= 0) {
        CXXI_CHECK(input.kind == plan::Input::Kind::Tensor, "symbol {} reads a size of an input that is no tensor", source.symbol);
        binding.rank = static_cast<uint32_t>(plan_.buffers[input.buffer].sizes.size());
        CXXI_CHECK(static_cast<uint32_t>(source.dim) < 2 * binding.rank, "symbol {}: dimension {} of rank {}", source.symbol, source.dim, binding.rank);
      } else {
        CXXI_CHECK(input.kind == plan::Input::Kind::Symbol, "symbol {} is read from an input that is no integer", source.symbol);
      }
      tables_.bindings.push_back(binding);
    }
  }

  void use_buffer(plan::BufferId id) { last_use_[id.index()] = tables_.steps.size(); }

  void add_step(const plan::Allocate& step) {
    CXXI_CHECK(plan_.buffers[step.buffer].kind == plan::Buffer::Kind::Standalone, "buffer {} is allocated but not standalone", plan_.buffers[step.buffer].name);
    tables_.steps.push_back({StepRecord::Kind::Allocate, step.buffer.index()});
  }
  void add_step(const plan::Free& step) { tables_.steps.push_back({StepRecord::Kind::Free, step.buffer.index()}); }

  void add_step(const plan::Reuse& step) {
    const plan::Buffer& to = plan_.buffers[step.to];
    use_buffer(step.from);
    tables_.most_dims = std::max<size_t>(tables_.most_dims, 2 * to.sizes.size());
    tables_.steps.push_back({StepRecord::Kind::Reuse, static_cast<uint32_t>(tables_.reuses.size())});
    tables_.reuses.push_back({step.from.index(), step.to.index(), slot(to.bytes)});
  }

  void add_step(const plan::Launch& step) {
    const uint32_t index = add_launch(step);
    tables_.most_args = std::max(tables_.most_args, tables_.launches[index].args.size());
    tables_.most_symbols = std::max(tables_.most_symbols, tables_.launches[index].symbols.size());
    tables_.steps.push_back({StepRecord::Kind::Launch, index});
  }

  void add_step(const plan::GroupedLaunch& step) {
    const GroupedLaunchRecord group{static_cast<uint32_t>(tables_.launches.size()), static_cast<uint32_t>(step.launches.size())};
    size_t args = 0, symbols = 0;
    for (const plan::Launch& launch : step.launches) {
      const LaunchRecord& record = tables_.launches[add_launch(launch)];
      args += record.args.size();
      symbols += record.symbols.size();
    }
    tables_.most_args = std::max(tables_.most_args, args);
    tables_.most_symbols = std::max(tables_.most_symbols, symbols);
    tables_.most_launches = std::max(tables_.most_launches, step.launches.size());
    tables_.steps.push_back({StepRecord::Kind::GroupedLaunch, static_cast<uint32_t>(tables_.grouped_launches.size())});
    tables_.grouped_launches.push_back(group);
  }

  uint32_t add_condition(const sym::Assumptions& when) {
    std::map<std::string, Property> properties;
    for (const auto& [symbol, range] : when.ranges()) properties[symbol].range = range;
    for (const auto& [symbol, divisor] : when.divisors()) properties[symbol].divisor = divisor;
    std::string key;
    std::vector<Property> condition;
    for (auto& [symbol, property] : properties) {
      property.symbol = slot(sym::Expr::symbol(symbol));
      key += fmt::format("{} in {} to {} by {};", symbol, property.range.low, property.range.high, property.divisor);
      condition.push_back(property);
    }
    const auto [found, fresh] = conditions_.try_emplace(key, static_cast<uint32_t>(tables_.conditions.size()));
    if (!fresh) return found->second;
    uint32_t time = 0;
    for (const Property& property : condition) time = std::max(time, tables_.program.time_of(property.symbol));
    condition_times_.push_back(time);
    tables_.conditions.push_back(std::move(condition));
    return found->second;
  }

  // Definitions of the next moment.
  uint32_t add_moment(std::span<const Definition> definitions) {
    MomentRecord& moment = tables_.moments.emplace_back();
    for (const Definition& definition : definitions)
      moment.definitions.push_back({slot(sym::Expr::symbol(definition.symbol)), definition.result, definition.dim, plan_.assumptions.range(definition.symbol),
                                    plan_.assumptions.divisor(definition.symbol)});
    return static_cast<uint32_t>(tables_.moments.size() - 1);
  }

  uint32_t add_launch(const plan::Launch& step) {
    const plan::Kernel& kernel = plan_.kernels[step.kernel];
    CXXI_CHECK(step.args.size() == kernel.params.size(), "kernel {} takes {} buffers, the launch has {}", kernel.name, kernel.params.size(), step.args.size());
    CXXI_CHECK(step.symbol_args.size() == kernel.symbols.size(), "kernel {} takes {} symbols, the launch has {}", kernel.name, kernel.symbols.size(),
               step.symbol_args.size());
    LaunchRecord record;
    record.kernel = step.kernel.index();
    record.stream = stream_of(kernel.device);
    const bool simt = is_simt(kernel.mapping);
    for (size_t i = 0; i < step.args.size(); ++i) {
      record.args.push_back(step.args[i].index());
      use_buffer(step.args[i]);
      // Element-aligned addresses are enough for the vector loads of the CPU.
      record.written.push_back(kernel.params[i].written);
      if (kernel.params[i].aligned && simt) record.aligned_args.push_back(static_cast<uint32_t>(i));
    }
    sym::Substitution actual;
    for (size_t i = 0; i < step.symbol_args.size(); ++i) {
      record.symbols.push_back(slot(step.symbol_args[i]));
      actual.emplace(kernel.symbols[i], step.symbol_args[i]);
    }
    record.grid_x = slot(step.grid_x);
    record.grid_y = slot(step.grid_y);
    record.checks_index_limit = simt && !kernel.always_index32;
    record.index_limit = slot(record.checks_index_limit ? sym::substitute(kernel.index_limit, actual) : sym::Expr(0));
    for (const plan::Specialization& special : step.specializations)
      record.specializations.push_back({add_condition(special.when), add_launch(plan::specialized(step, special))});
    tables_.launches.push_back(std::move(record));
    return static_cast<uint32_t>(tables_.launches.size() - 1);
  }

  // The place of the device's stream, which the call finds when it begins; -1 where it has none.
  int stream_of(Device device) {
    if (!has_streams(device)) return -1;
    std::vector<Device>& known = tables_.stream_devices;
    const auto position = std::find(known.begin(), known.end(), device) - known.begin();
    if (static_cast<size_t>(position) == known.size()) known.push_back(device);
    return static_cast<int>(position);
  }

  OperandRecord operand(const plan::View& view) {
    const plan::Buffer& buffer = plan_.buffers[view.buffer];
    OperandRecord record{true};
    record.buffer = view.buffer.index();
    record.dtype = view.dtype;
    record.geometry = geometry(view.sizes, view.strides);
    record.offset = slot(view.offset);
    record.whole = view.offset.is_constant(0) && view.dtype == buffer.dtype && view.sizes == buffer.sizes && view.strides == buffer.strides;
    use_buffer(view.buffer);
    return record;
  }
  OperandRecord operand(sym::Expr e) { return {false, slot(e)}; }

  void add_step(const plan::CallExtern& step) {
    ExternRecord record;
    record.name = step.callee + (step.overload.empty() ? "" : "." + step.overload);
    record.planned_out = step.planned_out;
    record.callee = host_.resolve_extern(step);
    CXXI_CHECK(record.callee != nullptr, "the host gave no callee for {}", record.name);
    size_t dims = 0;
    for (const auto& o : step.operands) {
      record.operands.push_back(std::visit([this](const auto& v) { return operand(v); }, o));
      dims += 2 * record.operands.back().geometry.rank;
    }
    for (size_t i = 0; i < step.results.size(); ++i) {
      const plan::BufferId id = step.results[i];
      CXXI_CHECK(id.valid() || !step.planned_out, "{} has a planned result without a buffer", record.name);
      // A result that nothing reads may be undefined (attention without its log-sum-exp): it is dropped unseen.
      const bool kept = id.valid() && (step.planned_out || read_.contains(id.index()));
      record.results.push_back(kept ? static_cast<int64_t>(id.index()) : -1);
      record.result_on_any_device.push_back(id.valid() && !step.planned_out && !launched_.contains(id.index()));
      record.result_aliases.push_back(i < step.alias_of.size() && step.alias_of[i] >= 0);
      if (!kept) continue;
      use_buffer(id);
      dims += 2 * plan_.buffers[id].sizes.size();
    }
    if (!step.defines.empty()) record.moment = add_moment(step.defines);
    tables_.most_operands = std::max(tables_.most_operands, record.operands.size());
    tables_.most_results = std::max(tables_.most_results, record.results.size());
    tables_.most_dims = std::max(tables_.most_dims, dims);
    for (const OperandRecord& operand : record.operands)
      if (operand.is_tensor) stream_of(plan_.buffers[plan::BufferId(operand.buffer)].device);
    for (const int64_t b : record.results)
      if (b >= 0) stream_of(plan_.buffers[plan::BufferId(static_cast<size_t>(b))].device);
    tables_.steps.push_back({StepRecord::Kind::Extern, static_cast<uint32_t>(tables_.externs.size())});
    tables_.externs.push_back(std::move(record));
  }

  void add_step(const plan::ReadScalar& step) {
    const Definition definition{.symbol = step.symbol};
    tables_.reads.push_back({operand(step.from), add_moment({&definition, 1})});
    tables_.steps.push_back({StepRecord::Kind::Read, static_cast<uint32_t>(tables_.reads.size() - 1)});
    tables_.most_dims = std::max<size_t>(tables_.most_dims, 2 * step.from.sizes.size());
  }

  void add_step(const plan::Assert& step) {
    tables_.steps.push_back({StepRecord::Kind::Assert, static_cast<uint32_t>(tables_.assertions.size())});
    tables_.assertions.push_back({slot(step.condition), step.message});
  }

  void add_outputs() {
    std::set<uint32_t> needed_later;
    for (size_t i = plan_.outputs.size(); i-- > 0;) {
      const plan::Output& output = plan_.outputs[i];
      OutputRecord record{output.kind};
      switch (output.kind) {
        case plan::Output::Kind::Tensor:
          record.buffer = output.buffer.index();
          break;
        case plan::Output::Kind::View:
          record.buffer = output.view.buffer.index();
          record.dtype = output.view.dtype;
          record.geometry = geometry(output.view.sizes, output.view.strides);
          record.offset = slot(output.view.offset);
          tables_.most_dims = std::max<size_t>(tables_.most_dims, 2 * record.geometry.rank);
          break;
        case plan::Output::Kind::Symbol:
          record.symbol = slot(output.symbol);
          break;
        case plan::Output::Kind::None:
          break;
      }
      if (output.kind == plan::Output::Kind::Tensor || output.kind == plan::Output::Kind::View) {
        const plan::Buffer& buffer = plan_.buffers[plan::BufferId(record.buffer)];
        CXXI_CHECK(buffer.kind != plan::Buffer::Kind::Arena, "output {} lies in the arena ({})", i, buffer.name);
        record.last_use = needed_later.insert(record.buffer).second;
      }
      tables_.outputs.push_back(record);
    }
    std::reverse(tables_.outputs.begin(), tables_.outputs.end());
    live_out_ = std::move(needed_later);
  }

  void add_releases() {
    std::map<size_t, std::vector<uint32_t>> after;
    std::set<uint32_t> seen;
    for (int64_t buffer : tables_.input_buffers) {
      if (buffer < 0) continue;
      const auto id = static_cast<uint32_t>(buffer);
      if (live_out_.count(id) || !seen.insert(id).second) continue;
      if (const auto found = last_use_.find(id); found != last_use_.end()) {
        after[found->second].push_back(id);
      } else {
        tables_.unused_inputs.push_back(id);
      }
    }
    for (const auto& [step, buffers] : after) {
      tables_.steps[step].releases_first = static_cast<uint32_t>(tables_.releases.size());
      tables_.steps[step].releases_count = static_cast<uint32_t>(buffers.size());
      tables_.releases.insert(tables_.releases.end(), buffers.begin(), buffers.end());
    }
  }

  void add_arenas() {
    const std::vector<std::vector<uint32_t>> by_step = plan::arenas_by_first_use(plan_);
    for (size_t s = 0; s < by_step.size(); ++s) {
      tables_.steps[s].arenas_first = static_cast<uint32_t>(tables_.arenas.size());
      tables_.steps[s].arenas_count = static_cast<uint32_t>(by_step[s].size());
      for (uint32_t number : by_step[s]) {
        ArenaRecord arena{plan_.arenas[number].device, slot(plan_.arenas[number].bytes), {}};
        for (size_t b = 0; b < plan_.buffers.size(); ++b) {
          const plan::Buffer& buffer = plan_.buffers[plan::BufferId(b)];
          if (buffer.kind == plan::Buffer::Kind::Arena && buffer.arena == number) arena.buffers.push_back(static_cast<uint32_t>(b));
        }
        tables_.arenas.push_back(std::move(arena));
      }
    }
  }

  const plan::Plan& plan_;
  std::set<uint32_t> launched_;  // buffers that kernels take
  std::set<uint32_t> read_;      // buffers that a step or an output uses after they were made
  Host& host_;
  std::vector<std::string> names_;
  std::map<uint32_t, size_t> last_use_;
  std::map<std::string, uint32_t> conditions_;  // by what they ask
  std::vector<uint32_t> condition_times_;       // by condition: when its symbols are known
  uint32_t moments_ = 0;                        // steps that define symbols
  std::set<uint32_t> live_out_;
  Tables tables_;
};

std::string step_name(const plan::Plan& plan, const plan::Step& step) {
  struct Namer {
    const plan::Plan& plan;
    std::string operator()(const plan::Allocate& s) const { return "allocate " + plan.buffers[s.buffer].name; }
    std::string operator()(const plan::Free& s) const { return "free " + plan.buffers[s.buffer].name; }
    std::string operator()(const plan::Reuse& s) const { return "reuse " + plan.buffers[s.from].name; }
    std::string operator()(const plan::Launch& s) const { return "launch " + plan.kernels[s.kernel].name; }
    std::string operator()(const plan::GroupedLaunch& s) const { return "grouped launch " + plan.kernels[s.launches[0].kernel].name; }
    std::string operator()(const plan::CallExtern& s) const { return "extern " + s.callee; }
    std::string operator()(const plan::ReadScalar& s) const { return "read of " + s.symbol; }
    std::string operator()(const plan::Assert&) const { return "assert"; }
  };
  return std::visit(Namer{plan}, step);
}

void add_written(const plan::Plan& plan, const plan::Step& step, std::set<uint32_t>& written) {
  for (const plan::Launch& launch : plan::launches_of(step)) {
    const plan::Kernel& kernel = plan.kernels[launch.kernel];
    for (size_t i = 0; i < launch.args.size(); ++i) {
      if (kernel.params[i].written) written.insert(launch.args[i].index());
    }
  }
  if (const auto* call = std::get_if<plan::CallExtern>(&step)) {
    for (uint32_t operand : call->mutated_operands) {
      if (const auto* view = std::get_if<plan::View>(&call->operands[operand])) written.insert(view->buffer.index());
    }
    if (call->planned_out) {
      for (plan::BufferId result : call->results) written.insert(result.index());
    }
  }
}

std::string text_of(std::span<const int64_t> numbers) {
  std::string all;
  for (const int64_t n : numbers) all += (all.empty() ? "" : ", ") + std::to_string(n);
  return "[" + all + "]";
}

}  // namespace

void reject_definition(const std::string& symbol, const DefinitionRecord& definition, int64_t value) {
  std::string expected = fmt::format("Mod({}, {}) == 0", symbol, definition.divisor);
  if (value < definition.range.low) expected = fmt::format("{} >= {}", symbol, definition.range.low);
  if (value > definition.range.high) expected = fmt::format("{} <= {}", symbol, definition.range.high);
  throw FailedAssertion(fmt::format("Runtime assertion failed for expression {}: {} is {}", expected, symbol, value));
}

void reject_result(const ExternRecord& record, size_t index, const TensorRef& result, const BufferRecord& declared, std::span<const int64_t> sizes,
                   bool is_data) {
  if (result.owner && !std::ranges::equal(result.sizes(), sizes) && is_data)
    throw FailedAssertion(fmt::format("Runtime assertion failed: {} returned sizes {}, expected {}", record.name, text_of(result.sizes()), text_of(sizes)));
  throw_user_error(
      "{} returned result {} as {} {} on {}, but what was told of it to the compiler is {} {} on {}: its fake function (register_fake, for ops of PyTorch the "
      "meta function) has to give what the op does",
      record.name, index, result.owner ? to_string(result.dtype) : "undefined", text_of(result.sizes()), to_string(result.device), to_string(declared.dtype),
      text_of(sizes), to_string(declared.device));
}

void reject_strides(const ExternRecord& record, size_t index, const TensorRef& result, std::span<const int64_t> strides) {
  throw_internal("{} returned result {}, an alias, with strides {}; the plan expects {}", record.name, index, text_of(result.strides()), text_of(strides));
}

Tables build_tables(const plan::Plan& plan, Host& host) { return TableBuilder(plan, host).build(); }

std::string written_inputs(const plan::Plan& plan, size_t step) {
  std::set<uint32_t> written;
  for (size_t i = 0; i <= step; ++i) add_written(plan, plan.steps[i], written);
  std::string names;
  for (const plan::Input& input : plan.inputs) {
    if (input.kind != plan::Input::Kind::Tensor || !written.count(input.buffer.index())) continue;
    names += (names.empty() ? "" : ", ") + (input.source.empty() ? plan.buffers[input.buffer].name : input.source);
  }
  return names;
}

std::string describe_failed_step(const plan::Plan& plan, size_t step) {
  const std::string names = written_inputs(plan, step);
  std::string text = fmt::format(" (at step {} of {}: {}", step + 1, plan.steps.size(), step_name(plan, plan.steps[step]));
  if (!names.empty()) text += "; these inputs may already have been written: " + names;
  return text + ")";
}

void rethrow_with_step(const Error& error, const plan::Plan& plan, size_t step) {
  const std::string text = error.what() + describe_failed_step(plan, step);
  if (dynamic_cast<const DeviceIndexOutOfRange*>(&error)) throw DeviceIndexOutOfRange(text);
  if (dynamic_cast<const IndexOutOfRange*>(&error)) throw IndexOutOfRange(text);
  if (dynamic_cast<const UserError*>(&error)) throw UserError(text);
  if (dynamic_cast<const Unsupported*>(&error)) throw Unsupported(text);
  if (dynamic_cast<const FailedAssertion*>(&error)) throw FailedAssertion(error.what());
  if (dynamic_cast<const KernelMismatch*>(&error)) throw KernelMismatch(text);
  throw InternalError(text);
}

}  // namespace cxxinductor::runtime
