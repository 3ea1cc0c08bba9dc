// Builds call graphs for the tests of the front-end, and answers schemas from a small table.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "frontend/import.h"
#include "ir/graph/graph.h"
#include "ir/graph/text.h"
#include "model/schema.h"

namespace cxxinductor::frontend {

using model::Call;
using model::CallGraph;
using model::CallValue;
using model::CallValueInfo;
using model::Schema;
using model::SchemaSource;

inline constexpr Device kCpu{DeviceType::Cpu, 0};
inline constexpr Device kCuda{DeviceType::Cuda, 0};

// The schemas that the tests' externs need.
class TableSchemas : public SchemaSource {
 public:
  TableSchemas();
  std::optional<Schema> find(std::string_view callee, std::string_view overload) const override;

 private:
  std::map<std::string, Schema, std::less<>> schemas_;
};

struct TensorType {
  DType dtype = DType::F32;
  std::vector<sym::Expr> sizes;
  std::vector<sym::Expr> strides;  // contiguous when empty
};

class Calls {
 public:
  explicit Calls(Device device = kCuda) : device_(device) { graph.name = "f"; }

  Arg input(const std::string& name, TensorType type);
  Arg input_on(Device device, const std::string& name, TensorType type);
  // One result; the name is "aten::add.Tensor".
  Arg call(const std::string& name, std::vector<Arg> args, TensorType result, std::vector<std::pair<std::string, Arg>> kwargs = {});
  std::vector<Arg> call_many(const std::string& name, std::vector<Arg> args, std::vector<TensorType> results,
                             std::vector<std::pair<std::string, Arg>> kwargs = {});
  Arg call_on(Device device, const std::string& name, std::vector<Arg> args, TensorType result);
  void output(const Arg& value) { graph.outputs.push_back(value); }

  graph::Graph import() const;
  // Imports with `value` as the only output, and prints.
  std::string text(const Arg& value);

  CallGraph graph;
  ImportEnvironment environment;

 private:
  CallValueInfo info(const std::string& name, const TensorType& type, Device device) const;

  Device device_;
};

// The nodes' lines of a printed graph, without their origins and without the mark that an output's layout is fixed.
std::vector<std::string> body_of(const std::string& text);
size_t count_externs(const graph::Graph& graph);

}  // namespace cxxinductor::frontend
