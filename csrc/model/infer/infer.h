// What a call returns, from what it takes: the metadata that eager's results would have. Readers that know no metadata
// (recorded calls, TorchScript, the calls that a composite consists of) get it here; for the others it is a check.
//
// A row of the table (table.h) for each op, in files by family. The rules state ATen's behaviour; strides are those
// that ATen gives on the call's device.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/call_graph.h"
#include "model/schema.h"

namespace cxxinductor::model {

// Decides what rules ask of symbolic sizes. Answers that depend on more than the graph's assumptions become guards or
// specialisations of whoever asks.
class SizeQuestions {
 public:
  virtual ~SizeQuestions() = default;
  virtual bool are_equal(sym::Expr a, sym::Expr b) = 0;
  virtual bool is_less(sym::Expr a, sym::Expr b) = 0;
};

// Answers what the assumptions prove; what they leave open is false.
class ProvenSizes final : public SizeQuestions {
 public:
  explicit ProvenSizes(const sym::Assumptions& assumptions) : assumptions_(assumptions) {}
  bool are_equal(sym::Expr a, sym::Expr b) override { return sym::prove_equal(a, b, assumptions_); }
  bool is_less(sym::Expr a, sym::Expr b) override { return sym::prove_less(a, b, assumptions_).value_or(false); }

 private:
  const sym::Assumptions& assumptions_;
};

// One info per result (items of a list result are flattened), without names; storage says which argument a view shares
// memory with. None where there is no rule for arguments of that kind.
using InferredResults = std::optional<std::vector<CallValueInfo>>;
class InferContext;
using Rule = std::function<InferredResults(InferContext&)>;

// What is known of an overload. To find it takes longer than to apply it: whoever infers many calls keeps it by op.
class OpRule {
 public:
  // None where the op has no rule.
  static std::optional<OpRule> find(std::string_view callee, std::string_view overload, const SchemaSource& schemas);

  // Of a call of that op. UserError where eager would raise for these sizes or dtypes.
  InferredResults infer(const CallGraph& graph, const Call& call, SizeQuestions& sizes) const;

 private:
  enum class Form : uint8_t { Plain, WithoutResults, OfItems, InPlace };
  explicit OpRule(Schema schema, Form form) : schema_(std::move(schema)), form_(form) {}
  InferredResults infer_items(const CallGraph& graph, const Call& call, SizeQuestions& sizes) const;
  InferredResults infer_in_place(const CallGraph& graph, const Call& call, SizeQuestions& sizes) const;

  Schema schema_;
  Form form_;
  const Rule* rule_ = nullptr;  // Plain: a row of the table, or of what users register
  // OfItems: of the op on an item; InPlace: of the op that is not. Null where that has no rule.
  std::shared_ptr<const OpRule> other_;
};

// Finds the rule and applies it; none without one.
InferredResults infer(const CallGraph& graph, const Call& call, const SchemaSource& schemas, SizeQuestions& sizes);

// Ops that have a rule, "aten::add.Tensor", sorted.
std::vector<std::string> inferred_ops();

}  // namespace cxxinductor::model
