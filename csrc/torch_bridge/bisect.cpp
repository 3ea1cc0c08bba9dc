#include "torch_bridge/bisect.h"

#include <ATen/Context.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "ir/device_types.h"
#include "ir/plan/text.h"
#include "model/effects.h"
#include "support/error.h"
#include "torch_bridge/aten_executor.h"
#include "torch_bridge/dispatcher_schemas.h"
#include "torch_bridge/import_targets.h"
#include "torch_bridge/interp_tensors.h"
#include "torch_bridge/providers.h"
#include "torch_bridge/text_passes.h"
#include "torch_bridge/types.h"

namespace cxxinductor::torch_bridge {
namespace {

constexpr uint64_t kSeed = 0;  // of random draws of library calls

struct DeclaredInput {
  bool is_tensor = true;
  DType dtype = DType::F32;
  Device device;
  std::vector<sym::Expr> sizes, strides;
  sym::Expr symbol;
};

std::vector<DeclaredInput> inputs_of(const model::CallGraph& calls) {
  using Kind = model::CallValueInfo::Kind;
  std::vector<DeclaredInput> inputs;
  for (const model::CallValue id : calls.inputs) {
    const model::CallValueInfo& info = calls.values[id];
    if (info.kind != Kind::Tensor && info.kind != Kind::SymInt)
      throw_unsupported("input {} is neither a tensor nor an integer: give inputs in inputs.pt", info.name);
    inputs.push_back({info.kind == Kind::Tensor, info.dtype, info.device, info.sizes, info.strides, info.symbol});
  }
  return inputs;
}

std::vector<DeclaredInput> inputs_of(const graph::Graph& graph) {
  using Kind = graph::Input::Kind;
  std::vector<DeclaredInput> inputs;
  for (const graph::Input& input : graph.inputs) {
    if (input.kind == Kind::Opaque) throw_unsupported("input {} is neither a tensor nor an integer: give inputs in inputs.pt", input.source);
    if (input.kind == Kind::Symbol) {
      inputs.push_back({.is_tensor = false, .symbol = sym::Expr::symbol(input.symbol)});
      continue;
    }
    const graph::Value& value = graph.value(input.value);
    inputs.push_back({true, value.dtype, value.device, value.sizes, value.layout.strides, {}});
  }
  return inputs;
}

const sym::Assumptions& assumptions_of(const driver::Form& form) {
  if (const auto* calls = std::get_if<model::CallGraph>(&form)) return calls->assumptions;
  return std::get<graph::Graph>(form).assumptions;
}

// Of calls or of a graph. UserError for other texts.
driver::Form parse_reproducer(std::string_view text) {
  driver::Form form = driver::parse_form(text);
  if (const driver::FormKind kind = driver::kind_of(form); kind != driver::FormKind::Calls && kind != driver::FormKind::Graph)
    throw_user_error("expected the text of calls or of a graph, found {}", driver::to_string(kind));
  return form;
}

std::vector<DeclaredInput> inputs_of(const driver::Form& form) {
  if (const auto* calls = std::get_if<model::CallGraph>(&form)) return inputs_of(*calls);
  return inputs_of(std::get<graph::Graph>(form));
}

using SymbolValues = std::map<std::string, int64_t, std::less<>>;

// Small, in the symbol's range, and a multiple of its divisor.
int64_t usual_value(const sym::Assumptions& assumptions, std::string_view symbol) {
  constexpr int64_t usual = 8;
  const sym::Interval range = assumptions.range(symbol);
  const int64_t divisor = assumptions.divisor(symbol), start = std::clamp(usual, range.low, range.high);
  const int64_t above = start + (divisor - start % divisor) % divisor;
  return above <= range.high ? above : start - start % divisor;
}

SymbolValues choose_symbols(const std::vector<DeclaredInput>& inputs, const sym::Assumptions& assumptions, const std::map<std::string, int64_t>& given) {
  SymbolValues values;
  for (const DeclaredInput& input : inputs) {
    std::vector<sym::Expr> expressions = input.sizes;
    expressions.insert(expressions.end(), input.strides.begin(), input.strides.end());
    if (!input.is_tensor) expressions.push_back(input.symbol);
    for (sym::Expr e : expressions)
      for (sym::Expr symbol : e.free_symbols()) values.try_emplace(std::string(symbol.name()), usual_value(assumptions, symbol.name()));
  }
  for (const auto& [name, value] : given) {
    const auto found = values.find(name);
    if (found == values.end()) throw_user_error("no input has the symbol {}", name);
    found->second = value;
  }
  return values;
}

std::vector<int64_t> evaluate(const std::vector<sym::Expr>& list, const SymbolValues& symbols) {
  std::vector<int64_t> values;
  for (sym::Expr e : list) values.push_back(sym::evaluate(e, [&](std::string_view name) { return symbols.find(name)->second; }));
  return values;
}

// Drawn on the CPU, so that a seed means the same everywhere.
at::Tensor random_tensor(const DeclaredInput& input, const SymbolValues& symbols) {
  const std::vector<int64_t> sizes = evaluate(input.sizes, symbols), strides = evaluate(input.strides, symbols);
  int64_t reach = 1;
  for (size_t d = 0; d < sizes.size(); ++d) reach = sizes[d] == 0 || reach == 0 ? 0 : reach + (sizes[d] - 1) * strides[d];
  const c10::ScalarType dtype = to_torch(input.dtype);
  const at::Tensor drawn = c10::isIntegralType(dtype, /*includeBool=*/true) ? at::randint(0, 2, {reach})
                                                                            : at::randn({reach}, c10::isComplexType(dtype) ? at::kComplexFloat : at::kFloat);
  return drawn.to(at::TensorOptions().dtype(dtype).device(to_torch(input.device))).as_strided(sizes, strides);
}

// The values of symbols that inputs give: as integers, or as sizes and strides.
SymbolValues symbols_of(const std::vector<DeclaredInput>& declared, const std::vector<c10::IValue>& inputs) {
  SymbolValues values;
  const auto learn = [&](const std::vector<sym::Expr>& expressions, at::IntArrayRef found) {
    for (size_t d = 0; d < expressions.size() && d < found.size(); ++d)
      if (expressions[d].is_symbol()) values.emplace(expressions[d].name(), found[d]);
  };
  for (size_t i = 0; i < declared.size(); ++i) {
    if (declared[i].is_tensor != inputs[i].isTensor()) throw_user_error("input {}: expected {}", i, declared[i].is_tensor ? "a tensor" : "an integer");
    if (!declared[i].is_tensor) {
      if (declared[i].symbol.is_symbol()) values.emplace(declared[i].symbol.name(), inputs[i].toInt());
      continue;
    }
    learn(declared[i].sizes, inputs[i].toTensor().sizes());
    learn(declared[i].strides, inputs[i].toTensor().strides());
  }
  return values;
}

void require_fitting(size_t position, const DeclaredInput& declared, const c10::IValue& input, const SymbolValues& symbols) {
  if (!declared.is_tensor) return;
  const at::Tensor& tensor = input.toTensor();
  bool fits = tensor.scalar_type() == to_torch(declared.dtype) && tensor.sizes().size() == declared.sizes.size();
  for (size_t d = 0; fits && d < declared.sizes.size(); ++d) {
    const bool known = std::ranges::all_of(declared.sizes[d].free_symbols(), [&](sym::Expr e) { return symbols.contains(e.name()); });
    if (known) fits = evaluate({declared.sizes[d]}, symbols)[0] == tensor.size(static_cast<int64_t>(d));
  }
  if (fits) return;
  std::vector<std::string> sizes;
  for (sym::Expr size : declared.sizes) sizes.push_back(sym::to_string(size));
  throw_user_error("input {}: expected {}[{}], found {}[{}]", position, to_string(declared.dtype), fmt::join(sizes, ", "), c10::toString(tensor.scalar_type()),
                   fmt::join(tensor.sizes(), ", "));
}

interp::Arguments arguments_of(const driver::Form& form, const std::vector<c10::IValue>& inputs) {
  const std::vector<DeclaredInput> declared = inputs_of(form);
  if (declared.size() != inputs.size()) throw_user_error("expected {} inputs, found {}", declared.size(), inputs.size());
  interp::Arguments arguments;
  const SymbolValues symbols = symbols_of(declared, inputs);
  for (size_t i = 0; i < inputs.size(); ++i) require_fitting(i, declared[i], inputs[i], symbols);
  for (const auto& [name, value] : symbols) arguments.symbols[name] = value;
  for (const c10::IValue& input : inputs)
    if (input.isTensor()) arguments.tensors.push_back(to_interp(input));
  return arguments;
}

// A run may write to its inputs.
std::vector<c10::IValue> copied(const std::vector<c10::IValue>& inputs) {
  std::vector<c10::IValue> copies;
  for (const c10::IValue& input : inputs) {
    if (!input.isTensor()) {
      copies.push_back(input);
      continue;
    }
    const at::Tensor& tensor = input.toTensor();
    copies.emplace_back(at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options()).copy_(tensor));
  }
  return copies;
}

// As interp::run gives it: results, then inputs that were written.
std::vector<interp::Tensor> run_eagerly(const model::CallGraph& calls, const std::vector<c10::IValue>& inputs) {
  std::vector<c10::IValue> given = copied(inputs);
  at::manual_seed(kSeed);
  std::vector<interp::Tensor> results;
  for (const c10::IValue& output : AtenExecutor(calls).run(given)) results.push_back(to_interp(output));
  std::set<uint32_t> written = model::written_inputs(calls, DispatcherSchemas());
  for (const auto& [input, value] : calls.mutations) written.insert(input);
  for (const uint32_t input : written) results.push_back(to_interp(given[input]));
  return results;
}

std::vector<Device> devices_of_form(const driver::Form& form) {
  if (const auto* graph = std::get_if<graph::Graph>(&form)) return driver::devices_of(*graph);
  const std::set<Device> used = devices_of(std::get<model::CallGraph>(form));
  std::vector<Device> devices(used.begin(), used.end());
  std::ranges::stable_partition(devices, has_streams);
  return devices;
}

std::string run_kernels(const plan::Plan& plan, Options options, const std::vector<c10::IValue>& inputs) {
  options.check = "interp";
  options.dump.clear();
  try {
    CompiledGraph::from_plan(plan::print(plan), std::nullopt, options)->run(copied(inputs));
  } catch (const KernelMismatch& mismatch) {
    return mismatch.what();
  } catch (const InternalError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

std::vector<c10::IValue> reproducer_inputs(std::string_view text, const std::map<std::string, int64_t>& sizes, uint64_t seed) {
  const driver::Form form = parse_reproducer(text);
  const std::vector<DeclaredInput> declared = inputs_of(form);
  const SymbolValues symbols = choose_symbols(declared, assumptions_of(form), sizes);
  at::manual_seed(seed);
  std::vector<c10::IValue> inputs;
  for (const DeclaredInput& input : declared) {
    if (input.is_tensor)
      inputs.emplace_back(random_tensor(input, symbols));
    else
      inputs.emplace_back(evaluate({input.symbol}, symbols).front());
  }
  return inputs;
}

std::shared_ptr<CompiledGraph> compile_reproducer(std::string_view text, const Options& options) {
  driver::Form form = parse_reproducer(text);
  if (auto* calls = std::get_if<model::CallGraph>(&form)) return CompiledGraph::from_calls(std::move(*calls), CompileSettings::current(), options);
  return CompiledGraph::from_text(text, options);
}

driver::BisectReport bisect_reproducer(std::string_view text, const Options& options, ReproducerSettings settings) {
  const DispatcherSchemas schemas;
  driver::BisectRequest request;
  request.form = parse_reproducer(text);
  auto* calls = std::get_if<model::CallGraph>(&request.form);
  if (settings.against_eager && calls == nullptr) throw_user_error("a comparison with eager needs the calls (calls.txt), which the folder lacks");
  request.inputs.options = options;
  request.inputs.options.dump.clear();
  request.inputs.targets = settings.targets.devices().empty() ? targets_for(devices_of_form(request.form), options) : settings.targets;
  request.inputs.text_passes = registered_text_passes();
  request.inputs.schemas = &schemas;
  const std::vector<Device> devices = request.inputs.targets.devices();
  request.inputs.environment = import_environment(options, at::globalContext().deterministicAlgorithms());
  add_targets(request.inputs.environment, {devices.begin(), devices.end()}, request.inputs.targets);
  request.arguments = arguments_of(request.form, settings.inputs);
  request.make_externs = [] { return aten_externs(kSeed); };
  if (settings.against_eager) request.expected = run_eagerly(*calls, settings.inputs);
  if (settings.run_kernels) request.run_kernels = [&](const plan::Plan& plan, const Options& tried) { return run_kernels(plan, tried, settings.inputs); };
  request.judge = settings.judge;
  request.progress = settings.progress;
  return driver::bisect(std::move(request));
}

}  // namespace cxxinductor::torch_bridge
