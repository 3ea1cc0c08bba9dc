#include "torch_bridge/jit/regions.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/jit/ir/alias_analysis.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "model/infer/infer.h"
#include "torch_bridge/dispatcher_schemas.h"
#include "torch_bridge/record/composites.h"

namespace cxxinductor::torch_bridge {
namespace {

using torch::jit::AliasDb;
using torch::jit::Block;
using torch::jit::Graph;
using torch::jit::Node;
using torch::jit::Value;

enum class Role : uint8_t {
  Compute,   // part of a region
  Helper,    // arithmetic on sizes, lists and constants: in a region again, where it needs the result
  Neutral,   // neither, and may stay before or behind a region
  Boundary,  // ends a region
};

bool is_tensor(const Value* value) { return value->type()->isSubtypeOf(*c10::TensorType::get()); }
bool is_integer(const Value* value) { return value->type()->kind() == c10::TypeKind::IntType; }
bool holds_tensors(const Value* value) {
  if (is_tensor(value)) return true;
  const auto* list = value->type()->castRaw<c10::ListType>();
  return list != nullptr && list->getElementType()->isSubtypeOf(*c10::TensorType::get());
}

// What a region can take: tensors, integers, and what stays the same for one compiled form.
bool can_be_input(const Value* value) {
  const c10::TypeKind kind = value->type()->kind();
  static constexpr std::array kinds{
      c10::TypeKind::TensorType, c10::TypeKind::IntType,       c10::TypeKind::FloatType,
      c10::TypeKind::BoolType,   c10::TypeKind::StringType,    c10::TypeKind::NoneType,
      c10::TypeKind::NumberType, c10::TypeKind::DeviceObjType, c10::TypeKind::ComplexType};
  if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) return true;
  if (const auto* list = value->type()->castRaw<c10::ListType>()) {
    const c10::TypeKind element = list->getElementType()->kind();
    return element == c10::TypeKind::IntType || element == c10::TypeKind::FloatType ||
           element == c10::TypeKind::BoolType;
  }
  return value->type()->kind() == c10::TypeKind::OptionalType;
}

// Ops that read no element of a tensor, only metadata.
bool reads_metadata(const Node* node) {
  static constexpr std::array<std::string_view, 11> names{
      "aten::size",  "aten::dim",    "aten::numel",   "aten::len",    "aten::is_complex", "aten::is_floating_point",
      "prim::dtype", "prim::device", "prim::is_cuda", "prim::layout", "aten::get_device"};
  return std::find(names.begin(), names.end(), node->kind().toQualString()) != names.end();
}

// The compiler can state the metadata of its results: by a rule, or by those of the calls that it consists of.
bool can_be_recorded(const Node* node, const c10::FunctionSchema& schema) {
  const auto op = c10::Dispatcher::singleton().findSchema(schema.operator_name());
  if (!op || !node->kind().is_aten()) return false;
  const std::string name =
      schema.overload_name().empty() ? schema.name() : schema.name() + "." + schema.overload_name();
  return op->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) || find_composite(name) != nullptr ||
         model::OpRule::find(schema.name(), schema.overload_name(), DispatcherSchemas()).has_value();
}

Role role_of(Node* node) {
  namespace prim = torch::jit::prim;
  if (!node->blocks().empty()) return Role::Boundary;
  const auto kind = node->kind();
  if (kind == prim::Constant || kind == prim::ListConstruct || kind == prim::TupleConstruct ||
      kind == prim::ListUnpack || kind == prim::TupleUnpack)
    return Role::Helper;
  if (kind == prim::GetAttr || kind == prim::unchecked_cast || kind == prim::Uninitialized) return Role::Neutral;
  const c10::FunctionSchema* schema = node->maybeSchema();
  if (schema == nullptr) return Role::Boundary;
  const bool gives_tensors = std::any_of(node->outputs().begin(), node->outputs().end(), holds_tensors);
  if (gives_tensors) {
    const bool all = std::all_of(node->outputs().begin(), node->outputs().end(), holds_tensors);
    return all && can_be_recorded(node, *schema) ? Role::Compute : Role::Boundary;
  }
  if (node->hasSideEffects() || schema->is_mutable() || node->isNondeterministic()) return Role::Boundary;
  const bool reads_tensors = std::any_of(node->inputs().begin(), node->inputs().end(), holds_tensors);
  if (reads_tensors && !reads_metadata(node)) return Role::Boundary;
  return kind.is_aten() || kind.is_prim() ? Role::Helper : Role::Boundary;
}

bool is_view(const Node* node) {
  const c10::FunctionSchema* schema = node->maybeSchema();
  return schema != nullptr && !schema->is_mutable() &&
         std::any_of(schema->returns().begin(), schema->returns().end(),
                     [](const auto& result) { return result.alias_info() != nullptr; });
}

// Nodes of a block in order, none of which is a boundary.
using Interval = std::vector<Node*>;

class RegionBuilder {
 public:
  RegionBuilder(const Interval& interval, const AliasDb& aliases)
      : interval_(interval), aliases_(aliases), body_(std::make_shared<Graph>()) {
    for (Node* node : interval)
      if (role_of(node) == Role::Compute) gone_.insert(node);
  }

  bool is_worthwhile() const {
    const auto computes = [](Node* node) { return !is_view(node); };
    return gone_.size() > 1 && std::any_of(gone_.begin(), gone_.end(), computes);
  }

  // Null: done. Otherwise a node that cannot be part of the region.
  Node* build() {
    for (Node* node : interval_) {
      if (!gone_.contains(node)) continue;
      if (!copy(node)) return node;
    }
    return choose_outputs();
  }

  void replace(const MakeRegionCall& make_call) {
    std::vector<Value*> results;
    for (Value* value : outputs_) results.push_back(copies_.at(value));
    body_->registerOutput(body_->insertNode(body_->createTuple(results))->output());
    Node* end = interval_.back()->next();
    const torch::jit::WithInsertPoint behind(end);
    JitRegion region{body_, inputs_, 0, 0};
    for (Value* value : outputs_) (is_tensor(value) ? region.tensors : region.numbers) += 1;
    const std::vector<Value*> computed = make_call(region);
    std::vector<Node*> readers;  // that stay, behind the region
    for (Node* node : interval_)
      if (!gone_.contains(node) && depends_on_region(node)) readers.push_back(node);
    for (Node* reader : readers) reader->moveBefore(end);
    for (size_t i = 0; i < outputs_.size(); ++i) {
      computed.at(i)->setType(outputs_[i]->type());
      outputs_[i]->replaceAllUsesWith(computed[i]);
    }
    for (auto node = interval_.rbegin(); node != interval_.rend(); ++node)
      if (gone_.contains(*node)) (*node)->destroy();
  }

 private:
  // The body's value for one of the outer graph's; null where it cannot be taken in.
  Value* needed(Value* value) {
    if (const auto found = copies_.find(value); found != copies_.end()) return found->second;
    Node* node = value->node();
    if (node->kind() != torch::jit::prim::Param && role_of(node) == Role::Helper && copy(node))
      return copies_.at(value);
    if (!can_be_input(value)) return nullptr;
    inputs_.push_back(value);
    Value* input = body_->addInput()->setType(value->type());
    copies_.emplace(value, input);
    return input;
  }

  bool copy(Node* node) {
    for (Value* input : node->inputs())
      if (needed(input) == nullptr) return false;
    Node* copied = body_->insertNode(body_->createClone(node, [this](Value* value) { return copies_.at(value); }));
    for (size_t i = 0; i < node->outputs().size(); ++i) copies_.emplace(node->output(i), copied->output(i));
    return true;
  }

  bool is_used_outside(Value* value) const {
    return std::any_of(value->uses().begin(), value->uses().end(),
                       [this](const auto& use) { return !gone_.contains(use.user); });
  }
  bool is_used_outside(Node* node) const {
    return std::any_of(node->outputs().begin(), node->outputs().end(),
                       [this](Value* value) { return is_used_outside(value); });
  }

  bool depends_on_region(Node* node) const {
    return std::any_of(node->inputs().begin(), node->inputs().end(), [this](Value* input) {
      return gone_.contains(input->node()) ||
             (std::find(interval_.begin(), interval_.end(), input->node()) != interval_.end() &&
              depends_on_region(input->node()));
    });
  }

  Node* choose_outputs() {
    std::set<Node*> computed = gone_;
    for (auto node = interval_.rbegin(); node != interval_.rend(); ++node)
      if (role_of(*node) == Role::Helper && !is_used_outside(*node)) gone_.insert(*node);
    for (Node* node : interval_) {  // what is read of the region's results, tensors and sizes, is a result itself
      if (gone_.contains(node) || role_of(node) != Role::Helper || !depends_on_region(node)) continue;
      const bool fits = std::all_of(node->outputs().begin(), node->outputs().end(),
                                    [](Value* v) { return is_tensor(v) || is_integer(v); });
      if (fits && (copies_.contains(node->output(0)) || copy(node))) gone_.insert(node), computed.insert(node);
    }
    std::vector<Value*> numbers;
    for (Node* node : interval_) {
      if (!computed.contains(node)) continue;
      for (Value* value : node->outputs()) {
        if (!is_used_outside(value)) continue;
        if (!is_tensor(value) && !is_integer(value)) return node;
        if (is_tensor(value) && shares_written_memory(value)) return node;
        (is_tensor(value) ? outputs_ : numbers).push_back(value);
      }
    }
    outputs_.insert(outputs_.end(), numbers.begin(), numbers.end());
    return nullptr;
  }

  // A result of a compiled form has memory of its own.
  bool shares_written_memory(Value* value) const {
    if (!aliases_.hasWriters(value)) return false;
    return std::any_of(inputs_.begin(), inputs_.end(),
                       [&](Value* input) { return aliases_.mayContainAlias(input, value); });
  }

  const Interval& interval_;
  const AliasDb& aliases_;
  std::shared_ptr<Graph> body_;
  std::set<Node*> gone_;  // of the outer graph, once the region is there
  std::unordered_map<Value*, Value*> copies_;
  std::vector<Value*> inputs_, outputs_;
};

class RegionFinder {
 public:
  RegionFinder(const std::shared_ptr<Graph>& graph, const MakeRegionCall& make_call)
      : make_call_(make_call), aliases_(graph) {}

  size_t run(Block* block) {
    Interval interval;
    std::vector<Interval> intervals;
    for (Node* node : block->nodes()) {
      for (Block* inner : node->blocks()) run(inner);
      const Role role = role_of(node);
      if (role != Role::Boundary && !(role == Role::Neutral && depends_on(node, interval))) {
        interval.push_back(node);
      } else if (!interval.empty()) {
        intervals.push_back(std::exchange(interval, {}));
      }
    }
    if (!interval.empty()) intervals.push_back(std::move(interval));
    for (const Interval& part : intervals) replace(part);
    return count_;
  }

 private:
  static bool depends_on(Node* node, const Interval& interval) {
    return std::any_of(node->inputs().begin(), node->inputs().end(), [&](Value* input) {
      return std::find(interval.begin(), interval.end(), input->node()) != interval.end() &&
             role_of(input->node()) == Role::Compute;
    });
  }

  // The region of an interval, or those of its parts on both sides of a node that fits in none.
  void replace(const Interval& interval) {
    RegionBuilder builder(interval, aliases_);
    if (!builder.is_worthwhile()) return;
    if (Node* obstacle = builder.build()) {
      const auto at = std::find(interval.begin(), interval.end(), obstacle);
      replace(Interval(interval.begin(), at));
      replace(Interval(at + 1, interval.end()));
      return;
    }
    builder.replace(make_call_);
    count_ += 1;
  }

  const MakeRegionCall& make_call_;
  const AliasDb aliases_;
  size_t count_ = 0;
};

}  // namespace

size_t replace_regions(const std::shared_ptr<Graph>& graph, const MakeRegionCall& make_call) {
  return RegionFinder(graph, make_call).run(graph->block());
}

}  // namespace cxxinductor::torch_bridge
