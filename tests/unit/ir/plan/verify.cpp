// A negative case for each invariant of the plan IR.
#include "ir/plan/verify.h"

#include "ir/plan/text.h"
#include "support/error.h"
#include "unit/catch.h"
#include "unit/ir/expect_text.h"
#include "unit/ir/plan/samples.h"

using namespace cxxinductor;
using namespace cxxinductor::plan;

namespace {

Kernel& kernel(Plan& p, size_t k) { return p.kernels[KernelId(k)]; }
template <class Kind>
Kind& shape(Plan& p, size_t k) {
  return std::get<Kind>(kernel(p, k).mapping.shape);
}
loops::Stmt& stmt(Plan& p, size_t k, size_t s) { return kernel(p, k).region.body[StmtId(s)]; }
Launch& launch(Plan& p, size_t step) { return std::get<Launch>(p.steps[step]); }
GroupedLaunch& grouped_launch(Plan& p, size_t step) { return std::get<GroupedLaunch>(p.steps[step]); }
CallExtern& call(Plan& p, size_t step) { return std::get<CallExtern>(p.steps[step]); }
void insert_step(Plan& p, size_t at, const Step& step) {
  std::vector<Step> steps;
  for (size_t s = 0; s < p.steps.size(); ++s) {
    if (s == at) steps.push_back(step);
    steps.push_back(p.steps[s]);
  }
  p.steps = std::move(steps);
}
Buffer& buffer(Plan& p, std::string_view name) {
  for (Buffer& b : p.buffers)
    if (b.name == name) return b;
  FAIL("no buffer " << name);
  return p.buffers[BufferId(0)];
}
BufferId id_of(Plan& p, std::string_view name) { return BufferId(static_cast<size_t>(&buffer(p, name) - &*p.buffers.begin())); }

template <class Edit>
std::string report_after(Edit edit, const char* text = every_plan_kind) {
  Plan p = parse(text);
  edit(p);
  std::string all;
  for (const std::string& message : verify(p)) all += message + "\n";
  return all;
}

template <class Edit>
void breaks(const char* invariant, Edit edit) {
  INFO(invariant);
  check_contains(report_after(edit), std::string(invariant) + ":");
}

constexpr const char* serial_rows =
    R"(plan @f for cuda on cuda:0 (@x: f32[4, 8, 1000] bytes (128000)) {
  ; holds at most 16896 bytes, 16128 at least
  buffer @y: f32[4, 8] bytes (128) standalone
  buffer @s: f32[4, 1000] bytes (16000) standalone
  kernel @sums on cuda:0 (f32 read, f32 written, f32 written) symbols [] {
    index_limit (32000) always_index32 bytes_read 0 bytes_written 0
    region @sums over i0 < 4, w0 < 8, r0 < 1000 {
      %0 = load @0[8000*i0 + r0 + 1000*w0] at (8000*i0 + r0 + 1000*w0) vector memory_space persistent  ; (i0 w0 r0)
      %1 = reduce<sum>(%0) over r0 memory_space row  ; (i0 w0)
      store @1[8*i0 + w0] = %1 at (8*i0 + w0) broadcast  ; (i0 w0)
      %3 = reduce<sum>(%0) over w0 memory_space shared  ; (i0 r0)
      store @2[1000*i0 + r0] = %3 at (1000*i0 + r0) vector  ; (i0 r0)
    }
    mapping serial_rows space [i0] row [r0] vector_width 4 serial w0 threads_per_row 512
    row_loop [%0, %1, %3]
    per_row [%2]
    epilogue [%4]
  }
  allocate @y
  allocate @s
  launch @sums(@x, @y, @s) symbols [] grid [4, 1]
  return @y, @s
}
)";

}  // namespace

TEST_CASE("serial rows have counterexamples too", "[ir][plan]") {
  CHECK(print(parse(serial_rows)) == serial_rows);
  auto breaks = [](const char* what, auto edit) {
    INFO(what);
    check_contains(report_after(edit, serial_rows), what);
  };
  CHECK(report_after([](Plan& p) { kernel(p, 0).memory_spaces[StmtId(3)] = MemorySpace::Persistent; }, serial_rows) == "");
  breaks("P4: kernel @sums: the mapping's serial does not exist", [](Plan& p) { shape<SerialRows>(p, 0).serial = VarId(3); });
  breaks("P4: kernel @sums: every variable is in space", [](Plan& p) { shape<SerialRows>(p, 0).serial = VarId(2); });
  breaks("P5: kernel @sums: %4 is a store of", [](Plan& p) { kernel(p, 0).segments[2].kind = Segment::Kind::RowLoop; });
  breaks("P6: kernel @sums: the reduction %3", [](Plan& p) { kernel(p, 0).memory_spaces[StmtId(3)] = MemorySpace::Row; });
  breaks("P6: kernel @sums: the reduction %1", [](Plan& p) { kernel(p, 0).memory_spaces[StmtId(1)] = MemorySpace::Shared; });
  breaks("P6: kernel @sums: %1 is shared", [](Plan& p) { kernel(p, 0).memory_spaces[StmtId(1)] = MemorySpace::Shared; });
  breaks("P6: kernel @sums: %0 is shared", [](Plan& p) { kernel(p, 0).memory_spaces[StmtId(0)] = MemorySpace::Shared; });
  breaks("P6: kernel @sums: %3 is shared", [](Plan& p) {
    shape<SerialRows>(p, 0).threads_per_row = 256;
    shape<SerialRows>(p, 0).rows_per_block = 2;
  });
}

TEST_CASE("each invariant of kernels in a plan has a counterexample", "[ir][plan]") {
  const sym::Expr q = sym::Expr::symbol("q");
  breaks("P1", [](Plan& p) { kernel(p, 0).name = "a.b"; });
  breaks("P1", [](Plan& p) { kernel(p, 0).name = kernel(p, 1).name; });
  breaks("P1", [](Plan& p) { buffer(p, "t").name = "y"; });
  breaks("P1", [](Plan& p) { kernel(p, 0).symbols.push_back("s0"); });
  breaks("P2", [](Plan& p) { stmt(p, 0, 1).dtype = DType::F64; });
  breaks("P2", [](Plan& p) { kernel(p, 0).region.device = {}; });
  breaks("P2", [](Plan& p) { stmt(p, 0, 0).as<loops::Load>()->coords.push_back(0); });
  breaks("P3", [](Plan& p) { kernel(p, 0).memory_spaces.resize(3); });
  breaks("P3", [&](Plan& p) { kernel(p, 0).offsets[StmtId(0)] = q; });
  breaks("P3", [&](Plan& p) { kernel(p, 0).index_limit = q; });
  breaks("P4", [](Plan& p) { kernel(p, 0).mapping.row.clear(); });
  breaks("P4", [](Plan& p) { kernel(p, 0).mapping.space.push_back(VarId(1)); });
  breaks("P4", [](Plan& p) { kernel(p, 0).mapping.space.push_back(VarId(9)); });
  breaks("P4", [](Plan& p) { std::swap(kernel(p, 0).mapping.space, kernel(p, 0).mapping.row); });
  breaks("P4", [](Plan& p) { kernel(p, 0).mapping.vector_width = 6; });
  breaks("P4", [](Plan& p) { shape<Rows>(p, 0).in_flight = 0; });
  breaks("P4", [](Plan& p) { shape<Rows>(p, 0).threads_per_row = 48; });
  breaks("P4", [](Plan& p) { shape<Rows>(p, 0).rows_per_block = 64; });
  breaks("P4", [](Plan& p) { kernel(p, 0).mapping.shape = Pointwise(); });
  breaks("P4", [](Plan& p) { kernel(p, 0).mapping.shape = Columns{.columns_per_block = 12}; });
  const auto wide_columns = [](Plan& p) {
    kernel(p, 0).mapping.vector_width = 16;
    kernel(p, 0).mapping.shape = Columns{.threads_per_row = 256, .columns_per_block = 64};
  };
  check_contains(report_after(wide_columns), "P4: kernel @softmax: states of 65536 bytes exceed");
  breaks("P4", [](Plan& p) { shape<Tiles>(p, 1).tile_var = {}; });
  breaks("P4", [](Plan& p) { shape<Tiles>(p, 1).tile_var = VarId(1); });
  breaks("P4", [](Plan& p) { kernel(p, 1).mapping.vector_tail = true; });
  breaks("P4", [](Plan& p) { kernel(p, 1).mapping.vector_width = 64; });
  breaks("P4", [](Plan& p) { shape<Tiles>(p, 1).block_threads = 48; });
  breaks("P4", [](Plan& p) { shape<Tiles>(p, 1).block_threads = 2048; });
  breaks("P4", [](Plan& p) { shape<Tiles>(p, 1).tile = 128; });
  breaks("P4", [](Plan& p) { kernel(p, 2).max_grouped = 0; });
  CHECK(report_after([](Plan& p) { kernel(p, 0).segments[0].loads_ahead = kernel(p, 1).segments[0].loads_ahead = 4; }) == "");
  breaks("P5", [](Plan& p) { kernel(p, 0).segments[0].loads_ahead = 5; });
  breaks("P5", [](Plan& p) { kernel(p, 0).segments[3].loads_ahead = 2; });
  breaks("P5", [](Plan& p) { kernel(p, 1).segments[0].loads_ahead = 3; });
  breaks("P5", [](Plan& p) { kernel(p, 2).segments[0].loads_ahead = 1; });
  breaks("P5", [](Plan& p) { kernel(p, 1).segments.push_back(kernel(p, 1).segments[0]); });
  breaks("P5", [](Plan& p) { kernel(p, 1).segments[0].kind = Segment::Kind::PerRow; });
  breaks("P5", [](Plan& p) { kernel(p, 0).segments[0].stmts.push_back(StmtId(99)); });
  breaks("P5", [](Plan& p) { kernel(p, 0).segments.pop_back(); });
  breaks("P5", [](Plan& p) { kernel(p, 0).segments[0].stmts.push_back(StmtId(3)); });
  breaks("P5", [](Plan& p) { std::swap(kernel(p, 0).segments[0], kernel(p, 0).segments[1]); });
  breaks("P5", [](Plan& p) { std::swap(kernel(p, 0).segments[2].stmts[0], kernel(p, 0).segments[2].stmts[1]); });
  breaks("P5", [](Plan& p) { kernel(p, 0).segments[3].stmts.push_back(StmtId(9)); });
  breaks("P5", [](Plan& p) { kernel(p, 0).segments[2].kind = Segment::Kind::PerRow; });
  breaks("P5", [](Plan& p) { kernel(p, 0).segments.push_back(kernel(p, 0).segments[3]); });
  breaks("P6", [](Plan& p) { kernel(p, 0).memory_spaces[StmtId(4)] = MemorySpace::Local; });
  breaks("P6", [](Plan& p) { kernel(p, 0).memory_spaces[StmtId(2)] = MemorySpace::Local; });
  breaks("P6", [](Plan& p) { kernel(p, 0).memory_spaces[StmtId(4)] = MemorySpace::Row; });
  breaks("P6", [](Plan& p) { shape<Rows>(p, 0).persistent = false; });
  breaks("P7", [](Plan& p) { kernel(p, 0).params[0].read = false; });
  breaks("P7", [](Plan& p) { kernel(p, 0).params[1].written = false; });
  breaks("P7", [](Plan& p) { kernel(p, 1).params[1].by_value = true; });
  breaks("P7", [](Plan& p) { kernel(p, 1).params[0].by_value = true; });
}

TEST_CASE("each invariant of a plan's memory has a counterexample", "[ir][plan]") {
  const size_t reuse = 6;
  breaks("P10", [](Plan& p) { p.steps.erase(p.steps.begin()); });
  breaks("P10", [](Plan& p) { insert_step(p, 0, p.steps[0]); });
  breaks("P10", [](Plan& p) { p.steps.push_back(Free{id_of(p, "e")}); });
  breaks("P10", [](Plan& p) { p.steps.push_back(Free{id_of(p, "y")}); });  // an output
  breaks("P10", [](Plan& p) { p.steps.push_back(Free{id_of(p, "t")}); });
  breaks("P10", [](Plan& p) { p.steps.push_back(Allocate{id_of(p, "t")}); });
  breaks("P10", [](Plan& p) { std::swap(p.steps[2], p.steps[3]); });
  breaks("P10", [](Plan& p) { insert_step(p, 3, p.steps[2]); });
  breaks("P10", [&](Plan& p) { insert_step(p, reuse, p.steps[reuse]); });
  breaks("P10", [&](Plan& p) { insert_step(p, reuse, Allocate{id_of(p, "h")}); });
  breaks("P10", [&](Plan& p) { std::get<Launch>(p.steps[reuse + 1]).args[0] = id_of(p, "g"); });
  breaks("P10", [](Plan& p) { p.steps.push_back(Free{id_of(p, "v")}); });
  breaks("P11", [](Plan& p) { buffer(p, "t").arena_offset = 97; });
  breaks("P11", [](Plan& p) { buffer(p, "t").arena_offset = -1; });
  breaks("P11", [](Plan& p) { p.arenas[0].device = {}; });
  breaks("P11", [](Plan& p) { buffer(p, "t").arena = 1; });
  breaks("P11", [](Plan& p) {
    buffer(p, "y").kind = Buffer::Kind::Arena;
    p.steps.erase(p.steps.begin());
  });
  breaks("P11", [](Plan& p) {  // softmax writes both
    buffer(p, "y").kind = Buffer::Kind::Arena;
    buffer(p, "y").bytes = 100;
    p.outputs.clear();
    p.steps.erase(p.steps.begin());
  });
  breaks("P11", [](Plan& p) { p.outputs[0].buffer = id_of(p, "v"); });
  breaks("P15", [](Plan& p) { p.inputs[4].donated = false; });
  breaks("P15", [](Plan& p) { buffer(p, "h").dtype = DType::I32; });
  breaks("P15", [](Plan& p) { buffer(p, "h").bytes = 8000; });
  breaks("P15", [](Plan& p) { buffer(p, "h").kind = Buffer::Kind::Arena; });
  breaks("P15", [&](Plan& p) { std::get<Reuse>(p.steps[reuse]).from = id_of(p, "t"); });
  breaks("P17", [](Plan& p) { buffer(p, "v").dtype = DType::I32; });
  breaks("P17", [](Plan& p) { buffer(p, "v").base_offset = -1; });
  breaks("P17", [](Plan& p) { buffer(p, "v").base_offset = 1; });
  breaks("P17", [](Plan& p) { buffer(p, "v").sizes[0] = 9; });
  breaks("P17", [](Plan& p) { buffer(p, "v").base = id_of(p, "e"); });
  breaks("P17", [](Plan& p) { buffer(p, "v").base = id_of(p, "v"); });
}

TEST_CASE("each invariant of a plan's steps and symbols has a counterexample", "[ir][plan]") {
  const sym::Expr q = sym::Expr::symbol("q");
  const size_t reuse = 6;
  breaks("P8", [](Plan& p) { launch(p, 1).kernel = KernelId(9); });
  breaks("P8", [](Plan& p) { launch(p, 1).args[0] = BufferId(99); });
  breaks("P8", [](Plan& p) { p.outputs[0].buffer = BufferId(); });
  breaks("P8", [](Plan& p) { p.inputs.pop_back(); });
  breaks("P8", [](Plan& p) { buffer(p, "x").kind = Buffer::Kind::Standalone; });
  breaks("P8", [](Plan& p) { buffer(p, "x").strides.clear(); });
  breaks("P8", [&](Plan& p) { std::get<Reuse>(p.steps[reuse]).from = BufferId(); });
  breaks("P8", [](Plan& p) { p.inputs[1].donated = true; });
  breaks("P8", [](Plan& p) { launch(p, 1).specializations[0].kernel = KernelId(99); });
  breaks("P9", [](Plan& p) { launch(p, 1).args.pop_back(); });
  breaks("P9", [](Plan& p) { launch(p, 1).symbol_args.clear(); });
  breaks("P9", [](Plan& p) { buffer(p, "x").dtype = DType::F16; });
  breaks("P9", [](Plan& p) { buffer(p, "x").device = {}; });
  breaks("P9", [](Plan& p) { launch(p, 1).args[0] = launch(p, 1).args[1]; });
  breaks("P9", [](Plan& p) { kernel(p, 2).params[1].by_value = false; });
  breaks("P9", [](Plan& p) { launch(p, 3).args[0] = id_of(p, "t"); });
  breaks("P12", [](Plan& p) { p.symbols.pop_back(); });
  breaks("P12", [](Plan& p) { p.symbols.push_back(p.symbols[0]); });
  breaks("P12", [](Plan& p) { p.symbols[0].input = 0; });
  breaks("P12", [](Plan& p) { p.symbols[1].dim = 4; });
  breaks("P12", [&](Plan& p) { launch(p, 1).grid_x = q; });
  breaks("P12", [&](Plan& p) { p.arenas[0].bytes = q; });
  breaks("P12", [](Plan& p) { launch(p, 1).specializations[0].grid_x = sym::Expr::symbol("q"); });
  breaks("P13", [](Plan& p) { call(p, 2).callee.clear(); });
  breaks("P13", [](Plan& p) { call(p, 2).args[0] = Arg(OperandRef{7}); });
  breaks("P13", [](Plan& p) { call(p, 2).alias_of = {}; });
  breaks("P13", [](Plan& p) { call(p, 2).alias_of = {1}; });
  breaks("P13", [](Plan& p) { call(p, 4).mutated_operands = {3}; });
  breaks("P13", [](Plan& p) { call(p, 2).planned_out = true; });
  breaks("P16", [](Plan& p) { kernel(p, 2).max_grouped = 1; });
  breaks("P16", [](Plan& p) { kernel(p, 2).max_grouped = 400; });
  breaks("P16", [](Plan& p) { kernel(p, 1).max_grouped = 4; });
  breaks("P16", [](Plan& p) { grouped_launch(p, 9).launches.clear(); });
  breaks("P16", [](Plan& p) { grouped_launch(p, 9).launches[1].kernel = KernelId(1); });
  breaks("P16", [](Plan& p) { grouped_launch(p, 9).launches[1].grid_y = 2; });
  breaks("P16", [](Plan& p) { grouped_launch(p, 9).launches[1].args = grouped_launch(p, 9).launches[0].args; });
  breaks("P16", [](Plan& p) { grouped_launch(p, 9).launches[1].args[0] = id_of(p, "v"); });
  breaks("P18", [](Plan& p) { launch(p, 1).specializations[0].kernel = KernelId(1); });
  breaks("P18", [](Plan& p) { launch(p, 1).specializations[0].when.set_range("q", {1, 2}); });
  breaks("P18", [](Plan& p) { kernel(p, 0).assumptions.set_divisor("s0", 32); });
  breaks("P18", [](Plan& p) { kernel(p, 0).assumptions.set_range("s0", {1, 99}); });
  breaks("P18", [](Plan& p) { grouped_launch(p, 9).launches[0].specializations.push_back({KernelId(2), 1, {}}); });
  breaks("P19", [](Plan& p) { buffer(p, "t").device = {DeviceType::Cuda, 1}; });
  breaks("P19", [](Plan& p) { kernel(p, 2).device = {DeviceType::Cuda, 1}; });
  breaks("P19", [](Plan& p) { p.arenas[0].device = {DeviceType::Cuda, 1}; });
  breaks("P19", [](Plan& p) { p.eager_peaks[{DeviceType::Cuda, 1}] = 0; });
  breaks("P19", [](Plan& p) { p.devices.push_back(p.devices[0]); });
  breaks("P19", [](Plan& p) { kernel(p, 0).mapping.shape = CpuRows(); });
}

TEST_CASE("updates need memory that is read, and turns that one thread takes", "[ir][plan]") {
  const auto report_after = [](auto edit) {
    Plan p = parse(R"(plan @f for cpu (@x: f32[8] bytes (32), @s: f32[6] bytes (24), @k: i64[6] bytes (48)) {
      kernel @update on cpu (f32 read, i64 read, f32 read written) symbols [] {
        index_limit (8) bytes_read 0 bytes_written 0
        region @r over i < 6 {
          %0 = load @0[i] at (i) strided
          %1 = load @1[i] at (i) strided
          update<add> @2[%1] = %0 conflict_order (i) at (%1) strided
        }
        mapping cpu_pointwise space [i] sequential
        row_loop [%0, %1, %2]
      }
      launch @update(@s, @k, @x) symbols [] grid [1, 1]
      return
    })");
    edit(p);
    std::string all;
    for (const std::string& message : verify(p)) all += message + "\n";
    return all;
  };
  CHECK(report_after([](Plan&) {}) == "");
  check_contains(report_after([](Plan& p) { kernel(p, 0).params[2].read = false; }), "P7:");
  check_contains(report_after([](Plan& p) { shape<CpuPointwise>(p, 0).sequential = false; }), "P14:");
}

TEST_CASE("persistent rows of the CPU fit on the stack", "[ir][plan]") {
  const auto report_of = [](const std::string& length) {
    std::string text = R"(plan @f for cpu (@x: f32[4, LENGTH] bytes (16*LENGTH), sym n) where 1 <= n <= 100 {
      symbol n = input 1
      buffer @y: f32[4, LENGTH] bytes (16*LENGTH) standalone
      kernel @shift on cpu (f32 read, f32 written) symbols [n] where 1 <= n <= 100 {
        index_limit (4*LENGTH) bytes_read 0 bytes_written 0
        region @r over i < 4, j < LENGTH {
          %0 = load @0[LENGTH*i + j] at (LENGTH*i + j) vector memory_space persistent
          %1 = reduce<max>(%0) over j memory_space row
          %2 = sub(%0, %1)
          store @1[LENGTH*i + j] = %2 at (LENGTH*i + j) vector
        }
        mapping cpu_rows space [i] row [j] vector_width 8 vector_tail sets 4 persistent
        row_loop [%0, %1]
        row_loop [%2, %3]
      }
      allocate @y
      launch @shift(@x, @y) symbols [n] grid [4, 1]
      return @y
    })";
    for (size_t at = text.find("LENGTH"); at != text.npos; at = text.find("LENGTH")) text.replace(at, 6, length);
    try {
      parse(text);
      return std::string();
    } catch (const UserError& error) {
      return std::string(error.what());
    }
  };
  CHECK(report_of("131072") == "");
  check_contains(report_of("131073"), "P4: kernel @shift: persistent values of 524292 bytes exceed");
  check_contains(report_of("n"), "P4: kernel @shift: persistent rows of n elements");
}

TEST_CASE("what is summed in blocks is a sum of floats in a loop", "[ir][plan]") {
  const auto report_of = [](const std::string& shape, const std::string& reduction, StmtId listed) {
    const std::string text = R"(plan @f for cuda on cuda:0 (@x: f32[4, 1000] bytes (16000)) {
      buffer @y: f32[4] bytes (16) standalone
      kernel @sum on cuda:0 (f32 read, f32 written) symbols [] {
        index_limit (4000) bytes_read 0 bytes_written 0
        region @r over i < 4, j < 1000 {
          %0 = load @0[1000*i + j] at (1000*i + j) vector
          %1 = reduce<)" + reduction +
                             R"(>(%0) over j memory_space row
          store @1[i] = %1 at (i) broadcast
        }
        mapping )" + shape + R"(
        row_loop [%0, %1]
        per_row [%2]
      }
      allocate @y
      launch @sum(@x, @y) symbols [] grid [4, 1]
      return @y
    })";
    Plan p = parse(text);
    kernel(p, 0).in_blocks = {listed};
    std::string all;
    for (const std::string& message : verify(p)) all += message + "\n";
    if (all.empty()) CHECK(print(parse(print(p))) == print(p));
    return all;
  };
  const std::string looped = "rows space [i] row [j] threads_per_row 8", persistent = looped + " items_per_thread 125 persistent";
  CHECK(report_of(looped, "sum", StmtId(1)) == "");
  check_contains(report_of(looped, "sum", StmtId(0)), "P6: kernel @sum: %0 is in blocks");
  check_contains(report_of(looped, "sum", StmtId(9)), "P6: kernel @sum: in_blocks lists");
  check_contains(report_of(looped, "max", StmtId(1)), "P6: kernel @sum: %1 is in blocks");
  check_contains(report_of(persistent, "sum", StmtId(1)), "P6: kernel @sum: %1 is in blocks");
}

TEST_CASE("arena buffers may share bytes when they do not live together", "[ir][plan]") {
  const char* text = R"(plan @f for cpu (@x: f32[4] bytes (16)) {
    arena (16)
    buffer @a: f32[4] bytes (16) arena at (0)
    buffer @b: f32[4] bytes (16) extern_owned
    buffer @c: f32[4] bytes (16) arena at (0)
    buffer @y: f32[4] bytes (16) extern_owned
    @a = extern "aten::mm"($0) with (@x) planned_out
    @b = extern "aten::mm"($0) with (@a)
    @c = extern "aten::mm"($0) with (@b) planned_out
    @y = extern "aten::mm"($0) with (@c)
    free @b
    return @y
  })";
  CHECK(verify(parse(text)).empty());
}

TEST_CASE("verify_or_throw of a plan shows the text", "[ir][plan]") {
  Plan p = parse(every_plan_kind);
  verify_or_throw(p, "nothing");
  launch(p, 1).args.pop_back();
  try {
    verify_or_throw(p, "memory planning");
    FAIL("accepted");
  } catch (const InternalError& error) {
    check_contains(error.what(), "after memory planning");
    check_contains(error.what(), "plan @f");
  }
}

TEST_CASE("products have counterexamples of their own", "[ir][plan]") {
  CHECK(report_after([](Plan&) {}, matmul_plan) == "");
  auto breaks = [](const char* invariant, const char* words, auto edit) {
    INFO(invariant << " " << words);
    const std::string report = report_after(edit, matmul_plan);
    check_contains(report, std::string(invariant) + ":");
    check_contains(report, words);
  };
  breaks("P4", "over the variable of its row", [](Plan& p) { stmt(p, 0, 4).as<loops::Apply>()->op = ScalarOp::Add; });
  breaks("P4", "over the variable of its row", [](Plan& p) { stmt(p, 0, 5).as<loops::Reduce>()->reduction = Reduction::Max; });
  breaks("P4", "one varies over m, the other over n", [](Plan& p) {
    const sym::Expr at = sym::Expr::symbol("i0") * 64 + sym::Expr::symbol("r0");
    stmt(p, 0, 2).as<loops::Load>()->coords = {at};
    kernel(p, 0).offsets[StmtId(2)] = at;
    for (size_t s : {2, 3, 4}) stmt(p, 0, s).vars = stmt(p, 0, 0).vars;
    stmt(p, 0, 5).vars = loops::VarSet::of(VarId(0));
  });
  breaks("P4", "tile_m is 96, expected a power of two", [](Plan& p) { shape<Matmul>(p, 0).tile_m = 96; });
  breaks("P4", "stages is 1, expected 2 to", [](Plan& p) { shape<Matmul>(p, 0).stages = 1; });
  breaks("P4", "a block of 2048 threads", [](Plan& p) { shape<Matmul>(p, 0).warps_m = 32; });
  breaks("P4", "cannot be dealt", [](Plan& p) { shape<Matmul>(p, 0).tile_k = 16; });
  breaks("P4", "cannot be dealt", [](Plan& p) { shape<Matmul>(p, 0).tile_n = 16; });
  breaks("P4", "groups of four warps", [](Plan& p) { shape<Matmul>(p, 0).warpgroups = true; });
  breaks("P5", "a row loop and a per-row", [](Plan& p) { kernel(p, 0).segments[1].kind = Segment::Kind::RowLoop; });
}
