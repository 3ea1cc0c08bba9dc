#include <charconv>
#include <unordered_map>

#include "ir/declared_buffers.h"
#include "ir/loops/region_text.h"
#include "ir/plan/spelling.h"
#include "ir/plan/text.h"
#include "ir/plan/verify.h"
#include "ir/program_text.h"
#include "ir/strides.h"
#include "support/error.h"

namespace cxxinductor::plan {
namespace {

constexpr int max_number = 1 << 30;

template <class Table>
auto parse_keyword(TextCursor& cursor, const Table& table, std::string_view what) {
  for (const auto& [word, value] : table)
    if (cursor.accept(word)) return value;
  cursor.fail(what);
}

class KernelParser {
 public:
  KernelParser(TextCursor& cursor, OriginReader& origins) : cursor_(cursor), origins_(origins) {}

  Kernel parse() {  // after "kernel"
    kernel_.name = cursor_.sigil_name('@', "the kernel's name");
    cursor_.expect("on");
    kernel_.device = parse_device(cursor_);
    parse_params();
    parse_symbols();
    parse_where(cursor_, kernel_.assumptions);
    cursor_.expect("{");
    cursor_.expect("index_limit");
    kernel_.index_limit = parse_parenthesized_expr(cursor_);
    kernel_.always_index32 = cursor_.accept("always_index32");
    kernel_.order_changed = cursor_.accept("order_changed");
    if (cursor_.accept("max_grouped")) kernel_.max_grouped = parse_int(cursor_, "the launches of a grouped launch", 1, max_number);
    cursor_.expect("bytes_read");
    kernel_.bytes_read_hint = cursor_.integer("a number of bytes");
    cursor_.expect("bytes_written");
    kernel_.bytes_written_hint = cursor_.integer("a number of bytes");
    parse_body();
    parse_mapping();
    while (!cursor_.accept("}")) parse_segment();
    return std::move(kernel_);
  }

 private:
  void parse_params() {
    cursor_.expect("(");
    if (cursor_.accept(")")) return;
    do {
      if (kernel_.params.size() >= max_text_items) cursor_.fail("fewer parameters");
      Param param;
      param.dtype = parse_dtype(cursor_);
      param.read = cursor_.accept("read");
      param.written = cursor_.accept("written");
      param.aligned = cursor_.accept("aligned");
      param.by_value = cursor_.accept("by_value");
      kernel_.params.push_back(param);
      loops::Buffer buffer;
      buffer.dtype = param.dtype;
      parameters_.buffers.push_back(std::move(buffer));
    } while (cursor_.accept(","));
    cursor_.expect(")");
  }

  void parse_symbols() {
    cursor_.expect("symbols");
    cursor_.expect("[");
    if (cursor_.accept("]")) return;
    do kernel_.symbols.push_back(parse_symbol_name(cursor_, "a symbol"));
    while (cursor_.accept(","));
    cursor_.expect("]");
  }

  VarId parse_var() {
    TextCursor start = cursor_;
    std::string name = cursor_.identifier("a variable");
    for (size_t v = 0; v < kernel_.region.vars.size(); ++v)
      if (kernel_.region.vars[VarId(v)].name == name) return VarId(v);
    start.fail("a variable of the region");
  }
  std::vector<VarId> parse_vars() {
    std::vector<VarId> vars;
    cursor_.expect("[");
    if (cursor_.accept("]")) return vars;
    do {
      if (vars.size() > 32) cursor_.fail("at most 32 variables");
      vars.push_back(parse_var());
    } while (cursor_.accept(","));
    cursor_.expect("]");
    return vars;
  }

  void parse_mapping() {
    Mapping& mapping = kernel_.mapping;
    cursor_.expect("mapping");
    mapping.shape = parse_keyword(cursor_, shape_keywords, "a shape of mapping");
    cursor_.expect("space");
    mapping.space = parse_vars();
    if (cursor_.accept("row")) mapping.row = parse_vars();
    parse_field("vector_width", mapping.vector_width);
    parse_field("vector_tail", mapping.vector_tail);
    std::visit([this](auto& shape) { for_each_field(shape, [this](const auto& field, auto& value) { parse_field(field.keyword, value); }); }, mapping.shape);
  }
  void parse_field(std::string_view keyword, int& value) {
    if (cursor_.accept(keyword)) value = parse_int(cursor_, keyword, 0, max_number);
  }
  void parse_field(std::string_view keyword, bool& value) { value = cursor_.accept(keyword); }
  void parse_field(std::string_view keyword, VarId& value) {
    if (cursor_.accept(keyword)) value = parse_var();
  }

  void parse_body() {
    loops::RegionParsing how;
    how.program = &parameters_;
    how.parse_buffer = [this](TextCursor& cursor) {
      TextCursor start = cursor;
      std::string name = cursor.sigil_name('@', "a parameter's number");
      size_t number = 0;
      auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
      bool known = error == std::errc() && end == name.data() + name.size() && number < kernel_.params.size();
      if (!known) start.fail(fmt::format("the number of one of {} parameters", kernel_.params.size()));
      return loops::BufferId(number);
    };
    how.parse_annotation = [this](TextCursor& cursor, StmtId id) { parse_annotation(cursor, id); };
    how.origins = &origins_;
    how.device = kernel_.device;
    how.name_stores = true;
    kernel_.region = parse_region(cursor_, how, names_);
  }

  void parse_annotation(TextCursor& cursor, StmtId id) {
    sym::Expr offset;
    if (cursor.accept("at")) offset = parse_parenthesized_expr(cursor, [this](std::string_view text) { return names_.rewrite(text); });
    AccessKind access = AccessKind::Vector;
    for (const auto& [word, kind] : access_keywords)
      if (cursor.accept(word)) access = kind;
    kernel_.offsets.push_back(offset);
    kernel_.access.push_back(access);
    kernel_.memory_spaces.push_back(cursor.accept("memory_space") ? parse_keyword(cursor, memory_space_keywords, "where the value lives") : MemorySpace::Local);
    if (cursor.accept("in_blocks")) kernel_.in_blocks.push_back(id);
  }

  void parse_segment() {
    Segment segment;
    segment.kind = parse_keyword(cursor_, segment_keywords, "a segment: per_row, row_loop or epilogue");
    if (kernel_.segments.size() >= max_text_items) cursor_.fail("fewer segments");
    cursor_.expect("[");
    if (!cursor_.accept("]")) {
      do segment.stmts.push_back(names_.parse(cursor_));
      while (cursor_.accept(","));
      cursor_.expect("]");
    }
    parse_field("loads_ahead", segment.loads_ahead);
    kernel_.segments.push_back(std::move(segment));
  }

  TextCursor& cursor_;
  OriginReader& origins_;
  Kernel kernel_;
  loops::Program parameters_;  // dtypes of the parameters, for the region's reader
  loops::StatementNames names_;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : cursor_(text), origins_(plan_.origins) {}

  Plan parse() {
    parse_guarded(cursor_, [&] { parse_plan(); });
    require_valid("plan", verify(plan_));
    return std::move(plan_);
  }

 private:
  void parse_plan() {
    cursor_.expect("plan");
    plan_.name = cursor_.sigil_name('@', "the plan's name");
    cursor_.expect("for");
    plan_.target = parse_symbol_name(cursor_, "a target");
    if (cursor_.accept("on")) parse_devices();
    cursor_.expect("(");
    if (!cursor_.accept(")")) {
      do
        plan_.inputs.push_back(parse_input<Input>(cursor_, [this](Input& input) {
          input.buffer = parse_buffer(true);
          return plan_.buffers[input.buffer].name;
        }));
      while (cursor_.accept(","));
      cursor_.expect(")");
    }
    parse_where(cursor_, plan_.assumptions);
    cursor_.expect("{");
    while (cursor_.accept("symbol")) parse_symbol_source();
    while (cursor_.accept("arena")) {
      if (plan_.arenas.size() >= max_text_items) cursor_.fail("fewer arenas");
      const Device device = parse_on();
      plan_.arenas.push_back({device, parse_parenthesized_expr(cursor_)});
    }
    plan_.eager_peaks = parse_eager_peaks(cursor_, plan_.devices.front());
    while (cursor_.accept("buffer")) parse_buffer(false);
    for (auto& [slice, base] : bases_) plan_.buffers[slice].base = declared_.parse(base);
    while (cursor_.accept("kernel")) {
      TextCursor start = cursor_;
      Kernel kernel = KernelParser(cursor_, origins_).parse();
      KernelId id(plan_.kernels.size());
      if (!kernels_.emplace(kernel.name, id).second) start.fail(fmt::format("a new name: kernel @{} is defined above", kernel.name));
      plan_.kernels.push_back(std::move(kernel));
    }
    while (!cursor_.accept("return")) {
      if (plan_.steps.size() >= max_text_items) cursor_.fail("fewer steps");
      parse_step();
    }
    parse_outputs(cursor_, plan_.outputs, [this](TextCursor& cursor) { return declared_.parse(cursor); });
    cursor_.expect("}");
    if (!cursor_.at_end()) cursor_.fail("the end of the text");
  }

  void parse_devices() {
    plan_.devices.clear();
    do {
      if (plan_.devices.size() >= max_text_items) cursor_.fail("fewer devices");
      plan_.devices.push_back(parse_device(cursor_));
    } while (cursor_.accept(","));
  }
  Device parse_on() { return cursor_.accept("on") ? parse_device(cursor_) : plan_.devices.front(); }

  void parse_symbol_source() {
    SymbolSource source;
    source.symbol = parse_symbol_name(cursor_, "a symbol");
    cursor_.expect("=");
    cursor_.expect("input");
    source.input = static_cast<uint32_t>(parse_int(cursor_, "an input's number", 0, max_number));
    if (cursor_.accept("dim")) source.dim = parse_int(cursor_, "a dimension", 0, 2 * max_text_rank);
    plan_.symbols.push_back(std::move(source));
  }

  BufferId parse_buffer(bool is_input) {
    Buffer buffer;
    TextCursor start = cursor_;
    buffer.name = cursor_.sigil_name('@', "a buffer's name");
    cursor_.expect(":");
    buffer.dtype = parse_dtype(cursor_);
    buffer.sizes = parse_expr_list(cursor_);
    buffer.strides = cursor_.accept("strides") ? parse_expr_list(cursor_) : row_major_strides(buffer.sizes);
    if (buffer.strides.size() != buffer.sizes.size()) start.fail("as many strides as sizes");
    buffer.device = parse_on();
    cursor_.expect("bytes");
    buffer.bytes = parse_parenthesized_expr(cursor_);
    buffer.kind = is_input ? Buffer::Kind::Input : parse_keyword(cursor_, buffer_keywords, "a kind of buffer");
    if (buffer.kind == Buffer::Kind::Arena) {
      if (!cursor_.looking_at("at")) buffer.arena = static_cast<uint32_t>(parse_int(cursor_, "an arena's number", 0, max_number));
      cursor_.expect("at");
      buffer.arena_offset = parse_parenthesized_expr(cursor_);
    }
    if (buffer.kind == Buffer::Kind::Slice) {
      cursor_.expect("of");
      bases_.emplace_back(BufferId(plan_.buffers.size()), cursor_);  // may be declared further down
      cursor_.sigil_name('@', "a buffer");
      cursor_.expect("at");
      buffer.base_offset = parse_parenthesized_expr(cursor_);
    }
    if (plan_.buffers.size() >= max_text_items) cursor_.fail("fewer buffers");
    BufferId id(plan_.buffers.size());
    declared_.add(buffer.name, id, start);
    return plan_.buffers.push_back(std::move(buffer));
  }

  void parse_step() {
    if (cursor_.accept("allocate")) {
      plan_.steps.emplace_back(Allocate{declared_.parse(cursor_)});
    } else if (cursor_.accept("free")) {
      plan_.steps.emplace_back(Free{declared_.parse(cursor_)});
    } else if (cursor_.accept("reuse")) {
      Reuse reuse{declared_.parse(cursor_), {}};
      cursor_.expect("as");
      reuse.to = declared_.parse(cursor_);
      plan_.steps.emplace_back(reuse);
    } else if (cursor_.accept("launch")) {
      plan_.steps.emplace_back(parse_launch(parse_kernel_name()));
    } else if (cursor_.accept("grouped_launch")) {
      parse_grouped_launch();
    } else if (cursor_.accept("read")) {
      parse_read();
    } else if (cursor_.accept("assert")) {
      Assert assertion{parse_parenthesized_expr(cursor_), cursor_.quoted("a message"), {}};
      assertion.origin = origins_.parse(cursor_);
      plan_.steps.emplace_back(std::move(assertion));
    } else {
      auto call = parse_extern<View, CallExtern>(
          cursor_, [this](TextCursor& cursor) { return declared_.parse(cursor); }, [this](BufferId id) { return &plan_.buffers[id]; });
      call.origin = origins_.parse(cursor_);
      plan_.steps.emplace_back(std::move(call));
    }
  }

  void parse_read() {
    ReadScalar read;
    read.symbol = parse_symbol_name(cursor_, "a symbol");
    cursor_.expect("=");
    const auto parse_name = [this](TextCursor& cursor) { return declared_.parse(cursor); };
    if (cursor_.accept("view")) {
      read.from = parse_view<View>(cursor_, parse_name);
    } else {
      const BufferId id = declared_.parse(cursor_);
      read.from = {id, plan_.buffers[id].dtype, plan_.buffers[id].sizes, plan_.buffers[id].strides, 0};
    }
    read.origin = origins_.parse(cursor_);
    plan_.steps.emplace_back(std::move(read));
  }

  KernelId parse_kernel_name() {
    TextCursor start = cursor_;
    std::string name = cursor_.sigil_name('@', "a kernel");
    auto found = kernels_.find(name);
    if (found == kernels_.end()) start.fail(fmt::format("a kernel (there is no @{})", name));
    return found->second;
  }

  void parse_grouped_launch() {
    GroupedLaunch group;
    const KernelId kernel = parse_kernel_name();
    cursor_.expect("{");
    while (!cursor_.accept("}")) {
      if (group.launches.size() >= max_text_items) cursor_.fail("fewer launches");
      group.launches.push_back(parse_launch(kernel));
    }
    plan_.steps.emplace_back(std::move(group));
  }

  Launch parse_launch(KernelId kernel) {
    Launch launch;
    launch.kernel = kernel;
    cursor_.expect("(");
    if (!cursor_.accept(")")) {
      do launch.args.push_back(declared_.parse(cursor_));
      while (cursor_.accept(","));
      cursor_.expect(")");
    }
    cursor_.expect("symbols");
    launch.symbol_args = parse_expr_list(cursor_, {}, max_text_items);
    cursor_.expect("grid");
    TextCursor grid_start = cursor_;
    std::vector<sym::Expr> grid = parse_expr_list(cursor_);
    if (grid.size() != 2) grid_start.fail("a grid of two numbers");
    launch.grid_x = grid[0];
    launch.grid_y = grid[1];
    while (cursor_.accept("or")) {
      if (launch.specializations.size() >= max_text_items) cursor_.fail("fewer specializations");
      Specialization& special = launch.specializations.emplace_back();
      special.kernel = parse_kernel_name();
      cursor_.expect("grid");
      TextCursor special_start = cursor_;
      const std::vector<sym::Expr> blocks = parse_expr_list(cursor_);
      if (blocks.size() != 1) special_start.fail("a grid of one number");
      special.grid_x = blocks[0];
      parse_where(cursor_, special.when);
    }
    launch.origin = origins_.parse(cursor_);
    return launch;
  }

  TextCursor cursor_;
  Plan plan_;
  OriginReader origins_;
  DeclaredBuffers<BufferId> declared_;
  std::vector<std::pair<BufferId, TextCursor>> bases_;  // parts, and where the text names their bases
  std::unordered_map<std::string, KernelId> kernels_;
};

}  // namespace

Plan parse(std::string_view text) { return Parser(text).parse(); }

}  // namespace cxxinductor::plan
