// What a concatenation joins is written where the result has it, where that is legal and worth it.
#include <map>
#include <random>
#include <set>

#include "ir/graph/verify.h"
#include "ir/plan/memory.h"
#include "ir/plan/text.h"
#include "ir/plan/verify.h"
#include "unit/catch.h"
#include "unit/make_plan.h"
#include "unit/schedule/fusion_programs.h"

using namespace fusion_tests;

namespace {

// aten::mm and aten::bmm, and aten::keep(x): x itself.
std::vector<interp::Tensor> call(const std::string& callee, const std::string&, const std::vector<Arg>&, const std::vector<interp::Tensor>& operands) {
  const interp::Tensor& a = operands.at(0);
  if (callee == "aten::keep") return {a};
  const interp::Tensor& b = operands.at(1);
  const size_t rank = a.sizes.size();
  const int64_t batch = rank == 3 ? a.sizes[0] : 1, m = a.sizes[rank - 2], k = a.sizes[rank - 1], n = b.sizes[rank - 1];
  interp::Tensor result{a.dtype, a.sizes, {}};
  result.sizes[rank - 1] = n;
  const auto at = [](const interp::Tensor& t, int64_t i) { return t.elements[static_cast<size_t>(i)].as_real(); };
  for (int64_t g = 0; g < batch; ++g)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l) sum += at(a, (g * m + i) * k + l) * at(b, (g * k + l) * n + j);
        result.elements.push_back(Scalar::from_real(a.dtype, sum));
      }
  return {result};
}

struct Planned {
  plan::Plan plan;
  // "operand>result" for each part, the rests as "result.rest>result".
  std::set<std::string> parts() const {
    std::set<std::string> found;
    for (const plan::Buffer& buffer : plan.buffers)
      if (buffer.kind == plan::Buffer::Kind::Slice) found.insert(buffer.name + ">" + plan.buffers[buffer.base].name);
    return found;
  }
  size_t launches() const {
    size_t count = 0;
    for (const plan::Step& step : plan.steps) count += plan::launches_of(step).size();
    return count;
  }
  std::string missed_fusions() const {
    std::string text;
    for (const plan::MissedFusion& missed : plan.missed_fusions) text += missed.reason + "\n";
    return text;
  }
};

// Sound, holds no more than the same plan without parts would, and computes what the graph computes.
Planned checked(const graph::Graph& graph, const Target& target, const interp::Symbols& symbols, uint64_t seed) {
  const Fused fused = fuse_graph(graph, target);
  Planned planned{schedule::test::make_plan(fused.fused, target, {})};
  const std::vector<std::string> broken = plan::verify(planned.plan);
  INFO((broken.empty() ? "" : broken.front()) << "\n" << plan::print(planned.plan));
  REQUIRE(broken.empty());
  const std::string text = plan::print(planned.plan);
  REQUIRE(plan::print(plan::parse(text)) == text);
  const interp::Arguments arguments = arguments_for(graph, symbols, seed);
  const auto expected = interp::run(graph, arguments, call), actual = interp::run(planned.plan, arguments, call);
  REQUIRE(expected.size() == actual.size());
  for (size_t i = 0; i < expected.size(); ++i) REQUIRE(interp::compare(expected[i], actual[i]) <= 1);
  return planned;
}

// DEVICE is the target's, mm(%a, %b) a call.
graph::Graph spelled(std::string text, const Target& target) {
  const auto replace_all = [&](const std::string& what, const auto& by) {
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what)) {
      const size_t end = what.back() == '(' ? text.find(')', at) + 1 : at + what.size();
      text.replace(at, end - at, by(text.substr(at + what.size(), end - at - what.size())));
    }
  };
  replace_all("DEVICE", [&](const std::string&) { return target.device == DeviceType::Cuda ? "cuda:0" : "cpu"; });
  replace_all(" mm(",
              [](const std::string& operands) { return " extern \"aten::mm\"($0, $1) with (" + operands + " alias [-1] planned_out flexible_strides"; });
  return graph::parse(text);
}

Planned checked(const std::string& text, const Target& target, const interp::Symbols& symbols = {}) {
  return checked(spelled(text, target), target, symbols, 1);
}

const Target gpu = cuda_target("sm_90a", 132), cpu = cpu_target("x86-64-v3", 4);
using Names = std::set<std::string>;

// %2: softmax-like rows of %z, for which the tail does not move into its reader since another reads it, too.
constexpr const char* rows = R"(
  %1 = reduce<max, dims=[1], keepdim>(%z)
  %1b: f32[64, 64] = expand(%1)
  %1c = sub(%z, %1b)
  %1d = exp(%1c)
  %1e = reduce<sum, dims=[1], keepdim>(%1d)
  %1f: f32[64, 64] = expand(%1e)
  %2 = div(%1d, %1f)
  %2k: f32[64, 64] = extern "aten::keep"($0) with (%2) alias [-1]
)";

TEST_CASE("products and rows are written into the halves of a concatenation", "[schedule][parts]") {
  for (const Target& target : {gpu, cpu})
    for (const char* dim : {"0", "1"}) {
      const std::string sizes = *dim == '0' ? "[128, 64]" : "[64, 128]";
      const Planned planned = checked(std::string("graph @f on DEVICE (%x: f32[64, 32], %w: f32[32, 64], %z: f32[64, 64]) {") + rows +
                                          "  %3: f32[64, 64] = mm(%x, %w)\n  %4 = cat<dim=" + dim + ">(%3, %2)\n  return %4, %2k\n}",
                                      target);
      // The call that keeps the rows may want them contiguous.
      INFO(plan::print(planned.plan) << planned.missed_fusions());
      CHECK(planned.parts() == (*dim == '0' ? Names{"2>4", "3>4"} : Names{"3>4", "4.rest>4"}));
    }
}

TEST_CASE("a product of every row of a batch lies in its columns", "[schedule][parts]") {
  for (const Target& target : {gpu, cpu}) {
    const Planned planned = checked(
        R"(graph @f on DEVICE (%x: f32[s0*s1, 32], %w: f32[32, 64], %v: f32[32, 32], sym s0, sym s1) where 1 <= s0 <= 64, 1 <= s1 <= 64 {
  %0: f32[s0*s1, 64] = mm(%x, %w)
  %1: f32[s0*s1, 32] = mm(%x, %v)
  %2: f32[s0, s1, 64] = reshape(%0)
  %3: f32[s0, s1, 32] = reshape(%1)
  %4 = neg(%2)
  %5 = cat<dim=2>(%2, %3, %4)
  return %5
})",
        target, {{"s0", 3}, {"s1", 2}});
    INFO(plan::print(planned.plan) << planned.missed_fusions());
    CHECK(planned.launches() == 1);
    CHECK(planned.parts() == Names{"0>5", "1>5", "5.rest>5"});
  }
}

TEST_CASE("sizes that are only known when it runs", "[schedule][parts]") {
  for (const Target& target : {gpu, cpu}) {
    const Planned planned = checked(
        R"(graph @f on DEVICE (%x: f32[s0, 32], %y: f32[s1, 32], %w: f32[32, 64], %z: f32[s1, 64]) where 0 <= s0 <= 64, 0 <= s1 <= 64 {
  %0: f32[s0, 64] = mm(%x, %w)
  %1: f32[s1, 64] = mm(%y, %w)
  %2 = relu(%z)
  %3 = cat<dim=0>(%0, %2, %1)
  return %3
})",
        target, {{"s0", 3}, {"s1", 5}});
    CHECK(planned.parts() == Names{"0>3", "1>3", "3.rest>3"});
  }
}

TEST_CASE("a stack of products, which others read, too", "[schedule][parts]") {
  for (const Target& target : {gpu, cpu}) {
    const Planned planned = checked(R"(graph @f on DEVICE (%x: f32[8, 64], %w: f32[64, 64]) {
  %0: f32[8, 64] = mm(%x, %w)
  %1: f32[8, 64] = mm(%0, %w)
  %2: f32[8, 64] = mm(%1, %w)
  %3: f32[8, 1, 64] = reshape(%0)
  %4: f32[8, 1, 64] = reshape(%1)
  %5: f32[8, 1, 64] = reshape(%2)
  %6 = cat<dim=1>(%3, %4, %5)
  return %6
})",
                                    target);
    INFO(plan::print(planned.plan) << planned.missed_fusions());
    CHECK(planned.launches() == 0);
    CHECK(planned.parts() == Names{"0>6", "1>6", "2>6"});
    CHECK(plan::profile_memory(planned.plan).peak == 8 * 3 * 64 * 4);
  }
}

TEST_CASE("a concatenation of a concatenation", "[schedule][parts]") {
  for (const Target& target : {gpu, cpu}) {
    const Planned planned = checked(R"(graph @f on DEVICE (%x: f32[64, 64], %w: f32[64, 64]) {
  %0: f32[64, 64] = mm(%x, %w)
  %1: f32[64, 64] = mm(%w, %x)
  %2 = cat<dim=1>(%0, %1)
  %3: f32[64, 128] = mm(%0, %2)
  %4 = cat<dim=0>(%2, %3)
  return %4
})",
                                    target);
    INFO(plan::print(planned.plan) << planned.missed_fusions());
    CHECK(planned.launches() == 0);
    CHECK(planned.parts() == Names{"0>2", "1>2", "2>4", "3>4"});
  }
}

TEST_CASE("an operand twice is written once and copied once", "[schedule][parts]") {
  const Planned planned = checked(R"(graph @f on DEVICE (%x: f32[64, 64], %w: f32[64, 64]) {
  %0: f32[64, 64] = mm(%x, %w)
  %1 = cat<dim=1>(%0, %0)
  return %1
})",
                                  gpu);
  CHECK(planned.parts() == Names{"0>1", "1.rest>1"});
  CHECK(planned.launches() == 1);
}

TEST_CASE("what else a region computes from a concatenation reads the whole", "[schedule][parts]") {
  for (const char* dtype : {"f32", "bf16"}) {
    std::string text = R"(graph @f on DEVICE (%x: T[64, 64], %w: T[64, 64]) {
  %0: T[64, 64] = mm(%x, %w)
  %1: T[64, 64] = mm(%w, %x)
  %2 = cat<dim=1>(%0, %1)
  %3 = cast<f32>(%2)
  %4 = exp(%3)
  return %2, %4
})";
    for (size_t at = text.find("T["); at != std::string::npos; at = text.find("T[")) text.replace(at, 1, dtype);
    const Planned planned = checked(text, gpu);
    INFO(plan::print(planned.plan) << planned.missed_fusions());
    CHECK(planned.parts() == Names{"0>2", "1>2"});
    CHECK(planned.launches() == 1);
  }
}

TEST_CASE("a transposed product lies in columns", "[schedule][parts]") {
  const Planned planned = checked(R"(graph @f on DEVICE (%x: f32[64, 64], %w: f32[64, 64]) {
  %0: f32[64, 64] = mm(%x, %w)
  %1: f32[64, 64] = permute<dims=[1, 0]>(%0)
  %2 = cat<dim=1>(%1, %x)
  return %2
})",
                                  gpu);
  CHECK(planned.parts() == Names{"0>2", "2.rest>2"});
}

TEST_CASE("padding is what is left to be written", "[schedule][parts]") {
  const Planned planned = checked(R"(graph @f on DEVICE (%x: f32[64, 64], %w: f32[64, 64]) {
  %0: f32[64, 64] = mm(%x, %w)
  %1: f32[72, 64] = pad<low=[8, 0], fill=f32(0.0)>(%0)
  return %1
})",
                                  gpu);
  CHECK(planned.parts() == Names{"0>1", "1.rest>1"});
}

TEST_CASE("operands that stay where they are", "[schedule][parts]") {
  const auto refused = [](const std::string& inputs, const std::string& body, const std::string& reason) {
    const Planned planned = checked("graph @f on DEVICE (%x: f32[64, 64], %w: f32[64, 64]" + inputs + ") {\n" + body + "}", gpu);
    INFO(plan::print(planned.plan) << planned.missed_fusions());
    CHECK(planned.parts().empty());
    CHECK(planned.missed_fusions().find(reason) != std::string::npos);
  };
  // The caller's own, and what is handed out: no tensor that eager makes by itself may share memory.
  refused("", "%0 = cat<dim=0>(%x, %w)\nreturn %0\n", "");
  refused("", "%0: f32[64, 64] = mm(%x, %w)\n%1 = cat<dim=0>(%0, %x)\nreturn %1, %0\n", "");
  refused("", "%0: f32[64, 64] = mm(%x, %w)\n%2: f32[4096] = reshape(%0)\n%1 = cat<dim=0>(%0, %x)\nreturn %1, %2\n", "");
  // Rounded or converted on the way.
  refused("", "%0: f32[64, 64] = mm(%x, %w)\n%1 = cast<bf16>(%0)\n%2 = cast<bf16>(%x)\n%3 = cat<dim=0>(%1, %2)\nreturn %3\n", "");
  // A call that makes its own memory.
  refused("", "%0: f32[64, 64] = extern \"aten::keep\"($0) with (%x) alias [-1]\n%1 = cat<dim=0>(%0, %x)\nreturn %1\n", "");
  refused(", %v: f32[64, 6]", "%0: f32[64, 6] = mm(%x, %v)\n%1: f32[64, 64] = mm(%x, %w)\n%2 = cat<dim=1>(%0, %1)\nreturn %2\n", "which wants it aligned");
  refused(", %v: f32[64, 4]", "%0: f32[64, 4] = mm(%x, %v)\n%1 = cat<dim=1>(%0, %x)\nreturn %1\n", "rows are short");
  refused("",
          "%0: f32[64, 64] = mm(%x, %w)\n%1: f32[64, 64] = extern \"aten::keep\"($0) with (%0) alias [-1]\n%2 = "
          "cat<dim=1>(%0, %x)\nreturn %2, %1\n",
          "a call reads it");
  // Between the elements of another.
  refused("",
          "%0: f32[64, 64] = mm(%x, %w)\n%1: f32[64, 64, 1] = reshape(%0)\n%2: f32[64, 64, 1] = reshape(%x)\n%3 = "
          "cat<dim=2>(%1, %2)\nreturn %3\n",
          "side by side");
}

TEST_CASE("a result that would be there too early", "[schedule][parts]") {
  const Planned planned = checked(R"(graph @f on DEVICE (%x: f32[64, 64], %w: f32[64, 64], %v: f32[64, 1024]) {
  %0: f32[64, 64] = mm(%x, %w)
  %1: f32[64, 1024] = mm(%0, %v)
  %2: f32[1024, 64] = permute<dims=[1, 0]>(%1)
  %3: f32[64, 64] = mm(%1, %2)
  %5: f32[64, 64] = mm(%3, %w)
  %4 = cat<dim=0>(%0, %x, %w, %x, %w, %5)
  return %4
})",
                                  gpu);
  INFO(plan::print(planned.plan) << planned.missed_fusions());
  CHECK(!planned.parts().contains("0>4"));
  CHECK(planned.parts().contains("5>4"));
}

TEST_CASE("an operand that is read after the result changed", "[schedule][parts]") {
  const std::string text = R"(graph @f on DEVICE (%x: f32[64, 64], %w: f32[64, 64], %i: i64[4], %s: f32[4, 64]) {
  %0: f32[64, 64] = mm(%x, %w)
  %1: f32[64, 64] = mm(%w, %x)
  %2 = cat<dim=0>(%0, %1)
  %3 = scatter<target=[-1, 1], index_dims=[0], unique_indices, no_wrap, no_check, inplace>(%2, %s, %i)
  %4: f32[128, 64] = mm(%3, %0)
  return %4
})";
  const Fused fused = fuse_graph(spelled(text, gpu), gpu);
  const Planned planned{schedule::test::make_plan(fused.fused, gpu, {})};
  INFO(plan::print(planned.plan) << planned.missed_fusions());
  CHECK(plan::verify(planned.plan).empty());
  CHECK(planned.parts() == Names{"1>2", "2.rest>2"});
  CHECK(planned.missed_fusions().find("after the result changes") != std::string::npos);
}

// ---- Random programs -----------------------------------------------------------------------------------------------

class RandomCats {
 public:
  RandomCats(uint64_t seed, Device device) : random_(seed), device_(device) {}

  graph::Graph make() {
    graph_.assumptions.set_range("s0", {0, 16});
    dtype_ = pick(2) ? DType::F32 : DType::BF16;
    for (const Sizes& sizes : {Sizes{16, 16}, Sizes{s0_, 16}, Sizes{16, 8}, Sizes{16, 32}})
      add(builder_.input(fmt::format("x{}", values_.size()), dtype_, device_, sizes, graph::contiguous_strides(sizes)));
    for (int n = 0; n < 14; ++n) grow();
    for (size_t v = 0; v < values_.size(); ++v)
      if (v + 1 == values_.size() || pick(8) == 0) builder_.output(values_[v]);
    return std::move(graph_);
  }

 private:
  using Sizes = std::vector<sym::Expr>;
  size_t pick(size_t n) { return random_() % n; }
  const Sizes& sizes(graph::ValueId v) const { return graph_.values[v].sizes; }
  graph::ValueId any() { return values_[values_.size() - 1 - std::min(pick(values_.size()), pick(values_.size()))]; }
  void add(graph::ValueId v) { values_.push_back(v); }

  void grow() {
    const graph::ValueId x = any();
    switch (pick(6)) {
      case 0:
      case 1:
        return product(x);
      case 2:
        return add(builder_.elementwise(ScalarOp::Neg, {x}));
      case 3:
        return normalised(x);
      default:
        return cat(x);
    }
  }

  void product(graph::ValueId x) {
    for (graph::ValueId w : values_) {
      if (sizes(w)[0] != sizes(x)[1] || pick(2)) continue;
      graph::Extern callee;
      callee.callee = "aten::mm";
      callee.args = {Arg(OperandRef{0}), Arg(OperandRef{1})};
      callee.alias_of = {-1};
      callee.planned_out = true;
      callee.exact_strides = false;
      graph::Value result;
      result.dtype = dtype_;
      result.device = device_;
      result.sizes = {sizes(x)[0], sizes(w)[1]};
      result.layout.strides = graph::contiguous_strides(result.sizes);
      result.layout.kind = graph::Layout::Kind::Fixed;
      return add(builder_.call_extern(callee, {x, w}, {result})[0]);
    }
  }

  void normalised(graph::ValueId x) {
    const graph::ValueId wide = dtype_ == DType::F32 ? x : builder_.cast(x, DType::F32);
    const graph::ValueId most = builder_.reduce(Reduction::Max, wide, {1}, true)[0];
    const graph::ValueId all = builder_.expand(most, sizes(x));
    const graph::ValueId rest = builder_.elementwise(ScalarOp::Sub, {wide, all});
    add(dtype_ == DType::F32 ? rest : builder_.cast(rest, dtype_));
  }

  void cat(graph::ValueId x) {
    const size_t dim = pick(2);
    std::vector<graph::Operand> operands{x};
    for (int tries = 0; tries < 8 && operands.size() < 4; ++tries)
      if (const graph::ValueId y = any(); sizes(y)[1 - dim] == sizes(x)[1 - dim]) operands.emplace_back(y);
    sym::Expr size = 0;
    for (const graph::Operand& operand : operands) size = size + sizes(std::get<graph::ValueId>(operand))[dim];
    if (size.is_constant() && size.constant() > 256) return;
    std::vector<graph::ValueId> ids;
    for (const graph::Operand& operand : operands) ids.push_back(std::get<graph::ValueId>(operand));
    add(builder_.cat(ids, static_cast<int>(dim)));
  }

  std::mt19937_64 random_;
  Device device_;
  graph::Graph graph_;
  graph::Builder builder_{graph_};
  DType dtype_ = DType::F32;
  std::vector<graph::ValueId> values_;
  sym::Expr s0_ = sym::Expr::symbol("s0");
};

TEST_CASE("random concatenations keep their values", "[schedule][parts][fuzz]") {
  size_t parts = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Target& target = seed % 2 ? gpu : cpu;
    const graph::Graph graph = RandomCats(seed, seed % 2 ? Device{DeviceType::Cuda, 0} : Device()).make();
    INFO("seed " << seed << "\n" << graph::print(graph));
    REQUIRE(graph::verify(graph).empty());
    parts += checked(graph, target, {{"s0", static_cast<int64_t>(seed % 6)}}, seed).parts().size();
  }
  CHECK(parts > 25);
}

}  // namespace
