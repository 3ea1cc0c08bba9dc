#include "schedule/plan/kernel.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/loops/stmt_properties.h"
#include "ir/loops/stmt_traits.h"
#include "ir/plan/index_width.h"
#include "ir/strides.h"
#include "ir/target.h"
#include "kernels/family.h"
#include "kernels/loads_ahead.h"
#include "kernels/region/access.h"
#include "kernels/sum_blocks.h"
#include "schedule/plan/kernel_name.h"
#include "support/error.h"

namespace cxxinductor::schedule {
namespace {

using kernels::FlatRegion;
using kernels::flatten;
using kernels::offset_of;
using loops::rewrite_expressions;
using loops::Stmt;
using loops::StmtId;
using loops::VarId;
using plan::AccessKind;
using plan::Kernel;
using sym::Expr;

// Parameters in the order of their first access; the region's BufferIds become positions.
void bind_parameters(Kernel& kernel, const loops::Program& program, std::vector<loops::BufferId>& args) {
  std::map<loops::BufferId, loops::BufferId> position;
  auto bind = [&](loops::BufferId& id, bool store) {
    auto [found, is_new] = position.try_emplace(id, loops::BufferId(args.size()));
    if (is_new) {
      args.push_back(id);
      kernel.params.push_back({program.buffers[id].dtype});
      kernel.params.back().by_value = program.buffers[id].device != kernel.device;
    }
    id = found->second;
    plan::Param& param = kernel.params[id.index()];
    (store ? param.written : param.read) = true;
  };
  for (Stmt& stmt : kernel.region.body) {
    if (auto* load = stmt.as<loops::Load>()) bind(load->buffer, false);
    if (auto* store = stmt.as<loops::Store>()) {
      const bool update = store->update;
      bind(store->buffer, true);
      if (update) kernel.params[store->buffer.index()].read = true;
    }
  }
}

// Symbols of extents, body and the bound on indices that are neither variables nor statements. A gather's source may have
// sizes that nothing else in the kernel mentions.
std::vector<std::string> collect_symbols(const FlatRegion& flat, Expr index_limit) {
  std::set<std::string, std::less<>> variables, found;
  for (const loops::Var& var : flat.region.vars) variables.insert(var.name);
  auto add = [&](Expr e) {
    for (Expr symbol : e.free_symbols())
      if (!variables.contains(symbol.name()) && !loops::statement_of_symbol(symbol.name()).valid()) found.emplace(symbol.name());
    return e;
  };
  for (const loops::Var& var : flat.region.vars) add(var.extent);
  for (Stmt stmt : flat.region.body) rewrite_expressions(stmt, add);
  add(index_limit);
  return {found.begin(), found.end()};
}

sym::Assumptions assumptions_of(const FlatRegion& flat, const std::vector<std::string>& symbols) {
  sym::Assumptions assumptions;
  auto copy = [&](const std::string& name) {
    if (sym::Interval range = flat.assumptions.range(name); range != sym::Interval()) assumptions.set_range(name, range);
    if (int64_t divisor = flat.assumptions.divisor(name); divisor != 1) assumptions.set_divisor(name, divisor);
  };
  for (const loops::Var& var : flat.region.vars) copy(var.name);
  for (const std::string& name : symbols) copy(name);
  return assumptions;
}

void bound_indices(Kernel& kernel, const FlatRegion& flat, const loops::Program& program, const std::vector<loops::BufferId>& args) {
  Expr limit = max(points(flat, flat.space), points(flat, flat.row));
  for (loops::BufferId id : args) {
    const loops::Buffer& buffer = program.buffers[id];
    limit = max(limit, storage_extent(buffer.sizes, buffer.strides, flat.assumptions));
  }
  kernel.index_limit = simplify(limit, flat.assumptions);
  kernel.always_index32 = bounds(kernel.index_limit, flat.assumptions).high < plan::always_index32_limit;
}

void estimate_traffic(Kernel& kernel, const FlatRegion& flat, const loops::Program& program, const std::vector<loops::BufferId>& args) {
  for (const loops::Access& access : accesses(kernel.region)) {
    const Stmt& stmt = kernel.region.body[access.stmt];
    std::vector<VarId> vars;
    for (size_t v = 0; v < kernel.region.vars.size(); ++v)
      if (stmt.vars.contains(VarId(v))) vars.push_back(VarId(v));
    const loops::Buffer& buffer = program.buffers[args[access.buffer.index()]];
    constexpr int64_t most = int64_t{1} << 48;  // sums of what texts may claim stay within 64 bits
    const int64_t elements = std::min(
        {most, estimate(points(flat, vars), flat.assumptions), estimate(storage_extent(buffer.sizes, buffer.strides, flat.assumptions), flat.assumptions)});
    const auto* store = stmt.as<loops::Store>();
    (store ? kernel.bytes_written_hint : kernel.bytes_read_hint) += elements * byte_size(buffer.dtype);
    if (store && store->combine != Combine::Overwrite) kernel.bytes_read_hint += elements * byte_size(buffer.dtype);
  }
}

}  // namespace

Expr storage_extent(const std::vector<Expr>& sizes, const std::vector<Expr>& strides, const sym::Assumptions& assumptions) {
  const sym::Assumptions of_elements = assume_nonempty(sizes, assumptions);
  std::vector<bool> seen(sizes.size());
  Expr dense = 1;
  size_t left = sizes.size();
  for (bool found = true; found && left > 0;) {
    found = false;
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (seen[d] || !(sizes[d].is_constant(1) || prove_equal(strides[d], dense, of_elements))) continue;
      seen[d] = found = true;
      dense = dense * sizes[d];
      --left;
    }
  }
  if (left == 0) return simplify(dense, assumptions);
  Expr last = 1, count = 1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    last = last + (sizes[d] - 1) * strides[d];
    count = count * sizes[d];
  }
  return count.is_constant(0) ? Expr(0) : simplify(max(last, 0), assumptions);
}

FlatRegion prepare_region(const loops::Program& program, const loops::Region& region, const Target& target, const sym::Assumptions& assumptions) {
  CXXI_CHECK(target.is_for(region.device), "region {} runs on {}, the target is {}", region.name, to_string(region.device), to_string(target));
  FlatRegion flat = flatten(program, region, assumptions);
  order_variables(flat, target);
  merge_variables(flat);
  kernels::arrange(flat, target);
  if (!flat.arranged_for && !transposed_variable(flat).valid()) flatten_stores(flat, target);
  name_variables(flat);
  return flat;
}

MappedKernel build_kernel(const loops::Program& program, FlatRegion flat, const Target& target) {
  const kernels::MappedRegion mapped = kernels::map_region(flat, target);
  MappedKernel built;
  Kernel& kernel = built.kernel;
  kernel.device = flat.region.device;
  kernel.region = flat.region;
  kernel.memory_spaces = mapped.schedule.memory_spaces;
  kernel.segments = mapped.schedule.segments;
  bind_parameters(kernel, program, built.args);
  bound_indices(kernel, flat, program, built.args);
  kernel.symbols = collect_symbols(flat, kernel.index_limit);
  for (const std::string& name : kernel.symbols) built.symbol_args.push_back(Expr::symbol(name));
  kernel.assumptions = assumptions_of(flat, kernel.symbols);
  kernel.mapping = mapped.mapping;
  kernel.offsets.resize(kernel.region.body.size());
  kernel.access.resize(kernel.region.body.size(), AccessKind::Broadcast);
  kernels::describe_accesses(*mapped.family, kernel, flat, target);
  kernels::choose_loads_ahead(kernel);
  kernels::choose_sum_blocks(kernel);
  estimate_traffic(kernel, flat, program, built.args);
  kernel.order_changed = std::any_of(kernel.region.body.begin(), kernel.region.body.end(), [&](const Stmt& stmt) {
    const auto state = row_state(stmt);
    const auto* store = stmt.as<loops::Store>();
    const bool races = store && store->conflict_order && !is_sequential(kernel.mapping);
    return (state && info(state->reduction).order_matters) || (races && counts_repeats(store->combine) && is_float(stmt.dtype));
  });
  built.grid_x = kernels::grid_size(*mapped.family, flat, kernel.mapping, target);
  built.origin = main_origin(kernel.region);
  built.hint = kernel_hint(kernel.region, program.origins);
  return built;
}

std::optional<MappedKernel> build_sized_kernel(const loops::Program& program, const FlatRegion& flat, const Target& target) {
  constexpr std::string_view elements = "elements";
  constexpr int64_t whole_vectors = 8;  // of the narrowest type; other numbers of elements have their own kernels
  if (flat.region.vars.size() != 1 || flat.space.size() != 1) return std::nullopt;
  const VarId v = flat.space.front();
  const Expr count = flat.extent(v), walk = flat.region.symbol(v);
  if (!count.is_constant() || count.constant() < 1 || count.constant() >= plan::always_index32_limit) return std::nullopt;
  for (Stmt stmt : flat.region.body) {
    bool named = false;
    rewrite_expressions(stmt, [&](Expr e) {
      for (Expr symbol : e.free_symbols()) named = named || symbol.name() == elements;
      return e;
    });
    if (named) return std::nullopt;
    if (!stmt.as<loops::Load>() && !stmt.as<loops::Store>()) continue;
    const Expr offset = offset_of(stmt);
    if (offset != walk && !(offset.is_constant() && offset.constant() < plan::always_index32_limit)) return std::nullopt;
  }
  FlatRegion sized = flat;
  sized.program_assumptions.set_range(elements, {1, plan::always_index32_limit - 1});
  if (is_simt(target) && count.constant() % whole_vectors == 0) sized.program_assumptions.set_divisor(elements, whole_vectors);
  IdVector<VarId, loops::Var> vars = flat.region.vars;
  vars[v].extent = Expr::symbol(elements);
  replace_variables(sized, std::move(vars), flat.space, flat.row, VarId(), {});

  MappedKernel built = build_kernel(program, sized, target);
  Kernel& kernel = built.kernel;
  kernel.index_limit = Expr::symbol(elements);
  for (const Stmt& stmt : kernel.region.body)
    if ((stmt.as<loops::Load>() || stmt.as<loops::Store>()) && offset_of(stmt).is_constant()) kernel.index_limit = max(kernel.index_limit, offset_of(stmt) + 1);
  kernel.index_limit = simplify(kernel.index_limit, sized.assumptions);
  kernel.always_index32 = true;
  const sym::Substitution actual{{std::string(elements), count}};
  for (Expr& value : built.symbol_args) value = sym::substitute(value, actual);
  built.grid_x = simplify(sym::substitute(built.grid_x, actual), flat.assumptions);
  kernel.bytes_read_hint = kernel.bytes_written_hint = 0;
  estimate_traffic(kernel, flat, program, built.args);
  return built;
}

}  // namespace cxxinductor::schedule
