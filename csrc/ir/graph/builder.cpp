#include <algorithm>

#include "ir/graph/graph.h"
#include "ir/graph/infer.h"
#include "support/error.h"

namespace cxxinductor::graph {

std::string Builder::fresh_name() {
  for (; names_seen_ < graph_.values.size(); ++names_seen_) names_.insert(graph_.values[ValueId(names_seen_)].name);
  std::string name;
  do name = fmt::format("{}", next_name_++);
  while (names_.contains(name));
  return name;
}

ValueId Builder::add_value(Value value) {
  if (value.name.empty()) value.name = fresh_name();
  return graph_.values.push_back(std::move(value));
}

ValueId Builder::append(NodeKind kind, std::vector<Operand> operands, Value result) {
  result.producer = NodeId(graph_.nodes.size());
  result.result_index = 0;
  ValueId id = add_value(std::move(result));
  graph_.nodes.push_back({std::move(kind), std::move(operands), {id}, origin_});
  return id;
}

ValueId Builder::append_inferred(NodeKind kind, std::vector<Operand> operands, Value declared) {
  Value result = std::move(infer_results(graph_, kind, operands, declared).at(0));
  return append(std::move(kind), std::move(operands), std::move(result));
}

namespace {
Value declaration(DType dtype, Device device, std::vector<sym::Expr> sizes) {
  Value value;
  value.dtype = dtype;
  value.device = device;
  value.sizes = std::move(sizes);
  return value;
}
Value declaration(std::vector<sym::Expr> sizes) { return declaration(DType::F32, {}, std::move(sizes)); }

int wrap_dim(int dim, size_t rank) {
  int wrapped = dim < 0 ? dim + static_cast<int>(rank) : dim;
  if (wrapped < 0 || wrapped >= static_cast<int>(rank)) throw_user_error("dimension {} is out of range for rank {}", dim, rank);
  return wrapped;
}
std::vector<int> wrap_dims(std::vector<int> dims, size_t rank) {
  for (int& dim : dims) dim = wrap_dim(dim, rank);
  return dims;
}
}  // namespace

ValueId Builder::input(std::string name, DType dtype, Device device, std::vector<sym::Expr> sizes, std::vector<sym::Expr> strides) {
  if (strides.size() != sizes.size()) throw_user_error("input %{} expects {} strides, found {}", name, sizes.size(), strides.size());
  Value value = declaration(dtype, device, std::move(sizes));
  value.layout = {Layout::Kind::Fixed, std::move(strides)};
  value.name = name;
  Input input;
  input.value = add_value(std::move(value));
  input.source = std::move(name);
  graph_.inputs.push_back(input);
  return input.value;
}

void Builder::symbol_input(std::string symbol, sym::Interval range) {
  graph_.assumptions.set_range(symbol, range);
  Input input;
  input.kind = Input::Kind::Symbol;
  input.symbol = symbol;
  input.source = std::move(symbol);
  graph_.inputs.push_back(std::move(input));
}

ValueId Builder::elementwise(ScalarOp op, std::vector<Operand> operands) {
  const ScalarOpInfo& row = info(op);
  if (row.rule == TypeRule::Cast) throw_user_error("{} needs a dtype: use Builder::cast", row.name);
  std::vector<sym::Expr> sizes;
  for (const Operand& operand : operands)
    if (const auto* id = std::get_if<ValueId>(&operand)) sizes = broadcast_sizes(graph_.assumptions, sizes, graph_.values[*id].sizes);
  for (Operand& operand : operands) {
    auto* id = std::get_if<ValueId>(&operand);
    if (!id || graph_.values[*id].sizes.empty()) continue;
    if (!same_sizes(graph_.assumptions, graph_.values[*id].sizes, sizes)) *id = expand(*id, sizes);
  }
  // Immediates enter in the compute type of the tensors, never rounded to their dtype.
  if (auto expected = immediate_dtype(graph_, op, operands))
    for (size_t i = row.rule == TypeRule::Select ? 1 : 0; i < operands.size(); ++i)
      if (auto* scalar = std::get_if<Scalar>(&operands[i])) {
        if (is_float(scalar->dtype()) && !is_float(*expected))
          throw_user_error("{} on {} does not take the immediate {}: cast the tensors first", row.name, to_string(*expected), to_string(*scalar));
        *scalar = cxxinductor::cast(*scalar, *expected);
      }
  return append_inferred(Elementwise{op}, std::move(operands));
}

ValueId Builder::cast(ValueId x, DType to) {
  if (graph_.values[x].dtype == to) return x;
  return append_inferred(Elementwise{ScalarOp::Cast}, {x}, declaration(to, {}, {}));
}

std::vector<ValueId> Builder::reduce(Reduction reduction, ValueId x, std::vector<int> dims, bool keepdim) {
  dims = wrap_dims(std::move(dims), graph_.values[x].sizes.size());
  std::sort(dims.begin(), dims.end());
  Reduce kind{reduction, std::move(dims), keepdim};
  std::vector<Value> results = infer_results(graph_, kind, {x}, {});
  Node node{std::move(kind), {x}, {}, origin_};
  for (size_t i = 0; i < results.size(); ++i) {
    results[i].producer = NodeId(graph_.nodes.size());
    results[i].result_index = static_cast<uint32_t>(i);
    node.results.push_back(add_value(std::move(results[i])));
  }
  std::vector<ValueId> ids = node.results;
  graph_.nodes.push_back(std::move(node));
  return ids;
}

ValueId Builder::full(Operand value, DType dtype, Device device, std::vector<sym::Expr> sizes) {
  if (auto* scalar = std::get_if<Scalar>(&value)) *scalar = cxxinductor::cast(*scalar, compute_type(dtype));
  return append_inferred(Full{}, {std::move(value)}, declaration(dtype, device, std::move(sizes)));
}

ValueId Builder::iota(sym::Expr start, sym::Expr step, sym::Expr size, DType dtype, Device device) {
  return append_inferred(Iota{start, step}, {}, declaration(dtype, device, {size}));
}

ValueId Builder::permute(ValueId x, std::vector<int> dims) {
  dims = wrap_dims(std::move(dims), graph_.values[x].sizes.size());
  return append_inferred(Permute{std::move(dims)}, {x});
}

ValueId Builder::reshape(ValueId x, std::vector<sym::Expr> sizes) { return append_inferred(Reshape{}, {x}, declaration(std::move(sizes))); }

ValueId Builder::expand(ValueId x, std::vector<sym::Expr> sizes) { return append_inferred(Expand{}, {x}, declaration(std::move(sizes))); }

ValueId Builder::slice(ValueId x, int dim, sym::Expr start, sym::Expr size, sym::Expr step) {
  std::vector<sym::Expr> sizes = graph_.values[x].sizes;
  dim = wrap_dim(dim, sizes.size());
  sizes[static_cast<size_t>(dim)] = size;
  return append_inferred(Slice{dim, start, step}, {x}, declaration(std::move(sizes)));
}

ValueId Builder::flip(ValueId x, std::vector<int> dims) {
  dims = wrap_dims(std::move(dims), graph_.values[x].sizes.size());
  std::sort(dims.begin(), dims.end());
  return append_inferred(Flip{std::move(dims)}, {x});
}

ValueId Builder::pad(ValueId x, std::vector<sym::Expr> low, std::vector<sym::Expr> sizes, Scalar fill) {
  fill = cxxinductor::cast(fill, graph_.values[x].dtype);
  return append_inferred(Pad{std::move(low), fill}, {x}, declaration(std::move(sizes)));
}

ValueId Builder::cat(std::vector<ValueId> xs, int dim) {
  if (xs.empty()) throw_user_error("cat expects one or more tensors");
  dim = wrap_dim(dim, graph_.values[xs[0]].sizes.size());
  return append_inferred(Cat{dim}, {xs.begin(), xs.end()});
}

ValueId Builder::gather(ValueId x, std::vector<ValueId> indices, Gather gather, std::vector<sym::Expr> sizes) {
  std::vector<Operand> operands{x};
  operands.insert(operands.end(), indices.begin(), indices.end());
  return append_inferred(std::move(gather), std::move(operands), declaration(std::move(sizes)));
}

ValueId Builder::scatter(ValueId base, ValueId source, std::vector<ValueId> indices, Scatter scatter) {
  const auto is_empty = [&](ValueId x) { return std::ranges::any_of(graph_.values[x].sizes, [](sym::Expr size) { return size.is_constant(0); }); };
  if (is_empty(base) || is_empty(source) || std::ranges::any_of(indices, is_empty)) return elementwise(ScalarOp::Identity, {base});  // nothing is written
  const size_t rank = graph_.values[base].sizes.size();
  if (scatter.start.empty()) scatter.start.assign(rank, 0);
  if (scatter.step.empty()) scatter.step.assign(rank, 1);
  std::vector<Operand> operands{base, source};
  operands.insert(operands.end(), indices.begin(), indices.end());
  return append_inferred(std::move(scatter), std::move(operands));
}

std::vector<ValueId> Builder::call_extern(Extern callee, std::vector<Operand> operands, std::vector<Value> results) {
  if (callee.alias_of.empty()) callee.alias_of.assign(results.size(), -1);
  if (callee.alias_of.size() != results.size())
    throw_user_error("extern {} expects {} alias annotations, found {}", callee.callee, results.size(), callee.alias_of.size());
  Node node{std::move(callee), std::move(operands), {}, origin_};
  for (size_t i = 0; i < results.size(); ++i) {
    Value& result = results[i];
    if (result.layout.strides.size() != result.sizes.size()) result.layout.strides = contiguous_strides(result.sizes);
    result.layout.kind = Layout::Kind::Fixed;
    result.producer = NodeId(graph_.nodes.size());
    result.result_index = static_cast<uint32_t>(i);
    node.results.push_back(add_value(std::move(result)));
  }
  std::vector<ValueId> ids = node.results;
  graph_.nodes.push_back(std::move(node));
  return ids;
}

void Builder::output(ValueId value, bool flexible_strides) {
  Output output;
  output.value = value;
  output.flexible_strides = flexible_strides;
  graph_.outputs.push_back(output);
}

void Builder::output_symbol(sym::Expr e) {
  Output output;
  output.kind = Output::Kind::Symbol;
  output.symbol = e;
  graph_.outputs.push_back(output);
}

void Builder::output_none() {
  Output output;
  output.kind = Output::Kind::None;
  graph_.outputs.push_back(output);
}

void Builder::mutation(uint32_t input, ValueId value) { graph_.mutations.push_back({input, value}); }

}  // namespace cxxinductor::graph
