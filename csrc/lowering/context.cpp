#include "lowering/context.h"

#include <algorithm>

#include "ir/device_types.h"
#include "ir/graph/infer.h"
#include "ir/loops/region_rewrite.h"
#include "ir/strides.h"
#include "lowering/views.h"
#include "support/error.h"

namespace cxxinductor::lowering {

Context::Context(const graph::Graph& source) : graph(source), buffers(source.values.size()) {
  program.name = graph.name;
  program.assumptions = graph.assumptions;
  program.eager_peaks = graph.eager_peaks;
  program.origins = graph.origins;
}

namespace {

// The operand that node, a view, looks at.
graph::ValueId viewed(const graph::Node& node) { return std::get<graph::ValueId>(node.operands.at(0)); }

bool is_inplace_scatter(const graph::Node& node) {
  const auto* scatter = node.as<graph::Scatter>();
  return scatter && scatter->inplace;
}

const graph::Node* view_producer(const graph::Graph& graph, graph::ValueId id) {
  graph::NodeId producer = graph.values[id].producer;
  if (!producer.valid()) return nullptr;
  const graph::Node& node = graph.nodes[producer];
  return graph::is_view(node.kind) || is_inplace_scatter(node) ? &node : nullptr;
}

}  // namespace

graph::ValueId Context::base_of(graph::ValueId id) const {
  while (const graph::Node* node = view_producer(graph, id)) id = viewed(*node);
  return id;
}

graph::ValueId Context::unscattered(graph::ValueId id) const {
  while (const graph::Node* node = view_producer(graph, id)) {
    if (!is_inplace_scatter(*node)) break;
    id = viewed(*node);
  }
  return id;
}

graph::ValueId Context::version_of(graph::ValueId id) const {
  while (const graph::Node* node = view_producer(graph, id)) {
    if (is_inplace_scatter(*node)) break;
    id = viewed(*node);
  }
  return id;
}

Location Context::locate(graph::ValueId id, std::vector<sym::Expr> coords, const loops::Space& space) const {
  while (const graph::Node* node = view_producer(graph, id)) {
    graph::ValueId operand = viewed(*node);
    if (!is_inplace_scatter(*node)) coords = coords_through_view(node->kind, value(operand), value(id), coords, space);
    id = operand;
  }
  return {id, std::move(coords)};
}

std::optional<loops::View> Context::strided_view(graph::ValueId id) const {
  const graph::Node* node = view_producer(graph, id);
  if (!node) {
    CXXI_CHECK(buffers[id].valid(), "%{} has no buffer", value(id).name);
    return whole(buffers[id]);
  }
  auto window = strided_view(viewed(*node));
  return window ? through_view(id, std::move(*window)) : std::nullopt;
}

loops::View Context::eager_view(graph::ValueId id) {
  if (auto window = strided_view(id)) return *window;
  const graph::ValueId operand = viewed(*view_producer(graph, id));
  if (auto window = through_view(id, eager_view(operand))) return *window;
  auto [copy, fresh] = copied_.try_emplace(id);
  if (fresh) copy->second = materialise(id, value(id).name + ".copy");
  return whole(copy->second);
}

loops::View Context::whole(loops::BufferId buffer) const {
  const loops::Buffer& b = program.buffers[buffer];
  return {buffer, b.dtype, b.sizes, b.strides, 0};
}

std::optional<loops::View> Context::through_view(graph::ValueId id, loops::View window) const {
  const graph::Node& node = *view_producer(graph, id);
  if (is_inplace_scatter(node)) return window;
  const graph::Value& result = value(id);
  std::vector<sym::Expr> strides(result.sizes.size());
  if (const auto* permute = node.as<graph::Permute>()) {
    for (size_t d = 0; d < strides.size(); ++d) strides[d] = window.strides[static_cast<size_t>(permute->dims[d])];
  } else if (const auto* slice = node.as<graph::Slice>()) {
    auto d = static_cast<size_t>(slice->dim);
    strides = window.strides;
    window.offset = window.offset + slice->start * strides[d];
    strides[d] = strides[d] * slice->step;
  } else if (node.as<graph::Expand>()) {
    size_t missing = strides.size() - window.sizes.size();
    for (size_t d = missing; d < strides.size(); ++d)
      strides[d] = window.sizes[d - missing].is_constant(1) && !result.sizes[d].is_constant(1) ? sym::Expr(0) : window.strides[d - missing];
  } else if (node.as<graph::Reshape>()) {
    graph::Value operand;
    operand.sizes = window.sizes;
    operand.layout.strides = window.strides;
    // A value of rank 0 may become [1, 1]; any stride does.
    auto reshaped = operand.sizes.empty() ? graph::contiguous_strides(result.sizes) : graph::reshape_strides(graph.assumptions, operand, result.sizes);
    if (!reshaped) return std::nullopt;
    strides = *reshaped;
  } else {
    return std::nullopt;  // a flip
  }
  for (size_t d = 0; d < strides.size(); ++d)
    if (result.sizes[d].is_constant(1)) strides[d] = result.layout.strides[d];
  window.sizes = result.sizes;
  window.strides = std::move(strides);
  return window;
}

bool Context::same_strides(const std::vector<sym::Expr>& sizes, const std::vector<sym::Expr>& a, const std::vector<sym::Expr>& b) const {
  for (const sym::Expr& size : sizes)
    if (size.is_constant(0)) return true;
  const auto same = [&](const sym::Assumptions& assumptions) {
    for (size_t d = 0; d < sizes.size(); ++d)
      if (!sizes[d].is_constant(1) && a[d] != b[d] && !prove_equal(a[d], b[d], assumptions)) return false;
    return true;
  };
  return same(graph.assumptions) || same(assume_nonempty(sizes, graph.assumptions));
}

std::vector<sym::Expr> Context::own_strides(const graph::Value& v) const { return own_strides(v, v.layout.kind == graph::Layout::Kind::Fixed); }

std::vector<sym::Expr> Context::own_strides(const graph::Value& v, bool demanded) const {
  auto contiguous = graph::contiguous_strides(v.sizes);
  const auto& strides = v.layout.strides;
  if (strides.size() != v.sizes.size()) return contiguous;
  const bool kept = (demanded && are_distinct(v.sizes, strides, graph.assumptions)) || are_dense(v.sizes, strides, graph.assumptions);
  return kept ? strides : contiguous;
}

loops::BufferId Context::add_buffer(const graph::Value& v, std::string name, std::vector<sym::Expr> strides, loops::Buffer::Role role, bool fixed) {
  return program.buffers.push_back({std::move(name), v.dtype, v.device, v.sizes, std::move(strides), role, fixed});
}

std::string Context::fresh_name(const std::string& stem) const {
  auto taken = [&](const std::string& name) {
    auto named = [&](const auto& item) { return item.name == name; };
    return std::any_of(graph.values.begin(), graph.values.end(), named) || std::any_of(program.buffers.begin(), program.buffers.end(), named);
  };
  std::string name = stem;
  for (int n = 2; taken(name); ++n) name = fmt::format("{}.{}", stem, n);
  return name;
}

void Context::append_region(loops::Region region) {
  loops::drop_unit_variables(region, program.assumptions);
  loops::split_variables(region, program.assumptions);
  loops::number_variables(region, program.assumptions);
  loops::remove_dead_statements(region);
  program.steps.push_back(std::move(region));
}

void Context::append_copy(graph::ValueId id, loops::BufferId target, const std::string& region_name) {
  graph::NodeId producer = value(id).producer;
  RegionWriter writer(*this, region_name, value(id).device, producer.valid() ? graph.nodes[producer].origin : OriginId());
  std::vector<sym::Expr> coords = writer.vars(value(id).sizes);
  loops::StmtId loaded = writer.load(id, coords);
  writer.builder().store(program, target, coords, loaded);
  writer.finish();
}

loops::BufferId Context::materialise(graph::ValueId id, const std::string& name) { return materialise(id, name, own_strides(value(id))); }

loops::BufferId Context::materialise(graph::ValueId id, const std::string& name, std::vector<sym::Expr> strides) {
  auto target = add_buffer(value(id), fresh_name(name), std::move(strides), loops::Buffer::Role::Temporary, true);
  append_copy(id, target, fmt::format("c_{}", program.buffers[target].name));
  return target;
}

loops::BufferId Context::host_scalar(graph::ValueId id) {
  const auto [scalar, fresh] = host_scalars_.try_emplace(id);
  if (fresh) scalar->second = materialise(id, value(id).name + ".scalar");
  return scalar->second;
}

RegionWriter::RegionWriter(Context& context, std::string name, Device device, OriginId origin)
    : context_(context), region_{std::move(name), device, {}, {}}, builder_(region_), space_(context.graph.assumptions) {
  builder_.set_origin(origin);
}

std::vector<sym::Expr> RegionWriter::vars(const std::vector<sym::Expr>& sizes) {
  std::vector<sym::Expr> coords;
  for (sym::Expr size : sizes) {
    loops::VarId var = builder_.var(fmt::format("i{}", region_.vars.size()), size);
    coords.push_back(region_.symbol(var));
    space_.add(coords.back(), size);
  }
  return coords;
}

loops::StmtId RegionWriter::load(graph::ValueId id, std::vector<sym::Expr> coords, loops::StmtId mask) {
  const graph::Value& value = context_.value(id);
  const DType dtype = value.dtype;
  Location at = context_.locate(id, std::move(coords), space_);
  loops::BufferId buffer = context_.buffers[at.base];
  CXXI_CHECK(buffer.valid(), "%{} is read but has no buffer", context_.value(at.base).name);
  if (value.device != region_.device && !context_.value(at.base).sizes.empty()) {
    if (!value.sizes.empty() || !in_host_memory(value.device))
      throw_unsupported("%{} on {} is read by a kernel on {}", value.name, to_string(value.device), to_string(region_.device));
    buffer = context_.host_scalar(id);
    at.coords.clear();
  }
  if (is_opaque(dtype)) throw_unsupported("%{} of {} is read by a kernel", value.name, to_string(dtype));
  Scalar other = Scalar::from_integer(dtype, 0);
  return builder_.load(context_.program, buffer, std::move(at.coords), mask, other);
}

loops::StmtId RegionWriter::compute(loops::StmtId stmt) { return builder_.cast(stmt, compute_type(region_.body[stmt].dtype)); }

void RegionWriter::store(graph::ValueId id, std::vector<sym::Expr> coords, loops::StmtId stmt) {
  stmt = builder_.cast(stmt, context_.value(id).dtype);
  builder_.store(context_.program, context_.buffers[id], std::move(coords), stmt);
}

void RegionWriter::update(graph::ValueId id, std::vector<sym::Expr> coords, loops::StmtId stmt, loops::Store how) {
  Location at = context_.locate(id, std::move(coords), space_);
  how.buffer = context_.buffers[at.base];
  how.coords = std::move(at.coords);
  how.value = builder_.cast(stmt, context_.value(id).dtype);
  builder_.update(context_.program, std::move(how));
}

loops::StmtId RegionWriter::range_mask(sym::Expr e, sym::Expr low, sym::Expr high) {
  loops::StmtId mask;
  auto constant_or_index = [&](sym::Expr bound) { return builder_.index(bound); };
  if (!space_.at_least(e, low)) mask = builder_.apply(ScalarOp::Ge, {builder_.index(e), constant_or_index(low)});
  if (!space_.at_least(high - 1, e)) mask = both(mask, builder_.apply(ScalarOp::Lt, {builder_.index(e), constant_or_index(high)}));
  return mask;
}

loops::StmtId RegionWriter::wrapped_index(graph::ValueId id, std::vector<sym::Expr> coords, sym::Expr size, bool wrap) {
  const loops::StmtId index = builder_.cast(load(id, std::move(coords)), DType::I64);
  if (!wrap || info(context_.value(id).dtype).dtype_class != DTypeClass::Signed) return index;
  const loops::StmtId negative = builder_.apply(ScalarOp::Lt, {index, builder_.constant(Scalar::from_integer(DType::I64, 0))});
  const loops::StmtId wrapped = builder_.apply(ScalarOp::Add, {index, builder_.index(size)});
  return builder_.apply(ScalarOp::Where, {negative, wrapped, index});
}

loops::StmtId RegionWriter::both(loops::StmtId a, loops::StmtId b) {
  if (!a.valid()) return b;
  if (!b.valid()) return a;
  return builder_.apply(ScalarOp::LogicalAnd, {a, b});
}

}  // namespace cxxinductor::lowering
