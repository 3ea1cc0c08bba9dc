#include "runtime/executable.h"

#include <thread>

#include "runtime/executable_tables.h"
#include "support/error.h"
#include "unit/catch.h"
#include "unit/runtime/test_plans.h"

using namespace cxxinductor;
using namespace cxxinductor::runtime;
using Kind = plan::Buffer::Kind;

namespace {

// y = x + 1 (arena), z = y + 1 (own, the output).
PlanBuilder two_steps() {
  PlanBuilder b;
  const auto x = b.input("x", {s0, 4});
  const auto y = b.buffer("y", Kind::Arena, {s0, 4});
  const auto z = b.buffer("z", Kind::Standalone, {s0, 4});
  const auto k = b.kernel("k_add_one", 2, {false, true}, {"n"});
  b.launch(k, {x, y}, {s0 * 4}, s0 * 4);
  b.plan.steps.emplace_back(plan::Allocate{z});
  b.launch(k, {y, z}, {s0 * 4}, s0 * 4);
  b.output(z);
  b.plan.assumptions.set_range("s0", {0, 100});
  return b;
}

}  // namespace

TEST_CASE("a plan runs for every size of its range, the empty one included, and frees what it took") {
  PlainHost host;
  auto kernels = std::make_shared<FunctionProvider>(std::vector<KernelBody>{add_one});
  {
    const Executable executable(two_steps().plan, kernels, host);
    for (int64_t rows : {3, 1, 0, 100}) {
      TensorRef x = make_tensor(host, {rows, 4});
      std::vector<double> expected = numbers_of(x);
      for (double& e : expected) e += 2;
      std::vector<Value> outputs = executable.run(host, one_input(std::move(x)));
      REQUIRE(outputs.size() == 1);
      REQUIRE(outputs[0].is_tensor());
      CHECK(outputs[0].tensor.sizes()[0] == rows);
      CHECK(numbers_of(outputs[0].tensor) == expected);
    }
    CHECK(kernels->asked == 1);  // one kernel, one variant, asked for once
  }
  CHECK(host.live_allocations == 0);
}

TEST_CASE("bad inputs are refused before anything runs, and the message names them") {
  PlainHost host;
  auto kernels = std::make_shared<FunctionProvider>(std::vector<KernelBody>{[](auto, auto, auto) { throw InternalError("a kernel ran"); }});
  const Executable executable(two_steps().plan, kernels, host);
  const auto refuses = [&](std::vector<Value> inputs, const std::string& text) {
    CHECK_THROWS_AS(executable.run(host, inputs), UserError);
    CHECK_THROWS_WITH(executable.run(host, std::move(inputs)), mentions(text));
  };
  refuses({}, "expected 1 inputs, found 0");
  refuses({Value(int64_t{3})}, "input 0 (x): expected a tensor, found an integer");
  refuses({Value()}, "found no value");
  refuses(one_input(make_tensor(host, {3, 4}, {}, DType::F64)), "input 0 (x): expected dtype f32, found f64");
  refuses(one_input(make_tensor(host, {3})), "expected 2 dimensions, found 1 (sizes [3])");
  refuses(one_input(make_tensor(host, {3, 5})), "expected sizes [s0 = 3, 4], found [3, 5]");
  refuses(one_input(make_tensor(host, {101, 4})), "size 0 of input 0 (x) is 101, but the graph was compiled for 0 <= s0 <= 100");
  refuses(one_input(make_tensor(host, {3, 4}, {1, 3})), "expected strides [4, 1], found [1, 3] (sizes [3, 4])");
  TensorRef elsewhere = make_tensor(host, {3, 4});
  elsewhere.device = {DeviceType::Cuda, 1};
  refuses(one_input(std::move(elsewhere)), "expected a tensor on cpu, found one on cuda:1");
  // A stride of a dimension of size one says nothing.
  auto adding = std::make_shared<FunctionProvider>(std::vector<KernelBody>{add_one});
  CHECK_NOTHROW(Executable(two_steps().plan, adding, host).run(host, one_input(make_tensor(host, {1, 4}, {77, 1}))));
}

TEST_CASE("a symbol that two inputs give must agree, and multiples are checked") {
  PlainHost host;
  PlanBuilder b;
  b.input("x", {s0});
  const auto y = b.input("y", {s0});
  b.output(y);
  b.plan.assumptions.set_divisor("s0", 4);
  const Executable executable(b.plan, std::make_shared<FunctionProvider>(std::vector<KernelBody>{}), host);
  std::vector<Value> inputs = one_input(make_tensor(host, {8}));
  inputs.emplace_back(make_tensor(host, {12}));
  CHECK_THROWS_WITH(executable.run(host, inputs), mentions("they must be equal"));
  inputs = one_input(make_tensor(host, {6}));
  inputs.emplace_back(make_tensor(host, {6}));
  CHECK_THROWS_WITH(executable.run(host, inputs), mentions("multiples of 4"));
}

TEST_CASE("inputs die at their last use, outputs that are inputs are those inputs") {
  PlainHost host;
  PlanBuilder b;
  const auto x = b.input("x", {s0});
  const auto w = b.input("w", {s0});
  const auto y = b.buffer("y", Kind::Standalone, {s0});
  const auto k = b.kernel("k", 2, {false, true}, {"n"});
  b.plan.steps.emplace_back(plan::Allocate{y});
  b.launch(k, {x, y}, {s0}, s0);
  b.launch(k, {y, y}, {s0}, s0);
  b.output(y);
  b.output(w);
  b.output(w);
  int64_t live_at_second = -1;
  int launches = 0;
  auto kernels = std::make_shared<FunctionProvider>(std::vector<KernelBody>{[&](auto buffers, auto symbols, int64_t grid) {
    if (++launches == 2) live_at_second = host.live_allocations;
    add_one(buffers, symbols, grid);
  }});
  const Executable executable(b.plan, kernels, host);
  std::vector<Value> inputs = one_input(make_tensor(host, {5}));
  TensorRef kept = make_tensor(host, {5});
  inputs.emplace_back(kept);
  std::vector<Value> outputs = executable.run(host, std::move(inputs));
  CHECK(live_at_second == 2);  // w and y: x is gone
  CHECK(outputs[1].tensor.owner.get() == kept.owner.get());
  CHECK(outputs[2].tensor.owner.get() == kept.owner.get());
}

TEST_CASE("an input that was given up is written in place if nobody holds it, and copied if somebody does") {
  PlainHost host;
  PlanBuilder b;
  const auto x = b.input("x", {s0, 2});
  const auto y = b.buffer("y", Kind::Standalone, {s0 * 2});
  const auto z = b.buffer("z", Kind::Standalone, {s0 * 2});
  const auto k = b.kernel("k", 1, {true}, {"n"});
  b.plan.inputs[0].donated = true;
  b.plan.steps.emplace_back(plan::Reuse{x, y});
  b.launch(k, {y}, {s0 * 2}, s0 * 2);
  b.plan.steps.emplace_back(plan::Reuse{y, z});
  b.launch(k, {z}, {s0 * 2}, s0 * 2);
  b.output(z);
  auto kernels = std::make_shared<FunctionProvider>(std::vector<KernelBody>{[](std::span<void* const> buffers, auto symbols, int64_t grid) {
    void* both[] = {buffers[0], buffers[0]};
    add_one(both, symbols, grid);
  }});
  const Executable executable(b.plan, kernels, host);
  for (const bool held : {false, true}) {
    TensorRef x_value = make_tensor(host, {5, 2});
    const void* address = x_value.data;
    std::vector<double> before = numbers_of(x_value), after = before;
    for (double& e : after) e += 2;
    const TensorRef kept = held ? x_value : TensorRef();
    const int64_t allocations = host.allocations;
    std::vector<Value> outputs = executable.run(host, one_input(std::move(x_value)));
    CHECK(host.allocations - allocations == (held ? 1 : 0));
    CHECK((outputs[0].tensor.data == address) == !held);
    CHECK(numbers_of(outputs[0].tensor) == after);
    CHECK(outputs[0].tensor.sizes().size() == 1);
    if (held) CHECK(numbers_of(kept) == before);
  }
  CHECK(host.live_allocations == 0);
}

TEST_CASE("views, symbols and absent outputs") {
  PlainHost host;
  PlanBuilder b;
  const auto x = b.input("x", {s0, 4});
  plan::View column{x, DType::F32, {s0}, {4}, 2};
  b.plan.outputs.push_back({plan::Output::Kind::View, {}, column, 0});
  b.plan.outputs.push_back({plan::Output::Kind::Symbol, {}, {}, s0 * 2 + 1});
  b.plan.outputs.push_back({plan::Output::Kind::None, {}, {}, 0});
  const Executable executable(b.plan, std::make_shared<FunctionProvider>(std::vector<KernelBody>{}), host);
  std::vector<Value> outputs = executable.run(host, one_input(make_tensor(host, {3, 4})));
  CHECK(numbers_of(outputs[0].tensor) == std::vector<double>{-18, -14, -10});
  CHECK(outputs[1].integer == 7);
  CHECK(outputs[2].kind == Value::Kind::None);
}

TEST_CASE("externs: planned results, fresh results, layouts that differ from the plan's") {
  PlanBuilder b;
  const auto x = b.input("x", {2, 3});
  const auto w = b.input("w", {3, 2});
  const auto planned = b.buffer("planned", Kind::Arena, {2, 2});
  const auto own = b.buffer("own", Kind::Standalone, {2, 2});
  const auto fresh = b.buffer("fresh", Kind::ExternOwned, {2, 2}, {1, 2});
  const auto k = b.kernel("copy", 2, {false, true}, {"n"});
  b.call("aten::mm", {b.whole(x), b.whole(w)}, {planned}, true);
  b.plan.steps.emplace_back(plan::Allocate{own});
  b.launch(k, {planned, own}, {4}, 4);
  // The naive mm returns row-major strides; the plan wants column-major ones.
  b.call("aten::mm", {b.whole(x), b.whole(w)}, {fresh}, false);
  b.output(own);
  b.output(fresh);
  PlainHost host;
  const Executable executable(b.plan, std::make_shared<FunctionProvider>(std::vector<KernelBody>{add_one}), host);
  std::vector<Value> inputs = one_input(make_tensor(host, {2, 3}));
  inputs.emplace_back(make_tensor(host, {3, 2}));
  std::vector<Value> outputs = executable.run(host, inputs);
  const std::vector<double> product = {-20 * -20 + -19 * -18 + -18 * -16, -20 * -19 + -19 * -17 + -18 * -15, -17 * -20 + -16 * -18 + -15 * -16,
                                       -17 * -19 + -16 * -17 + -15 * -15};
  CHECK(numbers_of(outputs[1].tensor) == product);
  CHECK(outputs[1].tensor.strides()[0] == 1);
  std::vector<double> plus_one = product;
  for (double& p : plus_one) p += 1;
  CHECK(numbers_of(outputs[0].tensor) == plus_one);
}

TEST_CASE("an extern that returns something else than it was said to is an error that names it") {
  PlanBuilder b;
  const auto x = b.input("x", {2, 3});
  const auto y = b.buffer("y", Kind::ExternOwned, {2, 3});
  plan::CallExtern& call = b.call("aten::odd", {b.whole(x), sym::Expr(7)}, {y}, false);
  b.output(y);
  const auto run_with = [&](PlainHost::ExternFunction function) {
    PlainHost host(1, std::move(function));
    const Executable executable(b.plan, std::make_shared<FunctionProvider>(std::vector<KernelBody>{}), host);
    return executable.run(host, one_input(make_tensor(host, {2, 3})));
  };
  CHECK_THROWS_WITH(
      run_with([](PlainHost& host, const plan::CallExtern&, std::span<const Operand> operands, std::span<const TensorView>, std::span<TensorRef> results) {
        CHECK(operands[1].integer == 7);
        CHECK(operands[0].tensor.whole);
        results[0] = make_tensor(host, {3, 3});
      }),
      mentions("aten::odd returned result 0 as f32 [3, 3]") && mentions("is f32 [2, 3]") && mentions("register_fake") &&
          mentions("step 1 of 1: extern aten::odd"));
  CHECK_THROWS_AS(run_with([](PlainHost&, const plan::CallExtern&, auto, auto, auto) {}), UserError);
  call.alias_of = {0};
  CHECK_THROWS_WITH(run_with([](PlainHost& host, const plan::CallExtern&, auto, auto, std::span<TensorRef> results) {
                      results[0] = make_tensor(host, {2, 3}, {1, 2});
                    }),
                    mentions("an alias, with strides [1, 2]"));
}

TEST_CASE("a failure after the first step says which inputs had been written; nothing leaks") {
  PlainHost host;
  PlanBuilder b = two_steps();
  const auto x = plan::BufferId(0);
  const auto in_place = b.kernel("k_in_place", 2, {false, true}, {"n"});
  plan::Launch mutate = std::get<plan::Launch>(b.plan.steps[0]);
  mutate.kernel = in_place;
  mutate.args = {x, x};
  b.plan.steps.insert(b.plan.steps.begin(), mutate);
  auto kernels = std::make_shared<FunctionProvider>(std::vector<KernelBody>{[](auto, auto, auto) { throw UserError("the launch failed"); }, add_one});
  const Executable executable(b.plan, kernels, host);
  CHECK_THROWS_AS(executable.run(host, one_input(make_tensor(host, {3, 4}))), UserError);
  CHECK_THROWS_WITH(executable.run(host, one_input(make_tensor(host, {3, 4}))),
                    "the launch failed (at step 2 of 4: launch k_add_one; these inputs may already have been written: x)");
  CHECK(host.live_allocations == 0);
}

TEST_CASE("every allocation of a call may fail: the error arrives, nothing leaks, the next call works") {
  PlainHost host;
  auto kernels = std::make_shared<FunctionProvider>(std::vector<KernelBody>{add_one});
  const Executable executable(two_steps().plan, kernels, host);
  for (int64_t failing = 0; failing < 2; ++failing) {
    TensorRef x = make_tensor(host, {3, 4});
    host.failing_allocation = host.allocations + failing;
    CHECK_THROWS_WITH(executable.run(host, one_input(std::move(x))), mentions("out of memory"));
    host.failing_allocation = -1;
    CHECK(host.live_allocations == 0);
    CHECK_NOTHROW(executable.run(host, one_input(make_tensor(host, {3, 4}))));
  }
}

TEST_CASE("four threads run one executable at once") {
  PlainHost host;
  auto kernels = std::make_shared<FunctionProvider>(std::vector<KernelBody>{add_one});
  const Executable executable(two_steps().plan, kernels, host);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 0; round < 200; ++round) {
        const int64_t rows = (t * 31 + round) % 50;
        std::vector<Value> outputs = executable.run(host, one_input(make_tensor(host, {rows, 4})));
        const std::vector<double> found = numbers_of(outputs[0].tensor);
        for (size_t i = 0; i < found.size(); ++i) wrong += found[i] != static_cast<double>(i % 97) - 18;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(host.live_allocations == 0);
}

TEST_CASE("the 64-bit index variant is asked for where an offset may not fit, the scalar one where an address is odd") {
  PlainHost host;
  PlanBuilder b;
  const auto x = b.input("x", {s0});
  const auto k = b.kernel("k", 1, {false}, {"n"});
  plan::Kernel& kernel = b.plan.kernels[k];
  kernel.always_index32 = false;
  kernel.index_limit = sym::Expr::symbol("n") * (int64_t{1} << 30);
  kernel.device = {DeviceType::Cuda, 0};
  kernel.params[0].aligned = true;
  b.launch(k, {x}, {s0}, 1);
  auto kernels = std::make_shared<FunctionProvider>(std::vector<KernelBody>{[](auto, auto, auto) {}});
  const Executable executable(b.plan, kernels, host);
  executable.run(host, one_input(make_tensor(host, {1})));
  CHECK(kernels->last_variant == plan::Variant{true, false});
  executable.run(host, one_input(make_tensor(host, {2})));
  CHECK(kernels->last_variant == plan::Variant{true, true});
  TensorRef shifted = make_tensor(host, {2});
  shifted.data = static_cast<float*>(shifted.data) + 1;
  executable.run(host, one_input(std::move(shifted)));
  CHECK(kernels->last_variant == plan::Variant{false, true});
}

TEST_CASE("a plan that hands out arena memory is refused") {
  PlainHost host;
  PlanBuilder b;
  b.input("x", {s0});
  b.output(b.buffer("y", Kind::Arena, {s0}));
  CHECK_THROWS_AS(Executable(b.plan, nullptr, host), InternalError);
}

TEST_CASE("a grouped launch that fails is named after its kernel") {
  PlanBuilder b = two_steps();
  b.plan.steps[0] = plan::GroupedLaunch{{std::get<plan::Launch>(b.plan.steps[0])}};
  CHECK(describe_failed_step(b.plan, 0).find("grouped launch k_add_one") != std::string::npos);
}

TEST_CASE("a call runs in parts, with an input that comes later, and frees what it took when it is dropped") {
  PlainHost host;
  int launches = 0;
  auto kernels = std::make_shared<FunctionProvider>(std::vector<KernelBody>{[&](auto buffers, auto symbols, auto grid) {
    ++launches;
    add_one(buffers, symbols, grid);
  }});
  PlanBuilder b;
  const auto x = b.input("x", {s0, 4}), late = b.input("late", {s0, 4});
  const auto y = b.buffer("y", Kind::Standalone, {s0, 4}), z = b.buffer("z", Kind::Standalone, {s0, 4});
  const auto k = b.kernel("k_add_one", 2, {false, true}, {"n"});
  b.plan.steps.emplace_back(plan::Allocate{y});
  b.launch(k, {x, y}, {s0 * 4}, s0 * 4);
  b.plan.steps.emplace_back(plan::Allocate{z});
  b.launch(k, {late, z}, {s0 * 4}, s0 * 4);
  b.output(y);
  b.output(z);
  b.plan.assumptions.set_range("s0", {0, 100});
  {
    const Executable executable(b.plan, kernels, host);
    const auto begin = [&](const TensorRef& first) {
      TensorRef unknown = make_tensor(host, {3, 4});
      unknown.data = nullptr;
      std::vector<Value> inputs;
      inputs.emplace_back(first);
      inputs.emplace_back(std::move(unknown));
      return executable.begin(host, std::move(inputs));
    };
    const TensorRef first = make_tensor(host, {3, 4});
    TensorRef second = make_tensor(host, {3, 4});
    std::vector<double> expected = numbers_of(first);
    for (double& e : expected) e += 1;
    auto call = begin(first);
    CHECK(launches == 0);
    call->advance(2);
    CHECK(launches == 1);
    call->advance(1);
    CHECK(launches == 1);
    call->supply(1, second);
    const std::vector<Value> outputs = call->finish();
    CHECK(launches == 2);
    REQUIRE(outputs.size() == 2);
    CHECK(numbers_of(outputs[0].tensor) == expected);
    CHECK(numbers_of(outputs[1].tensor) == expected);
    begin(first)->advance(3);
    CHECK(launches == 3);
  }
  CHECK(host.live_allocations == 0);
}
