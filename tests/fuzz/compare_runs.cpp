// Arguments, executors, their comparison with the reference, and shrinking.
#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "driver/stages.h"
#include "fuzz/graph_fuzz.h"
#include "ir/graph/text.h"
#include "ir/graph/verify.h"
#include "support/error.h"

namespace cxxinductor::fuzz {
namespace {

using graph::ValueId;

Target target_of(const graph::Graph& graph) {
  for (const graph::Value& value : graph.values)
    if (value.device.type == DeviceType::Cuda) return cuda_target("sm_90a", 132);
  return cpu_target("x86-64-v3", 4);
}

// Largest finite magnitude among the inexact values: what a last bit is measured by.
double magnitude(const RandomGraph& random, const interp::Arguments& arguments) {
  graph::Graph graph = random.graph;
  graph.outputs.clear();
  for (size_t i = 0; i < graph.values.size(); ++i) {
    if (i < random.exact.size() && random.exact[i]) continue;
    graph::Output output;
    output.value = ValueId(i);
    graph.outputs.push_back(output);
  }
  double largest = 1;
  for (const interp::Tensor& tensor : interp::run(graph, arguments, call_extern))
    for (const Scalar& element : tensor.elements)
      if (std::isfinite(element.as_real())) largest = std::max(largest, std::fabs(element.as_real()));
  return largest;
}

double unit_of(DType dtype) {
  switch (dtype) {
    case DType::F64:  // inexact f64 values may come from f32 ones
    case DType::F32:
      return 0x1p-17;
    case DType::F16:
      return 0x1p-9;
    case DType::BF16:
      return 0x1p-6;
    default:
      return 0;
  }
}

bool same(const Scalar& a, const Scalar& b, double tolerance) {
  if (!is_float(a.dtype())) return a == b;
  const double x = a.real(), y = b.real();
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  return x == y || std::fabs(x - y) <= tolerance;
}

std::optional<std::string> difference(const interp::Tensor& expected, const interp::Tensor& found, double tolerance) {
  if (expected.dtype != found.dtype) return fmt::format("is {}, expected {}", to_string(found.dtype), to_string(expected.dtype));
  if (expected.sizes != found.sizes) return fmt::format("has sizes [{}], expected [{}]", fmt::join(found.sizes, ", "), fmt::join(expected.sizes, ", "));
  if (expected.elements.size() != found.elements.size()) return fmt::format("has {} elements, expected {}", found.elements.size(), expected.elements.size());
  for (size_t i = 0; i < expected.elements.size(); ++i)
    if (!same(expected.elements[i], found.elements[i], tolerance))
      return fmt::format("differs at element {} of {}: {}, expected {}", i, expected.elements.size(), to_string(found.elements[i]),
                         to_string(expected.elements[i]));
  return std::nullopt;
}

// ---- Shrinking ----

struct Edit {
  std::set<uint32_t> outputs_dropped, mutations_dropped;
  std::map<uint32_t, ValueId> replaced;  // value -> an earlier value of the same type
  std::set<uint32_t> to_inputs;          // values that become graph inputs
  std::set<uint32_t> inputs_dropped;     // positions of inputs that nothing reads
};

ValueId replacement_of(const Edit& edit, ValueId id) {
  for (auto it = edit.replaced.find(id.index()); it != edit.replaced.end(); it = edit.replaced.find(id.index())) id = it->second;
  return id;
}

// Some result of the node is live and is not to become an input.
bool is_needed(const graph::Node& node, const Edit& edit, const std::vector<bool>& live) {
  return std::any_of(node.results.begin(), node.results.end(), [&](ValueId id) { return live[id.index()] && !edit.to_inputs.contains(id.index()); });
}

// The values that the outputs and mutations left by the edit read, directly or not.
std::vector<bool> find_live_values(const graph::Graph& from, const Edit& edit) {
  std::vector<bool> live(from.values.size(), false);
  for (size_t i = 0; i < from.outputs.size(); ++i)
    if (!edit.outputs_dropped.contains(static_cast<uint32_t>(i)) && from.outputs[i].kind == graph::Output::Kind::Tensor)
      live[replacement_of(edit, from.outputs[i].value).index()] = true;
  for (size_t i = 0; i < from.mutations.size(); ++i)
    if (!edit.mutations_dropped.contains(static_cast<uint32_t>(i))) {
      live[replacement_of(edit, from.mutations[i].value).index()] = true;
      live[from.inputs[from.mutations[i].input].value.index()] = true;
    }
  for (size_t n = from.nodes.size(); n-- > 0;) {
    const graph::Node& node = from.nodes[graph::NodeId(n)];
    if (!is_needed(node, edit, live)) continue;
    for (ValueId id : node.results) live[id.index()] = true;
    for (const graph::Operand& operand : node.operands)
      if (const auto* id = std::get_if<ValueId>(&operand)) live[replacement_of(edit, *id).index()] = true;
  }
  return live;
}

// The graph with the edit made and what nothing reads any more left out.
RandomGraph edited(const RandomGraph& random, const Edit& edit) {
  const graph::Graph& from = random.graph;
  const std::vector<bool> live = find_live_values(from, edit);
  RandomGraph out;
  out.symbols = random.symbols;
  out.graph.name = from.name;
  out.graph.assumptions = from.assumptions;
  std::map<uint32_t, ValueId> renamed;
  const auto copy_value = [&](ValueId id) {
    graph::Value value = from.values[id];
    if (edit.to_inputs.contains(id.index())) value.layout.kind = graph::Layout::Kind::Fixed;
    out.exact.push_back(random.exact[id.index()]);
    return renamed[id.index()] = out.graph.values.push_back(std::move(value));
  };
  std::map<size_t, uint32_t> moved;  // positions of inputs
  const auto add_input = [&](ValueId id) {
    graph::Input input;
    input.value = copy_value(id);
    input.source = from.values[id].name;
    out.graph.values[input.value].producer = {};
    out.graph.inputs.push_back(input);
  };
  for (size_t i = 0; i < from.inputs.size(); ++i)
    if (!edit.inputs_dropped.contains(static_cast<uint32_t>(i)) || live[from.inputs[i].value.index()]) {
      moved[i] = static_cast<uint32_t>(out.graph.inputs.size());
      add_input(from.inputs[i].value);
    }
  for (const uint32_t id : edit.to_inputs)
    if (live[id]) add_input(ValueId(id));
  for (const graph::Node& node : from.nodes) {
    if (!is_needed(node, edit, live)) continue;
    graph::Node copy = node;
    for (graph::Operand& operand : copy.operands)
      if (auto* id = std::get_if<ValueId>(&operand)) *id = renamed.at(replacement_of(edit, *id).index());
    for (ValueId& id : copy.results) {
      id = copy_value(id);
      out.graph.values[id].producer = graph::NodeId(out.graph.nodes.size());
    }
    out.graph.nodes.push_back(std::move(copy));
  }
  for (size_t i = 0; i < from.outputs.size(); ++i) {
    if (edit.outputs_dropped.contains(static_cast<uint32_t>(i))) continue;
    graph::Output output = from.outputs[i];
    if (output.kind == graph::Output::Kind::Tensor) output.value = renamed.at(replacement_of(edit, output.value).index());
    out.graph.outputs.push_back(output);
  }
  for (size_t i = 0; i < from.mutations.size(); ++i) {
    if (edit.mutations_dropped.contains(static_cast<uint32_t>(i))) continue;
    const ValueId value = renamed.at(replacement_of(edit, from.mutations[i].value).index());
    const uint32_t input = moved.at(from.mutations[i].input);
    if (value != out.graph.inputs[input].value) out.graph.mutations.push_back({input, value});
  }
  return out;
}

std::vector<Edit> possible_edits(const RandomGraph& random) {
  std::vector<Edit> edits;
  if (random.graph.outputs.size() > 1)
    for (uint32_t i = 0; i < random.graph.outputs.size(); ++i) edits.push_back({.outputs_dropped = {i}});
  for (uint32_t i = 0; i < random.graph.mutations.size(); ++i) edits.push_back({.mutations_dropped = {i}});
  for (uint32_t i = 0; i < random.graph.inputs.size(); ++i) edits.push_back({.inputs_dropped = {i}});
  for (size_t n = random.graph.nodes.size(); n-- > 0;) {
    const graph::Node& node = random.graph.nodes[graph::NodeId(n)];
    if (node.results.size() != 1) continue;
    const ValueId result = node.results[0];
    const graph::Value& value = random.graph.values[result];
    for (const graph::Operand& operand : node.operands) {
      const auto* id = std::get_if<ValueId>(&operand);
      if (id == nullptr) continue;
      const graph::Value& other = random.graph.values[*id];
      if (other.dtype == value.dtype && other.sizes == value.sizes) edits.push_back({.replaced = {{result.index(), *id}}});
    }
    if (!node.operands.empty()) edits.push_back({.to_inputs = {result.index()}});
  }
  return edits;
}

// What a failure is about, without the numbers and names of this graph: shrinking keeps it, or it would end at a graph
// that fails for another reason (an input whose size no argument gives, say).
std::string failure_class(std::string_view reason) {
  std::string text;
  for (char c : reason.substr(0, 40))
    if (c < '0' || c > '9') text += c;
  return text;
}

size_t weight(const RandomGraph& random) {
  const graph::Graph& graph = random.graph;
  return 3 * graph.nodes.size() + graph.inputs.size() + graph.outputs.size() + graph.mutations.size();
}

// Where a stride is 0 there is one element for a whole dimension.
void repeat_along_expanded(const graph::Value& value, interp::Tensor& tensor) {
  for (size_t i = 0; i < tensor.elements.size(); ++i) {
    size_t first = 0, rest = i, step = 1;
    for (size_t d = tensor.sizes.size(); d-- > 0;) {
      const auto size = static_cast<size_t>(tensor.sizes[d]);
      if (!value.layout.strides[d].is_constant(0)) first += rest % size * step;
      rest /= size;
      step *= size;
    }
    tensor.elements[i] = tensor.elements[first];
  }
}

}  // namespace

interp::Arguments random_arguments(const graph::Graph& graph, const interp::Symbols& symbols, uint64_t seed) {
  interp::Arguments arguments;
  arguments.symbols = symbols;
  for (const graph::Input& input : graph.inputs) {
    if (input.kind != graph::Input::Kind::Tensor) continue;
    const graph::Value& value = graph.values[input.value];
    std::seed_seq words{seed, static_cast<uint64_t>(std::hash<std::string>()(value.name))};
    std::mt19937_64 random(words);
    const auto number = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
    interp::Tensor tensor;
    tensor.dtype = value.dtype;
    int64_t count = 1;
    for (sym::Expr extent : value.sizes) {
      tensor.sizes.push_back(sym::evaluate(extent, [&](std::string_view name) { return symbols.at(std::string(name)); }));
      count *= tensor.sizes.back();
    }
    for (int64_t i = 0; i < count; ++i) {
      if (is_float(value.dtype)) {  // quarters: exact in every float dtype; seldom something special
        constexpr double special[] = {NAN, INFINITY, -INFINITY, -0.0};
        const bool is_special = number(0, 60) == 0;
        const double element = is_special ? special[number(0, 3)] : static_cast<double>(number(-20, 20)) / 4.0;
        tensor.elements.push_back(Scalar::from_real(value.dtype, element));
      } else {
        tensor.elements.push_back(Scalar::from_integer(value.dtype, number(0, value.dtype == DType::Bool ? 1 : 9)));
      }
    }
    repeat_along_expanded(value, tensor);
    arguments.tensors.push_back(std::move(tensor));
  }
  return arguments;
}

RandomGraph live_part(const RandomGraph& random) { return edited(random, {}); }

std::vector<interp::Tensor> call_extern(const std::string& callee, const std::string&, const std::vector<Arg>&, const std::vector<interp::Tensor>& operands) {
  CXXI_CHECK(callee == "fuzz::twice" && operands.size() == 1, "unknown extern {}", callee);
  interp::Tensor result = operands[0];
  for (Scalar& element : result.elements) element = Scalar::from_real(result.dtype, 2 * element.as_real());
  return {result};
}

namespace {

struct Stretch {
  std::string_view first, last;  // stages
};

driver::PipelineState state_of(driver::Form form, const graph::Graph& graph) {
  driver::PipelineState state{.inputs = {.targets = target_of(graph)}, .form = std::move(form)};
  state.inputs.options.verify = "each";
  return state;
}

std::vector<interp::Tensor> interpret(const driver::Form& form, const interp::Arguments& arguments) {
  return std::visit(
      [&](const auto& f) -> std::vector<interp::Tensor> {
        if constexpr (requires { interp::run(f, arguments, call_extern); }) return interp::run(f, arguments, call_extern);
        throw_internal("the interpreter does not run {}", to_string(driver::kind_of(form)));
      },
      form);
}

// Interprets what these stages make of the graph, each stage verified.
Executor after_stages(std::string name, std::vector<Stretch> stretches) {
  return {std::move(name), [stretches = std::move(stretches)](const graph::Graph& graph, const interp::Arguments& arguments) {
            driver::PipelineState state = state_of(graph, graph);
            for (const auto& [first, last] : stretches) driver::run_stages(driver::stages_between(first, last), state);
            return interpret(state.form, arguments);
          }};
}

// Reads the text that each stage left, interprets it, and goes on from there to the end, which is the same source from every text.
std::vector<interp::Tensor> run_from_texts(const graph::Graph& graph, const interp::Arguments& arguments) {
  const std::span<const driver::Stage> stages = driver::stages_from(driver::FormKind::Graph, "source");
  driver::PipelineState whole = state_of(graph, graph);
  whole.inputs.keep_texts = true;
  driver::run_stages(stages, whole);
  std::vector<interp::Tensor> results;
  for (size_t i = 0; i + 1 < stages.size(); ++i) {
    const auto text = whole.texts.find(std::string(stages[i].name));
    if (text == whole.texts.end()) continue;  // options skip it
    driver::PipelineState rest = state_of(driver::parse_form(text->second), graph);
    results = interpret(rest.form, arguments);
    driver::run_stages(stages.subspan(i + 1), rest);
    CXXI_CHECK(driver::print(rest.form) == driver::print(whole.form), "from the text after {} the stages make another source:\n{}\ninstead of\n{}",
               stages[i].name, driver::print(rest.form), driver::print(whole.form));
  }
  return results;
}

}  // namespace

std::vector<Executor> ir_executors() {
  return {
      after_stages("graph passes", {{"graph-passes", "graph-passes"}}),
      after_stages("lower", {{"lower", "lower"}}),
      after_stages("fuse", {{"lower", "fuse"}}),
      after_stages("plan without fusion", {{"lower", "lower"}, {"select-kernels", "merge-kernels"}}),
      after_stages("plan without graph passes", {{"lower", "merge-kernels"}}),
      after_stages("plan", {{"graph-passes", "merge-kernels"}}),
  };
}

Executor text_executor() { return {"texts", run_from_texts}; }

std::optional<Mismatch> find_mismatch(const RandomGraph& random, const interp::Arguments& arguments, const std::vector<Executor>& executors) {
  const std::vector<interp::Tensor> expected = interp::run(random.graph, arguments, call_extern);
  std::vector<bool> are_exact;  // of each result
  for (const graph::Output& output : random.graph.outputs)
    are_exact.push_back(output.kind != graph::Output::Kind::Tensor || random.exact[output.value.index()]);
  for (size_t i = 0; i < random.graph.inputs.size(); ++i)
    for (const graph::Mutation& mutation : random.graph.mutations)
      if (mutation.input == i) are_exact.push_back(random.exact[mutation.value.index()]);
  const double largest = magnitude(random, arguments);
  for (const Executor& executor : executors) {
    try {
      const std::vector<interp::Tensor> found = executor.run(random.graph, arguments);
      if (found.size() != expected.size()) return Mismatch{executor.name, fmt::format("{} results, expected {}", found.size(), expected.size())};
      for (size_t i = 0; i < expected.size(); ++i) {
        const double tolerance = are_exact.at(i) ? 0 : unit_of(expected[i].dtype) * largest;
        if (const auto reason = difference(expected[i], found[i], tolerance)) return Mismatch{executor.name, fmt::format("result {} {}", i, *reason)};
      }
    } catch (const std::exception& error) {
      return Mismatch{executor.name, fmt::format("throws: {}", error.what())};
    }
  }
  return std::nullopt;
}

RandomGraph shrink(RandomGraph random, uint64_t seed, const Executor& executor) {
  const auto failure_of = [&](const RandomGraph& candidate) {
    const interp::Arguments arguments = random_arguments(candidate.graph, candidate.symbols, seed);
    const auto mismatch = find_mismatch(candidate, arguments, {executor});
    return mismatch ? failure_class(mismatch->reason) : std::string();
  };
  const std::string wanted = failure_of(random);
  const auto still_fails = [&](const RandomGraph& candidate) {
    try {
      return graph::verify(candidate.graph).empty() && failure_of(candidate) == wanted;
    } catch (const std::exception&) {
      return false;  // the reference refuses: another problem, perhaps none
    }
  };
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (const Edit& edit : possible_edits(random)) {
      RandomGraph candidate = edited(random, edit);
      if (weight(candidate) >= weight(random) || !still_fails(candidate)) continue;
      random = std::move(candidate);
      smaller = true;
      break;
    }
  }
  return random;
}

std::string describe(const RandomGraph& random, uint64_t seed, const Mismatch& mismatch) {
  std::string text = fmt::format("; seed {}, executor '{}'\n", seed, mismatch.executor);
  for (const auto& [symbol, size] : random.symbols) text += fmt::format("; {} = {}\n", symbol, size);
  std::string reason = mismatch.reason.substr(0, 1500);
  for (size_t at = reason.find('\n'); at != std::string::npos; at = reason.find('\n', at + 3)) reason.insert(at + 1, "; ");
  return text + "; " + reason + "\n" + graph::print(random.graph);
}

}  // namespace cxxinductor::fuzz
