// The loops of each mapping. Bodies come from kernel_statements.cpp.
#include <algorithm>

#include "codegen/cpu/kernel_emitter.h"
#include "ir/plan/cpu_rows.h"
#include "ir/plan/uniform_masks.h"
#include "support/error.h"
#include "support/overloaded.h"

namespace cxxinductor::codegen {
namespace {

std::string product_text(const std::vector<std::string>& factors) {
  std::string text;
  for (const std::string& factor : factors) text += (text.empty() ? "" : " * ") + factor;
  return text.empty() ? "1" : text;
}

}  // namespace

CpuKernelEmitter::CpuKernelEmitter(const plan::Kernel& kernel, const OriginTable& origins, TextWriter& out)
    : kernel_(kernel), origins_(origins), out_(out) {
  const plan::Mapping& mapping = kernel.mapping;
  vector_var_ = vector_variable(mapping);
  width_ = vector_var_.valid() ? mapping.vector_width : 1;
  sets_ = plan::sets_of_states(mapping);
  strip_ = mapping.as<plan::CpuColumns>() != nullptr;
  for (const Stmt& s : kernel.region.body) checks_ |= s.as<loops::Check>() != nullptr;
  for (size_t s = 0; s < kernel.region.body.size(); ++s)
    if (kernel.memory_spaces[StmtId(s)] == plan::MemorySpace::Persistent) persistent_.insert(StmtId(s).index());
}

void CpuKernelEmitter::emit() {
  emit_signature();
  const auto refuse = [this](std::string_view shape) { throw_internal("kernel {}: the CPU has no mapping {}", kernel_.name, shape); };
  std::visit(Overloaded{[&](const plan::CpuPointwise& shape) { emit_pointwise(shape); },
                        [&](const plan::CpuRows&) { emit_rows(); },
                        [&](const plan::CpuColumns& shape) { emit_columns(shape); },
                        [&](const plan::CpuTiles& shape) { emit_tiles(shape); },
                        [&](const plan::Pointwise& gpu) { refuse(gpu.keyword); },
                        [&](const plan::Rows& gpu) { refuse(gpu.keyword); },
                        [&](const plan::SerialRows& gpu) { refuse(gpu.keyword); },
                        [&](const plan::Columns& gpu) { refuse(gpu.keyword); },
                        [&](const plan::Tiles& gpu) { refuse(gpu.keyword); },
                        [&](const plan::Matmul& gpu) { refuse(gpu.keyword); }},
             kernel_.mapping.shape);
  out_.dedent();
  out_.line("}}");
}

void CpuKernelEmitter::emit_signature() {
  out_.line("extern \"C\" __attribute__((visibility(\"default\"))) void {}(void* const* cxxi_buffers,", kernel_.name);
  out_.line("    const long long* cxxi_symbols, long long cxxi_begin, long long cxxi_end) {{");
  out_.indent();
  out_.line("using cxxi::index;");
  for (size_t i = 0; i < kernel_.params.size(); ++i) {
    const std::string element = cpu_dtype_tag(kernel_.params[i].dtype) + "::element";
    out_.line("{0}* const p{1} = static_cast<{0}*>(cxxi_buffers[{1}]);", element, i);
  }
  if (checks_) {
    out_.line("long long* const cxxi_record = static_cast<long long*>(cxxi_buffers[{}]);", kernel_.params.size());
  }
  for (size_t i = 0; i < kernel_.symbols.size(); ++i) {
    out_.line("const index {} = cxxi_symbols[{}];", expression(sym::Expr::symbol(kernel_.symbols[i])), i);
  }
}

// Declares variables from a row-major point number over them.
void CpuKernelEmitter::decode(std::string_view number, std::span<const VarId> vars) {
  if (vars.empty()) return;
  out_.line("index cxxi_rest = {};", number);
  for (size_t d = vars.size(); d-- > 0;) {
    if (d == 0) {
      out_.line("index {} = cxxi_rest;", variable(vars[d]));
    } else {
      out_.line("index {} = cxxi_rest % {};", variable(vars[d]), extent(vars[d]));
      out_.line("cxxi_rest /= {};", extent(vars[d]));
    }
  }
}

void CpuKernelEmitter::open_body(std::string_view parameters, const std::vector<StmtId>& stmts) {
  out_.line("const auto body = [&](auto cxxi_lanes{}) __attribute__((always_inline)) {{", parameters);
  out_.indent();
  out_.line("constexpr int L = decltype(cxxi_lanes)::value;");
  in_body_ = true;
  for (StmtId id : kept_operands(stmts)) emit_kept(id);
  for (StmtId id : stmts) emit_statement(id);
  in_body_ = false;
  if (marked_) out_.line("#line 1 \"{}\"", kernel_.name);
  marked_ = false;
  if (checks_) out_.line("return true;");
  out_.dedent();
  out_.line("}};");
}

void CpuKernelEmitter::call_body(std::string_view arguments) {
  if (checks_) {
    out_.line("if (!body({})) return;  // a check failed: the record says which", arguments);
  } else {
    out_.line("body({});", arguments);
  }
}

void CpuKernelEmitter::emit_pointwise(const plan::CpuPointwise& shape) {
  const plan::Mapping& mapping = kernel_.mapping;
  const plan::Segment& segment = kernel_.segments.at(0);
  for (VarId v : mapping.space) running_ |= loops::VarSet::of(v);
  if (mapping.space.empty()) {
    open_body("", segment.stmts);
    call_body("cxxi::number<1>{}");
    return;
  }
  const std::string last = variable(vector_var_), columns = extent(vector_var_);
  std::vector<std::string> extents;
  for (VarId v : mapping.space) extents.push_back(extent(v));
  out_.line("const index cxxi_points = {};", product_text(extents));
  out_.line("index cxxi_point = cxxi_begin * {};", shape.chunk);
  out_.line("const index cxxi_stop = cxxi_end * {0} < cxxi_points ? cxxi_end * {0} : cxxi_points;", shape.chunk);
  out_.line("if (cxxi_point >= cxxi_stop) return;");
  decode("cxxi_point", mapping.space);
  if (width_ > 1) {
    plan::UniformMasks masks = plan::find_uniform_masks(kernel_, segment.stmts, vector_var_);
    for (StmtId id : masks.stmts) uniform_.insert(&stmt(id));
    cuts_ = std::move(masks.cuts);
  }
  open_body(", index " + last, segment.stmts);
  out_.line("index cxxi_at = {};", last);
  out_.line("while (true) {{");
  out_.indent();
  out_.line("const index cxxi_left = {} - cxxi_at;", columns);
  emit_run();
  out_.line("if (cxxi_point >= cxxi_stop) break;");
  if (!cuts_.empty()) out_.line("if (cxxi_at < {}) continue;", columns);
  out_.line("cxxi_at = 0;");
  for (size_t d = mapping.space.size() - 1; d-- > 0;) {
    const std::string name = variable(mapping.space[d]);
    if (d == 0) {
      out_.line("++{};", name);
    } else {
      out_.line("if (++{} == {}) {{", name, extent(mapping.space[d]));
      out_.indent();
      out_.line("{} = 0;", name);
    }
  }
  for (size_t d = mapping.space.size() - 1; d-- > 1;) {
    out_.dedent();
    out_.line("}}");
  }
  out_.dedent();
  out_.line("}}");
}

// From cxxi_at to the end of the chunk or of the innermost variable's range, or to the next cut.
void CpuKernelEmitter::emit_run() {
  out_.line("index cxxi_run = cxxi_stop - cxxi_point < cxxi_left ? cxxi_stop - cxxi_point : cxxi_left;");
  for (sym::Expr cut : cuts_) out_.line("cxxi_run = cxxi::up_to(cxxi_run, {} - cxxi_at);", expression(cut));
  out_.line("const index cxxi_run_end = cxxi_at + cxxi_run;");
  emit_vector_loop("cxxi_run_end", "cxxi_at");
  out_.line("cxxi_point += cxxi_run;");
}

// From cxxi_at to the end: vectors, then what is left of one, element by element.
void CpuKernelEmitter::emit_vector_loop(std::string_view end, std::string_view arguments) {
  if (width_ > 1) {
    out_.line("for (; cxxi_at + {0} <= {1}; cxxi_at += {0}) {{", width_, end);
    out_.indent();
    call_body(fmt::format("cxxi::number<{}>{{}}, {}", width_, arguments));
    out_.dedent();
    out_.line("}}");
  }
  out_.line("for (; cxxi_at < {}; ++cxxi_at) {{", end);
  out_.indent();
  call_body(fmt::format("cxxi::number<1>{{}}, {}", arguments));
  if (width_ > 1) out_.line("CXXI_KEEP_SCALAR;");
  out_.dedent();
  out_.line("}}");
}

// ---- Rows -------------------------------------------------------------------------------------------------------

void CpuKernelEmitter::emit_rows() {
  const plan::Mapping& mapping = kernel_.mapping;
  sym::Expr length = 1;
  for (VarId v : mapping.row) length = length * kernel_.region.vars[v].extent;
  for (uint32_t id : persistent_) {
    out_.line("alignas(64) {}::element w{}[{}];", cpu_dtype_tag(stmt(StmtId(id)).dtype), id,
              std::max<int64_t>(length.constant(), 1));
  }
  out_.line("for (index cxxi_unit = cxxi_begin; cxxi_unit < cxxi_end; ++cxxi_unit) {{");
  out_.indent();
  decode("cxxi_unit", mapping.space);
  loops::VarSet space;
  for (VarId v : mapping.space) space |= loops::VarSet::of(v);
  for (const plan::Segment& segment : kernel_.segments) {
    running_ = space;
    if (segment.kind == plan::Segment::Kind::RowLoop) {
      for (VarId v : mapping.row) running_ |= loops::VarSet::of(v);
      emit_row_loop(segment);
      continue;
    }
    for (StmtId id : segment.stmts) {
      if (declared_.insert(id.index()).second) emit_statement(id);
    }
  }
  out_.dedent();
  out_.line("}}");
}

std::vector<plan::StmtId> CpuKernelEmitter::summed_in_blocks(const std::vector<StmtId>& reduces) const {
  std::vector<StmtId> found;
  std::ranges::copy_if(reduces, std::back_inserter(found), [&](StmtId id) { return std::ranges::binary_search(kernel_.in_blocks, id); });
  return found;
}

void CpuKernelEmitter::declare_states(const std::vector<StmtId>& reduces, const std::vector<StmtId>& in_blocks,
                                      std::string_view kind, int count) {
  for (StmtId id : reduces) {
    const bool blocks = std::find(in_blocks.begin(), in_blocks.end(), id) != in_blocks.end();
    out_.line("cxxi::{}{}<{}, {}, {}> r{};", blocks ? "long_" : "", kind, reduction_type(*stmt(id).as<loops::Reduce>()),
              width_, count, id.index());
  }
}

void CpuKernelEmitter::put_blocks_aside(const std::vector<StmtId>& in_blocks, std::string_view condition) {
  const std::string_view columns = strip_ ? "cxxi_strip_end - cxxi_strip" : "";
  if (in_blocks.empty()) return;
  out_.line("if ({}) {{", condition);
  out_.indent();
  for (StmtId id : in_blocks) out_.line("r{}.put_aside({});", id.index(), columns);
  out_.dedent();
  out_.line("}}");
}

void CpuKernelEmitter::emit_row_loop(const plan::Segment& segment) {
  const std::vector<VarId>& row = kernel_.mapping.row;
  const std::vector<StmtId> reduces = reduces_of(segment);
  const int sets = reduces.empty() ? 1 : sets_;
  const std::vector<StmtId> in_blocks = summed_in_blocks(reduces);
  declare_states(reduces, in_blocks, "row_state", sets > 1 ? sets + 1 : 1);
  out_.line("{{");
  out_.indent();
  std::string parameters = ", auto cxxi_set, index cxxi_element";
  for (VarId v : row) parameters += ", index " + variable(v);
  open_body(parameters, segment.stmts);
  out_.line("index cxxi_first = 0;");
  const bool counts = row.size() > 1 && !in_blocks.empty();
  if (counts) out_.line("index cxxi_updates = 0;");
  for (size_t d = 0; d + 1 < row.size(); ++d) {
    out_.line("for (index {0} = 0; {0} < {1}; ++{0}) {{", variable(row[d]), extent(row[d]));
    out_.indent();
  }
  emit_pass(in_blocks, sets);
  out_.line("cxxi_first += cxxi_length;");
  if (counts) {
    out_.line("cxxi_updates += {};", expression(plan::updates_of_pass(kernel_.mapping, kernel_.region)));
    put_blocks_aside(in_blocks, fmt::format("cxxi_updates >= {}", plan::updates_of_block));
    out_.line("if (cxxi_updates >= {0}) cxxi_updates = 0;", plan::updates_of_block);
  }
  for (size_t d = 0; d + 1 < row.size(); ++d) {
    out_.dedent();
    out_.line("}}");
  }
  out_.dedent();
  out_.line("}}");
  for (StmtId id : reduces) {
    out_.line("const auto t{0} = r{0}.joined();", id.index());
    out_.line("const auto v{0} = t{0}.result<0>();", id.index());
    declared_.insert(id.index());
  }
}

// Along the last variable of a row.
void CpuKernelEmitter::emit_pass(const std::vector<StmtId>& in_blocks, int sets) {
  const std::vector<VarId>& row = kernel_.mapping.row;
  std::string arguments;
  for (size_t d = 0; d + 1 < row.size(); ++d) arguments += ", " + variable(row[d]);
  const auto call = [&](int width, int set, int offset) {
    const std::string at = offset == 0 ? "cxxi_at" : fmt::format("cxxi_at + {}", offset);
    call_body(fmt::format("cxxi::number<{}>{{}}, cxxi::number<{}>{{}}, cxxi_first + {}{}{}", width, set, at, arguments,
                          row.empty() ? "" : ", " + at));
  };
  out_.line("const index cxxi_length = {};", row.empty() ? "1" : extent(vector_var_));
  out_.line("index cxxi_at = 0;");
  if (width_ > 1) {
    const int step = width_ * sets;
    if (!in_blocks.empty()) {
      out_.line("while (cxxi_at + {} <= cxxi_length) {{", step);
      out_.indent();
      out_.line("const index cxxi_stop = cxxi_at + {0} < cxxi_length ? cxxi_at + {0} : cxxi_length;", step * plan::updates_of_block);
    }
    out_.line("for (; cxxi_at + {0} <= {1}; cxxi_at += {0}) {{", step, in_blocks.empty() ? "cxxi_length" : "cxxi_stop");
    out_.indent();
    for (int set = 0; set < sets; ++set) call(width_, set, set * width_);
    out_.dedent();
    out_.line("}}");
    if (!in_blocks.empty()) {
      put_blocks_aside(in_blocks, fmt::format("cxxi_at + {} <= cxxi_length", step));
      out_.dedent();
      out_.line("}}");
    }
    if (sets > 1) {
      out_.line("for (; cxxi_at + {0} <= cxxi_length; cxxi_at += {0}) {{", width_);
      out_.indent();
      call(width_, sets, 0);  // apart from the long chains
      out_.dedent();
      out_.line("}}");
    }
  }
  out_.line("for (; cxxi_at < cxxi_length; ++cxxi_at) {{");
  out_.indent();
  call(1, 0, 0);
  if (width_ > 1)
    out_.line("CXXI_KEEP_SCALAR;");
  else
    put_blocks_aside(in_blocks, fmt::format("(cxxi_at & {0}) == {0}", plan::updates_of_block - 1));
  out_.dedent();
  out_.line("}}");
}

// ---- Columns ----------------------------------------------------------------------------------------------------

void CpuKernelEmitter::emit_columns(const plan::CpuColumns& shape) {
  const plan::Mapping& mapping = kernel_.mapping;
  const int columns = shape.columns_per_unit;
  out_.line("const index cxxi_columns = {};", extent(vector_var_));
  out_.line("const index cxxi_strips = (cxxi_columns + {}) / {};", columns - 1, columns);
  out_.line("for (index cxxi_unit = cxxi_begin; cxxi_unit < cxxi_end; ++cxxi_unit) {{");
  out_.indent();
  out_.line("const index cxxi_strip = cxxi_unit % cxxi_strips * {};", columns);
  out_.line("const index cxxi_strip_end = cxxi_strip + {0} < cxxi_columns ? cxxi_strip + {0} : cxxi_columns;", columns);
  decode("cxxi_unit / cxxi_strips", std::span(mapping.space).first(mapping.space.size() - 1));
  for (const plan::Segment& segment : kernel_.segments) {
    const std::vector<StmtId> reduces = reduces_of(segment);
    declare_states(reduces, summed_in_blocks(reduces), "column_tile_state", columns);
    if (segment.kind != plan::Segment::Kind::PerRow) continue;
    for (StmtId id : segment.stmts) {
      const bool value = !stmt(id).as<loops::Store>() && !stmt(id).as<loops::Check>() && !stmt(id).as<loops::Project>();
      if (value && kernel_.memory_spaces[id] == plan::MemorySpace::Row && persistent_.insert(id.index()).second) {
        out_.line("alignas(64) {}::element w{}[{}];", cpu_dtype_tag(stmt(id).dtype), id.index(), columns);
      }
    }
  }
  loops::VarSet space;
  for (VarId v : mapping.space) space |= loops::VarSet::of(v);
  for (const plan::Segment& segment : kernel_.segments) {
    running_ = space;
    if (segment.kind == plan::Segment::Kind::RowLoop) {
      for (VarId v : mapping.row) running_ |= loops::VarSet::of(v);
    }
    emit_strip_segment(segment);
  }
  out_.dedent();
  out_.line("}}");
}

void CpuKernelEmitter::emit_strip_segment(const plan::Segment& segment) {
  const std::vector<VarId> row =
      segment.kind == plan::Segment::Kind::RowLoop ? kernel_.mapping.row : std::vector<VarId>{};
  out_.line("{{");
  out_.indent();
  const std::string last = variable(vector_var_);
  // x_<row variables> are declared by the loops below, so the body takes them as parameters.
  std::string parameters = fmt::format(", index {}, index cxxi_group, index cxxi_element", last);
  std::string arguments = "cxxi_at, cxxi_group, cxxi_point";
  for (VarId v : row) {
    parameters += ", index " + variable(v);
    arguments += ", " + variable(v);
  }
  open_body(parameters, segment.stmts);
  out_.line("index cxxi_point = 0;");
  for (VarId v : row) {
    out_.line("for (index {0} = 0; {0} < {1}; ++{0}) {{", variable(v), extent(v));
    out_.indent();
  }
  out_.line("index cxxi_at = cxxi_strip;");
  if (width_ > 1) {
    out_.line("for (index cxxi_group = 0; cxxi_at + {0} <= cxxi_strip_end; cxxi_at += {0}, ++cxxi_group) {{", width_);
    out_.indent();
    call_body(fmt::format("cxxi::number<{}>{{}}, {}", width_, arguments));
    out_.dedent();
    out_.line("}}");
  }
  out_.line("for (index cxxi_group = 0; cxxi_at < cxxi_strip_end; ++cxxi_at, ++cxxi_group) {{");
  out_.indent();
  call_body("cxxi::number<1>{}, " + arguments);
  if (width_ > 1) out_.line("CXXI_KEEP_SCALAR;");
  out_.dedent();
  out_.line("}}");
  const std::vector<StmtId> in_blocks = summed_in_blocks(reduces_of(segment));
  put_blocks_aside(in_blocks, fmt::format("(cxxi_point & {0}) == {0}", plan::updates_of_block - 1));
  out_.line("++cxxi_point;");
  for (size_t d = 0; d < row.size(); ++d) {
    out_.dedent();
    out_.line("}}");
  }
  for (StmtId id : in_blocks) out_.line("r{}.take_all(cxxi_strip_end - cxxi_strip);", id.index());
  out_.dedent();
  out_.line("}}");
}

// ---- Tiles ------------------------------------------------------------------------------------------------------

void CpuKernelEmitter::emit_tiles(const plan::CpuTiles& shape) {
  const plan::Mapping& mapping = kernel_.mapping;
  const plan::Segment& segment = kernel_.segments.at(0);
  const VarId across = mapping.space.back(), along = shape.tile_var;
  const int tile = shape.tile;
  std::vector<VarId> outer;
  for (VarId v : mapping.space) {
    running_ |= loops::VarSet::of(v);
    if (v != across && v != along) outer.push_back(v);
  }
  for (StmtId id : segment.stmts) {
    if (kernel_.access[id] != plan::AccessKind::Staged) continue;
    out_.line("alignas(64) {}::element w{}[{}];", cpu_dtype_tag(stmt(id).dtype), id.index(), tile * tile);
  }
  out_.line("const index cxxi_tiles_across = ({} + {}) / {};", extent(across), tile - 1, tile);
  out_.line("const index cxxi_tiles_along = ({} + {}) / {};", extent(along), tile - 1, tile);
  out_.line("for (index cxxi_unit = cxxi_begin; cxxi_unit < cxxi_end; ++cxxi_unit) {{");
  out_.indent();
  out_.line("const index cxxi_strip = cxxi_unit / cxxi_tiles_along;");
  decode("cxxi_strip / cxxi_tiles_across", outer);
  const auto side = [&](std::string_view name, VarId v, std::string_view number) {
    out_.line("const index cxxi_{} = {} * {};", name, number, tile);
    out_.line("const index cxxi_{0}_end = cxxi_{0} + {1} < {2} ? cxxi_{0} + {1} : {2};", name, tile, extent(v));
  };
  side("across", across, "cxxi_strip % cxxi_tiles_across");
  side("along", along, "cxxi_unit % cxxi_tiles_along");
  stage_loads(segment, shape);
  open_body(fmt::format(", index {}, index {}, index cxxi_element", variable(along), variable(across)), segment.stmts);
  out_.line("for (index cxxi_t = cxxi_along; cxxi_t < cxxi_along_end; ++cxxi_t) {{");
  out_.indent();
  out_.line("const index cxxi_first = (cxxi_t - cxxi_along) * {} - cxxi_across;", tile);
  out_.line("index cxxi_at = cxxi_across;");
  emit_vector_loop("cxxi_across_end", "cxxi_t, cxxi_at, cxxi_first + cxxi_at");
  for (int closed = 0; closed < 2; ++closed) {
    out_.dedent();
    out_.line("}}");
  }
}

// Fills the arrays of a tile's Staged loads.
void CpuKernelEmitter::stage_loads(const plan::Segment& segment, const plan::CpuTiles& shape) {
  const VarId across = kernel_.mapping.space.back(), along = shape.tile_var;
  out_.line("{{");
  out_.indent();
  out_.line("const index {} = cxxi_across, {} = cxxi_along;", variable(across), variable(along));
  for (StmtId id : segment.stmts) {
    if (kernel_.access[id] != plan::AccessKind::Staged) continue;
    sym::Expr step, rest;
    const bool linear = sym::split_linear(kernel_.offsets[id], kernel_.region.symbol(across), &step, &rest);
    CXXI_CHECK(linear, "{}: %{} is staged, but not linear across the tile", kernel_.name, id.index());
    out_.line("cxxi::stage<{}, {}>(w{}, p{} + {}, {}, cxxi_along_end - cxxi_along, cxxi_across_end - cxxi_across);",
              cpu_dtype_tag(stmt(id).dtype), shape.tile, id.index(),
              stmt(id).as<loops::Load>()->buffer.index(), expression(kernel_.offsets[id]), expression(step));
  }
  out_.dedent();
  out_.line("}}");
}

}  // namespace cxxinductor::codegen
