// The text that the CPU emitter writes: what must be in it, what must not, and that it depends on its input alone.
#include <algorithm>
#include <cmath>

#include "codegen/cpu/emit.h"
#include "codegen/cpu/spelling.h"
#include "ir/loops/loops.h"
#include "support/error.h"
#include "unit/catch.h"

using namespace cxxinductor;
using namespace cxxinductor::codegen;

namespace {

// y[i] = exp(x[i]) over n elements, with an origin.
plan::Kernel exp_kernel(DType dtype, OriginTable& origins, Origin origin) {
  plan::Kernel kernel;
  kernel.name = "k0_exp";
  kernel.symbols = {"s0"};
  loops::Program program;
  loops::RegionBuilder builder(kernel.region);
  builder.set_origin(origins.push_back(std::move(origin)));
  const loops::VarId i = builder.var("i0", sym::Expr::symbol("s0"));
  const auto buffer = [&](const char* name) {
    loops::Buffer b;
    b.name = name;
    b.dtype = dtype;
    b.sizes = {sym::Expr::symbol("s0")};
    b.strides = {1};
    kernel.params.push_back({dtype, true, true});
    return program.buffers.push_back(b);
  };
  const loops::StmtId x = builder.load(program, buffer("x"), {sym::Expr::symbol("i0")});
  const loops::StmtId value = is_opaque(dtype) ? x : builder.apply(ScalarOp::Exp, {x});
  builder.store(program, buffer("y"), {sym::Expr::symbol("i0")}, value);
  const size_t count = kernel.region.body.size();
  kernel.offsets = IdVector<plan::StmtId, sym::Expr>(count, sym::Expr::symbol("i0"));
  kernel.access = IdVector<plan::StmtId, plan::AccessKind>(count, plan::AccessKind::Vector);
  kernel.memory_spaces = IdVector<plan::StmtId, plan::MemorySpace>(count, plan::MemorySpace::Local);
  plan::Segment segment;
  for (size_t s = 0; s < count; ++s) segment.stmts.emplace_back(s);
  kernel.segments = {segment};
  kernel.mapping.space = {i};
  kernel.mapping.vector_width = 8;
  kernel.mapping.shape = plan::CpuPointwise{.chunk = 1024};
  return kernel;
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("a unit needs no headers and is the same text every time", "[codegen][cpu]") {
  OriginTable origins;
  const plan::Kernel kernel = exp_kernel(DType::F32, origins, {"model.py", 12, "block.0", "aten.exp.default"});
  const Target target = cpu_target("x86-64-v3", 4);
  const std::string text = emit_cpu({&kernel}, target, origins);
  CHECK(text.find("#include") == std::string::npos);
  CHECK(text == emit_cpu({&kernel}, target, origins));
  CHECK_THAT(text, mentions("#line 12 \"model.py\"") && mentions("// aten.exp.default block.0"));
  CHECK_THAT(text,
             mentions("extern \"C\" __attribute__((visibility(\"default\"))) void k0_exp(") && mentions("cxxi::call_math<cxxi_slot_exp_u10_f32, float, L>"));
  // One body serves the vector loop and the tail.
  CHECK(count_of(text, "const auto v1 = ") == 1);
}

TEST_CASE("the table of functions names Sleef's for the target's width, in the order of the slots", "[codegen][cpu]") {
  OriginTable origins;
  const plan::Kernel single = exp_kernel(DType::F32, origins, {}), twice = exp_kernel(DType::F64, origins, {});
  const std::vector<std::string> wide = cpu_math_symbols({&single, &twice}, cpu_target("x86-64-v4", 1));
  const std::vector<std::string> narrow = cpu_math_symbols({&twice, &single}, cpu_target("x86-64-v3", 1));
  REQUIRE(wide.size() == narrow.size());
  const std::string text = emit_cpu({&twice, &single}, cpu_target("x86-64-v3", 1), origins);
  size_t at = text.find("enum cxxi_slot {");
  for (size_t i = 0; i < narrow.size(); ++i) {
    const bool is_double = narrow[i].find("d4") != std::string::npos;
    CHECK(wide[i].find(is_double ? "d8" : "f16") != std::string::npos);
    at = text.find(is_double ? "_f64," : "_f32,", at + 1);
    REQUIRE(at != std::string::npos);
  }
  CHECK(std::find(narrow.begin(), narrow.end(), "Sleef_expf8_u10") != narrow.end());
  CHECK(std::find(wide.begin(), wide.end(), "Sleef_expd8_u10") != wide.end());
}

TEST_CASE("text from the user's model cannot leave its comment or its #line", "[codegen][cpu]") {
  OriginTable origins;
  const plan::Kernel kernel = exp_kernel(DType::F32, origins, {"a\"b\\c\nint injected;", 3, "x\n#define y\\", "*/ int other; \r\n int more;\\"});
  const std::string text = emit_cpu({&kernel}, cpu_target("x86-64-v3", 4), origins);
  CHECK(text.find("\nint injected") == std::string::npos);
  CHECK(text.find("\n#define y") == std::string::npos);
  CHECK_THAT(text, mentions("#line 3 \"a b c int injected;\""));
  size_t at = text.find("int more;");
  REQUIRE(at != std::string::npos);
  const std::string line = text.substr(text.rfind('\n', at) + 1, text.find('\n', at) - text.rfind('\n', at) - 1);
  CHECK(line.find("//") != std::string::npos);
  CHECK(line.back() != '\\');
}

TEST_CASE("literals are exact to the bit", "[codegen][cpu]") {
  CHECK(cpu_literal(Scalar::from_real(DType::F32, 0.1)) == "0x1.99999ap-4f");
  CHECK(cpu_literal(Scalar::from_real(DType::F64, 0.1)) == "0x1.999999999999ap-4");
  CHECK(cpu_literal(Scalar::from_real(DType::F32, -0.0)) == "-0x0p+0f");
  CHECK(cpu_literal(Scalar::from_real(DType::F32, -INFINITY)) == "-__builtin_inff()");
  CHECK(cpu_literal(Scalar::from_real(DType::F64, NAN)) == "__builtin_nan(\"\")");
  CHECK(cpu_literal(Scalar::from_real(DType::BF16, 1.5)) == "cxxi::cast<cxxi::bf16, cxxi::f32>(0x1.8p+0f)");
  CHECK(cpu_literal(Scalar::from_integer(DType::I64, INT64_MIN)) == "(-9223372036854775807LL - 1)");
  CHECK(cpu_literal(Scalar::from_integer(DType::I8, -7)) == "static_cast<signed char>(-7LL)");
  CHECK(cpu_literal(Scalar::from_integer(DType::U64, -1)) == "18446744073709551615ULL");
  CHECK(cpu_literal(Scalar::from_integer(DType::Bool, 1)) == "true");
}

TEST_CASE("opaque dtypes are unsupported, the Matmul mapping is not the CPU's", "[codegen][cpu]") {
  OriginTable origins;
  const plan::Kernel opaque = exp_kernel(DType::C64, origins, {});
  CHECK_THROWS_AS(emit_cpu({&opaque}, cpu_target("x86-64-v3", 4), origins), Unsupported);
  plan::Kernel matmul = exp_kernel(DType::F32, origins, {});
  matmul.mapping.shape = plan::Matmul();
  CHECK_THROWS_AS(emit_cpu({&matmul}, cpu_target("x86-64-v3", 4), origins), InternalError);
}
