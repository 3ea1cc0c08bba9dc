// Every row of kernels/families.def: regions that must go to it, run on the host (text for GPUs under emulation) against the interpreter, and
// compiled by NVRTC without a word in its log. A family without programs fails.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "ir/plan/text.h"
#include "kernels/against_interpreter.h"
#include "kernels/bodies.h"
#include "kernels/family.h"
#include "kernels/matmul_programs.h"
#include "kernels/serial_row_programs.h"
#include "kernels/target_program.h"
#include "targets/cuda/dynamic_library.h"
#include "targets/cuda/nvrtc.h"
#include "unit/make_plan.h"
#include "unit/targets/find_nvrtc.h"

using namespace cxxinductor;
using namespace cxxinductor::tests;

namespace {

struct Sample {
  std::string text;
  interp::Symbols symbols = {};
  double tolerance_scale = 1;
};

// One program with a region for each of several forms, which share nothing.
class Regions {
 public:
  // body: reads @xN (of `dtype` and `sizes`) and stores @yN; N stands for the number of the region.
  void add(std::string_view dtype, std::string_view sizes, std::string_view result, std::string_view space, std::string body) {
    const std::string n = std::to_string(inputs_.size());
    inputs_.push_back(fmt::format("@x{}: {}[{}]", n, dtype, sizes));
    outputs_.push_back(fmt::format("  output @y{}: {}\n", n, result));
    names_.push_back("@y" + n);
    for (size_t at = body.find("@x["); at != body.npos; at = body.find("@x[", at)) body.replace(at, 2, "@x" + n);
    for (size_t at = body.find("@y["); at != body.npos; at = body.find("@y[", at)) body.replace(at, 2, "@y" + n);
    regions_.push_back(fmt::format("  region @n{} over {} {{\n{}\n  }}\n", n, space, body));
  }
  std::string text(std::string_view where = "") const {
    return fmt::format("program @p on DEVICE ({}){} {{\n{}{}  return {}\n}}\n", fmt::join(inputs_, ", "), where, fmt::join(outputs_, ""),
                       fmt::join(regions_, ""), fmt::join(names_, ", "));
  }

 private:
  std::vector<std::string> inputs_, outputs_, names_, regions_;
};

std::vector<Sample> pointwise() {
  struct Form {
    const char *extents, *space, *coords;
  };
  constexpr Form forms[] = {{"1", "i < 1", "i"}, {"7", "i < 7", "i"}, {"4, 64", "i < 4, j < 64", "i, j"}, {"3, 5, 33", "i < 3, j < 5, k < 33", "i, j, k"}};
  Regions fixed, dynamic;
  for (const char* dtype : {"f32", "f64", "i32"}) {
    for (const Form& form : forms)
      fixed.add(dtype, form.extents, fmt::format("{}[{}]", dtype, form.extents), form.space,
                fmt::format("%a = load @x[{0}]\n%b = relu(%a)\n%c = add(%a, %b)\nstore @y[{0}] = %c", form.coords));
    dynamic.add(dtype, "s0", fmt::format("{}[s0]", dtype), "i < s0", "%a = load @x[i]\n%b = neg(%a)\nstore @y[i] = %b");
  }
  fixed.add("bf16", "3, 40", "bf16[3, 40]", "i < 3, j < 40", "%a = load @x[i, j]\n%b = cast<f32>(%a)\n%c = exp(%b)\n%d = cast<bf16>(%c)\nstore @y[i, j] = %d");
  const std::string where = " where 0 <= s0 <= 100000";
  return {{fixed.text()}, {dynamic.text(where), {{"s0", 0}}}, {dynamic.text(where), {{"s0", 1001}}}};
}

// Reductions of x over its last dimension, or over its first one.
std::vector<Sample> reductions(bool across, const std::vector<std::pair<int, int>>& kept_and_reduced) {
  Regions regions;
  for (const char* reduction : {"sum", "max", "argmin", "prod"}) {
    for (const char* dtype : {"f32", "f64", "i32"}) {
      const bool position = std::string_view(reduction) == "argmin";
      if (std::string_view(dtype) == "i32" && std::string_view(reduction) == "prod") continue;  // it overflows
      for (const auto& [kept, reduced] : kept_and_reduced) {
        const std::string sizes = across ? fmt::format("{}, {}", reduced, kept) : fmt::format("{}, {}", kept, reduced);
        regions.add(dtype, sizes, fmt::format("{}[{}]", position ? "i64" : dtype, kept), fmt::format("i < {}, j < {}", kept, reduced),
                    fmt::format("%a = load @x[{}]\n%r = reduce<{}>(%a) over j\nstore @y[i] = %r", across ? "j, i" : "i, j", reduction));
      }
    }
  }
  return {{regions.text(), {}, 4}};
}

std::vector<Sample> rows() {
  std::vector<Sample> samples = reductions(false, {{3, 1}, {5, 31}, {4, 256}, {2, 3000}});
  Regions dynamic;
  dynamic.add("f32", "s0, s1", "f32[s0, s1]", "i < s0, j < s1",
              "%a = load @x[i, j]\n%m = reduce<max>(%a) over j\n%b = sub(%a, %m)\n%e = exp(%b)\n%s = reduce<sum>(%e) over j\n%d = div(%e, %s)\n"
              "store @y[i, j] = %d");
  for (const int64_t length : {1, 33, 2000}) samples.push_back({dynamic.text(" where 1 <= s0 <= 100, 1 <= s1 <= 100000"), {{"s0", 3}, {"s1", length}}, 4});
  return samples;
}

std::vector<Sample> columns() { return reductions(true, {{8, 3}, {33, 40}, {64, 700}}); }

std::vector<Sample> tiles() {
  Regions regions;
  for (const char* dtype : {"f32", "bf16", "f64"}) {
    for (const auto& [rows, columns] : {std::pair{64, 96}, {50, 37}, {128, 20}})
      regions.add(dtype, fmt::format("2, {}, {}", rows, columns), fmt::format("{}[2, {}, {}]", dtype, columns, rows),
                  fmt::format("b < 2, i < {}, j < {}", columns, rows), "%a = load @x[b, j, i]\nstore @y[b, i, j] = %a");
  }
  return {{regions.text()}};
}

std::vector<Sample> matmul() {
  std::vector<Sample> samples;
  for (const MatmulProgram& program : {MatmulProgram{}, MatmulProgram{.m = 100, .n = 72, .k = 40}, MatmulProgram{.m = 32, .n = 32, .k = 64, .batch = 3}})
    samples.push_back({program.text(), {}, 4});
  return samples;
}

std::vector<Sample> serial_rows() { return {{norm_backward({3, 8, 256, "bf16"}, true), {}, 8}, {norm_backward({2, 5, 200, "f32", true, true}, true), {}, 8}}; }

std::vector<Sample> samples_of(std::string_view family) {
  if (family.starts_with("cpu_")) family.remove_prefix(4);
  if (family == "pointwise") return pointwise();
  if (family == "rows") return rows();
  if (family == "columns") return columns();
  if (family == "tiles") return tiles();
  if (family == "matmul") return matmul();
  if (family == "serial_rows") return serial_rows();
  return {};
}

std::string_view shape_name(const plan::Mapping& mapping) {
  return std::visit([](const auto& shape) { return shape.keyword; }, mapping.shape);
}

void check_shapes(const plan::Plan& plan, std::string_view family) {
  for (const plan::Kernel& kernel : plan.kernels) {
    INFO(plan::print(kernel));
    CHECK(shape_name(kernel.mapping) == family);
  }
}

template <class Program>
void check_results(Program& compiled, const loops::Program& program, const Sample& sample) {
  const interp::Arguments arguments = arguments_of(program, sample.symbols);
  check_against(interp::run(program, arguments), run_compiled(compiled, arguments), sample.tolerance_scale);
}

// Lists of steps that compute or store something, rather than load ahead of a body, in the order of the text.
void collect_steps(const kernels::Values& values, std::vector<const std::vector<kernels::Step>*>& found) {
  for (const auto& [name, value] : values) {
    if (const auto* steps = std::get_if<kernels::Steps>(&value)) {
      if (std::ranges::any_of(steps->steps, [](const kernels::Step& step) { return step.kind != kernels::Step::Kind::LoadGroup; }))
        found.push_back(&steps->steps);
    }
    if (const auto* sets = std::get_if<kernels::Sets>(&value))
      for (const kernels::Values& set : *sets) collect_steps(set, found);
  }
}

bool are_equal(const std::vector<kernels::Step>& a, const std::vector<kernels::Step>& b) {
  const auto what = [](const kernels::Step& step) { return std::tuple(step.kind, step.stmt, step.where, step.form); };
  return std::ranges::equal(a, b, {}, what, what);
}

// All bodies in the instance are among those that are verified.
void check_bodies(const plan::Kernel& kernel) {
  const kernels::Instance instance = kernels::instantiate(kernel, {});
  std::vector<const std::vector<kernels::Step>*> found;
  collect_steps(instance.values, found);
  CHECK(!found.empty());
  const std::vector<kernels::NamedBody> bodies = kernels::lower_bodies(kernel);
  for (const std::vector<kernels::Step>* steps : found)
    CHECK(std::ranges::any_of(bodies, [&](const kernels::NamedBody& named) { return are_equal(named.body.steps, *steps); }));
}

void check_nvrtc(const targets::Nvrtc& nvrtc, const std::string& text) {
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const plan::Plan plan = schedule::test::make_plan(loops::parse(on_device(text, "cuda:0")), cuda_target(arch, 132), Options());
    std::vector<const plan::Kernel*> kernels;
    for (const plan::Kernel& kernel : plan.kernels) kernels.push_back(&kernel);
    INFO(arch << "\n" << text);
    CHECK(nvrtc.compile_to_cubin(codegen::emit_cuda(kernels, {true, false}, plan.origins), arch, "families").log == "");
  }
}

}  // namespace

TEST_CASE("each kernel family computes its programs as the interpreter does", "[cuda][cpu]") {
  for (const kernels::KernelFamily* family : kernels::families()) {
    DYNAMIC_SECTION(family->name) {
      const std::vector<Sample> samples = samples_of(family->name);
      REQUIRE(samples.size() > 0);
      for (const Sample& sample : samples) {
        const loops::Program program = loops::parse(on_device(sample.text, family->simt ? "cuda:0" : "cpu"));
        INFO(sample.text);
        if (!family->simt) {
          CpuProgram compiled(program, machine_target(), 2);
          check_shapes(compiled.executable->plan(), family->name);
          check_results(compiled, program, sample);
          continue;
        }
        CudaProgram compiled(program, plan::Variant{}, gpu_target());
        check_shapes(compiled.executable->plan(), family->name);
        check_results(compiled, program, sample);
      }
    }
  }
}

TEST_CASE("each kernel family's instance fills its template, in each variant", "[cuda][cpu]") {
  for (const kernels::KernelFamily* family : kernels::families()) {
    REQUIRE(family->instantiate);
    for (const Sample& sample : samples_of(family->name)) {
      const Target target = family->simt ? gpu_target() : machine_target();
      const plan::Plan plan = schedule::test::make_plan(loops::parse(on_device(sample.text, family->simt ? "cuda:0" : "cpu")), target, Options());
      for (const plan::Kernel& kernel : plan.kernels) {
        INFO(plan::print(kernel));
        check_bodies(kernel);
        if (!family->simt) CHECK_NOTHROW(codegen::emit_cpu({&kernel}, target, plan.origins));
        for (const bool vectorized : {false, true})
          if (family->simt) CHECK_NOTHROW(codegen::emit_cuda({&kernel}, {vectorized, !vectorized}, plan.origins));
      }
    }
  }
}

TEST_CASE("NVRTC compiles each kernel family's programs without a warning", "[cuda][nvrtc]") {
  const std::unique_ptr<targets::Nvrtc> nvrtc = targets::find_nvrtc();
  if (!nvrtc) return;
  for (const kernels::KernelFamily* family : kernels::families()) {
    if (!family->simt) continue;
    for (const Sample& sample : samples_of(family->name)) check_nvrtc(*nvrtc, sample.text);
  }
}

// The library of examples/host_simt, or of any other target, in the environment's CXXINDUCTOR_TEST_TARGET: its kernels are those of the families for threads.
TEST_CASE("a target outside of the tree computes each family's programs", "[.][target]") {
  const char* const library = std::getenv("CXXINDUCTOR_TEST_TARGET");
  REQUIRE(library);
  targets::RegisteredRuntime runtime(targets::open_target_library(library));
  for (const kernels::KernelFamily* family : kernels::families()) {
    if (!family->simt) continue;
    DYNAMIC_SECTION(family->name) {
      for (const Sample& sample : samples_of(family->name)) {
        const loops::Program program = loops::parse(on_device(sample.text, "cpu"));
        INFO(sample.text);
        TargetProgram compiled(program, runtime);  // by another family where the target lacks what this one needs, such as tensor cores
        check_results(compiled, program, sample);
      }
    }
  }
}
