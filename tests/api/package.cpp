// Packages through the C++ and C APIs.
#include <ATen/ATen.h>
#include <cxxinductor/c.h>
#include <cxxinductor/package.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "api/fixtures.h"
#include "package/container.h"
#include "support/files.h"
#include "unit/catch.h"

namespace {

using cxxinductor::Error;
using cxxinductor::Model;
using cxxinductor::Options;
using cxxinductor::tests::fixture;

struct Folder {
  cxxinductor::PrivateFolder folder{cxxinductor::temporary_folder()};
  std::string path(const std::string& name) const { return cxxinductor::join_path(folder.path(), name); }
};

Options trusting() {
  Options options;
  options.trust = true;
  return options;
}

std::vector<char> bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Whether the model runs what a package holds.
bool is_packaged_code(const Model& model) { return model.explain().find("read plan") != std::string::npos; }

TEST_CASE("a model is packaged with its weights as they are now") {
  const Folder folder;
  const Model model = cxxinductor::load(fixture("mlp.pt2"));
  const at::Tensor x = at::randn({3, 2}), before = model.run({x}).at(0).toTensor();
  model.weight("down.weight").mul_(2);
  package(model, folder.path("mlp"));
  model.weight("down.weight").zero_();

  const Model loaded = cxxinductor::load(folder.path("mlp"), trusting());
  CHECK(is_packaged_code(loaded));
  CHECK(at::allclose(loaded.run({x}).at(0).toTensor(), 2 * before));
  CHECK(loaded.input_types() == model.input_types());
  CHECK(loaded.output_types() == model.output_types());
  CHECK(loaded.weight_names() == model.weight_names());

  // And packaged again.
  package(loaded, folder.path("again"));
  CHECK(at::equal(cxxinductor::load(folder.path("again"), trusting()).run({x}).at(0).toTensor(), loaded.run({x}).at(0).toTensor()));
  cxxinductor::package(folder.path("mlp"), folder.path("anew"));
  CHECK(bytes_of(folder.path("anew")) == bytes_of(folder.path("mlp")));
}

TEST_CASE("a package from memory does not need that memory any more") {
  const Folder folder;
  cxxinductor::package(fixture("tied.pt2"), folder.path("tied"));
  std::vector<char> bytes = bytes_of(folder.path("tied"));
  const Model model = cxxinductor::load(bytes.data(), bytes.size(), trusting());
  std::fill(bytes.begin(), bytes.end(), 0);
  CHECK(is_packaged_code(model));
  CHECK(model.weight("table.weight").data_ptr() == model.weight("head.weight").data_ptr());
  const at::Tensor tokens = at::arange(3);
  CHECK(at::equal(model.run({tokens}).at(0).toTensor(), cxxinductor::load(fixture("tied.pt2")).run({tokens}).at(0).toTensor()));

  cxxinductor::PackageOptions beside;
  beside.weights_beside = true;
  cxxinductor::package(fixture("tied.pt2"), folder.path("beside"), beside);
  bytes = bytes_of(folder.path("beside"));
  CHECK_THROWS_WITH(cxxinductor::load(bytes.data(), bytes.size()), mentions("its weights are in the file 'beside.weights' beside it"));
}

TEST_CASE("packaged models check their inputs and update their buffers") {
  const Folder folder;
  cxxinductor::package(fixture("training.pt2"), folder.path("training"));
  const Model model = cxxinductor::load(folder.path("training"), trusting());
  CHECK(is_packaged_code(model));
  const at::Tensor mean = model.weight("norm.running_mean"), x = at::randn({4, 2}), count = at::zeros({});
  const at::Tensor expected = 0.9 * mean + 0.1 * x.mean(0);
  (void)model.run({x, count});
  CHECK(at::allclose(mean, expected));
  CHECK(count.item<float>() == 1);
  CHECK_THROWS_WITH(model.run({at::randn({4, 3}), count}), mentions("expected sizes"));
  CHECK_THROWS_WITH(model.run({x.to(at::kDouble), count}), mentions("expected dtype f32, found f64"));
}

// The package with another manifest, under digests that are right.
void edit_manifest(const std::string& path, const std::function<void(nlohmann::json&)>& edit) {
  using namespace cxxinductor::package_file;
  const std::vector<char> file = bytes_of(path);
  const Container container(std::as_bytes(std::span(file)));
  std::vector<std::string> texts;
  for (const Section& section : container.sections()) texts.push_back(container.read(section));
  std::vector<NewSection> sections;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (container.sections()[i].kind == SectionKind::Manifest) {
      nlohmann::json manifest = nlohmann::json::parse(texts[i]);
      edit(manifest);
      texts[i] = manifest.dump();
    }
    sections.push_back({container.sections()[i].kind, container.sections()[i].name, {std::as_bytes(std::span(texts[i]))}});
  }
  write_container(path, sections, nullptr);
}

TEST_CASE("packages hold a plan for each subgraph of control flow") {
  const Folder folder;
  const std::string path = folder.path("control");
  cxxinductor::package(fixture("control.pt2"), path);
  const Model model = cxxinductor::load(path, trusting()), compiled = cxxinductor::load(fixture("control.pt2"));
  CHECK(is_packaged_code(model));
  CHECK(model.input_structure() == compiled.input_structure());
  for (const double scale : {-1., 0.1, 10.}) {
    const at::Tensor x = at::rand({5, 2}) * scale;
    const std::vector<c10::IValue> found = model.run({x}), expected = compiled.run({x});
    REQUIRE(found.size() == expected.size());
    for (size_t i = 0; i < found.size(); ++i) CHECK(at::allclose(found[i].toTensor(), expected[i].toTensor()));
  }

  // Fewer plans than subgraphs, or a plan that calls a function that the calls do not have: the calls are compiled.
  const auto note_after = [&](const std::function<void(nlohmann::json&)>& edit) {
    cxxinductor::package(fixture("control.pt2"), path);
    edit_manifest(path, [&](nlohmann::json& manifest) { edit(manifest["builds"][0]); });
    const Model edited = cxxinductor::load(path, trusting());
    CHECK_FALSE(is_packaged_code(edited));
    return edited.explain();
  };
  CHECK_THAT(note_after([](nlohmann::json& build) { build["subgraphs"].erase(build["subgraphs"].size() - 1); }), mentions("package: expected plans of"));
  CHECK_THAT(note_after([](nlohmann::json& build) { build["subgraphs"].push_back(build["subgraphs"][0]); }), mentions("package: expected plans of"));
  CHECK_THAT(note_after([](nlohmann::json& build) { build["subgraphs"][0] = build["main"]; }),
             mentions("extern cxxinductor::call_function: expected an op of PyTorch"));
}

TEST_CASE("what runs op by op is not packaged") {
  const Folder folder;
  Options options;
  options.tier = "aten";
  CHECK_THROWS_WITH(package(cxxinductor::load(fixture("mlp.pt2"), options), folder.path("mlp")), mentions("the model is not compiled"));
}

TEST_CASE("options that work on calls compile a package from its calls") {
  const Folder folder;
  cxxinductor::package(fixture("mlp.pt2"), folder.path("mlp"));
  Options options = trusting();
  options.check = "eager";
  const Model model = cxxinductor::load(folder.path("mlp"), options);
  CHECK(model.explain().find("options tier, check and dump compile models from their calls") != std::string::npos);
  (void)model.run({at::randn({3, 2})});
}

TEST_CASE("C programs load packages") {
  const Folder folder;
  cxxinductor::package(fixture("mlp.pt2"), folder.path("mlp"));
  cxxinductor_options* options = nullptr;
  REQUIRE(cxxinductor_create_options(&options) == CXXINDUCTOR_OK);
  REQUIRE(cxxinductor_set_option(options, "trust", "true") == CXXINDUCTOR_OK);
  cxxinductor_model* model = nullptr;
  REQUIRE(cxxinductor_load(folder.path("mlp").c_str(), options, &model) == CXXINDUCTOR_OK);
  char* text = nullptr;
  REQUIRE(cxxinductor_explain(model, &text) == CXXINDUCTOR_OK);
  CHECK(std::string(text).find("read plan") != std::string::npos);
  cxxinductor_free_text(text);
  cxxinductor_free_model(model);
  cxxinductor_free_options(options);
}

}  // namespace
