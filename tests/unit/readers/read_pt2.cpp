// Programs of the fixtures: their calls against golden text, their signatures and weights field by field.
#include "readers/pt2/read_pt2.h"

#include <cstdlib>
#include <cstring>
#include <fstream>

#include "model/text.h"
#include "model/verify.h"
#include "unit/catch.h"
#include "unit/readers/archives.h"

namespace cxxinductor::readers {
namespace {

const WeightRef& weight(const Program& program, const std::string& name) {
  for (const WeightRef& candidate : program.weights)
    if (candidate.name == name) return candidate;
  throw std::runtime_error("no weight " + name);
}

float element(const std::string& zip, const WeightRef& weight, size_t index) {
  float value = 0;
  std::memcpy(&value, zip.data() + weight.byte_offset + (static_cast<size_t>(weight.storage_offset) + index) * sizeof(float), sizeof value);
  return value;
}

}  // namespace

TEST_CASE("fixtures give the calls of their golden files") {
  for (const std::string name : {"mlp", "tied", "training", "nested", "sizes", "control"}) {
    INFO(name);
    const std::string found = model::print(read(fixture_bytes(name + ".pt2")).calls);
    if (std::getenv("CXXINDUCTOR_BLESS") != nullptr) std::ofstream(std::string(CXXINDUCTOR_SOURCE_DIR) + "/tests/data/pt2/" + name + ".txt") << found;
    CHECK(found == fixture_bytes(name + ".txt"));
    CHECK(model::print(model::parse(found)) == found);
  }
}

TEST_CASE("weights lie where the file has them") {
  const std::string zip = fixture_bytes("mlp.pt2");
  const Program program = read(zip);
  REQUIRE(program.weights.size() == 3);
  const WeightRef& up = weight(program, "up.weight");
  CHECK(up.kind == WeightRef::Kind::Parameter);
  CHECK(up.dtype == DType::F32);
  CHECK(up.sizes == std::vector<int64_t>{4, 2});
  CHECK(up.strides == std::vector<int64_t>{2, 1});
  CHECK(up.byte_size == 32);
  CHECK(up.byte_offset % 64 == 0);
  CHECK(program.calls.input_sources[up.input] == "up.weight");
  CHECK(element(zip, up, 0) == 0);
  CHECK(element(zip, up, 7) == 7);
  CHECK(program.name == "model");
  CHECK(program.torch_version.substr(0, 5) == "2.11.");
  CHECK(program.sample_inputs.has_value());
}

TEST_CASE("tied weights share their storage") {
  const std::string zip = fixture_bytes("tied.pt2");
  const Program program = read(zip);
  const WeightRef &table = weight(program, "table.weight"), &head = weight(program, "head.weight");
  CHECK(table.byte_offset == head.byte_offset);
  const auto storage = [&](const WeightRef& w) { return program.calls.values[program.calls.inputs[w.input]].storage; };
  CHECK(storage(table) == storage(head));
  const WeightRef& row = weight(program, "row");
  CHECK(row.kind == WeightRef::Kind::Buffer);
  CHECK_FALSE(row.persistent);
  CHECK(row.storage_offset == 2);
  CHECK(element(zip, row, 0) == 0);
  CHECK(element(zip, row, 1) == 1);
  CHECK(element(zip, table, 5) == 5);
  const WeightRef& scale = weight(program, "scale");
  CHECK(scale.kind == WeightRef::Kind::Constant);
  CHECK(storage(scale) != storage(table));
  CHECK(element(zip, scale, 1) == 2);
}

TEST_CASE("mutations of buffers and arguments are final versions") {
  const Program program = read(fixture_bytes("training.pt2"));
  std::vector<std::string> targets;
  for (const OutputSpec& output : program.signature.outputs)
    if (output.kind == OutputSpec::Kind::Mutation) targets.push_back(output.target);
  CHECK(targets == std::vector<std::string>{"norm.running_mean", "norm.running_var", "norm.num_batches_tracked", "count"});
  CHECK(program.calls.mutations.size() == 4);
  CHECK(program.calls.outputs.size() == 1);
  CHECK(program.signature.outputs.back().kind == OutputSpec::Kind::User);
}

TEST_CASE("signatures hold what is no tensor") {
  const Program program = read(fixture_bytes("nested.pt2"));
  std::vector<std::string> names, literals;
  for (const InputSpec& input : program.signature.inputs) {
    names.push_back(input.name);
    if (input.kind == InputSpec::Kind::Literal) literals.push_back(to_string(input.literal));
  }
  CHECK(names == std::vector<std::string>{"c_lifted_tensor_0", "inputs_x", "inputs_rest_0", "scale", "mode", "flag", "nothing"});
  CHECK(literals == std::vector<std::string>{"2.0", "\"half\"", "false", "none"});
  CHECK(program.calls.inputs.size() == 3);
  CHECK(program.signature.argument_names == std::vector<std::string>{"inputs", "scale", "mode", "flag", "nothing"});

  REQUIRE(program.signature.in_spec);
  const TreeSpec& arguments = *program.signature.in_spec;
  REQUIRE(arguments.children.size() == 2);
  const TreeSpec& inputs = arguments.children[0].children.at(0);
  CHECK(inputs.type == "builtins.dict");
  CHECK(inputs.keys == std::vector<std::string>{"x", "rest"});
  CHECK(inputs.children[1].type == "builtins.list");
  CHECK(leaf_count(arguments) == 6);

  REQUIRE(program.signature.out_spec);
  CHECK(program.signature.out_spec->children.at(0).keys == std::vector<std::string>{"parts", "y"});
  std::vector<std::string> results;
  for (const OutputSpec& output : program.signature.outputs) results.push_back(output.kind == OutputSpec::Kind::Literal ? to_string(output.literal) : "");
  CHECK(results == std::vector<std::string>{"", "", "", "3", "none", "\"text\""});
}

TEST_CASE("sizes are expressions with ranges") {
  const Program program = read(fixture_bytes("sizes.pt2"));
  const model::CallGraph& calls = program.calls;
  const sym::Expr rows = calls.values[calls.inputs[0]].sizes[0];
  REQUIRE(rows.is_symbol());
  CHECK(calls.assumptions.range(rows.name()) == sym::Interval{2, 64});
  const model::CallValueInfo& n = calls.values[calls.inputs[1]];
  CHECK(n.kind == model::CallValueInfo::Kind::SymInt);
  REQUIRE(calls.outputs.size() == 3);
  REQUIRE(calls.outputs[1].as<sym::Expr>() != nullptr);
  CHECK(*calls.outputs[1].as<sym::Expr>() == rows * 2 + n.symbol);
  CHECK(program.signature.outputs[3].kind == OutputSpec::Kind::Literal);  // 4 == 4
}

}  // namespace cxxinductor::readers
