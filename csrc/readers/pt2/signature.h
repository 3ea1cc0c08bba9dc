// The graph's signature: which of its inputs are weights, what its outputs stand for.
#pragma once

#include "readers/pt2/graph_reader.h"
#include "readers/pt2/json.h"
#include "readers/pt2/read_pt2.h"
#include "readers/pt2/weights.h"

namespace cxxinductor::readers {

class SignatureReader {
 public:
  // graph_module: of the archive's program. Adds to program's signature, weights and calls.
  SignatureReader(const Field& graph_module, GraphReader& reader, Weights& weights, Program& program)
      : module_(graph_module), reader_(reader), weights_(weights), program_(program) {}

  void read_inputs();   // before the graph's nodes
  void read_outputs();  // after them
  void read_trees();    // last

 private:
  void read_input(const Field& spec, const Field& graph_input);
  void read_weight(const Field& value, std::string_view name_key, WeightRef::Kind kind, const Field& graph_input);
  void read_output(const Field& spec, const Field& graph_output);
  void add_user_output(const Arg& value, bool is_truth);
  void add_mutation(const Field& target, const Arg& value, bool of_weight);

  const Field module_;
  GraphReader& reader_;
  Weights& weights_;
  Program& program_;
  std::map<std::string, uint32_t, std::less<>> weight_inputs_, user_inputs_;  // name -> position in the graph's inputs
};

}  // namespace cxxinductor::readers
