#include "model/infer/table.h"

#include <algorithm>
#include <array>

#include "ir/registered_ops.h"
#include "support/error.h"
#include "support/fork_locks.h"

namespace cxxinductor::model {

const Arg* InferContext::find(std::string_view name) const {
  const auto& arguments = schema_.arguments;
  const auto named = std::find_if(arguments.begin(), arguments.end(), [&](const SchemaArgument& a) { return a.name == name; });
  if (named == arguments.end()) return nullptr;
  return find(*named);
}

const Arg* InferContext::find(const SchemaArgument& argument) const {
  const auto position = static_cast<size_t>(&argument - schema_.arguments.data());
  const Arg* found = nullptr;
  if (position < call_.args.size() && !argument.kwarg_only) found = &call_.args[position];
  for (const auto& [keyword, arg] : call_.kwargs)
    if (keyword == argument.name) found = &arg;
  if (found == nullptr && argument.default_value) found = &*argument.default_value;
  if (found == nullptr || found->is_none()) return nullptr;
  const auto* ref = found->as<OperandRef>();
  return ref != nullptr && graph_.values[ref->operand].kind == CallValueInfo::Kind::None ? nullptr : found;
}

const CallValueInfo* InferContext::as_tensor(const Arg& arg) const {
  const auto* ref = arg.as<OperandRef>();
  if (ref == nullptr || graph_.values[ref->operand].kind != CallValueInfo::Kind::Tensor) return nullptr;
  return &graph_.values[ref->operand];
}

const CallValueInfo* InferContext::optional_tensor(std::string_view name) const {
  const Arg* arg = find(name);
  return arg == nullptr ? nullptr : as_tensor(*arg);
}

const CallValueInfo& InferContext::tensor(std::string_view name) const {
  const CallValueInfo* info = optional_tensor(name);
  if (info == nullptr) reject("argument '{}' must be a tensor", name);
  return *info;
}

std::vector<const CallValueInfo*> InferContext::tensors(std::string_view name) const {
  std::vector<const CallValueInfo*> items;
  const Arg* arg = find(name);
  if (arg == nullptr) return items;
  const auto* list = arg->as<ArgList>();
  if (list == nullptr) reject("argument '{}' must be a list of tensors, found {}", name, to_string(*arg));
  for (const Arg& item : *list) items.push_back(as_tensor(item));
  return items;
}

std::optional<DType> InferContext::dtype_of_number(const Arg& arg) const {
  if (arg.as<bool>()) return DType::Bool;
  if (arg.as<int64_t>() || arg.as<sym::Expr>()) return DType::I64;
  if (arg.as<double>()) return DType::F32;
  if (arg.as<std::complex<double>>()) return DType::C64;
  const auto* ref = arg.as<OperandRef>();
  if (ref == nullptr) return std::nullopt;
  switch (graph_.values[ref->operand].kind) {
    case CallValueInfo::Kind::SymInt:
      return DType::I64;
    case CallValueInfo::Kind::SymFloat:
      return DType::F32;
    case CallValueInfo::Kind::SymBool:
      return DType::Bool;
    case CallValueInfo::Kind::Tensor:
    case CallValueInfo::Kind::Opaque:
    case CallValueInfo::Kind::None:
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<sym::Expr> InferContext::as_expr(const Arg& arg) const {
  if (const auto* e = arg.as<sym::Expr>()) return *e;
  if (const auto* i = arg.as<int64_t>()) return sym::Expr(*i);
  if (const auto* b = arg.as<bool>()) return sym::Expr(*b ? 1 : 0);
  const auto* ref = arg.as<OperandRef>();
  if (ref == nullptr || graph_.values[ref->operand].kind != CallValueInfo::Kind::SymInt) return std::nullopt;
  return graph_.values[ref->operand].symbol;
}

sym::Expr InferContext::expr(std::string_view name) const {
  const Arg* arg = find(name);
  const auto e = arg == nullptr ? std::nullopt : as_expr(*arg);
  if (!e) reject("argument '{}' must be an integer, found {}", name, arg == nullptr ? "none" : to_string(*arg));
  return *e;
}

int64_t InferContext::integer(std::string_view name) const {
  const sym::Expr e = simplify(expr(name));
  if (!e.is_constant()) reject("argument '{}' must be a constant, found {}", name, sym::to_string(e));
  return e.constant();
}

bool InferContext::boolean(std::string_view name) const { return has(name) && integer(name) != 0; }

double InferContext::real(const Arg& arg) const {
  if (const auto* d = arg.as<double>()) return *d;
  const auto e = as_expr(arg);
  if (!e || !e->is_constant()) reject("expected a constant number, found {}", to_string(arg));
  return static_cast<double>(e->constant());
}

std::string InferContext::text(std::string_view name) const {
  const Arg* arg = find(name);
  const auto* text = arg == nullptr ? nullptr : arg->as<std::string>();
  return text == nullptr ? std::string() : *text;
}

std::vector<sym::Expr> InferContext::exprs(std::string_view name) const {
  std::vector<sym::Expr> values;
  const Arg* arg = find(name);
  if (arg == nullptr) return values;
  const auto* list = arg->as<ArgList>();
  for (const Arg& item : list != nullptr ? std::span<const Arg>(*list) : std::span<const Arg>(arg, 1)) {
    const auto e = as_expr(item);
    if (!e) reject("argument '{}' must hold integers, found {}", name, to_string(item));
    values.push_back(*e);
  }
  return values;
}

std::vector<bool> InferContext::booleans(std::string_view name) const {
  std::vector<bool> values;
  for (sym::Expr e : exprs(name)) values.push_back(!e.is_constant(0));
  return values;
}

std::optional<DType> InferContext::dtype(std::string_view name) const {
  const Arg* arg = find(name);
  if (arg == nullptr) return std::nullopt;
  if (const auto* dtype = arg->as<DType>()) return *dtype;
  const auto* number = arg->as<int64_t>();
  return number == nullptr ? std::nullopt : dtype_from_torch(static_cast<int>(*number));
}

std::optional<MemoryFormat> InferContext::memory_format(std::string_view name) const {
  const Arg* arg = find(name);
  if (arg == nullptr) return std::nullopt;
  if (const auto* format = arg->as<MemoryFormatArg>()) return static_cast<MemoryFormat>(format->torch_memory_format);
  const auto* number = arg->as<int64_t>();
  return number == nullptr ? std::nullopt : std::optional(static_cast<MemoryFormat>(*number));
}

Device InferContext::device(Device otherwise) const {
  const Arg* arg = find("device");
  const auto* device = arg == nullptr ? nullptr : arg->as<Device>();
  return device == nullptr ? otherwise : *device;
}

int InferContext::wrap(int64_t dim, size_t rank) const {
  const int64_t range = std::max<int64_t>(static_cast<int64_t>(rank), 1);
  if (dim < -range || dim >= range) reject("expected a dimension in [{}, {}], found {}", -range, range - 1, dim);
  return static_cast<int>(dim < 0 ? dim + range : dim);
}

int InferContext::dim(std::string_view name, size_t rank) const { return wrap(integer(name), rank); }

std::vector<int> InferContext::dims(std::string_view name, size_t rank) const {
  std::vector<int> wrapped;
  for (sym::Expr dim : exprs(name)) {
    if (!dim.is_constant()) reject("argument '{}' must hold constants", name);
    wrapped.push_back(wrap(dim.constant(), rank));
  }
  return wrapped;
}

bool InferContext::is_empty(const std::vector<sym::Expr>& of) const {
  return std::any_of(of.begin(), of.end(), [this](sym::Expr size) { return is(size, 0); });
}

void InferContext::require_equal(sym::Expr expected, sym::Expr found, std::string_view what) const {
  if (differ(expected, found)) reject("{}: expected {}, found {}", what, sym::to_string(expected), sym::to_string(found));
}

void InferContext::require_rank(const CallValueInfo& info, size_t rank, std::string_view what) const {
  if (info.sizes.size() != rank) reject("{}: expected {} dimensions, found {}", what, rank, info.sizes.size());
}

std::vector<sym::Expr> InferContext::broadcast(const std::vector<sym::Expr>& a, const std::vector<sym::Expr>& b) const {
  const size_t rank = std::max(a.size(), b.size());
  std::vector<sym::Expr> result(rank);
  for (size_t d = 0; d < rank; ++d) {
    const sym::Expr x = d + a.size() < rank ? sym::Expr(1) : a[d + a.size() - rank];
    const sym::Expr y = d + b.size() < rank ? sym::Expr(1) : b[d + b.size() - rank];
    if (is(x, 1)) {
      result[d] = y;
    } else if (is(y, 1) || is(x, y)) {
      result[d] = x;
    } else {
      if (differ(x, y) && differ(x, 1) && differ(y, 1)) reject("expected sizes that broadcast, found {} and {}", print_expr_list(a), print_expr_list(b));
      result[d] = x.is_constant() ? x : y.is_constant() ? y : x;  // nothing is known: eager needs them to be equal
    }
  }
  return result;
}

void InferContext::fail(const std::string& reason) const { throw UserError(fmt::format("{}: {}", describe(graph_, call_), reason)); }

Rule contiguous_as(const char* name) { return formatted_as(name, MemoryFormat::Contiguous); }

Rule formatted_as(const char* name, MemoryFormat format) {
  return [name, format](InferContext& c) -> InferredResults { return std::vector{empty_like(c.tensor(name), format, c.sizes)}; };
}

Rule suggested_as(const char* name) {
  return [name](InferContext& c) -> InferredResults {
    const CallValueInfo& like = c.tensor(name);
    return std::vector{empty_like(like, suggested_format(like, c.sizes), c.sizes)};
  };
}

namespace {

struct Family {
  void (*add)(RuleTable& table);
  RecomputeCost cost;
};

constexpr auto families = std::to_array<Family>({
    {add_view_rules, RecomputeCost::Free},         {add_creation_rules, RecomputeCost::Free},       {add_matmul_rules, RecomputeCost::Library},
    {add_attention_rules, RecomputeCost::Library}, {add_convolution_rules, RecomputeCost::Library}, {add_recurrent_rules, RecomputeCost::Library},
    {add_reduction_rules, RecomputeCost::Kernel},  {add_norm_rules, RecomputeCost::Kernel},         {add_pooling_rules, RecomputeCost::Kernel},
    {add_resize_rules, RecomputeCost::Library},    {add_size_rules, RecomputeCost::Free},           {add_softmax_rules, RecomputeCost::Kernel},
    {add_linalg_rules, RecomputeCost::Library},    {add_loss_rules, RecomputeCost::Kernel},         {add_indexing_rules, RecomputeCost::Kernel},
    {add_movement_rules, RecomputeCost::Kernel},   {add_sort_rules, RecomputeCost::Library},        {add_random_rules, RecomputeCost::Kernel},
    {add_pointwise_rules, RecomputeCost::Free},  // last: its rows of the scalar ops fill what is left
});

struct Tables {
  RuleTable rules;
  std::map<std::string, RecomputeCost, std::less<>> costs;  // of the same names
};

const Tables& tables() {
  static constinit MadeOnce<Tables, ForkLock::Tables> made;
  return made.get([] {
    Tables filled;
    for (const Family& family : families) {
      RuleTable rules;
      family.add(rules);
      for (const auto& [name, rule] : rules)
        if (filled.rules.emplace(name, rule).second) filled.costs.emplace(name, family.cost);
    }
    return filled;
  });
}

}  // namespace

const RuleTable& rule_table() { return tables().rules; }

RecomputeCost recompute_cost(std::string_view full_name) {
  if (find_registered_scalar_op(full_name)) return RecomputeCost::Free;
  if (find_registered_reduction(full_name)) return RecomputeCost::Kernel;
  const auto found = tables().costs.find(full_name);
  return found == tables().costs.end() ? RecomputeCost::Library : found->second;
}

}  // namespace cxxinductor::model
