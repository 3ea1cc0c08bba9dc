// Reads the .pt2 archives that torch.export.save of PyTorch 2.11 writes: the exported graph as a CallGraph, its
// signature, and where each weight lies in the file. No byte of a weight is copied or looked at.
//
// Files are untrusted. What is wrong with one is a UserError that names entry, node and field, with what was expected
// and found; what is right but not read (custom objects, control flow, other schema versions) is Unsupported and named
// as well. Whether the ops of the graph may be called is decided by the caller, not here. docs/design/readers.md
// describes the mapping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/call_graph.h"
#include "model/schema.h"

namespace cxxinductor::readers {

// A tensor that the file holds. Weights with equal byte_offset share one storage (tied weights).
struct WeightRef {
  enum class Kind : uint8_t { Parameter, Buffer, Constant };
  std::string name;  // "encoder.layers.0.weight"
  Kind kind = Kind::Parameter;
  DType dtype = DType::F32;
  std::vector<int64_t> sizes, strides;  // in elements; all that they reach lies in the storage
  int64_t storage_offset = 0;           // in elements
  size_t byte_offset = 0;               // of its storage in the file, a multiple of the element size
  size_t byte_size = 0;                 // of its storage
  bool persistent = true;               // false: a buffer that is not in the module's state_dict
  uint32_t input = 0;                   // position in CallGraph::inputs
};

// How nested arguments or results are flattened: a leaf, or a container with children in order.
struct TreeSpec {
  std::string type;               // "builtins.tuple", "builtins.dict", "collections.namedtuple", ...; "": a leaf
  std::string context;            // what a registered type needs besides its children: a text, mostly JSON
  std::vector<std::string> keys;  // of a dict whose keys are texts, fields of a named tuple
  std::vector<TreeSpec> children;
  bool has_json_context = false;  // the file has no text there, but a value, whose JSON `context` is
  bool is_leaf() const { return type.empty(); }
};
size_t leaf_count(const TreeSpec& spec);
// As torch.utils._pytree.treespec_dumps writes it.
std::string print_tree(const TreeSpec& spec);

// An argument of the exported graph, in its order.
struct InputSpec {
  enum class Kind : uint8_t { Weight, User, Literal };
  Kind kind = Kind::User;
  std::string name;
  uint32_t index = 0;  // Weight: in Program::weights; User: in CallGraph::inputs
  Arg literal;         // Literal: a user's argument that the graph was specialised for, no input of the CallGraph
};

// A result of the exported graph, in its order.
struct OutputSpec {
  enum class Kind : uint8_t { User, Literal, Mutation, Loss, ParameterGradient, InputGradient };
  Kind kind = Kind::User;
  uint32_t index = 0;     // in CallGraph::outputs; of a Mutation: in CallGraph::mutations
  std::string target;     // the mutated parameter, buffer or user input, or whose gradient it is
  Arg literal;            // no output of the CallGraph
  bool is_truth = false;  // User: an integer of the CallGraph that stands for False or True
};

struct Signature {
  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;
  // Of (args, kwargs) and of the result; their leaves are the User and Literal inputs, and outputs, in order.
  std::optional<TreeSpec> in_spec, out_spec;
  std::vector<std::string> argument_names;  // of forward, where the file has them
  std::vector<std::string> guards;          // Python expressions over arguments that the export assumed, besides ranges
};

struct ByteRange {
  size_t offset = 0, size = 0;
};

struct Program {
  std::string name;
  std::string torch_version;
  model::CallGraph calls;
  Signature signature;
  std::vector<WeightRef> weights;
  std::optional<ByteRange> sample_inputs;  // a torch.save of (args, kwargs), not read here
};

// The file's only program. The result passes model::verify; it refers to no byte of `file` but through offsets.
Program read_pt2(std::span<const std::byte> file, const model::SchemaSource& schemas);

}  // namespace cxxinductor::readers
