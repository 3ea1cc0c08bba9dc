// What a rule of decomposition reads and makes.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/infer/table.h"

namespace cxxinductor::model {

// Rules of the ops that fragments call, found once.
class RuleCache {
 public:
  explicit RuleCache(const SchemaSource& schemas) : schemas_(schemas) {}
  const std::optional<OpRule>& find(const Call& call);

 private:
  const SchemaSource& schemas_;
  std::map<std::string, std::optional<OpRule>, std::less<>> rules_;
};

// The calls that stand for one. Values of the call are named by its schema; those of the fragment are Args.
class Fragment {
 public:
  using Keywords = std::vector<std::pair<std::string, Arg>>;

  // graph: gets the fragment's calls and values; the call's operands are among its values.
  Fragment(CallGraph& graph, const Call& call, const Schema& schema, RuleCache& rules, SizeQuestions& questions)
      : graph_(graph), call_(call), arguments_(graph, call, schema, questions), rules_(rules), questions_(questions) {}

  const InferContext& arguments() const { return arguments_; }
  const Call& call() const { return call_; }
  bool has(std::string_view name) const { return arguments_.has(name); }
  Arg operator[](std::string_view name) const;  // none where it is not given and has no default
  // A copy: calls add values.
  CallValueInfo info(const Arg& tensor) const;
  CallValueInfo operand(std::string_view name) const { return info((*this)[name]); }
  DType dtype(const Arg& tensor) const { return info(tensor).dtype; }
  CallValueInfo result(size_t position) const { return graph_.values[call_.results.at(position)]; }

  // Appends a call of an op, "aten::sum.dim_IntList". Throws NoRule where nothing states the metadata of its results.
  struct NoRule {};
  Arg operator()(std::string_view op, std::vector<Arg> args, Keywords keywords = {});
  std::vector<Arg> all(std::string_view op, std::vector<Arg> args, Keywords keywords = {});

  Arg cast(const Arg& tensor, DType dtype);  // itself where it has that type
  // In the type that kernels compute in: f32 for 16-bit floats.
  Arg wide(const Arg& tensor);
  // A tensor of one element on the device of another.
  Arg number(const Arg& value, DType dtype, const Arg& like);
  Arg sum(const Arg& tensor, const std::vector<int64_t>& dims, bool keep = false);
  Arg view(const Arg& tensor, const std::vector<sym::Expr>& sizes);

 private:
  CallGraph& graph_;
  const Call& call_;
  InferContext arguments_;
  RuleCache& rules_;
  SizeQuestions& questions_;
};

bool is_floating(DType dtype);  // of 16 bits and more
Arg to_arg(sym::Expr e);
Arg to_arg(const std::vector<sym::Expr>& list);
Arg to_arg(const std::vector<int64_t>& list);

// The results of the call, none where nothing is asked for; nothing for forms that the rule does not cover.
using Replacement = std::optional<std::vector<Arg>>;
using DecomposeRule = Replacement (*)(Fragment&);
using DecomposeTable = std::map<std::string, DecomposeRule, std::less<>>;

// By a table of the caller's own: decompose of decompose.h.
CallGraph decompose(const CallGraph& calls, const SchemaSource& schemas, const DecomposeTable& table);

void add_loss_decompositions(DecomposeTable& table);
void add_movement_decompositions(DecomposeTable& table);
void add_norm_decompositions(DecomposeTable& table);
void add_recompute_forms(DecomposeTable& table);  // a table of their own

inline void add_decompositions(DecomposeTable& table, std::initializer_list<const char*> names, DecomposeRule rule) {
  for (const char* name : names) table.emplace(name, rule);
}

}  // namespace cxxinductor::model
