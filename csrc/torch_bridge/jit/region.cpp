#include "torch_bridge/jit/region.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "support/error.h"
#include "torch_bridge/compiled_graph.h"
#include "torch_bridge/jit/code_module.h"
#include "torch_bridge/jit/interpret.h"
#include "torch_bridge/jit/region_group.h"
#include "torch_bridge/jit/value_tree.h"
#include "torch_bridge/record/fake_tensor.h"

namespace cxxinductor::torch_bridge {
namespace {

using torch::jit::Block;
using torch::jit::Code;
using torch::jit::Graph;
using torch::jit::Node;

bool requires_gradient(const c10::IValue& value) {
  if (value.isTensor()) return value.toTensor().defined() && value.toTensor().requires_grad();
  if (value.isTuple()) {
    const auto& items = value.toTupleRef().elements();
    return std::any_of(items.begin(), items.end(), requires_gradient);
  }
  if (value.isTensorList() || (value.isList() && !value.isIntList() && !value.isDoubleList() && !value.isBoolList())) {
    const auto items = value.toListRef();
    return std::any_of(items.begin(), items.end(), requires_gradient);
  }
  if (!value.isGenericDict()) return false;
  const auto dict = value.toGenericDict();
  return std::any_of(dict.begin(), dict.end(), [](const auto& entry) { return requires_gradient(entry.value()); });
}

std::vector<c10::IValue> run_interpreter(const Code& code, const std::vector<c10::IValue>& arguments) {
  torch::jit::Stack stack(arguments);
  torch::jit::InterpreterState(code).run(stack);
  return torch::jit::pop(stack).toTuple()->elements().vec();
}

// Nodes in the order of the text, those in blocks behind the node that they are in.
void list_nodes(const Block* block, std::vector<const Node*>& nodes) {
  for (const Node* node : block->nodes()) {
    nodes.push_back(node);
    for (const Block* inner : node->blocks()) list_nodes(inner, nodes);
  }
}
std::vector<const Node*> nodes_of(const Graph& graph) {
  std::vector<const Node*> nodes;
  list_nodes(graph.block(), nodes);
  return nodes;
}

bool reads_requires_grad(const Graph& graph) {
  const std::vector<const Node*> nodes = nodes_of(graph);
  return std::any_of(nodes.begin(), nodes.end(), [](const Node* node) { return node->kind() == torch::jit::prim::requires_grad; });
}

size_t number_of(const Graph& graph, const Node* node) {
  const std::vector<const Node*> nodes = nodes_of(graph);
  return static_cast<size_t>(std::find(nodes.begin(), nodes.end(), node) - nodes.begin());
}

}  // namespace

// Compiled forms take and give flat lists of tensors and numbers. What these are items of is a tree: of the arguments, named by a text that is
// one more argument; of the results, named by a number that is one more result: made of its content, so that the results of a plan that
// was made in another process have it, too.
struct Region::Shapes {
  ForkMutex mutex;
  std::map<std::string, std::vector<ValueTree>> arguments;
  std::map<int64_t, std::shared_ptr<const ValueTree>> results;
  std::set<size_t> failed;  // nodes of the code that could not be traced, by number

  std::vector<c10::IValue> flatten(const std::vector<c10::IValue>& values) {
    if (std::none_of(values.begin(), values.end(), is_container)) return values;
    std::vector<c10::IValue> leaves;
    std::vector<ValueTree> trees;
    std::string text;
    for (const c10::IValue& value : values) {
      trees.emplace_back(value, [&](const c10::IValue& item) {
        leaves.push_back(item);
        return ValueTree::Item{};
      });
      text += trees.back().text();
    }
    const std::lock_guard lock(mutex);
    if (!arguments.contains(text)) {
      const ForkGuard guard(ForkLock::Leaf);
      arguments.emplace(text, std::move(trees));
    }
    leaves.emplace_back(std::move(text));
    return leaves;
  }

  std::vector<c10::IValue> unflatten(std::vector<c10::IValue> leaves, size_t count) {
    if (leaves.empty() || !leaves.back().isString()) return leaves;
    const std::lock_guard lock(mutex);
    const auto found = arguments.find(leaves.back().toStringRef());
    if (found == arguments.end() || found->second.size() != count) return leaves;
    std::span<const c10::IValue> rest(leaves);
    std::vector<c10::IValue> values;
    for (const ValueTree& tree : found->second) values.push_back(tree.build(rest, {}));
    return values;
  }

  std::vector<c10::IValue> flatten_results(std::vector<c10::IValue> values, const std::vector<c10::IValue>& arguments_in) {
    std::vector<c10::IValue> leaves;
    const auto classify = [&](const c10::IValue& item) -> ValueTree::Item {
      const bool is_tensor = item.isTensor() && item.toTensor().defined();
      if (is_tensor || item.isSymInt()) {
        const auto same = [&](const c10::IValue& argument) { return is_tensor && argument.isTensor() && argument.toTensor().is_same(item.toTensor()); };
        const auto argument = std::find_if(arguments_in.begin(), arguments_in.end(), same);
        if (argument != arguments_in.end()) return {ValueTree::Kind::Argument, static_cast<size_t>(argument - arguments_in.begin())};
        leaves.push_back(item);
        return {};
      }
      return {ValueTree::Kind::Constant, 0};
    };
    const auto tree = std::make_shared<const ValueTree>(c10::ivalue::Tuple::create(std::move(values)), classify);
    leaves.emplace_back(number_of(tree));
    return leaves;
  }

  int64_t number_of(const std::shared_ptr<const ValueTree>& tree) {
    constexpr size_t digits = 15;  // of 4 bits each
    const std::string text = tree->full_text();
    const std::lock_guard lock(mutex);
    for (int64_t number = std::stoll(package_file::text_digest(text).substr(0, digits), nullptr, 16);; ++number) {
      const auto found = results.find(number);
      if (found == results.end()) {
        const ForkGuard guard(ForkLock::Leaf);
        results.emplace(number, tree);
        return number;
      }
      if (found->second->full_text() == text && found->second->has_types_of(*tree)) return number;
    }
  }

  std::vector<c10::IValue> build_results(std::vector<c10::IValue> leaves, std::span<const c10::IValue> arguments_in) {
    const int64_t number = leaves.back().toInt();
    leaves.pop_back();
    std::shared_ptr<const ValueTree> tree;
    {
      const std::lock_guard lock(mutex);
      tree = results.at(number);
    }
    std::span<const c10::IValue> rest(leaves);
    return tree->build(rest, arguments_in).toTupleRef().elements().vec();
  }
};

// The code with regions of its own, none of which holds a node that failed.
struct Region::Split {
  std::set<size_t> failed;
  std::vector<c10::intrusive_ptr<Region>> parts;
  Code code;
};

TracedFunction Region::traced_code(const std::shared_ptr<Graph>& code, const std::shared_ptr<Shapes>& shapes) {
  return [code, shapes](std::vector<c10::IValue> leaves) {
    const std::vector<c10::IValue> arguments = shapes->unflatten(leaves, code->inputs().size());
    const Node* at = nullptr;
    std::vector<c10::IValue> results;
    const auto fail = [&] {
      if (at == nullptr) return;
      const size_t number = number_of(*code, at);
      const std::lock_guard lock(shapes->mutex);
      const ForkGuard guard(ForkLock::Leaf);
      shapes->failed.insert(number);
    };
    try {
      results = interpret(*code, arguments, at);
    } catch (const Unsupported&) {
      fail();
      throw;
    } catch (const c10::Error&) {  // of a kernel that reads elements, or eager's own
      fail();
      throw;
    }
    return shapes->flatten_results(std::move(results), leaves);
  };
}

Region::Region(std::string name, std::shared_ptr<Graph> code, Options options, std::shared_ptr<const SavedForms> saved)
    : name_(std::move(name)),
      code_(std::move(code)),
      options_(std::move(options)),
      plain_(code_, name_),
      reads_requires_grad_(reads_requires_grad(*code_)),
      shapes_(std::make_shared<Shapes>()),
      saved_(std::move(saved)),
      traced_(traced_code(code_, shapes_)),
      tracer_(inference_tracer(name_, traced_, options_,
                               saved_ ? PlanFinder([saved = saved_](const model::CallGraph& calls) { return saved->find_plan(calls); }) : PlanFinder())),
      forms_(name_, options_, {},
             saved_ ? PatternFinder([saved = saved_, name = name_](std::span<const c10::IValue> leaves) { return saved->patterns_for(name, leaves); })
                    : PatternFinder()) {}

Region::~Region() = default;

std::vector<c10::IValue> Region::run(const std::vector<c10::IValue>& arguments) {
  if (arguments.size() != code_->inputs().size()) throw_user_error("{}: expected {} arguments, found {}", name_, code_->inputs().size(), arguments.size());
  const auto as_written = [&](Cause cause) {
    calls_as_written_[cause].fetch_add(1, std::memory_order_relaxed);
    count_eager();
    return run_code(arguments);
  };
  if (at::autocast::is_autocast_enabled(at::kCPU) || at::autocast::is_autocast_enabled(at::kCUDA)) return as_written(Autocast);
  if ((at::GradMode::is_enabled() || reads_requires_grad_) && std::any_of(arguments.begin(), arguments.end(), requires_gradient)) return as_written(Gradients);
  if (auto results = run_compiled(arguments)) return std::move(*results);
  if (const std::shared_ptr<const Split> parts = split()) return run_interpreter(parts->code, arguments);
  std::vector<c10::IValue> results = as_written(NotCompiled);
  split_where_it_failed();
  return results;
}

std::vector<c10::IValue> Region::run_code(const std::vector<c10::IValue>& arguments) const { return run_interpreter(plain_, arguments); }

std::optional<std::vector<c10::IValue>> Region::run_compiled(const std::vector<c10::IValue>& arguments) {
  std::vector<c10::IValue> leaves;
  std::optional<std::vector<c10::IValue>> results;
  try {
    leaves = shapes_->flatten(arguments);
    results = forms_.run(std::vector(leaves), tracer_);
  } catch (const Unsupported&) {  // arguments that no form can be of: sparse tensors, say
    return std::nullopt;
  }
  if (!results) return std::nullopt;
  return shapes_->build_results(std::move(*results), leaves);
}

// Null as long as nothing failed but what it was made for.
std::shared_ptr<const Region::Split> Region::split() const {
  const std::scoped_lock lock(mutex_, shapes_->mutex);
  return split_ && split_->failed == shapes_->failed ? split_ : nullptr;
}

void Region::split_where_it_failed() {
  const std::lock_guard lock(mutex_);
  std::set<size_t> failed;
  {
    const std::lock_guard reading(shapes_->mutex);
    failed = shapes_->failed;
  }
  if (failed.empty() || (split_ && split_->failed == failed)) return;
  const std::shared_ptr<Graph> graph = code_->copy();
  const std::vector<const Node*> nodes = nodes_of(*graph);
  NodeSet excluded;
  for (size_t number : failed) excluded.insert(nodes.at(number));
  auto made = std::make_shared<Split>();
  made->failed = std::move(failed);
  made->parts = group_regions(graph, name_, options_, excluded, saved_);
  made->code = Code(graph, name_);
  std::shared_ptr<const Split> split = std::move(made);
  const ForkGuard guard(ForkLock::Leaf);
  split_.swap(split);
}

// What was traced gives the same calls again, in the form that a file has them.
void Region::pack(PackedForms& packed) const {
  const TracedFunction traced = traced_code(as_loaded(*code_), shapes_);
  for (const CallPattern& pattern : forms_.patterns()) packed.add(name_, pattern, trace(name_, traced, pattern).calls, options_);
  const std::lock_guard lock(mutex_);
  if (split_)
    for (const auto& part : split_->parts) part->pack(packed);
}

std::string Region::describe() const {
  std::string text = forms_.describe();
  if (text.empty()) text = fmt::format("{}: has not been called with arguments that it is compiled for\n", name_);
  static constexpr std::array<const char*, causes> reasons{"arguments require gradients", "autocast is on", "they were not compiled"};
  for (size_t cause = 0; cause < causes; ++cause)
    if (const int64_t count = calls_as_written_[cause].load(std::memory_order_relaxed); count > 0)
      text += fmt::format("{}: {} calls ran as written, for {}\n", name_, count, reasons[cause]);
  const std::lock_guard lock(mutex_);
  if (split_)
    for (const auto& part : split_->parts) text += part->describe();
  return text;
}

}  // namespace cxxinductor::torch_bridge
