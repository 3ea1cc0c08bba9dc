// What stands in the templates of matrix products.
#include <fmt/format.h>

#include "ir/plan/matmul.h"
#include "kernels/body/lower_body.h"
#include "kernels/body/slots.h"
#include "kernels/matmul/matmul.h"
#include "support/error.h"

namespace cxxinductor::kernels {
namespace {

using sym::Expr;

// A factor that a load is.
Values stored_factor(const plan::Kernel& kernel, StmtId load, VarId outer, VarId inner, plan::Variant variant) {
  Expr stride, rest;
  const bool linear = sym::split_linear(kernel.offsets[load], kernel.region.symbol(outer), &stride, &rest);
  CXXI_CHECK(linear, "the offset of %{} in {} is not linear", load.index(), kernel.name);
  return {{"vectorized", variant.vectorized},
          {"p", Parameter{kernel.region.body[load].as<loops::Load>()->buffer}},
          {"start", sym::substitute(rest, {{kernel.region.vars[inner].name, Expr(0)}})},
          {"stride", stride}};
}

// Of a factor that its statements compute, a group along `inner` at a time.
Body factor_body(const plan::Kernel& kernel, StmtId value, VarId inner) { return lower_body(kernel, value_slot(kernel, value, inner, factor_width)); }

// The groups of the sums that a block leaves in shared memory.
Body epilogue_body(const plan::Kernel& kernel) { return lower_body(kernel, segment_slot_of_groups(kernel, 1, plan::matmul_parts(kernel).kept)); }

Values computed_factor(const plan::Kernel& kernel, StmtId value, VarId outer, VarId inner) {
  const Body body = factor_body(kernel, value, inner);
  return {
      {"x_outer", outer}, {"x_inner", inner}, {"width", factor_width}, {"value", Local{'l', value}}, {"steps", Steps{.slot = body.slot, .steps = body.steps}}};
}

Values factor(const plan::Kernel& kernel, std::string name, StmtId value, VarId across, bool along_k, plan::Variant variant) {
  const VarId k = plan::matmul_parts(kernel).k, outer = along_k ? across : k, inner = along_k ? k : across;
  std::vector<Values> stored, computed;
  if (kernel.access[value] == plan::AccessKind::Staged)
    stored.push_back(stored_factor(kernel, value, outer, inner, variant));
  else
    computed.push_back(computed_factor(kernel, value, outer, inner));
  return {{"factor", std::move(name)},
          {"outer", kernel.region.vars[outer].extent},
          {"inner", kernel.region.vars[inner].extent},
          {"stored", std::move(stored)},
          {"computed", std::move(computed)}};
}

// Of the shape; the two templates have no other differences.
Values tile_values(const plan::Kernel& kernel, const plan::Matmul& matmul, const std::vector<VarId>& batch) {
  Values values{{"tile_m", matmul.tile_m},
                {"tile_n", matmul.tile_n},
                {"tile_k", matmul.tile_k},
                {"stages", matmul.stages},
                {"left_along_k", matmul.left_along_k},
                {"right_along_k", matmul.right_along_k},
                {"warps", matmul.warpgroups ? matmul.warps_m / 4 : matmul.warps_m}};
  if (!matmul.warpgroups) {
    values.merge(Values{{"warps_n", matmul.warps_n}, {"padding", plan::matmul_row_padding}});
    return values;
  }
  std::vector<Values> extents;
  for (VarId v : batch) extents.push_back({{"extent", kernel.region.vars[v].extent}, {"further", when(!extents.empty())}});
  values.merge(Values{{"alone", when(extents.empty())}, {"batch_extents", std::move(extents)}});
  return values;
}

}  // namespace

std::vector<NamedBody> matmul_bodies(const plan::Kernel& kernel) {
  const auto& matmul = kernel.mapping.get<plan::Matmul>();
  const plan::MatmulParts parts = plan::matmul_parts(kernel);
  std::vector<NamedBody> bodies;
  const auto add_factor = [&](StmtId factor, VarId across, bool along_k) {
    if (kernel.access[factor] != plan::AccessKind::Staged)
      bodies.push_back({fmt::format("factor %{}", factor.index()), factor_body(kernel, factor, along_k ? parts.k : across)});
  };
  add_factor(parts.left, plan::matmul_m(kernel.mapping), matmul.left_along_k);
  add_factor(parts.right, plan::matmul_n(kernel.mapping), matmul.right_along_k);
  bodies.push_back({"per_row", epilogue_body(kernel)});
  return bodies;
}

std::vector<std::string_view> matmul_library(const plan::Kernel& kernel) {
  std::vector<std::string_view> templates{"tensor_core", "matmul"};
  if (kernel.mapping.get<plan::Matmul>().warpgroups) templates.insert(templates.end(), {"warpgroup", "warpgroup_matmul"});
  return templates;
}

Instance instantiate_matmul(const plan::Kernel& kernel, plan::Variant variant) {
  const plan::Mapping& mapping = kernel.mapping;
  const auto& matmul = mapping.get<plan::Matmul>();
  const plan::MatmulParts parts = plan::matmul_parts(kernel);
  const VarId m = plan::matmul_m(mapping), n = plan::matmul_n(mapping);
  const std::vector<VarId> batch(mapping.space.begin(), mapping.space.end() - 2);
  const Body epilogue = epilogue_body(kernel);
  Values values = tile_values(kernel, matmul, batch);
  values.merge(Values{{"threads", block_threads(mapping)},
                      {"factor_type", kernel.region.body[parts.left].dtype},
                      {"kept_type", kernel.region.body[parts.kept].dtype},
                      {"width", mapping.vector_width},
                      {"unroll", matmul.unroll},
                      {"band", matmul.group_m},
                      {"rows", kernel.region.vars[m].extent},
                      {"columns", kernel.region.vars[n].extent},
                      {"depth", kernel.region.vars[parts.k].extent},
                      {"batch", Coordinates{"cxxi_problem", batch}},
                      {"factors", std::vector<Values>{factor(kernel, "cxxi_left", parts.left, m, matmul.left_along_k, variant),
                                                      factor(kernel, "cxxi_right", parts.right, n, matmul.right_along_k, variant)}},
                      {"m", m},
                      {"n", n},
                      {"sums", Local{'g', parts.kept}},
                      {"lanes", lanes_of(epilogue.slot)},
                      {"epilogue", Steps{.slot = epilogue.slot, .steps = epilogue.steps}}});
  return {matmul.warpgroups ? "warpgroup_kernel" : "matmul_kernel", std::move(values)};
}

}  // namespace cxxinductor::kernels
