#include <algorithm>

#include "ir/plan/columns.h"
#include "ir/plan/text.h"
#include "ir/plan/tile_layout.h"
#include "ir/plan/verify.h"
#include "ir/text_parts.h"
#include "unit/catch.h"
#include "unit/schedule/plan_programs.h"

namespace cxxinductor::schedule::test {
namespace {

using plan::AccessKind;
using plan::Kernel;
using plan::MemorySpace;
using plan::Segment;

// Specializations apart.
const Kernel& only_kernel(const plan::Plan& plan) {
  const std::vector<bool> own = plan::base_kernels(plan);
  REQUIRE(std::count(own.begin(), own.end(), true) == 1);
  return plan.kernels[plan::KernelId(0)];
}

const plan::Launch& first_launch(const plan::Plan& plan) {
  for (const plan::Step& step : plan.steps)
    if (const auto* launch = std::get_if<plan::Launch>(&step)) return *launch;
  FAIL("no launch");
  throw 0;
}

int count_memory_spaces(const Kernel& kernel, MemorySpace memory_space) {
  return static_cast<int>(std::count(kernel.memory_spaces.begin(), kernel.memory_spaces.end(), memory_space));
}

int count_row_loops(const Kernel& kernel) {
  return static_cast<int>(std::count_if(kernel.segments.begin(), kernel.segments.end(), [](const Segment& s) { return s.kind == Segment::Kind::RowLoop; }));
}

int count_access(const Kernel& kernel, AccessKind kind) {
  int count = 0;
  for (size_t s = 0; s < kernel.region.body.size(); ++s) {
    const loops::Stmt& stmt = kernel.region.body[loops::StmtId(s)];
    if (stmt.as<loops::Load>() || stmt.as<loops::Store>()) count += kernel.access[loops::StmtId(s)] == kind;
  }
  return count;
}

TEST_CASE("pointwise with a broadcast operand keeps two variables and 16-byte vectors") {
  plan::Plan plan = plan_for(gelu_bias, gpu());
  const Kernel& kernel = only_kernel(plan);
  const auto* shape = kernel.mapping.as<plan::Pointwise>();
  REQUIRE(shape);
  CHECK(kernel.region.vars.size() == 2);
  CHECK(kernel.mapping.vector_width == 8);
  CHECK_FALSE(kernel.mapping.vector_tail);
  CHECK(count_access(kernel, AccessKind::Vector) == 3);
  CHECK(kernel.always_index32);
  CHECK_FALSE(kernel.order_changed);
  CHECK(first_launch(plan).grid_x == sym::Expr(512 * 1024 / 8 / (shape->block_threads * shape->unroll)));
}

TEST_CASE("contiguous operands of a dynamic size become one variable with a tail") {
  plan::Plan plan = plan_for(flat_add, gpu());
  const Kernel& kernel = only_kernel(plan);
  REQUIRE(kernel.region.vars.size() == 1);
  CHECK(kernel.region.vars[loops::VarId(0)].name == "i0");
  CHECK(kernel.region.vars[loops::VarId(0)].extent == sym::Expr(48) * sym::Expr::symbol("s0"));
  CHECK(kernel.mapping.vector_width == 4);
  CHECK_FALSE(kernel.mapping.vector_tail);
  CHECK(kernel.symbols == std::vector<std::string>{"s0"});
  REQUIRE(plan.symbols.size() == 1);
  CHECK(plan.symbols[0].input == 0);
  CHECK(plan.symbols[0].dim == 0);
}

TEST_CASE("softmax keeps its row in registers, as few bytes as possible") {
  const Kernel kernel = only_kernel(plan_for(softmax, gpu()));
  const auto* shape = kernel.mapping.as<plan::Rows>();
  REQUIRE(shape);
  CHECK(shape->persistent);
  CHECK(kernel.mapping.vector_width == 8);
  CHECK(shape->threads_per_row == 32);
  CHECK(shape->rows_per_block == 4);
  CHECK(shape->items_per_thread == 4);
  CHECK(count_row_loops(kernel) == 3);
  // The bf16 load for the sum's row loop, the exponential for the last one; the cast is repeated.
  CHECK(count_memory_spaces(kernel, MemorySpace::Persistent) == 2);
  CHECK(kernel.memory_spaces[loops::StmtId(0)] == MemorySpace::Persistent);
  CHECK(kernel.memory_spaces[loops::StmtId(1)] == MemorySpace::Local);
  CHECK(kernel.order_changed);
}

TEST_CASE("a row of dynamic length is swept again") {
  const Kernel kernel = only_kernel(plan_for(softmax_dynamic_row, gpu()));
  CHECK(kernel.mapping.as<plan::Rows>());
  CHECK_FALSE(is_persistent(kernel.mapping));
  CHECK(count_memory_spaces(kernel, MemorySpace::Persistent) == 0);
  CHECK(kernel.mapping.vector_width == 1);
  // Every row loop lists the load; the stores are in the last one alone.
  for (const Segment& segment : kernel.segments)
    if (segment.kind == Segment::Kind::RowLoop) CHECK(std::count(segment.stmts.begin(), segment.stmts.end(), loops::StmtId(0)) == 1);
}

TEST_CASE("a row of dynamic length has kernels for multiples and for lengths that registers hold") {
  const plan::Plan plan = plan_for(softmax_dynamic_row, gpu());
  std::vector<std::string> found;
  for (const plan::Specialization& special : first_launch(plan).specializations) {
    const plan::Mapping& mapping = plan.kernels[special.kernel].mapping;
    found.push_back(fmt::format("{} width {}{}", print_where(special.when), mapping.vector_width, is_persistent(mapping) ? " persistent" : ""));
  }
  CHECK(found == std::vector<std::string>{" where 1 <= s1 <= 64, 4 | s1 width 4 persistent", " where 1 <= s1 <= 64 width 1 persistent",
                                          " where 65 <= s1 <= 256, 4 | s1 width 4 persistent", " where 65 <= s1 <= 256 width 1 persistent",
                                          " where 257 <= s1 <= 1024, 4 | s1 width 4 persistent", " where 257 <= s1 <= 1024 width 1 persistent",
                                          " where 1025 <= s1 <= 4096, 4 | s1 width 4 persistent", " where 1025 <= s1 <= 4096 width 1 persistent"});
  // Nothing to gain: the number of elements is a multiple of a vector's already.
  CHECK(first_launch(plan_for(flat_add, gpu())).specializations.empty());
  CHECK(first_launch(plan_for(softmax_dynamic_row, cpu())).specializations.empty());
}

TEST_CASE("layer norm keeps the rounded sum and loads its weights in the last row loop alone") {
  const Kernel kernel = only_kernel(plan_for(layer_norm, gpu()));
  CHECK(is_persistent(kernel.mapping));
  CHECK(count_row_loops(kernel) == 2);
  REQUIRE(count_memory_spaces(kernel, MemorySpace::Persistent) == 1);
  for (size_t s = 0; s < kernel.memory_spaces.size(); ++s)
    if (kernel.memory_spaces[loops::StmtId(s)] == MemorySpace::Persistent) CHECK(kernel.region.body[loops::StmtId(s)].dtype == DType::BF16);
  const Segment& first = *std::find_if(kernel.segments.begin(), kernel.segments.end(), [](const Segment& s) { return s.kind == Segment::Kind::RowLoop; });
  int loads = 0;
  for (loops::StmtId id : first.stmts) loads += kernel.region.body[id].as<loops::Load>() != nullptr;
  CHECK(loads == 2);
}

TEST_CASE("on a CPU only what is expensive to compute is kept for the row") {
  const Kernel kernel = only_kernel(plan_for(softmax, cpu()));
  CHECK(kernel.mapping.as<plan::CpuRows>());
  CHECK(is_persistent(kernel.mapping));
  CHECK(kernel.mapping.vector_width == 8);
  REQUIRE(count_memory_spaces(kernel, MemorySpace::Persistent) == 1);
  for (size_t s = 0; s < kernel.memory_spaces.size(); ++s)
    if (kernel.memory_spaces[loops::StmtId(s)] == MemorySpace::Persistent) CHECK(kernel.region.body[loops::StmtId(s)].as<loops::Apply>());
  CHECK(first_launch(plan_for(softmax, cpu())).grid_x == sym::Expr::symbol("s0"));
}

TEST_CASE("a sum across rows is a column kernel") {
  for (const Target& target : {gpu(), cpu()}) {
    const plan::Plan plan = plan_for(column_sum, target);
    const Kernel& kernel = plan.kernels[plan::KernelId(0)];
    CHECK(is_columns(kernel.mapping));
    CHECK(is_simt(kernel.mapping) == (target.device == gpu().device));
    CHECK(count_access(kernel, AccessKind::Vector) >= 1);
  }
}

TEST_CASE("an access whose mask varies within a group is no vector") {
  const Kernel kernel = only_kernel(plan_for(padded_cat, gpu()));
  CHECK(count_access(kernel, AccessKind::Strided) == 2);
}

TEST_CASE("channels-last operands follow the order of memory") {
  const Kernel kernel = only_kernel(plan_for(channels_last, gpu()));
  REQUIRE(kernel.region.vars.size() == 2);
  CHECK(kernel.region.vars[loops::VarId(0)].extent == sym::Expr(16 * 32 * 32));
  CHECK(kernel.mapping.vector_width == 8);
}

TEST_CASE("a transposed load goes through tiles") {
  for (const Target& target : {gpu(), cpu()}) {
    const Kernel kernel = only_kernel(plan_for(transpose_add, target));
    CHECK(tile_variable(kernel.mapping) == loops::VarId(0));
    CHECK(is_simt(kernel.mapping) == (target.device == gpu().device));
    CHECK(count_access(kernel, AccessKind::Staged) == 1);
    CHECK(tile_size(kernel.mapping) % kernel.mapping.vector_width == 0);
  }
  const Kernel kernel = only_kernel(plan_for(transpose_add, gpu()));
  CHECK(kernel.mapping.vector_width == 2);
  CHECK(tile_size(kernel.mapping) == 32);
  CHECK(block_threads(kernel.mapping) == 256);
  CHECK(first_launch(plan_for(transpose_add, gpu())).grid_x == sym::Expr(5 * 6));
}

TEST_CASE("tiles are large where every multiprocessor still has some") {
  const Target small = cuda_target("sm_90a", 8);
  CHECK(tile_size(only_kernel(plan_for(transpose_add, small)).mapping) == 32);  // 7 of 64 x 64
  const Kernel narrow = only_kernel(plan_for(transpose_narrow, small));
  CHECK(tile_size(narrow.mapping) == 64);
  CHECK(block_threads(narrow.mapping) == 256);
  CHECK(first_launch(plan_for(transpose_narrow, small)).grid_x == sym::Expr(2 * 3 * 4));
}

TEST_CASE("groups of a shared tile are whole along both of its variables") {
  const Kernel narrow = only_kernel(plan_for(transpose_narrow, gpu()));
  CHECK(is_tiles(narrow.mapping));
  CHECK(narrow.mapping.vector_width == 4);
  CHECK(tile_size(narrow.mapping) == 32);
  CHECK(block_threads(narrow.mapping) == 64);
  CHECK(count_access(narrow, AccessKind::Staged) == 2);
  for (const plan::Param& param : narrow.params) CHECK(param.aligned);
  std::string odd = transpose_narrow;
  for (size_t at = odd.find("136"); at != std::string::npos; at = odd.find("136")) odd.replace(at, 3, "135");
  CHECK(only_kernel(plan_for(odd, gpu())).mapping.vector_width == 1);
}

TEST_CASE("transposed loads go through tiles in rows of odd length too") {
  for (const char* dtype : {"bf16", "u8"}) {
    const std::string text = fmt::format(R"(program @p on DEVICE (@x: {0}[1001, 2001]) {{
      output @z: {0}[2001, 1001]
      region @n over i < 2001, j < 1001 {{
        %0 = load @x[j, i]
        store @z[i, j] = %0
      }}
      return @z
    }})",
                                         dtype);
    const Kernel kernel = only_kernel(plan_for(text, gpu()));
    INFO(dtype);
    CHECK(is_tiles(kernel.mapping));
    CHECK(kernel.mapping.space.size() == 2);
    CHECK(kernel.mapping.vector_width == 1);
    CHECK(tile_size(kernel.mapping) == 64);
  }
}

TEST_CASE("tiles hold as many operands as shared memory does") {
  std::string inputs, body = "%s0 = load @x0[j, i]\n";
  for (int k = 0; k < 7; ++k) inputs += fmt::format("{}@x{}: f64[100, 200]", k ? ", " : "", k);
  for (int k = 1; k < 7; ++k) body += fmt::format("%l{0} = load @x{0}[j, i]\n%s{0} = add(%s{1}, %l{0})\n", k, k - 1);
  const std::string text = fmt::format(
      "program @p on DEVICE ({}) {{\noutput @z: f64[200, 100]\nregion @n over i < 200, j < 100 {{\n{}store @z[i, j] = "
      "%s6\n}}\nreturn @z\n}}",
      inputs, body);
  const Kernel kernel = only_kernel(plan_for(text, gpu()));
  CHECK(is_tiles(kernel.mapping));
  CHECK(count_access(kernel, AccessKind::Staged) == 5);  // of 32 x 33 x 8 bytes in 48 KB
  CHECK(count_access(kernel, AccessKind::Strided) == 2);
}

TEST_CASE("arg-max keeps the order of its positions") {
  const Kernel kernel = only_kernel(plan_for(arg_max, gpu()));
  REQUIRE(kernel.mapping.row.size() == 2);
  CHECK(kernel.region.vars[kernel.mapping.row[0]].extent == sym::Expr(6));
  CHECK(kernel.region.vars[kernel.mapping.row[1]].extent == sym::Expr(7));
}

TEST_CASE("gathered rows are read in vectors") {
  const Kernel kernel = only_kernel(plan_for(embedding, gpu()));
  CHECK(kernel.mapping.vector_width == 4);
  CHECK(count_access(kernel, AccessKind::Vector) == 2);
  CHECK(count_access(kernel, AccessKind::Broadcast) == 1);
}

TEST_CASE("a short sum across long rows needs no meeting of threads") {
  const Kernel kernel = only_kernel(plan_for(R"(
program @short on DEVICE (@x: f32[4, 65536]) {
  output @y: f32[65536]
  region @n0 over j < 65536, k < 4 {
    %0 = load @x[k, j]
    %1 = reduce<sum>(%0) over k
    store @y[j] = %1
  }
  return @y
})",
                                             gpu()));
  const auto* shape = kernel.mapping.as<plan::Columns>();
  REQUIRE(shape);
  CHECK(shape->threads_per_row == 1);
  CHECK(block_threads(kernel.mapping) >= 128);
}

TEST_CASE("states of columns fit in shared memory") {
  const plan::Plan plan = plan_for(R"(
program @variances on DEVICE (@x: bf16[8192, 65536]) {
  output @y: f32[65536]
  region @n0 over j < 65536, k < 8192 {
    %0 = load @x[k, j]
    %1 = cast<f64>(%0)
    %2 = reduce<welford>(%1) over k
    %3 = project<1>(%2)
    %4 = cast<f32>(%3)
    store @y[j] = %4
  }
  return @y
})",
                                   gpu());
  for (const std::string& message : plan::verify(plan)) FAIL_CHECK(message);
  const Kernel kernel = only_kernel(plan);
  REQUIRE(kernel.mapping.as<plan::Columns>());
  CHECK(kernel.mapping.vector_width == 8);
  CHECK(block_threads(kernel.mapping) == 256);  // 512 threads would need 96 KiB
  CHECK(plan::columns_shared_bytes(kernel.region, kernel.mapping) == plan::static_shared_bytes);
}

TEST_CASE("what is updated in place is stored after the last row loop that loads it") {
  const Kernel kernel = only_kernel(plan_for(R"(
program @in_place on DEVICE (@x: f32[64, s0]) where 1 <= s0 <= 100000 {
  output @y: f32[64]
  region @n0 over i < 64, j < s0 {
    %0 = load @x[i, j]
    %1 = add(%0, %0)
    store @x[i, j] = %1
    %3 = reduce<max>(%1) over j
    %4 = sub(%1, %3)
    %5 = reduce<sum>(%4) over j
    store @y[i] = %5
  }
  return @x, @y
})",
                                             gpu()));
  REQUIRE(count_row_loops(kernel) == 2);
  loops::StmtId load(0), store(2);
  size_t last_load = 0, stored = 0;
  for (size_t g = 0; g < kernel.segments.size(); ++g)
    for (loops::StmtId id : kernel.segments[g].stmts) {
      if (id == load) last_load = g;
      if (id == store) stored = g;
    }
  CHECK(last_load == 1);
  CHECK(stored == 1);
}

TEST_CASE("rows too long for their exponentials stay persistent without them") {
  const Kernel kernel = only_kernel(plan_for(R"(
program @long_softmax on DEVICE (@x: bf16[512, 65536]) {
  output @y: bf16[512, 65536]
  region @n0 over i < 512, j < 65536 {
    %0 = load @x[i, j]
    %1 = cast<f32>(%0)
    %2 = reduce<max>(%1) over j
    %3 = sub(%1, %2)
    %4 = exp(%3)
    %5 = reduce<sum>(%4) over j
    %6 = div(%4, %5)
    %7 = cast<bf16>(%6)
    store @y[i, j] = %7
  }
  return @y
})",
                                             gpu()));
  CHECK(is_persistent(kernel.mapping));
  CHECK(count_memory_spaces(kernel, MemorySpace::Persistent) == 1);
  CHECK(kernel.memory_spaces[loops::StmtId(0)] == MemorySpace::Persistent);
}

TEST_CASE("a reduction over an expanded operand is sound") {
  CHECK(plan::verify(plan_for(R"(
program @expanded on DEVICE (@x: f32[8, 16] strides [1, 0]) {
  output @y: f32[8]
  region @n0 over i < 8, j < 16 {
    %0 = load @x[i, j]
    %1 = reduce<sum>(%0) over j
    store @y[i] = %1
  }
  return @y
})",
                              gpu()))
            .empty());
}

TEST_CASE("plans are sound, print the same every time and read back") {
  for (const Target& target : {gpu(), cpu()})
    for (const char* text : all_programs) {
      plan::Plan plan = plan_for(text, target);
      INFO(target.name << " " << plan.name);
      std::vector<std::string> broken = plan::verify(plan);
      INFO((broken.empty() ? "" : broken.front()));
      CHECK(broken.empty());
      std::string printed = plan::print(plan);
      CHECK(plan::print(plan_for(text, target)) == printed);
      CHECK(plan::print(plan::parse(printed)) == printed);
    }
}

TEST_CASE("equal regions are one kernel") {
  for (const Target& target : {gpu(), cpu()}) {
    const plan::Plan plan = plan_for(two_blocks, target);
    CHECK(plan.kernels.size() == 3);  // the first product leaves the caller's x alone, the second is made in place
    CHECK(std::count_if(plan.steps.begin(), plan.steps.end(), [](const plan::Step& step) { return std::holds_alternative<plan::Launch>(step); }) == 4);
  }
}

}  // namespace
}  // namespace cxxinductor::schedule::test
