// Mutated packages: whatever comes, the answer is a program that is whole, or a UserError or Unsupported. The asan preset makes a crash
// of what would only be luck. CXXINDUCTOR_FUZZ_SEED repeats a run, CXXINDUCTOR_PACKAGE_MUTATIONS sets its length.
#include <cstdlib>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "fuzz/seed.h"
#include "model/text.h"
#include "package/manifest.h"
#include "readers/pt2/read_pt2.h"
#include "unit/catch.h"
#include "unit/package/packages.h"

namespace cxxinductor::package_file {
namespace {

using Json = nlohmann::json;

// A model of two weights that share a storage, an input, a literal and a result.
model::CallGraph some_calls() {
  model::CallGraph calls;
  calls.name = "model";
  const auto add = [&](const std::string& name, std::vector<sym::Expr> sizes, std::vector<sym::Expr> strides) {
    model::CallValueInfo info;
    info.name = name;
    info.sizes = std::move(sizes);
    info.strides = std::move(strides);
    calls.values.push_back(std::move(info));
    return static_cast<model::CallValue>(calls.values.size() - 1);
  };
  for (const char* name : {"w", "b", "x"}) {
    const bool is_row = name[0] == 'b';
    calls.inputs.push_back(add(name, is_row ? std::vector<sym::Expr>{2} : std::vector<sym::Expr>{3, 2},
                               is_row ? std::vector<sym::Expr>{1} : std::vector<sym::Expr>{2, 1}));
    calls.input_sources.emplace_back(name);
  }
  model::Call call;
  call.callee = "aten::mul";
  call.overload = "Tensor";
  call.args = {OperandRef{0}, OperandRef{2}};
  call.results = {add("y", {3, 2}, {2, 1})};
  calls.calls.push_back(call);
  calls.outputs = {OperandRef{3}};
  return calls;
}

Manifest some_manifest() {
  using readers::InputSpec;
  using readers::OutputSpec;
  using readers::WeightRef;
  Manifest manifest;
  manifest.library_version = "0.1.0";
  readers::Program& program = manifest.program;
  program.name = "model";
  program.torch_version = "2.11.0";
  program.weights = {{"w", WeightRef::Kind::Parameter, DType::F32, {3, 2}, {2, 1}, 0, 0, 24, true, 0},
                     {"b", WeightRef::Kind::Buffer, DType::F32, {2}, {1}, 4, 0, 24, false, 1}};
  program.signature.inputs = {{InputSpec::Kind::Weight, "p_w", 0, {}},
                              {InputSpec::Kind::Weight, "b_b", 1, {}},
                              {InputSpec::Kind::User, "x", 2, {}},
                              {InputSpec::Kind::Literal, "scale", 0, 2.5}};
  program.signature.outputs = {{OutputSpec::Kind::User, 0, "", {}, false}, {OutputSpec::Kind::Literal, 0, "", std::string("text"), false}};
  const readers::TreeSpec leaf;
  program.signature.in_spec = readers::TreeSpec{"builtins.tuple", "null", {}, {leaf, leaf}};
  program.signature.out_spec = readers::TreeSpec{"builtins.dict", "[\"a\", \"b\"]", {"a", "b"}, {leaf, leaf}};
  program.signature.argument_names = {"x", "scale"};
  manifest.options = {{"numerics", "eager"}};
  manifest.builds = {{{{Device(), "x86-64-v3"}}, false, false, "x86-64-v3"}};
  return manifest;
}

std::vector<TestSection> sections_of(const std::string& manifest, const std::string& calls) {
  return {{SectionKind::Manifest, "manifest", manifest},
          {SectionKind::Calls, "calls", calls},
          {SectionKind::Plan, "x86-64-v3", "plan"},
          {SectionKind::Weights, "weights", std::string(64, 'w')}};
}

Manifest read_all(const std::string& package) {
  const Container container(bytes_of(package));
  model::CallGraph calls = model::parse(container.read(container.get(SectionKind::Calls, "calls")));
  Manifest manifest = read_manifest(container.read(container.get(SectionKind::Manifest, "manifest")), std::move(calls));
  check_storages(manifest.program, container.map(container.get(SectionKind::Weights, "weights")).size());
  return manifest;
}

// What a program that was read promises to those who use it.
void require_whole(const readers::Program& program) {
  for (const readers::WeightRef& weight : program.weights) {
    REQUIRE(weight.input < program.calls.inputs.size());
    REQUIRE(weight.byte_offset + weight.byte_size <= 64);
  }
  for (const readers::InputSpec& spec : program.signature.inputs)
    if (spec.kind != readers::InputSpec::Kind::Literal)
      REQUIRE(spec.index < (spec.kind == readers::InputSpec::Kind::Weight ? program.weights.size() : program.calls.inputs.size()));
  for (const readers::OutputSpec& spec : program.signature.outputs)
    if (spec.kind == readers::OutputSpec::Kind::User) REQUIRE(spec.index < program.calls.outputs.size());
}

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  std::string next() {
    std::string manifest = manifest_, calls = calls_;
    const size_t kind = below(10);
    if (kind < 5) manifest = mutate_json();
    if (kind == 5) mutate_text(calls);
    if (kind < 6) return package_of(sections_of(manifest, calls));
    std::string package = below(2) == 0 ? unsigned_ : signed_;
    for (size_t edits = 1 + below(3); edits > 0; --edits) mutate_table(package);
    if (kind < 9) renew_digest(package);
    return package;
  }

 private:
  size_t below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }

  static void collect(Json& json, std::vector<Json*>& out) {
    out.push_back(&json);
    if (json.is_structured())
      for (auto& item : json) collect(item, out);
  }

  std::string mutate_json() {
    static const std::vector<Json> odd{nullptr, true, 0, 1, -1, 2, 3, 7, 64, 128, 0.5, "", "x", "weight", "user", "literal", "mutation", "i64",
                                       std::numeric_limits<int64_t>::max(), std::numeric_limits<uint64_t>::max(), Json::array(), Json::object(),
                                       Json::array({1, 2}), "../weights", std::string(300, 'n'), std::string("\0\n", 2)};
    Json json = Json::parse(manifest_);
    for (size_t edits = 1 + below(3); edits > 0; --edits) {
      std::vector<Json*> values;
      collect(json, values);
      Json& value = *values[below(values.size())];
      if (value.is_array() && !value.empty() && below(4) == 0)
        value.erase(below(value.size()));
      else if (value.is_array() && !value.empty() && below(4) == 0)
        value.push_back(Json(value[below(value.size())]));
      else if (below(3) == 0)
        value = Json(*values[below(values.size())]);
      else
        value = odd[below(odd.size())];
    }
    return json.dump();
  }

  void mutate_text(std::string& text) {
    const size_t at = below(text.size());
    if (below(2) == 0)
      text[at] = "0123456789[](),%@\"{}=:f"[below(23)];
    else
      text.erase(at, 1 + below(8));
  }

  // A field of the header or the table, a byte anywhere, or the length.
  void mutate_table(std::string& package) {
    static constexpr uint64_t odd[] = {0, 1, 7, 128, 4095, 4096, 8192, 0x7fffffff, 0xffffffff, uint64_t{1} << 63, ~uint64_t{0}, ~uint64_t{0} - 4095};
    const size_t kind = below(8);
    if (kind == 7) return package.resize(below(package.size()));
    const size_t at = kind == 0 ? below(header_size) : kind == 1 ? below(package.size()) : entry_at(below(4)) + 8 * below(16);
    const uint64_t value = below(3) == 0 ? random_() : odd[below(std::size(odd))];
    for (size_t i = 0, count = size_t{1} << below(4); i < count && at + i < package.size(); ++i)
      package[at + i] = static_cast<char>(value >> (8 * i));
  }

  const std::string manifest_ = print_manifest(some_manifest()), calls_ = model::print(some_calls());
  const std::string unsigned_ = package_of(sections_of(manifest_, calls_)), signed_ = package_of(sections_of(manifest_, calls_), true);
  std::mt19937_64 random_;
};

}  // namespace

TEST_CASE("a manifest that is printed reads the same") {
  const std::string text = print_manifest(some_manifest());
  const Manifest read = read_manifest(text, some_calls());
  CHECK(print_manifest(read) == text);
  CHECK(read.program.calls.values[0].storage == read.program.calls.values[1].storage);
  CHECK(read.program.calls.values[0].storage != 0);
  CHECK(read.program.calls.values[2].storage == 0);
  require_whole(read_all(package_of(sections_of(text, model::print(some_calls())))).program);
}

TEST_CASE("manifests that do not fit calls and weights are errors") {
  const auto error_of_edit = [](const std::function<void(Json&)>& edit) -> std::string {
    Json json = Json::parse(print_manifest(some_manifest()));
    edit(json);
    try {
      read_all(package_of(sections_of(json.dump(), model::print(some_calls()))));
    } catch (const UserError& error) {
      return error.what();
    }
    return "read";
  };
  CHECK(error_of_edit([](Json&) {}) == "read");
  CHECK_THAT(error_of_edit([](Json& m) { m["weights"][0]["input"] = 3; }), mentions("weights[0] (w).input: expected an integer from 0 to 2, found 3"));
  CHECK_THAT(error_of_edit([](Json& m) { m["weights"][1]["input"] = 0; }), mentions("weights[1]"));
  CHECK_THAT(error_of_edit([](Json& m) { m["weights"][0]["dtype"] = "i64"; }), mentions("weights[0] (w).dtype: expected the calls' dtype f32"));
  CHECK_THAT(error_of_edit([](Json& m) { m["weights"][0]["sizes"] = {3, 3}; }), mentions("weights[0] (w).sizes: expected the sizes"));
  CHECK_THAT(error_of_edit([](Json& m) { m["weights"][0]["strides"] = {4, 1}; }), mentions("byte_size: expected all that sizes"));
  CHECK_THAT(error_of_edit([](Json& m) { m["weights"][0]["strides"] = {-2, 1}; }), mentions("strides[0]"));
  CHECK_THAT(error_of_edit([](Json& m) { m["weights"][0]["byte_offset"] = 8; }), mentions("byte_offset: expected a multiple of 64"));
  CHECK_THAT(error_of_edit([](Json& m) { m["weights"][0]["byte_offset"] = 64; }), mentions("weight 'w': expected a storage inside of 64 bytes"));
  CHECK_THAT(error_of_edit([](Json& m) { m["signature"]["inputs"].erase(2); }), mentions("all 3 inputs of the calls"));
  CHECK_THAT(error_of_edit([](Json& m) { m["signature"]["inputs"][2]["index"] = 1; }), mentions("index: expected an input that nothing before is"));
  CHECK_THAT(error_of_edit([](Json& m) { m["signature"]["outputs"][0]["index"] = 1; }), mentions("outputs[0].index"));
  CHECK_THAT(error_of_edit([](Json& m) { m["signature"]["outputs"][0]["is_truth"] = true; }), mentions("is_truth"));
  CHECK_THAT(error_of_edit([](Json& m) { m["signature"]["in_spec"]["children"].erase(0); }), mentions("in_spec: expected 2 leaves"));
  CHECK_THAT(error_of_edit([](Json& m) { m["weight_file"] = {{"name", "../w"}, {"size", 1}, {"digest", ""}}; }), mentions("a file in the package's folder"));
}

TEST_CASE("calls that only a process could have made are errors") {
  const std::string manifest = print_manifest(some_manifest());
  model::CallGraph handles = some_calls(), donates = some_calls(), freezes = some_calls();
  handles.calls[0].kwargs = {{"generator", ArgList{Handle{0}}}};
  donates.donated = {2};
  freezes.frozen = {0};
  CHECK_THROWS_WITH(read_manifest(manifest, handles), mentions("expected no handles of objects"));
  CHECK_THROWS_WITH(read_manifest(manifest, donates), mentions("neither donated nor frozen"));
  CHECK_THROWS_WITH(read_manifest(manifest, freezes), mentions("neither donated nor frozen"));
}

TEST_CASE("mutated packages are read whole or refused") {
  const uint64_t seed = fuzz::first_seed();
  const char* length = std::getenv("CXXINDUCTOR_PACKAGE_MUTATIONS");
  const int64_t count = length ? std::atoll(length) : 20000;
  Mutator mutator(seed);
  int64_t read = 0;
  for (int64_t i = 0; i < count; ++i) {
    const std::string package = mutator.next();
    INFO("seed " << seed << ", mutation " << i);
    try {
      require_whole(read_all(package).program);
      ++read;
    } catch (const UserError&) {
    } catch (const Unsupported&) {
    }
  }
  CHECK(read > 0);
  CHECK(read < count);
}

}  // namespace cxxinductor::package_file
