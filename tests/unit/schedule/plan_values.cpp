// Plans compute what their programs compute: the interpreter runs both.
#include <random>

#include "interp/interp.h"
#include "ir/plan/verify.h"
#include "unit/catch.h"
#include "unit/make_plan.h"
#include "unit/schedule/plan_programs.h"

namespace cxxinductor::schedule::test {
namespace {

interp::Tensor random_tensor(const loops::Buffer& buffer, const interp::Symbols& symbols, std::mt19937& random) {
  interp::Tensor tensor;
  tensor.dtype = buffer.dtype;
  size_t count = 1;
  for (sym::Expr size : buffer.sizes) {
    tensor.sizes.push_back(evaluate(size, [&](std::string_view name) { return symbols.at(std::string(name)); }));
    count *= static_cast<size_t>(tensor.sizes.back());
  }
  std::normal_distribution<double> normal;
  for (size_t k = 0; k < count; ++k)
    tensor.elements.push_back(is_float(buffer.dtype) ? Scalar::from_real(buffer.dtype, normal(random))
                                                     : Scalar::from_integer(buffer.dtype, static_cast<int64_t>(random() % 50)));
  return tensor;
}

interp::Arguments random_arguments(const loops::Program& program, uint32_t seed) {
  std::mt19937 random(seed);
  interp::Arguments arguments;
  arguments.symbols = {{"s0", 5}, {"s1", 13}};
  for (const loops::ProgramInput& input : program.inputs)
    if (input.kind == loops::ProgramInput::Kind::Tensor) arguments.tensors.push_back(random_tensor(program.buffers[input.buffer], arguments.symbols, random));
  return arguments;
}

TEST_CASE("plans are sound and compute what their programs compute") {
  for (const Target& target : {gpu(), cpu()})
    for (const char* text : all_programs) {
      loops::Program program = parse_for(text, target);
      INFO(target.name << " " << program.name);
      plan::Plan plan = make_plan(program, target, Options());
      std::vector<std::string> broken = plan::verify(plan);
      for (const std::string& message : broken) INFO(message);
      REQUIRE(broken.empty());
      interp::Arguments arguments = random_arguments(program, 1);
      std::vector<interp::Tensor> expected = interp::run(program, arguments), actual = interp::run(plan, arguments);
      REQUIRE(expected.size() == actual.size());
      for (size_t k = 0; k < expected.size(); ++k) CHECK(interp::compare(expected[k], actual[k]) <= 1.0);
    }
}

}  // namespace
}  // namespace cxxinductor::schedule::test
