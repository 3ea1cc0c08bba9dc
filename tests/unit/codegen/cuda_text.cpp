// Spellings of the CUDA emitter, and what its text promises to readers and caches.
#include <cmath>
#include <limits>

#include "codegen/cuda/emit.h"
#include "codegen/cuda/spelling.h"
#include "codegen/templates.h"
#include "ir/plan/launch_shape.h"
#include "ir/plan/text.h"
#include "support/error.h"
#include "unit/catch.h"
#include "unit/ir/plan/samples.h"

using namespace cxxinductor;

namespace {

// The kernel's own text, without the templates.
std::string text_of(const plan::Kernel& kernel, plan::Variant variant, const OriginTable& origins = {}) {
  const std::string text = codegen::emit_cuda({&kernel}, variant, origins);
  return text.substr(text.find("typedef"));
}

}  // namespace

TEST_CASE("literals read back to the same bits") {
  using codegen::cuda_literal;
  const double inf = std::numeric_limits<double>::infinity();
  CHECK(cuda_literal(Scalar::from_real(DType::F32, 1)) == "1.0f");
  CHECK(cuda_literal(Scalar::from_real(DType::F32, 0.1)) == "0.1f");
  CHECK(cuda_literal(Scalar::from_real(DType::F32, 1e-30)) == "1e-30f");
  CHECK(cuda_literal(Scalar::from_real(DType::F64, 0.1)) == "0.1");
  CHECK(cuda_literal(Scalar::from_real(DType::F32, -0.0)) == "-0.0f");
  CHECK(cuda_literal(Scalar::from_real(DType::F32, -inf)) == "-cxxi_infinity(0.0f)");
  CHECK(cuda_literal(Scalar::from_real(DType::F64, std::nan(""))) == "cxxi_nan(0.0)");
  CHECK(cuda_literal(Scalar::from_real(DType::BF16, 0.5)) == "cxxi_cast<cxxi_bf16>(0.5f)");
  CHECK(cuda_literal(Scalar::from_integer(DType::I64, INT64_MIN)) == "(-9223372036854775807LL - 1)");
  CHECK(cuda_literal(Scalar::from_integer(DType::I32, INT32_MIN)) == "(-2147483647 - 1)");
  CHECK(cuda_literal(Scalar::from_integer(DType::U64, -1)) == "18446744073709551615ULL");
  CHECK(cuda_literal(Scalar::from_integer(DType::Bool, 1)) == "true");
}

TEST_CASE("ops are spelled by their rows, opaque dtypes refused") {
  CHECK(codegen::cuda_apply(info(ScalarOp::Add), DType::F32, {"a", "b"}) == "cxxi_add(a, b)");
  CHECK(codegen::cuda_apply(info(ScalarOp::Lt), DType::I64, {"a", "b"}) == "(a < b)");
  CHECK(codegen::cuda_apply(info(ScalarOp::Where), DType::F32, {"c", "a", "b"}) == "(c ? a : b)");
  CHECK_THROWS_AS(codegen::cuda_type(DType::C64), Unsupported);
}

TEST_CASE("templates are embedded with what they include") {
  CHECK_THAT(codegen::template_text("cuda/prelude.cuh"), mentions("cxxi_sigmoid") && !mentions("#include"));
  CHECK_THROWS_AS(codegen::template_text("cuda/nothing.cuh"), InternalError);
}

TEST_CASE("a unit that includes its templates is the same unit") {
  const plan::Plan plan = plan::parse(every_plan_kind);
  for (const plan::Kernel& kernel : plan.kernels) {
    const std::string inlined = codegen::emit_cuda({&kernel}, {}, plan.origins);
    std::string text = codegen::emit_cuda({&kernel}, {}, plan.origins, codegen::Templates::Included);
    const auto templates = codegen::included_templates(text);
    CHECK(templates.contains("cuda/prelude.cuh"));
    CHECK(templates.contains("shared/philox.h"));  // which templates include
    for (bool found = true; found;) {
      found = false;
      for (const auto& [name, body] : templates) {
        const std::string line = "#include \"" + name + "\"\n";
        const size_t at = text.find(line);
        if (at == std::string::npos) continue;
        text.replace(at, line.size(), body);
        found = true;
      }
    }
    const auto without_blanks = [](std::string value) {
      std::erase(value, '\n');
      return value;
    };
    CHECK(without_blanks(text) == without_blanks(inlined));
  }
}

TEST_CASE("a kernel's text: signature, variants, origins") {
  const plan::Plan plan = plan::parse(every_plan_kind);
  const plan::Kernel& softmax = plan.kernels[plan::KernelId(0)];
  const std::string text = text_of(softmax, {true, false}, plan.origins);
  CHECK_THAT(text, mentions("extern \"C\" __global__ void __launch_bounds__(128) softmax("));
  CHECK_THAT(text, mentions("const cxxi_bf16* __restrict__ p0,"));
  CHECK_THAT(text, mentions("long long a_s0) {"));
  CHECK_THAT(text, mentions("#line 12 \"model.py\"") && mentions("// aten._softmax"));
  CHECK_THAT(text, mentions("typedef int cxxi_index;"));
  CHECK_THAT(text_of(softmax, {true, true}), mentions("typedef long long cxxi_index;"));
  CHECK_THAT(text_of(softmax, {false, false}), mentions("<8, false>") && !mentions("<8, true>"));
  CHECK(text_of(softmax, {true, false}) == text_of(softmax, {true, false}));
  const plan::LaunchShape shape = plan::launch_shape(softmax);
  CHECK(shape.block_x == 128);
  CHECK_FALSE(codegen::cuda_has_checks(softmax));
}

TEST_CASE("text from a model cannot end a comment or a line") {
  plan::Plan plan = plan::parse(every_plan_kind);
  OriginTable origins;
  const OriginId origin = origins.push_back({"model\".py\n#error", 3, "", "aten.x\nint broken;"});
  plan::Kernel kernel = plan.kernels[plan::KernelId(0)];
  for (loops::Stmt& stmt : kernel.region.body) stmt.origin = origin;
  const std::string text = text_of(kernel, {}, origins);
  CHECK_THAT(text, mentions("#line 3 \"model .py #error\"") && mentions("// aten.x int broken;"));
  CHECK_THAT(text, !mentions("\nint broken"));
}

TEST_CASE("rows: one divisor a row, and joins that know their threads' shares") {
  const plan::Plan plan = plan::parse(every_plan_kind);
  const std::string text = text_of(plan.kernels[plan::KernelId(0)], {true, false});
  CHECK_THAT(text, mentions("cxxi_divisor::of(v"));
  CHECK_THAT(text, mentions(".divide_all(l") && !mentions("cxxi_div("));
  CHECK_THAT(text, mentions("cxxi_block_reduce<"));
}
