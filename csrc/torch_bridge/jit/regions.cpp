#include "torch_bridge/jit/regions.h"

#include <torch/csrc/jit/ir/alias_analysis.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace cxxinductor::torch_bridge {
namespace {

using torch::jit::AliasDb;
using torch::jit::Block;
using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;
namespace prim = torch::jit::prim;

// Nodes of a block in their order. Constants among them stay where they are, and are in the body again.
using Interval = std::vector<Node*>;

// The node of that block which holds another; null: there is none.
Node* ancestor_in(const Block* block, Node* node) {
  while (node != nullptr && node->owningBlock() != block) node = node->owningBlock()->owningNode();
  return node;
}

bool is_tensor(const Value* value) { return value->type()->isSubtypeOf(*c10::TensorType::get()); }

// Strictly inside.
bool holds_type(const c10::Type& type, c10::TypeKind kind) {
  const auto contained = type.containedTypes();
  return std::any_of(contained.begin(), contained.end(), [&](const c10::TypePtr& inner) { return inner->kind() == kind || holds_type(*inner, kind); });
}

// What a region has its own copy of.
bool is_constant(const Node* node) { return node->kind() == prim::Constant || node->kind() == prim::Uninitialized; }

template <class Visit>  // (Node*), nodes in blocks too
void for_each_node(Block* block, const Visit& visit) {
  for (Node* node : block->nodes()) {
    visit(node);
    for (Block* inner : node->blocks()) for_each_node(inner, visit);
  }
}
template <class Visit>
void for_each_node(Node* node, const Visit& visit) {
  visit(node);
  for (Block* inner : node->blocks()) for_each_node(inner, visit);
}

// Values that a node and the nodes in its blocks take from outside it.
std::vector<Value*> taken_by(Node* node) {
  std::vector<Value*> values;
  const auto take = [&](at::ArrayRef<Value*> inputs) {
    for (Value* value : inputs)
      if (value->node() == node || ancestor_in(node->owningBlock(), value->node()) != node) values.push_back(value);
  };
  for_each_node(node, [&](Node* inner) {
    take(inner->inputs());
    for (Block* block : inner->blocks()) take(block->outputs());
  });
  return values;
}

bool is_inside(const Interval& interval, Node* node) {
  Node* const held = ancestor_in(interval.front()->owningBlock(), node);
  return std::find(interval.begin(), interval.end(), held) != interval.end();
}

// What it takes from outside, constants aside.
std::vector<Value*> inputs_of(const Interval& interval) {
  std::vector<Value*> inputs;
  std::set<const Value*> seen;
  for (Node* node : interval)
    for (Value* value : taken_by(node))
      if (!is_inside(interval, value->node()) && !is_constant(value->node()) && seen.insert(value).second) inputs.push_back(value);
  return inputs;
}

std::vector<Value*> outputs_of(const Interval& interval) {
  std::vector<Value*> outputs;
  for (Node* node : interval)
    for (Value* value : node->outputs())
      if (std::any_of(value->uses().begin(), value->uses().end(), [&](const auto& use) { return !is_inside(interval, use.user); })) outputs.push_back(value);
  return outputs;
}

// What a thread's modes are is read once, before all else: regions take it as an argument.
void hoist_reads_of_modes(Graph& graph) {
  std::vector<Node*> reads;
  bool sets_modes = false;
  for_each_node(graph.block(), [&](Node* node) {
    const std::string_view op = node->kind().toQualString();
    if (op == "aten::is_grad_enabled") reads.push_back(node);
    sets_modes = sets_modes || op == "aten::set_grad_enabled" || node->kind() == prim::Enter;
  });
  if (sets_modes) return;
  for (Node* node : reads) node->moveBefore(*graph.nodes().begin());
}

class RegionFinder {
 public:
  RegionFinder(const std::shared_ptr<Graph>& graph, const NodeSet& excluded) : aliases_(graph), excluded_(excluded) {
    for_each_node(graph->block(), [this](Node* node) {
      const c10::FunctionSchema* schema = node->maybeSchema();
      if (node->kind() == prim::SetAttr) sets_attributes_ = true;
      if (node->blocks().empty() && (schema == nullptr || schema->is_mutable() || node->hasSideEffects())) writers_.push_back(node);
    });
    visit(graph->block());
  }

  std::vector<Interval> regions;

 private:
  void visit(Block* block) {
    Interval interval;
    std::vector<Interval> intervals;
    for (auto node = block->nodes().begin(); node != block->nodes().end();) {
      Node* const current = *node;
      ++node;
      if (is_constant(current)) {
        if (!interval.empty()) current->moveBefore(interval.front());
        continue;
      }
      if (role(current) != Role::Boundary) {
        interval.push_back(current);
        continue;
      }
      for (Block* inner : current->blocks()) visit(inner);
      if (interval.empty()) continue;
      if (may_come_before(current, interval))
        current->moveBefore(interval.front());
      else
        intervals.push_back(std::exchange(interval, {}));
    }
    if (!interval.empty()) intervals.push_back(std::move(interval));
    for (Interval& part : intervals) consider(std::move(part));
  }

  // A node that is not part of the region, and does not need it.
  bool may_come_before(Node* node, const Interval& interval) const {
    const bool reads_attribute = node->kind() == prim::GetAttr && !sets_attributes_;
    const c10::FunctionSchema* schema = node->maybeSchema();
    if (!node->blocks().empty() || node->hasSideEffects() || node->isNondeterministic() || (!reads_attribute && (schema == nullptr || schema->is_mutable())))
      return false;
    return std::all_of(node->inputs().begin(), node->inputs().end(), [&](Value* input) {
      return std::find(interval.begin(), interval.end(), input->node()) == interval.end() && (reads_attribute || !aliases_.hasWriters(input));
    });
  }

  // The region of an interval, or those of its parts on both sides of a node that fits in none.
  void consider(Interval interval) {
    trim(interval);
    if (!is_worthwhile(interval)) return;
    Node* obstacle = obstacle_in(interval);
    if (obstacle == nullptr) {
      regions.push_back(std::move(interval));
      return;
    }
    const auto at = std::find(interval.begin(), interval.end(), obstacle);
    consider(Interval(interval.begin(), at));
    consider(Interval(at + 1, interval.end()));
  }

  Role role(Node* node) {
    const auto [known, fresh] = roles_.emplace(node, Role::Boundary);
    if (fresh) known->second = role_of(node, excluded_);
    return known->second;
  }

  // Helpers behind the last op that gives a tensor or writes a container stay behind the region; those before the first that it does not need stay before.
  void trim(Interval& interval) {
    const auto computes = [this](Node* node) { return role(node) <= Role::View; };
    const auto last = std::find_if(interval.rbegin(), interval.rend(), [&](Node* node) { return computes(node) || writes_container(node); });
    interval.erase(last.base(), interval.end());
    const auto first = std::find_if(interval.begin(), interval.end(), computes);
    if (std::any_of(interval.begin(), first, writes_container)) return;
    NodeSet needed;
    const auto add = [&](Node* node) {
      for (Value* value : taken_by(node)) needed.insert(value->node());
    };
    std::for_each(first, interval.end(), add);
    for (auto node = first; node != interval.begin();)
      if (needed.contains(*--node)) add(*node);
    NodeSet kept;
    const auto stays_before = [&](Node* node) {
      const std::vector<Value*> taken = taken_by(node);
      const bool keep = needed.contains(node) || std::any_of(taken.begin(), taken.end(), [&](Value* value) { return kept.contains(value->node()); });
      if (keep) kept.insert(node);
      return !keep;
    };
    Interval trimmed;
    std::copy_if(interval.begin(), first, std::back_inserter(trimmed), [&](Node* node) { return !stays_before(node); });
    trimmed.insert(trimmed.end(), first, interval.end());
    interval = std::move(trimmed);
  }

  bool is_worthwhile(const Interval& interval) {
    size_t tensors = 0, computed = 0;
    for (Node* node : interval)
      for_each_node(node, [&](Node* inner) {
        if (!inner->blocks().empty()) return;
        tensors += role(inner) <= Role::View;
        computed += role(inner) == Role::Compute;
      });
    return tensors > 1 && computed > 0;
  }

  // Whether it writes a container that one of these may hold, as dictionaries in a list. PyTorch's analysis does not say which of two
  // containers is inside: one that was made here and holds an element of theirs counts too, where they hold containers of its kind.
  bool writes_inside(Node* node, const std::vector<Value*>& values) const {
    const std::vector<Value*> written = written_containers(node);
    return std::any_of(written.begin(), written.end(), [&](Value* target) {
      return std::any_of(values.begin(), values.end(),
                         [&](Value* value) { return holds_type(*value->type(), target->type()->kind()) && aliases_.mayContainAlias(value, target); });
    });
  }

  // What a region gives has memory of its own, and so has what it takes apart.
  Node* obstacle_in(const Interval& interval) const {
    const std::vector<Value*> inputs = inputs_of(interval), outputs = outputs_of(interval);
    torch::jit::ValueSet containers;
    for (Value* input : inputs)
      if (!is_tensor(input)) containers.insert(input);
    for (Node* node : interval) {
      bool writes = false;
      for_each_node(node, [&](Node* inner) {
        writes = writes || (writes_container(inner) && (aliases_.writesToAlias(inner, containers) || writes_inside(inner, inputs)));
      });
      if (writes) return node;
    }
    for (Value* output : outputs) {
      const Writes writes = writes_outside(output, interval);
      const auto shares = [&](Value* other) {
        return other != output && (writes.tensors || (writes.containers && !is_tensor(other))) && aliases_.mayContainAlias(output, other);
      };
      if (std::any_of(inputs.begin(), inputs.end(), shares) || std::any_of(outputs.begin(), outputs.end(), shares)) return output->node();
    }
    return nullptr;
  }

  // A write to a container does not write the tensors in it.
  struct Writes {
    bool tensors = false, containers = false;
  };
  Writes writes_outside(Value* value, const Interval& interval) const {
    Writes found;
    for (Node* writer : writers_) {
      if (is_inside(interval, writer)) continue;
      const c10::FunctionSchema* schema = writer->maybeSchema();
      if (schema == nullptr) {
        if (aliases_.writesToAlias(writer, {value})) found.tensors = found.containers = true;
        continue;
      }
      for (size_t i = 0; i < writer->inputs().size() && i < schema->arguments().size(); ++i) {
        const c10::AliasInfo* alias = schema->arguments()[i].alias_info();
        const bool to_tensor = is_tensor(writer->input(i));
        if (alias == nullptr || !alias->isWrite() || (!to_tensor && is_tensor(value))) continue;
        if (aliases_.mayContainAlias(value, writer->input(i))) (to_tensor ? found.tensors : found.containers) = true;
      }
    }
    return found;
  }

  const AliasDb aliases_;
  const NodeSet& excluded_;
  std::unordered_map<Node*, Role> roles_;
  std::vector<Node*> writers_;
  bool sets_attributes_ = false;
};

void replace(const Interval& nodes, const MakeRegionCall& make_call) {
  const std::vector<Value*> inputs = inputs_of(nodes), outputs = outputs_of(nodes);
  const auto body = std::make_shared<Graph>();
  std::unordered_map<Value*, Value*> copies;
  for (Value* input : inputs) copies.emplace(input, body->addInput()->setType(input->type()));
  const auto copy_of = [&](Value* value) {
    if (const auto known = copies.find(value); known != copies.end()) return known->second;
    Node* constant = body->createClone(value->node(), [](Value* none) { return none; });
    body->prependNode(constant);
    return copies.emplace(value, constant->output()).first->second;
  };
  for (Node* node : nodes) {
    Node* copied = body->insertNode(body->createClone(node, copy_of));
    for (size_t i = 0; i < node->outputs().size(); ++i) copies.emplace(node->output(i), copied->output(i));
  }
  std::vector<Value*> results;
  for (Value* value : outputs) results.push_back(copies.at(value));
  body->registerOutput(body->insertNode(body->createTuple(results))->output());

  const torch::jit::WithInsertPoint behind(nodes.back()->next());
  const std::vector<Value*> computed = make_call({body, inputs});
  for (size_t i = 0; i < outputs.size(); ++i) {
    computed.at(i)->setType(outputs[i]->type());
    outputs[i]->replaceAllUsesWith(computed[i]);
  }
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) (*node)->destroy();
}

}  // namespace

size_t replace_regions(const std::shared_ptr<Graph>& graph, const MakeRegionCall& make_call, const NodeSet& excluded) {
  hoist_reads_of_modes(*graph);
  const RegionFinder finder(graph, excluded);
  for (const Interval& nodes : finder.regions) replace(nodes, make_call);
  return finder.regions.size();
}

std::set<std::string> boundaries_of(const Graph& graph) {
  std::set<std::string> names;
  for_each_node(const_cast<Graph&>(graph).block(), [&](Node* node) {
    const bool structure = node->kind() == prim::GetAttr || node->kind() == prim::SetAttr || node->kind() == prim::unchecked_cast || is_constant(node);
    if (node->kind().is_aten() || node->kind() == prim::Loop || (node->kind().is_prim() && !structure && node->blocks().empty()))
      if (role_of(node, {}) == Role::Boundary) names.insert(node->kind().toQualString());
  });
  return names;
}

}  // namespace cxxinductor::torch_bridge
