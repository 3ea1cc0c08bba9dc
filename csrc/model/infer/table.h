// The table of rules and what they read: a call's arguments by the names that its schema gives them.
//
// A rule returns the infos of the call's results, or nothing for arguments that it does not cover. It calls `reject`
// where eager would raise.
#pragma once

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/text_parts.h"
#include "model/infer/infer.h"
#include "model/infer/layout.h"

namespace cxxinductor::model {

class InferContext {
 public:
  InferContext(const CallGraph& graph, const Call& call, const Schema& schema, SizeQuestions& questions)
      : sizes(questions), graph_(graph), call_(call), schema_(schema) {}

  SizeQuestions& sizes;

  const Call& call() const { return call_; }
  const Schema& schema() const { return schema_; }
  // Results that the reader knows of; 0 where it knows none.
  size_t known_results() const { return call_.results.size(); }

  // The argument of that name, or its default; null where it is None, or absent.
  const Arg* find(std::string_view name) const;
  const Arg* find(const SchemaArgument& argument) const;  // of schema()
  bool has(std::string_view name) const { return find(name) != nullptr; }
  // Null where the argument is not a tensor, as of the numbers that schemas with Tensor get.
  const CallValueInfo* as_tensor(const Arg& arg) const;
  const CallValueInfo* optional_tensor(std::string_view name) const;
  const CallValueInfo& tensor(std::string_view name) const;
  std::vector<const CallValueInfo*> tensors(std::string_view name) const;  // items that are None: null
  // What a number promotes as; none for other arguments.
  std::optional<DType> dtype_of_number(const Arg& arg) const;

  std::optional<sym::Expr> as_expr(const Arg& arg) const;
  sym::Expr expr(std::string_view name) const;
  int64_t integer(std::string_view name) const;
  bool boolean(std::string_view name) const;  // false where it is None
  double real(const Arg& arg) const;
  std::string text(std::string_view name) const;
  std::vector<sym::Expr> exprs(std::string_view name) const;  // an integer is a list of one; empty where it is None
  std::vector<bool> booleans(std::string_view name) const;
  std::optional<DType> dtype(std::string_view name) const;
  std::optional<MemoryFormat> memory_format(std::string_view name) const;
  Device device(Device otherwise) const;  // argument "device"
  // Wrapped into [0, max(rank, 1)).
  int dim(std::string_view name, size_t rank) const;
  std::vector<int> dims(std::string_view name, size_t rank) const;
  int wrap(int64_t dim, size_t rank) const;

  bool is(sym::Expr a, sym::Expr b) const { return sizes.are_equal(a, b); }
  bool is_empty(const std::vector<sym::Expr>& of) const;  // a size is 0
  // Certain to differ, not only unproven to be equal.
  bool differ(sym::Expr a, sym::Expr b) const { return sizes.is_less(a, b) || sizes.is_less(b, a); }
  sym::Expr simplify(sym::Expr e) const { return sym::simplify(e, graph_.assumptions); }
  // Rejects the call where they are certain to differ.
  void require_equal(sym::Expr expected, sym::Expr found, std::string_view what) const;
  void require_rank(const CallValueInfo& info, size_t rank, std::string_view what) const;
  // Sizes of which the call needs one, as in broadcasting: those from the last on that are not 1.
  std::vector<sym::Expr> broadcast(const std::vector<sym::Expr>& a, const std::vector<sym::Expr>& b) const;

  template <class... Args>
  [[noreturn]] void reject(fmt::format_string<Args...> format, Args&&... args) const {
    fail(fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const;

  const CallGraph& graph_;
  const Call& call_;
  const Schema& schema_;
};

using RuleTable = std::map<std::string, Rule, std::less<>>;  // by full name; ops in place follow from those that are not

const RuleTable& rule_table();  // built once, then constant
// Of an op that a user registered with a standard result; null for others.
const Rule* registered_rule(std::string_view full_name);

// What it costs to compute results of a family of ops twice.
enum class RecomputeCost : uint8_t {
  Free,     // part of the kernel of whoever reads them: views, casts, positions, pointwise ops
  Kernel,   // fused with others, but a pass over memory or more: reductions, gathers, norms
  Library,  // a call of a library, or of an op that no rule knows
};
// Of the op's row, by full name ("aten::add.Tensor"). Random ops have that of their family: their effects say that they are not repeated.
RecomputeCost recompute_cost(std::string_view full_name);

// One family each. The first rule of an overload stays.
void add_attention_rules(RuleTable& table);
void add_convolution_rules(RuleTable& table);
void add_creation_rules(RuleTable& table);
void add_indexing_rules(RuleTable& table);
void add_linalg_rules(RuleTable& table);
void add_loss_rules(RuleTable& table);
void add_matmul_rules(RuleTable& table);
void add_movement_rules(RuleTable& table);
void add_norm_rules(RuleTable& table);
void add_pointwise_rules(RuleTable& table);
void add_pooling_rules(RuleTable& table);
void add_random_rules(RuleTable& table);
void add_recurrent_rules(RuleTable& table);
void add_reduction_rules(RuleTable& table);
void add_resize_rules(RuleTable& table);
void add_size_rules(RuleTable& table);
void add_softmax_rules(RuleTable& table);
void add_sort_rules(RuleTable& table);
void add_view_rules(RuleTable& table);

inline void add_rules(RuleTable& table, std::initializer_list<const char*> names, const Rule& rule) {
  for (const char* name : names) table.emplace(name, rule);
}

inline InferredResults one_result(CallValueInfo info) { return std::vector{std::move(info)}; }

// Sizes without those dimensions, or with size 1 there. None given: all.
Exprs reduced(const Exprs& sizes, const std::vector<int>& dims, bool keepdim);

// One new result with metadata of the argument of that name: contiguous, or in its format without gaps (empty_like).
Rule contiguous_as(const char* name);
Rule formatted_as(const char* name, MemoryFormat format = MemoryFormat::Preserve);
// In the format that the argument's strides suggest.
Rule suggested_as(const char* name);

}  // namespace cxxinductor::model
