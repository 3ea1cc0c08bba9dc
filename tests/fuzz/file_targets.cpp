#include "fuzz/file_targets.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "frontend/check_calls.h"
#include "ir/plan/text.h"
#include "ir/plan/verify.h"
#include "model/schema_text.h"
#include "model/text.h"
#include "model/verify.h"
#include "package/container.h"
#include "package/manifest.h"
#include "package/region_manifest.h"
#include "support/error.h"
#include "text_pipeline.h"
#include "unit/package/packages.h"

namespace cxxinductor::fuzz {
namespace {

using Json = nlohmann::json;
using package_file::NewSection;
using package_file::SectionKind;
using readers::Program;
using readers::ZipEntry;

constexpr std::array<const char*, 6> fixtures{"mlp", "tied", "training", "nested", "sizes", "control"};

void require(bool holds, const std::string& what) {
  if (!holds) throw std::logic_error(what);
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  require(file.good(), "a file of the sources is missing");
  return {std::istreambuf_iterator<char>(file), {}};
}

const model::SchemaTable& schemas() {
  static const model::SchemaTable table(text_of(std::filesystem::path(CXXINDUCTOR_SOURCE_DIR) / "tools/aten_schemas.txt"));
  return table;
}

// What a program that was read promises to those who use it. bytes: that its weights lie in.
void require_whole(const Program& program, size_t bytes) {
  for (const readers::WeightRef& weight : program.weights) {
    require(weight.byte_offset <= bytes && weight.byte_size <= bytes - weight.byte_offset, "a weight outside of the file");
    require(weight.input < program.calls.inputs.size(), "a weight that is no input");
    int64_t last = weight.storage_offset;
    bool empty = false;
    for (size_t d = 0; d < weight.sizes.size(); ++d) {
      empty = empty || weight.sizes[d] == 0;
      if (!empty) last += (weight.sizes[d] - 1) * weight.strides[d];
    }
    require(empty || static_cast<size_t>((last + 1) * byte_size(weight.dtype)) <= weight.byte_size, "a weight that reaches beyond its storage");
  }
  for (const readers::InputSpec& spec : program.signature.inputs)
    if (spec.kind != readers::InputSpec::Kind::Literal)
      require(spec.index < (spec.kind == readers::InputSpec::Kind::Weight ? program.weights.size() : program.calls.inputs.size()), "an input of no index");
  for (const readers::OutputSpec& spec : program.signature.outputs)
    if (spec.kind == readers::OutputSpec::Kind::User) require(spec.index < program.calls.outputs.size(), "an output of no index");
  for (const auto& tree : {program.signature.in_spec, program.signature.out_spec})
    if (tree) require(!Json::parse(readers::print_tree(*tree), nullptr, false).is_discarded(), "a tree that is no JSON");
  require(model::verify(program.calls).empty(), "calls that are not valid");
  const std::string text = model::print(program.calls);
  require(model::print(model::parse(text)) == text, "calls that do not print as they parse");
  frontend::check_calls(program.calls, schemas(), {});
}

class Archives final : public FileTarget {
 public:
  Archives() {
    for (const char* name : fixtures) {
      Fixture& fixture = fixtures_.emplace_back();
      fixture.entries = readers::entries_of(readers::fixture_bytes(std::string(name) + ".pt2"));
      for (const ZipEntry& entry : fixture.entries) fixture.parsed.push_back(entry.name.ends_with(".json") ? Json::parse(entry.bytes) : Json());
    }
  }
  std::string_view name() const override { return ".pt2 archives"; }

  std::string make(Random& random) const override {
    const Fixture& fixture = random.pick(fixtures_);
    std::vector<ZipEntry> entries = fixture.entries;
    const size_t kind = random.below(20);
    if (kind < 13) edit_json(fixture, entries, random);
    if (kind == 13) mutate_json_text(readers::entry(entries, "models/model.json"), random);
    if (kind == 14 || kind == 15) mutate_entries(entries, random);
    std::string zip = readers::zip_of(entries);
    if (kind > 15)
      for (size_t edits = 1 + random.below(3); edits > 0; --edits) mutate_zip(zip, random);
    return zip;
  }

  void read(const std::string& file) const override { require_whole(readers::read_pt2(std::as_bytes(std::span(file)), schemas()), file.size()); }

 private:
  struct Fixture {
    std::vector<ZipEntry> entries;
    std::vector<Json> parsed;  // of the entries that are JSON, else null
  };

  static void edit_json(const Fixture& fixture, std::vector<ZipEntry>& entries, Random& random) {
    size_t i = random.below(entries.size());
    if (fixture.parsed[i].is_null() || !random.one_in(3))  // the program, mostly
      for (size_t k = 0; k < entries.size(); ++k)
        if (entries[k].name == "models/model.json") i = k;
    Json json = fixture.parsed[i];
    mutate_json(json, random);
    entries[i].bytes = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  std::vector<Fixture> fixtures_;
};

// Plans of the golden files.
std::vector<std::string> some_plans() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(CXXINDUCTOR_SOURCE_DIR) / "tests/filetests/plan"))
    if (entry.path().extension() == ".cxxi") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> plans;
  for (const auto& path : paths) {
    const std::string whole = text_of(path);
    const size_t printed = tools::input_part(whole).size() + tools::expectation_mark.size();
    if (printed < whole.size() && whole.compare(printed, 5, "plan ") == 0) plans.push_back(whole.substr(printed));
  }
  require(!plans.empty(), "no plans among the golden files");
  return plans;
}

// The sections of a container as texts.
struct Contents {
  std::vector<package_file::TestSection> sections;

  std::string& text(SectionKind kind) {
    for (package_file::TestSection& section : sections)
      if (section.kind == kind) return section.bytes;
    throw std::logic_error("a section is missing");
  }
  std::string bytes(bool is_signed) const {
    static const package_file::SigningKey key(package_file::test_key_pem, "key");
    std::vector<NewSection> written;
    for (const package_file::TestSection& section : sections) written.push_back({section.kind, section.name, {package_file::bytes_of(section.bytes)}});
    const std::vector<std::byte> all = package_file::container_bytes(written, is_signed ? &key : nullptr);
    return {reinterpret_cast<const char*>(all.data()), all.size()};
  }
};

// What every reader of a plan does before it is compiled.
void read_plan(const std::string& text) {
  const plan::Plan plan = plan::parse(text);
  const std::vector<std::string> problems = plan::verify(plan);
  if (!problems.empty()) throw_user_error("the plan is not valid: {}", problems.front());
  frontend::check_calls(plan, schemas(), {});
}

// Bytes of the file, or contents under a digest and signature that are right: those of an author who means harm.
class Containers : public FileTarget {
 public:
  std::string make(Random& random) const override {
    Contents contents = random.pick(contents_);
    const bool is_signed = random.one_in(4);
    const size_t kind = random.below(10);
    if (kind < 7) {
      mutate_contents(contents, kind, random);
      return contents.bytes(is_signed);
    }
    std::string package = contents.bytes(is_signed);
    for (size_t edits = 1 + random.below(3); edits > 0; --edits) mutate_package(package, random);
    if (kind < 9) package_file::renew_digest(package);
    return package;
  }

 protected:
  void mutate_contents(Contents& contents, size_t kind, Random& random) const {
    std::string& manifest = contents.text(SectionKind::Manifest);
    if (kind < 3) {
      Json json = Json::parse(manifest);
      mutate_json(json, random);
      manifest = json.dump(-1, ' ', false, Json::error_handler_t::replace);
    } else if (kind == 3) {
      mutate_json_text(manifest, random);
    } else {
      package_file::TestSection& section = contents.sections[1 + random.below(contents.sections.size() - 1)];
      if (kind == 6)
        section.name = random.one_in(2) ? contents.sections[random.below(contents.sections.size())].name : "other";
      else if (!section.bytes.empty())
        mutate_text(section.bytes, random.pick(contents_).text_to_mix(), random);
    }
  }

  struct Corpus : Contents {
    const std::string& text_to_mix() const { return sections[1].bytes; }
  };
  std::vector<Corpus> contents_;
};

class Packages final : public Containers {
 public:
  Packages() {
    const std::vector<std::string> plans = some_plans();
    for (const char* fixture : fixtures) {
      const std::string zip = readers::fixture_bytes(std::string(fixture) + ".pt2");
      package_file::Manifest manifest;
      manifest.library_version = "0.1.0";
      manifest.program = readers::read_pt2(std::as_bytes(std::span(zip)), schemas());
      const std::string weights = lay_out(manifest.program, zip);
      manifest.options = {{"numerics", "eager"}};
      manifest.builds = {{{{Device(), "x86-64-v3"}}, false, {"x86-64-v3", false}, {{"x86-64-v3 @0", true}}}};
      if (contents_.size() == 1) manifest.weight_file = package_file::WeightFile{"model.cxxi.weights", weights.size(), {}};
      const std::string calls = model::print(manifest.program.calls);
      contents_.push_back({{{{SectionKind::Manifest, "manifest", package_file::print_manifest(manifest)},
                             {SectionKind::Calls, "calls", calls},
                             {SectionKind::Plan, "x86-64-v3", plans[contents_.size() % plans.size()]},
                             {SectionKind::Plan, "x86-64-v3 @0", plans[(contents_.size() + 1) % plans.size()]},
                             {SectionKind::Code, "0123456789abcdef0123456789abcdef", "machine code"},
                             {SectionKind::Weights, "weights", weights}}}});
    }
  }
  std::string_view name() const override { return "packages"; }

  void read(const std::string& file) const override {
    const package_file::Container container(package_file::bytes_of(file));
    model::CallGraph calls = model::parse(container.read(container.get(SectionKind::Calls, "calls")));
    const package_file::Manifest manifest = package_file::read_manifest(container.read(container.get(SectionKind::Manifest, "manifest")), std::move(calls));
    const size_t weights = container.map(container.get(SectionKind::Weights, "weights")).size();
    package_file::check_storages(manifest.program, weights);
    require_whole(manifest.program, weights);
    for (const package_file::Build& build : manifest.builds) {
      read_plan(container.read(container.get(SectionKind::Plan, build.main.plan)));
      for (const package_file::BuiltPlan& subgraph : build.subgraphs) read_plan(container.read(container.get(SectionKind::Plan, subgraph.plan)));
    }
    for (const package_file::Section& section : container.sections()) (void)container.read(section);
  }

 private:
  static std::string lay_out(Program& program, const std::string& zip) {
    std::string weights;
    std::map<size_t, size_t> placed;
    for (readers::WeightRef& weight : program.weights) {
      const auto [found, fresh] = placed.try_emplace(weight.byte_offset, 0);
      if (fresh) {
        weights.resize((weights.size() + 63) / 64 * 64);
        found->second = weights.size();
        weights += zip.substr(weight.byte_offset, weight.byte_size);
      }
      weight.byte_offset = found->second;
    }
    return weights;
  }
};

// What a region of a TorchScript module keeps in its file.
class RegionForms final : public Containers {
 public:
  RegionForms() {
    for (const std::string& plan : some_plans()) {
      package_file::RegionManifest manifest;
      manifest.library_version = "0.1.0";
      const std::string digest = package_file::text_digest(plan);
      manifest.forms = {{"region_0", {{"Float on cpu Contiguous", {-1, 8}}, {"integer", {-2}}, {"constant Bool true", {}}}, 2, digest, {}},
                        {"region_0_1", {{"Float on cpu Contiguous", {3, 8}}}, 0, digest, {}}};
      for (package_file::RegionForm& form : manifest.forms) form.builds = {{{{Device(), "x86-64-v3"}}, false, {"0 x86-64-v3", true}, {}}};
      contents_.push_back({{{{SectionKind::Manifest, "manifest", package_file::print_region_manifest(manifest)},
                             {SectionKind::Plan, "0 x86-64-v3", plan},
                             {SectionKind::Code, "0123456789abcdef0123456789abcdef", "machine code"}}}});
    }
  }
  std::string_view name() const override { return "compiled forms of TorchScript regions"; }

  void read(const std::string& file) const override {
    const package_file::Container container(package_file::bytes_of(file));
    const package_file::RegionManifest manifest = package_file::read_region_manifest(container.read(container.get(SectionKind::Manifest, "manifest")));
    for (const package_file::RegionForm& form : manifest.forms) {
      for (const package_file::RegionArgument& argument : form.arguments)
        for (const int64_t size : argument.sizes) require(size >= -static_cast<int64_t>(form.symbols), "a symbol that the form does not have");
      for (const package_file::Build& build : form.builds) read_plan(container.read(container.get(SectionKind::Plan, build.main.plan)));
    }
    require(package_file::read_region_manifest(package_file::print_region_manifest(manifest)).forms.size() == manifest.forms.size(), "a form is lost");
  }
};

}  // namespace

std::vector<std::unique_ptr<FileTarget>> file_targets() {
  std::vector<std::unique_ptr<FileTarget>> targets;
  targets.push_back(std::make_unique<Archives>());
  targets.push_back(std::make_unique<Packages>());
  targets.push_back(std::make_unique<RegionForms>());
  return targets;
}

Outcome try_file(const FileTarget& target, const std::string& file) {
  constexpr size_t longest_message = 2000;  // a place and two values, not the file
  try {
    target.read(file);
    return Outcome::Read;
  } catch (const Unsupported&) {
    return Outcome::Unsupported;
  } catch (const UserError& error) {
    const std::string message = error.what();
    require(message.size() < longest_message, "a message as long as a file: " + message.substr(0, 300));
    return Outcome::Refused;
  }
}

}  // namespace cxxinductor::fuzz
