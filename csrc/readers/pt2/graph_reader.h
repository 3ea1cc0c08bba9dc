// Nodes of an exported graph -> calls.
//
// Arithmetic on sizes leaves no call: its results are expressions, which the archive states. Only what has no integer
// expression (floats made of sizes, and their comparisons) stays a call, named "_operator::pow" or "torch::sym_float".
// Subgraphs that are shared between places, or change nothing but autograd's or autocast's mode, are read in place;
// those of control flow become graphs of their own. What stands for an op that writes becomes copies and that op.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/call_graph.h"
#include "model/schema.h"
#include "readers/pt2/json.h"
#include "readers/pt2/symbols.h"

namespace cxxinductor::readers {

// What the readers of a graph, and of subgraphs that are read in place, share.
struct Reading {
  model::CallGraph& calls;
  const model::SchemaSource& schemas;
  Symbols symbols = {};
  std::map<std::string, int> subgraphs = {};  // by name: how many were read
  size_t copies = 0;                          // that no node of the archive makes
};

// "torch.ops.aten.add.Tensor" -> aten::add, Tensor; "_operator.mul" -> _operator::mul, a function on sizes.
void read_target(const Field& target, model::Call& call);

class GraphReader {
 public:
  // prefix: of the names of values, "" or that of a subgraph. autocast: where the graph is run.
  GraphReader(Reading& reading, const Field& graph, std::string prefix, const model::Autocast& autocast = {});

  // An input of the call graph, with its metadata: a tensor {"name": ..}, or a user's argument {"as_sym_int": ..}.
  model::CallValue add_tensor_input(const Field& tensor, std::string source);
  model::CallValue add_input(const Field& argument, std::string source);
  // What orders effects, and holds nothing: {"as_tensor": {"name": ..}}.
  void bind_token(const Field& argument) { bind(argument.at("as_tensor").at("name"), None{}); }
  // Calls of all nodes; inputs are bound before.
  void read_nodes();
  // Of a node or an output: {"as_tensor": {"name": ..}}. What it names is bound.
  Arg argument(const Field& argument) const;
  Arg tensor(const Field& tensor) const;  // {"name": ..}

 private:
  Arg symbolic(const Field& argument) const;
  Arg optional_tensor(const Field& argument) const;
  const Arg& bound(const Field& name) const;

  std::string new_name(const Field& name) const;
  void bind(const Field& name, Arg value);
  model::CallValue add_value(model::CallValueInfo info, std::string name);
  model::CallValue define_tensor(const Field& name);  // with the metadata of tensor_values, and bound

  void read_node(const Field& node);
  void read_arguments(const Field& node, const model::Schema* schema, model::Call& call) const;
  void add_argument(const Field& input, const model::Schema* schema, model::Call& call) const;
  void read_results(const Field& node, const model::Schema* schema, model::Call& call);
  void read_result(const Field& output, model::Call& call);
  void read_result_list(const Field& outputs, model::Call& call);
  void read_symbolic_result(std::string_view kind, const Field& name, model::Call& call);
  OriginId read_origin(const Field& node);

  // True if every result is an expression or a number, which is bound then.
  bool read_arithmetic(const Field& node);
  std::pair<bool, Arg> expression_of(const Field& output);

  // In higher_order.cpp.
  void read_higher_order(const Field& node, std::string_view name);
  void read_inside(const Field& node, const Field& subgraph, size_t first_operand, const model::Autocast& autocast);
  void bind_outside(const Field& argument, const Arg& value, const Field& user);
  model::Autocast read_autocast(const Field& operands) const;
  void read_control_flow(const Field& node, std::string_view name);
  std::string read_subgraph(const Field& subgraph);
  Arg operand(const Field& argument) const;
  void read_with_effects(const Field& node);

  // In functionalized.cpp.
  void read_functionalized(const Field& node, bool of_views);

  Reading& reading_;
  Field graph_;
  std::string prefix_;
  model::Autocast autocast_;
  std::unordered_map<std::string, Arg> names_;  // an operand reference, an expression, or a number
};

}  // namespace cxxinductor::readers
