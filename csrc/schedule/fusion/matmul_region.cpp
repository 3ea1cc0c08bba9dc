#include "schedule/fusion/matmul_region.h"

#include <algorithm>
#include <utility>

#include "ir/library_ops.h"
#include "ir/loops/region_rewrite.h"
#include "ir/target.h"
#include "schedule/fusion/score_fusion.h"
#include "support/error.h"

namespace cxxinductor::schedule {
namespace {

using loops::Space;
using loops::StmtId;
using loops::View;
using sym::Expr;

const View* view_of(const loops::ExternCall& call, ArgRole role) {
  const OperandRef* ref = find_operand_ref(call, role);
  return ref && ref->operand < call.operands.size() ? std::get_if<View>(&call.operands[ref->operand]) : nullptr;
}

bool is_one(const Arg& arg) {
  if (const auto* integer = arg.as<int64_t>()) return *integer == 1;
  const auto* real = arg.as<double>();
  return real && *real == 1.0;
}

bool scales_nothing(const loops::ExternCall& call) {
  const Arg *addend = find_argument(call, ArgRole::AddendScale), *product = find_argument(call, ArgRole::ProductScale);
  return (!addend || is_one(*addend)) && (!product || is_one(*product));
}

// Coordinates in the buffer of an element of a window on it; nothing where the buffer's strides do not nest.
std::optional<std::vector<Expr>> coords_in_buffer(const loops::Program& program, const View& view, const std::vector<Expr>& indices, const Space& space) {
  const loops::Buffer& buffer = program.buffers[view.buffer];
  Expr offset = view.offset;
  for (size_t d = 0; d < indices.size(); ++d) offset = offset + view.strides[d] * indices[d];
  offset = space.simplify(loops::expand(offset));
  std::vector<size_t> dims;
  for (size_t d = 0; d < buffer.sizes.size(); ++d)
    if (!buffer.sizes[d].is_constant(1) && !buffer.strides[d].is_constant(0)) dims.push_back(d);
  const auto step = [&](size_t d) { return size_hint(buffer.strides[d], program.assumptions); };
  std::stable_sort(dims.begin(), dims.end(), [&](size_t a, size_t b) { return step(a) > step(b); });
  std::vector<Expr> coords(buffer.sizes.size(), 0);
  for (size_t i = 0; i < dims.size(); ++i) {
    const Expr stride = buffer.strides[dims[i]];
    if (i + 1 < dims.size() && !space.at_least(stride, loops::expand(buffer.strides[dims[i + 1]] * buffer.sizes[dims[i + 1]]))) return std::nullopt;
    coords[dims[i]] = space.simplify(sym::floor_div(offset, stride));
    offset = space.simplify(sym::mod(offset, stride));
  }
  return coords;
}

// The added tensor is expanded to the result's sizes.
std::vector<Expr> broadcast(const View& view, const std::vector<Expr>& indices) {
  std::vector<Expr> found(indices.end() - static_cast<ptrdiff_t>(view.sizes.size()), indices.end());
  for (size_t d = 0; d < found.size(); ++d)
    if (view.sizes[d].is_constant(1)) found[d] = 0;
  return found;
}

class MatmulWriter {
 public:
  MatmulWriter(const loops::Program& program, const MatmulCall& call, OriginId origin)
      : program_(program), call_(call), builder_(region_), space_(program.assumptions) {
    builder_.set_origin(origin);
    region_.device = program.buffers[call.result].device;
  }

  std::optional<loops::Region> write() {
    const std::vector<Expr>& sizes = program_.buffers[call_.result].sizes;
    for (size_t d = 0; d < sizes.size(); ++d) indices_.push_back(variable(fmt::format("i{}", d), sizes[d]));
    const Expr k = variable("k", call_.left->sizes.back());
    const loops::VarId k_var(region_.vars.size() - 1);
    std::vector<Expr> left = indices_, right = indices_;
    left.back() = k;
    right[right.size() - 2] = k;
    const StmtId a = load(*call_.left, left), b = load(*call_.right, right);
    if (!a.valid() || !b.valid()) return std::nullopt;
    StmtId sum = builder_.reduce(Reduction::Sum, builder_.apply(ScalarOp::Mul, {a, b}), loops::VarSet::of(k_var));
    if (call_.added) {
      if (call_.added->sizes.size() > indices_.size()) return std::nullopt;
      const StmtId added = load(*call_.added, broadcast(*call_.added, indices_));
      if (!added.valid()) return std::nullopt;
      sum = builder_.apply(ScalarOp::Add, {sum, added});
    }
    builder_.store(program_, call_.result, indices_, builder_.cast(sum, program_.buffers[call_.result].dtype));
    loops::drop_unit_variables(region_, program_.assumptions);
    loops::split_variables(region_, program_.assumptions);
    loops::number_variables(region_, program_.assumptions);
    loops::remove_dead_statements(region_);
    return std::move(region_);
  }

 private:
  Expr variable(std::string name, Expr extent) {
    const Expr symbol = Expr::symbol(name);
    builder_.var(std::move(name), extent);
    space_.add(symbol, extent);
    return symbol;
  }
  StmtId load(const View& view, const std::vector<Expr>& indices) {
    auto coords = coords_in_buffer(program_, view, indices, space_);
    return coords ? builder_.cast(builder_.load(program_, view.buffer, std::move(*coords)), DType::F32) : StmtId();
  }

  const loops::Program& program_;
  const MatmulCall& call_;
  loops::Region region_;
  loops::RegionBuilder builder_;
  Space space_;
  std::vector<Expr> indices_;
};

}  // namespace

std::optional<MatmulCall> matmul_call(const loops::Program& program, const loops::ExternCall& call, const Targets& targets) {
  if (!is_call_of(call, OpFamily::Matmul)) return std::nullopt;
  const bool adds = library_op(call)->find(ArgRole::Addend);
  if (!call.planned_out || call.ordered || !call.overload.empty() || call.results.size() != 1 || !scales_nothing(call)) return std::nullopt;
  MatmulCall product{view_of(call, ArgRole::Left), view_of(call, ArgRole::Right), view_of(call, ArgRole::Addend), call.results[0]};
  if (!product.left || !product.right || (adds && !product.added)) return std::nullopt;
  const loops::Buffer& result = program.buffers[product.result];
  if ((result.dtype != DType::F16 && result.dtype != DType::BF16) || !is_simt(targets.of(result.device))) return std::nullopt;
  for (const View* view : {product.left, product.right, product.added}) {
    if (!view) continue;
    const loops::Buffer& buffer = program.buffers[view->buffer];
    if (view->dtype != result.dtype || buffer.dtype != result.dtype || buffer.device != result.device) return std::nullopt;
  }
  if (product.left->sizes.size() != result.sizes.size() || product.right->sizes.size() != result.sizes.size()) return std::nullopt;
  return product;
}

bool is_turned(const std::vector<Expr>& strides) {
  const size_t rank = strides.size();
  return strides[rank - 2].is_constant(1) && !strides[rank - 1].is_constant(1);
}

std::optional<loops::Region> write_matmul_region(const loops::Program& program, const MatmulCall& call, OriginId origin) {
  return MatmulWriter(program, call, origin).write();
}

}  // namespace cxxinductor::schedule
