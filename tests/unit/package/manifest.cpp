// Manifests: what is printed is read, and what does not fit calls and weights is refused.
#include "package/manifest.h"

#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "model/text.h"
#include "package/region_manifest.h"
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
    calls.inputs.push_back(
        add(name, is_row ? std::vector<sym::Expr>{2} : std::vector<sym::Expr>{3, 2}, is_row ? std::vector<sym::Expr>{1} : std::vector<sym::Expr>{2, 1}));
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
  manifest.builds = {{{{Device(), "x86-64-v3"}}, false, {"x86-64-v3", false}, {{"x86-64-v3 @0", true}}}};
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

TEST_CASE("a float of a manifest is read as it was printed") {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double value : {1.5, -0.0, 1e-310, 5e-324, 1.7976931348623157e308, infinity, -infinity, std::nan(""), -std::nan("")}) {
    Manifest manifest = some_manifest();
    manifest.program.signature.inputs[3].literal = value;
    const Manifest read = read_manifest(print_manifest(manifest), some_calls());
    const double* found = read.program.signature.inputs[3].literal.as<double>();
    REQUIRE(found);
    INFO(value);
    CHECK((std::isnan(value) ? std::isnan(*found) : *found == value && std::signbit(*found) == std::signbit(value)));
  }
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
  for (const char* text : {"", "1.5x", " 1.5", "1,5"})
    CHECK_THAT(error_of_edit([&](Json& m) { m["signature"]["inputs"][3]["literal"]["float"] = text; }), mentions("literal.float: expected a number"));
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

namespace {

RegionManifest some_regions() {
  RegionManifest manifest;
  manifest.library_version = "0.1.0";
  manifest.forms = {{"region_0",
                     {{"Float on cpu Contiguous", {-1, 8}}, {"integer", {-2}}, {"constant None", {}}},
                     2,
                     text_digest("calls"),
                     {{{{Device(), "x86-64-v3"}}, false, {"0 x86-64-v3", true}, {}}}}};
  return manifest;
}

std::string error_of_region(const std::function<void(Json&)>& edit) {
  Json json = Json::parse(print_region_manifest(some_regions()));
  edit(json);
  try {
    read_region_manifest(json.dump());
  } catch (const UserError& error) {
    return error.what();
  }
  return "read";
}

}  // namespace

TEST_CASE("a region's manifest that is printed reads the same") {
  const std::string text = print_region_manifest(some_regions());
  const RegionManifest read = read_region_manifest(text);
  CHECK(print_region_manifest(read) == text);
  REQUIRE(read.forms.size() == 1);
  CHECK(read.forms[0].arguments == some_regions().forms[0].arguments);
  CHECK(read.forms[0].calls == text_digest("calls"));
  CHECK(text_digest("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");  // FIPS 180-2, appendix B.1
}

TEST_CASE("regions' manifests that are wrong are errors") {
  CHECK(error_of_region([](Json&) {}) == "read");
  CHECK_THAT(error_of_region([](Json& m) { m["forms"][0]["arguments"][0]["sizes"][0] = -3; }),
             mentions("forms[0].arguments[0].sizes[0]: expected an integer from -2 to"));
  CHECK_THAT(error_of_region([](Json& m) { m["forms"][0]["symbols"] = 1 << 20; }), mentions("forms[0].symbols: expected an integer from 0 to 4096"));
  CHECK_THAT(error_of_region([](Json& m) { m["forms"][0]["calls"] = "12"; }), mentions("forms[0].calls: expected the 64 hexadecimal digits"));
  CHECK_THAT(error_of_region([](Json& m) { m["forms"][0]["builds"][0]["archs"] = Json::array(); }), mentions("archs: expected at least one"));
  CHECK_THAT(error_of_region([](Json& m) { m["forms"][0]["builds"][0]["subgraphs"] = Json::array({m["forms"][0]["builds"][0]["main"]}); }),
             mentions("subgraphs: expected none: regions are without control flow"));
  CHECK_THAT(error_of_region([](Json& m) { m["forms"] = 7; }), mentions("forms: expected a list, found 7"));
  CHECK_THAT(error_of_region([](Json& m) { m.erase("library_version"); }), mentions("expected an object with \"library_version\""));
}

}  // namespace cxxinductor::package_file
