#include "ir/plan/verify_kernel.h"

#include <bit>
#include <set>
#include <unordered_set>

#include "ir/device_types.h"
#include "ir/loops/stmt_properties.h"
#include "ir/loops/verify_region.h"
#include "ir/plan/forms.h"
#include "ir/plan/serial_rows.h"
#include "ir/text_parts.h"
#include "support/error.h"

namespace cxxinductor::plan {
namespace {

bool is_power_of_two(int n) { return n > 0 && std::has_single_bit(static_cast<unsigned>(n)); }
bool is_c_identifier(std::string_view name) { return is_symbol_name(name) && name.find('.') == name.npos; }

class KernelVerifier {
 public:
  KernelVerifier(const Kernel& kernel, const OriginTable* origins) : kernel_(kernel), region_(kernel.region) {
    context_.origins = origins;
    context_.flat = true;
    // Accesses have one coordinate, the element offset.
    for (const Param& param : kernel.params) context_.buffers.push_back({param.dtype, 1, fmt::format("{}", context_.buffers.size())});
    for (const std::string& symbol : kernel.symbols) context_.symbols.insert(symbol);
  }

  std::vector<std::string> run() {
    check_signature();
    for (const std::string& message : loops::verify_region(region_, context_)) report("P2", "{}", message);
    check_tables();
    if (!messages_.empty()) return std::move(messages_);  // nothing below may index with a bad id
    check_exprs();
    check_params();
    check_mapping();
    check_segments();
    check_blocks();
    return std::move(messages_);
  }

 private:
  template <class... Args>
  void report(std::string_view invariant, fmt::format_string<Args...> format, Args&&... args) {
    messages_.push_back(fmt::format("{}: kernel @{}: {}", invariant, kernel_.name, fmt::format(format, std::forward<Args>(args)...)));
  }

  void check_signature() {
    if (!is_c_identifier(kernel_.name)) report("P1", "the name is no C identifier");
    if (kernel_.max_grouped < 1) report("P4", "a grouped launch of {} launches", kernel_.max_grouped);
    if (region_.device != kernel_.device) report("P2", "the region is on {}, the kernel on {}", to_string(region_.device), to_string(kernel_.device));
    std::unordered_set<std::string> names;
    for (const std::string& symbol : kernel_.symbols)
      if (!is_symbol_name(symbol) || !names.insert(symbol).second) report("P1", "'{}' is no symbol or named twice", symbol);
  }

  void check_tables() {
    size_t count = region_.body.size();
    if (kernel_.offsets.size() != count || kernel_.access.size() != count || kernel_.memory_spaces.size() != count)
      report("P3", "{} statements have {} offsets, {} kinds of access and {} memory_spaces", count, kernel_.offsets.size(), kernel_.access.size(),
             kernel_.memory_spaces.size());
    for (const auto* vars : {&kernel_.mapping.space, &kernel_.mapping.row})
      for (VarId v : *vars)
        if (!region_.vars.contains(v)) report("P4", "the mapping names a variable that does not exist");
    std::visit([this](const auto& shape) { check_fields(shape); }, kernel_.mapping.shape);
    for (const Segment& segment : kernel_.segments)
      for (StmtId id : segment.stmts)
        if (!region_.body.contains(id)) report("P5", "a segment lists a statement that does not exist");
    for (StmtId id : kernel_.in_blocks)
      if (!region_.body.contains(id)) report("P6", "in_blocks lists a statement that does not exist");
  }

  template <class OneShape>
  void check_fields(const OneShape& shape) {
    if (const int width = kernel_.mapping.vector_width; !is_power_of_two(width)) report("P4", "vector_width is {}, expected a power of two", width);
    for_each_field(shape, [&](const auto& field, const auto& value) {
      using Value = std::remove_cvref_t<decltype(value)>;
      if constexpr (std::is_same_v<Value, VarId>) {
        if (!region_.vars.contains(value)) report("P4", "the mapping's {} does not exist", field.keyword);
      } else if constexpr (std::is_same_v<Value, int>) {
        if (value < field.low || value > field.high)
          report("P4", "{} is {}, expected {} to {}", field.keyword, value, field.low, field.high);
        else if (field.power_of_two && !is_power_of_two(value))
          report("P4", "{} is {}, expected a power of two", field.keyword, value);
      }
    });
  }

  void check_exprs() {
    std::unordered_set<std::string> vars;
    for (const loops::Var& var : region_.vars) vars.insert(var.name);
    for (size_t s = 0; s < region_.body.size(); ++s) {
      const loops::Stmt& stmt = region_.body[StmtId(s)];
      if (!stmt.as<loops::Load>() && !stmt.as<loops::Store>()) continue;
      for (sym::Expr symbol : kernel_.offsets[StmtId(s)].free_symbols()) {
        StmtId used = loops::statement_of_symbol(symbol.name());
        bool known = used.valid() ? used.index() < s && is_integer(region_.body[used].dtype)
                                  : vars.contains(std::string(symbol.name())) || context_.symbols.contains(std::string(symbol.name()));
        if (!known) report("P3", "the offset of %{} uses {}", s, symbol.name());
      }
    }
    for (sym::Expr symbol : kernel_.index_limit.free_symbols())
      if (!context_.symbols.contains(std::string(symbol.name()))) report("P3", "index_limit uses {}", symbol.name());
  }

  void check_params() {
    for (const loops::Access& access : accesses(region_)) {
      const Param& param = kernel_.params[access.buffer.index()];
      if (access.store ? !param.written : !param.read)
        report("P7", "%{} {} parameter {}, which is not declared so", access.stmt.index(), access.store ? "stores" : "loads", access.buffer.index());
      if (param.by_value && (access.store || !kernel_.offsets[access.stmt].is_constant(0)))
        report("P7", "%{} is no load of the value that parameter {} is", access.stmt.index(), access.buffer.index());
      const auto* store = region_.body[access.stmt].as<loops::Store>();
      if (!store || !store->update) continue;
      if (!param.read) report("P7", "%{} updates parameter {}, which is not declared read", access.stmt.index(), access.buffer.index());
      if (store->conflict_order && !is_simt(kernel_.mapping) && !is_sequential(kernel_.mapping))
        report("P14", "points of %{} may meet, and several threads make them", access.stmt.index());
    }
    for (const Param& param : kernel_.params)
      if (param.by_value && (param.written || param.aligned || in_host_memory(kernel_.device))) report("P7", "has a parameter by value that is an address");
  }

  void check_mapping() {
    const Mapping& mapping = kernel_.mapping;
    VarSet space, row;
    size_t listed = mapping.space.size() + mapping.row.size();
    for (VarId v : mapping.space) space |= VarSet::of(v);
    for (VarId v : mapping.row) row |= VarSet::of(v);
    if (const VarId serial = serial_variable(mapping); serial.valid()) {
      serial_ = VarSet::of(serial);
      ++listed;
    }
    if ((space | row | serial_).count() != static_cast<int>(listed) || listed != region_.vars.size())
      report("P4", "every variable is in space or in row exactly once, or is the serial variable");
    if ((is_pointwise(mapping) || is_tiles(mapping)) && !mapping.row.empty()) report("P4", "a mapping without rows lists row variables");
    if (const int threads = block_threads(mapping); threads > most_block_threads) report("P4", "a block of {} threads", threads);
    const Report to_messages = [this](std::string_view invariant, const std::string& message) { report(invariant, "{}", message); };
    std::visit(
        [&](const auto& shape) {
          if constexpr (requires { shape.verify(kernel_, to_messages); }) shape.verify(kernel_, to_messages);
        },
        mapping.shape);
    space_ = space | serial_;
    for (size_t s = 0; s < region_.body.size(); ++s) {
      const loops::Stmt& stmt = region_.body[StmtId(s)];
      const auto state = row_state(stmt);
      if (!state || is_across(StmtId(s))) continue;
      if (!state->over.subset_of(row) || (is_known_after_row(stmt) && !stmt.vars.subset_of(space_)))
        report("P4", "%{} reduces over variables that are no row variables, or varies over the row", s);
    }
  }

  bool is_across(StmtId id) const { return plan::is_across(kernel_, id); }

  void check_segments() {
    std::vector<int> computed(region_.body.size(), -1);  // the last segment that computes the statement
    if (is_pointwise(kernel_.mapping) || is_tiles(kernel_.mapping))
      if (kernel_.segments.size() != 1 || kernel_.segments[0].kind != Segment::Kind::RowLoop) report("P5", "a pointwise or tiled kernel has one row loop");
    for (size_t g = 0; g < kernel_.segments.size(); ++g) {
      const Segment& segment = kernel_.segments[g];
      check_loads_ahead(segment);
      std::set<StmtId> here;
      for (StmtId id : segment.stmts) {
        const loops::Stmt& stmt = region_.body[id];
        if (segment.kind == Segment::Kind::PerRow && !stmt.vars.subset_of(space_))
          report("P5", "%{} varies over the row and stands in a per-row segment", id.index());
        const bool finishes = stmt.as<loops::Store>() && is_across(stmt.as<loops::Store>()->value);
        if (finishes != (segment.kind == Segment::Kind::Epilogue))
          report("P5", "%{} is a store of a reduction over the serial variable and stands outside of the epilogue, or the reverse", id.index());
        for (StmtId operand : operands(stmt))
          if (is_across(operand) && !finishes) report("P5", "%{} computes with a reduction over the serial variable", id.index());
        if (segment.kind == Segment::Kind::PerRow && row_state(stmt)) report("P5", "the reduction %{} stands in a per-row segment", id.index());
        if (!here.empty() && id < *here.rbegin()) report("P5", "segment {} lists %{} out of order", g, id.index());
        const bool once = is_executed_once(stmt) || kernel_.memory_spaces[id] == MemorySpace::Persistent;
        if (computed[id.index()] >= 0 && once) report("P5", "%{} is executed by two segments", id.index());
        for (StmtId operand : operands(stmt)) check_operand(id, operand, computed, static_cast<int>(g));
        if (!here.insert(id).second) report("P5", "segment {} lists %{} twice", g, id.index());
        computed[id.index()] = static_cast<int>(g);
      }
    }
    for (size_t s = 0; s < region_.body.size(); ++s) {
      StmtId id(s);
      if (computed[s] < 0) report("P5", "no segment computes %{}", s);
      MemorySpace memory_space = kernel_.memory_spaces[id];
      const bool settled = is_across(id) ? memory_space == MemorySpace::Persistent || memory_space == MemorySpace::Shared : memory_space == MemorySpace::Row;
      if (is_known_after_row(region_.body[id]) && !settled)
        report("P6", "the reduction %{} is neither of a row nor, over the serial variable, persistent or shared", s);
      if (memory_space == MemorySpace::Shared && !is_across(id)) report("P6", "%{} is shared and no reduction over the serial variable", s);
      if (memory_space == MemorySpace::Row && !region_.body[id].vars.subset_of(space_)) report("P6", "%{} lives in a row and varies over it", s);
      if (memory_space == MemorySpace::Persistent && !is_persistent(kernel_.mapping)) report("P6", "%{} is persistent in a kernel that keeps nothing", s);
    }
  }

  void check_blocks() {
    const bool loops = !updates_of_state(kernel_.mapping, region_).is_constant(1);
    for (size_t i = 0; i < kernel_.in_blocks.size(); ++i) {
      const StmtId id = kernel_.in_blocks[i];
      if (!loops || !rounds_by_order(region_, id))
        report("P6", "%{} is in blocks and is not a reduction of floats whose order matters, in a loop over rows", id.index());
      if (i > 0 && !(kernel_.in_blocks[i - 1] < id)) report("P6", "in_blocks lists %{} out of order", id.index());
    }
  }

  void check_loads_ahead(const Segment& segment) {
    if (segment.loads_ahead == 0) return;
    const Mapping& mapping = kernel_.mapping;
    const int groups = groups_of_thread(mapping);
    if (segment.kind != Segment::Kind::RowLoop || segment.loads_ahead < 0 || segment.loads_ahead > groups ||
        (is_tiles(mapping) && segment.loads_ahead != groups))
      report("P5", "a segment makes the loads of {} groups ahead, where a thread has {}", segment.loads_ahead, groups);
  }

  void check_operand(StmtId id, StmtId operand, const std::vector<int>& computed, int segment) {
    int at = computed[operand.index()];
    if (at < 0) {
      report("P5", "%{} is computed before its operand %{}", id.index(), operand.index());
    } else if (at != segment && kernel_.memory_spaces[operand] == MemorySpace::Local) {
      report("P6", "%{} reads %{}, which is local to another segment", id.index(), operand.index());
    } else if (at == segment && is_known_after_row(region_.body[operand])) {
      report("P5", "%{} reads the reduction %{} in the row loop that computes it", id.index(), operand.index());
    }
  }

  const Kernel& kernel_;
  const loops::Region& region_;
  loops::RegionContext context_;
  VarSet space_;  // what a row is a point of: the serial variable too
  VarSet serial_;
  std::vector<std::string> messages_;
};

}  // namespace

std::vector<std::string> verify_kernel(const Kernel& kernel, const OriginTable* origins) { return KernelVerifier(kernel, origins).run(); }

}  // namespace cxxinductor::plan
