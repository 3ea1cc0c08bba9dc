// The result of every reader of models: the model as a list of dispatcher calls, with metadata of each value. It is imported
// into the graph IR; the ATen executor runs it when a graph cannot be compiled.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/call_args.h"
#include "ir/dtype.h"
#include "ir/origin.h"
#include "sym/simplify.h"

namespace cxxinductor::model {

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

// Mixed precision: what ops on a device's tensors take their operands as, where it is on.
struct Autocast {
  std::map<DeviceType, DType> dtypes;
  bool is_on() const { return !dtypes.empty(); }
  friend bool operator==(const Autocast&, const Autocast&) = default;
};

struct Call {
  std::string callee;    // "aten::add"
  std::string overload;  // "Tensor"; "" is the default overload
  std::vector<Arg> args;
  std::vector<std::pair<std::string, Arg>> kwargs;
  std::vector<CallValue> results;  // list results are flattened; unused ones are present too
  bool ordered = false;            // has effects that its schema does not show: keeps its order among ordered calls
  bool result_is_list = false;     // the schema returns Tensor[]: results are its items
  Autocast autocast;               // of exports that are not decomposed; replay applies it
  OriginId origin;
};

std::string full_name(const Call& call);  // "aten::add.Tensor", "aten::relu"

struct CallGraph {
  // Defined once: generated in every file that holds one, they can take more time to compile than all else in it.
  CallGraph();
  CallGraph(const CallGraph&);
  CallGraph(CallGraph&&) noexcept;
  CallGraph& operator=(const CallGraph&);
  CallGraph& operator=(CallGraph&&) noexcept;
  ~CallGraph();
  std::string name;
  sym::Assumptions assumptions;
  std::vector<CallValueInfo> values;
  std::vector<CallValue> inputs;
  std::vector<std::string> input_sources;
  // By input: its strides in a call, where they differ from those that the calls were recorded with.
  std::map<uint32_t, std::vector<sym::Expr>> input_strides;
  std::set<uint32_t> donated;  // positions of inputs that the caller keeps no reference to (graph::Input::donated)
  std::set<uint32_t> frozen;   // positions of inputs that do not change between calls (graph::Input::frozen)
  std::vector<Call> calls;
  std::vector<Arg> outputs;                               // OperandRef (a value), Expr or int, or none
  std::set<uint32_t> flexible_outputs;                    // positions of outputs that may have any strides: what is saved for a backward graph
  std::vector<std::pair<uint32_t, CallValue>> mutations;  // input position -> last version, where the reader knows it
  OriginTable origins;
  std::vector<std::string> collective_notes;         // model/passes/join_collectives.h, for reports
  std::vector<std::shared_ptr<const void>> objects;  // the objects of the handles among the arguments
  // What higher-order operators among the calls run, by the texts among their arguments. Inputs and outputs are those of the operator's
  // functions; symbols of the graph around one are known in it too.
  std::map<std::string, std::shared_ptr<const CallGraph>, std::less<>> subgraphs;
};

// "higher_order::cond": no op of the dispatcher; some of its arguments are texts that name subgraphs.
bool is_higher_order(const Call& call);
// Calls visit with the names of the subgraphs that the call runs, in order. Each is among those of its graph (model/verify.h).
void for_each_subgraph(const Call& call, const std::function<void(const std::string& name)>& visit);

std::string describe(const CallGraph& graph, const Call& call);  // its full name, with the model's line: "aten::relu (model.py:12)"

}  // namespace cxxinductor::model
