// The context of an importer of one call: the call's arguments by position or name, the metadata of its results, and the
// builder of the graph. Importers are in one file per family of ops; aten_table.h collects their rows.
//
// An importer returns std::nullopt, before it builds anything, if it does not cover the form of the call; `decline` is
// that with a reason. The call then becomes an extern node, which is always right. An importer trusts the reader for result sizes and dtypes (import.cpp
// checks them against what was built) and states ATen's meaning, rounding included, for everything else.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "frontend/import_environment.h"
#include "ir/device_types.h"
#include "ir/graph/graph.h"
#include "model/call_graph.h"
#include "model/schema.h"

namespace cxxinductor::frontend {

using graph::Operand;
using graph::ValueId;
using model::Call;
using model::CallGraph;
using model::CallValue;
using model::CallValueInfo;
using model::Schema;
using model::SchemaSource;
using Sizes = std::vector<sym::Expr>;

// A float that each call gives anew: a value of f64 and rank 0 in the CPU's memory. It promotes as a number.
struct GivenReal {
  ValueId value;
};
// A Python number, a symbolic integer or a float that is given among the arguments of a call.
using ScalarArg = std::variant<bool, int64_t, double, sym::Expr, GivenReal>;
std::optional<ScalarArg> to_scalar_arg(const Arg& arg);
std::optional<double> constant_real(const ScalarArg& number);  // none for a symbolic integer and a float that is given

// The tensor of the graph that stands for a value of the call graph, if there is one.
using ImportedValues = std::vector<std::optional<ValueId>>;
using Results = std::optional<std::vector<ValueId>>;

class CallContext {
 public:
  CallContext(graph::Builder& builder, const CallGraph& graph, const ImportEnvironment& environment, const Call& call, const ImportedValues& values)
      : build(builder), graph_(graph), environment_(environment), call_(call), values_(values) {}

  graph::Builder& build;

  const Call& call() const { return call_; }
  const sym::Assumptions& assumptions() const { return graph_.assumptions; }
  // The target of the first result's device, if known; null on the CPU.
  const Target* gpu() const;
  const CallValueInfo& result(size_t index = 0) const;
  size_t result_count() const { return call_.results.size(); }
  bool deterministic() const { return environment_.deterministic; }
  bool any_order() const { return environment_.any_order; }
  bool cpu_kernels() const { return environment_.cpu_kernels; }
  // Of the device that the first result is on: whether kernels there are threads in blocks, and what eager's do.
  bool simt() const { return cxxinductor::info(result().device.type).simt || (environment_.simt_on_host && in_host_memory(result().device)); }
  const EagerBehaviour& eager() const { return cxxinductor::eager(result().device); }
  const graph::Value& value(ValueId id) const { return build.graph().value(id); }
  DType dtype(ValueId id) const { return value(id).dtype; }
  int rank(ValueId id) const { return static_cast<int>(value(id).sizes.size()); }
  // Proven to lie densely in row-major order; strides of dimensions of size 1 do not matter.
  bool is_contiguous(const Sizes& sizes, const Sizes& strides) const;
  // Whether it is computed from a few constants, positions and sizes alone, with equal results on every device. (Of rank 0: from
  // any number of them.)
  bool is_generated(ValueId id) const;
  bool is_scalar_constant(ValueId id) const;  // that, and of rank 0
  // A generated value (a scalar constant), computed again on the device of the first result; nothing for other values.
  std::optional<ValueId> generated_on_result_device(ValueId id) const;
  std::optional<ValueId> scalar_constant_on_result_device(ValueId id) const;
  // The value itself if it is on that device; else as generated_on_result_device.
  std::optional<ValueId> on_device_of_result(ValueId id) const;
  // Of a number: a scalar op's result on the result's device, whose kernels take the number by value.
  ValueId apply_to_number(ScalarOp op, ValueId number, DType dtype) const;
  ValueId in_compute_type(GivenReal number, DType dtype) const;  // of dtype, a float

  // The argument at a position or of that name; null when absent or None. Absent arguments have the schema's default,
  // which the importer states where it asks.
  const Arg* find(size_t position, std::string_view name) const;
  bool has(size_t position, std::string_view name) const { return find(position, name) != nullptr; }

  // Unsupported, naming op and model line, when the argument is not of the kind that the schema promises.
  ValueId tensor(size_t position, std::string_view name) const;
  std::optional<ValueId> optional_tensor(size_t position, std::string_view name) const;
  std::vector<ValueId> tensors(size_t position, std::string_view name) const;
  std::optional<ValueId> as_tensor(const Arg& arg) const;
  std::optional<GivenReal> as_given_real(const Arg& arg) const;
  int64_t integer(size_t position, std::string_view name, int64_t otherwise) const;
  bool boolean(size_t position, std::string_view name, bool otherwise) const;
  double real(size_t position, std::string_view name, double otherwise) const;
  // The word that is given, or the first of `words` where none is. Declines other words, which ATen refuses.
  std::optional<std::string_view> one_of(size_t position, std::string_view name, std::initializer_list<std::string_view> words) const;
  std::optional<ScalarArg> scalar_arg(size_t position, std::string_view name) const;
  sym::Expr expr(size_t position, std::string_view name, sym::Expr otherwise) const;
  std::optional<sym::Expr> as_expr(const Arg& arg) const;
  Sizes exprs(size_t position, std::string_view name) const;  // a list of ints and symbols; one int is a list of one
  // Wrapped into [0, rank), in the order given; empty when absent.
  std::vector<int> dims(size_t position, std::string_view name, int rank) const;
  int dim(size_t position, std::string_view name, int64_t otherwise, int rank) const;

  // What an importer returns for a form of the call that it does not cover; explain() and docs/coverage.md give the reason.
  std::nullopt_t decline(std::string_view reason) const;
  const std::string& declined() const { return declined_; }  // the last reason; empty: none was given
  // The reason of importers that work along dimensions.
  std::nullopt_t decline_rank_0() const { return decline("its tensor has no dimensions"); }
  [[noreturn]] void reject(std::string_view reason) const;
  std::string description() const;  // "aten::add.Tensor (model.py:12)"

 private:
  // The values from which a generated value is computed, in order of definition, itself last; empty for other values.
  std::vector<ValueId> parts_of_generated(ValueId id) const;

  const CallGraph& graph_;
  const ImportEnvironment& environment_;
  const Call& call_;
  const ImportedValues& values_;
  mutable std::string declined_;
};

// Which element types an importer takes; a call with others becomes an extern.
enum class Accepts : uint8_t {
  Any,         // moves no data: every dtype, opaque ones included
  Copies,      // moves data or casts it: all but opaque dtypes
  Arithmetic,  // computes: neither opaque nor 8-bit floats
};

using Importer = std::function<Results(CallContext&)>;

struct ImportRow {
  Importer importer;
  Accepts accepts = Accepts::Arithmetic;
  bool host_scalars = false;    // on CUDA, operands may be rank-0 CPU tensors: kernels take their values
  bool host_constants = false;  // CUDA calls may have operands that are generated on the CPU
  bool any_device = false;      // the importer moves operands that are on other devices than the result
  bool given_reals = false;     // numbers may be GivenReals
  bool registered = false;      // of a user's op: the importer takes arguments by position alone
};
// By overload: "aten::add.Tensor"; a default overload has no suffix. The first row of an overload stays.
using ImportTable = std::map<std::string, ImportRow, std::less<>>;

}  // namespace cxxinductor::frontend
