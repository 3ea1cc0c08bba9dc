// Nodes of an exported graph -> calls.
//
// Arithmetic on sizes leaves no call: its results are expressions, which the archive states. Only what has no integer
// expression (floats made of sizes, and their comparisons) stays a call, named "_operator::pow" or "torch::sym_float".
// Subgraphs that change nothing but autograd's mode, or are shared between places, are read in place.
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

// What the readers of a program's graph and subgraphs share.
struct Reading {
  model::CallGraph& calls;
  const model::SchemaSource& schemas;
  Symbols symbols = {};
  std::map<std::string, int> subgraphs = {};  // by name: how many were read in place
};

class GraphReader {
 public:
  // prefix: of the names of values, "" or that of a subgraph.
  GraphReader(Reading& reading, const Field& graph, std::string prefix);

  // An input of the call graph, with its metadata: a tensor {"name": ..}, or a user's argument {"as_sym_int": ..}.
  model::CallValue add_tensor_input(const Field& tensor, std::string source);
  model::CallValue add_input(const Field& argument, std::string source);
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
  void read_symbolic_result(std::string_view kind, const Field& name, model::Call& call);
  OriginId read_origin(const Field& node);

  // True if every result is an expression or a number, which is bound then.
  bool read_arithmetic(const Field& node);
  std::pair<bool, Arg> expression_of(const Field& output);
  void read_higher_order(const Field& node, std::string_view name);
  void read_inside(const Field& node, const Field& subgraph, size_t first_operand);
  void bind_outside(const Field& argument, const Arg& value, const Field& user);

  Reading& reading_;
  Field graph_;
  std::string prefix_;
  std::unordered_map<std::string, Arg> names_;  // an operand reference, an expression, or a number
};

}  // namespace cxxinductor::readers
