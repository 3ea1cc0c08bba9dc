// What every reader (FX, later .pt2, TorchScript, recorded calls) produces: the model as a list of dispatcher calls,
// with metadata of each value. It is imported into the graph IR, and it is what the ATen executor runs when it must.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/call_args.h"
#include "ir/dtype.h"
#include "ir/origin.h"
#include "ir/target.h"
#include "sym/simplify.h"

namespace cxxinductor::frontend {

// Index of a value in CallGraph::values; OperandRef::operand in the arguments of a Call is one of these.
using CallValue = uint32_t;

struct CallValueInfo {
  enum class Kind : uint8_t { Tensor, SymInt, SymFloat, SymBool, Opaque, None };
  Kind kind = Kind::Tensor;
  std::string name;
  DType dtype = DType::F32;
  Device device;
  std::vector<sym::Expr> sizes;
  std::vector<sym::Expr> strides;
  sym::Expr storage_offset;
  sym::Expr symbol;      // SymInt: its expression
  uint32_t storage = 0;  // equal ids: the reader knows that these share storage; 0: unknown
  // The tensor has PyTorch's conjugate (negative) bit: its elements are those in memory, conjugated (negated).
  bool conjugate = false, negative = false;
};

struct Call {
  std::string callee;    // "aten::add"
  std::string overload;  // "Tensor"; "" is the default overload
  std::vector<Arg> args;
  std::vector<std::pair<std::string, Arg>> kwargs;
  std::vector<CallValue> results;  // list results are flattened; unused ones are present too
  bool ordered = false;            // has effects that its schema does not show: keeps its place among the ordered
  bool result_is_list = false;     // the schema returns Tensor[]: results are its items
  OriginId origin;
};

struct CallGraph {
  std::string name;
  sym::Assumptions assumptions;
  std::vector<CallValueInfo> values;
  std::vector<CallValue> inputs;
  std::vector<std::string> input_sources;
  // By input: the strides that it comes in, where they are others than those that the calls were recorded with.
  std::map<uint32_t, std::vector<sym::Expr>> input_strides;
  std::set<uint32_t> donated;  // positions of inputs that the caller keeps no reference to (graph::Input::donated)
  std::set<uint32_t> frozen;    // positions of inputs that stay as they are from call to call (graph::Input::frozen)
  std::vector<Call> calls;
  std::vector<Arg> outputs;  // OperandRef (a value), Expr or int, or none
  std::set<uint32_t>
      flexible_outputs;  // positions of those that may come in any strides: what is saved for a backward graph
  std::vector<std::pair<uint32_t, CallValue>> mutations;  // input position -> last version, where the reader knows it
  OriginTable origins;
  std::vector<std::shared_ptr<const void>> objects;  // what the handles among the arguments stand for
  std::map<Device, Target> gpus;  // that run the graph, where the reader's host knows them
  // Whether kernels can be compiled for the CPU. Where not, what a graph on a GPU computes on the CPU are calls.
  bool cpu_kernels = true;
  // Two runs give the same bits: torch.use_deterministic_algorithms. Scatters on CUDA that eager makes reproducible
  // then, or refuses, stay calls.
  bool deterministic = false;
  // Sums may change from run to run also where eager's do not (numerics=fast).
  bool any_order = false;
};

}  // namespace cxxinductor::frontend
