#include "package/manifest.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <set>

#include "package/build_json.h"
#include "package/container.h"
#include "readers/pt2/json.h"
#include "readers/pt2/printable.h"
#include "readers/pt2/weights.h"
#include "support/error.h"

namespace cxxinductor::package_file {
namespace {

using readers::Field;
using readers::InputSpec;
using readers::Json;
using readers::OutputSpec;
using readers::Program;
using readers::TreeSpec;
using readers::WeightRef;

constexpr std::array<std::string_view, 3> weight_kinds{"parameter", "buffer", "constant"};
constexpr std::array<std::string_view, 3> input_kinds{"weight", "user", "literal"};
constexpr std::array<std::string_view, 6> output_kinds{"user", "literal", "mutation", "loss", "parameter_gradient", "input_gradient"};

template <class Enum, size_t N>
Enum read_enum(const Field& field, const std::array<std::string_view, N>& words) {
  const auto found = std::find(words.begin(), words.end(), field.text());
  if (found == words.end()) field.fail("one of the known kinds");
  return static_cast<Enum>(found - words.begin());
}

template <class Enum, size_t N>
std::string word_of(Enum value, const std::array<std::string_view, N>& words) {
  return std::string(words[static_cast<size_t>(value)]);
}

// Literals: null, or an object that names the type.
Json to_json(const Arg& literal) {
  if (const auto* value = literal.as<bool>()) return {{"bool", *value}};
  if (const auto* value = literal.as<int64_t>()) return {{"int", *value}};
  if (const auto* value = literal.as<double>()) return {{"float", fmt::format("{}", *value)}};
  if (const auto* value = literal.as<std::string>()) return {{"text", *value}};
  if (literal.is_none()) return nullptr;
  throw_unsupported("the constant {} in the model's signature cannot be packaged", to_string(literal));
}

double read_double(const Field& field) {
  const std::string_view text = field.text();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  field.require(error == std::errc() && end == text.data() + text.size(), "a number");
  return value;
}

Arg read_literal(const std::optional<Field>& field) {
  if (!field) return {};
  const auto [type, value] = field->alternative();
  if (type == "bool") return value.boolean();
  if (type == "int") return value.integer();
  if (type == "float") return read_double(value);
  if (type == "text") return std::string(value.text());
  field->fail("bool, int, float or text");
}

Json to_json(const TreeSpec& spec) {
  Json children = Json::array();
  for (const TreeSpec& child : spec.children) children.push_back(to_json(child));
  return {{"type", spec.type}, {"context", spec.context}, {"has_json_context", spec.has_json_context}, {"keys", spec.keys}, {"children", std::move(children)}};
}

TreeSpec read_tree(const Field& field) {
  TreeSpec spec{std::string(field.at("type").text()), std::string(field.at("context").text()), {}, {}, field.at("has_json_context").boolean()};
  if (spec.has_json_context) (void)readers::Document(field.at("context"));  // checks it
  field.at("keys").for_each_item([&](const Field& key) { spec.keys.emplace_back(key.text()); });
  field.at("children").for_each_item([&](const Field& child) { spec.children.push_back(read_tree(child)); });
  field.require(!spec.is_leaf() || spec.children.empty(), "a leaf without children");
  return spec;
}

std::optional<TreeSpec> read_tree_if_there(const Field& object, std::string_view key, size_t leaves) {
  const auto field = object.find(key);
  if (!field) return std::nullopt;
  TreeSpec spec = read_tree(*field);
  field->require(leaf_count(spec) == leaves, fmt::format("{} leaves", leaves));
  return spec;
}

Json to_json(const WeightRef& weight) {
  return {{"name", weight.name},
          {"kind", word_of(weight.kind, weight_kinds)},
          {"dtype", to_string(weight.dtype)},
          {"sizes", weight.sizes},
          {"strides", weight.strides},
          {"storage_offset", weight.storage_offset},
          {"byte_offset", weight.byte_offset},
          {"byte_size", weight.byte_size},
          {"persistent", weight.persistent},
          {"input", weight.input}};
}

constexpr int64_t most = std::numeric_limits<int64_t>::max();

std::vector<int64_t> read_integers(const Field& list) {
  std::vector<int64_t> values;
  list.for_each_item([&](const Field& item) { values.push_back(item.integer(0, most)); });
  return values;
}

// A number below `end`.
uint32_t read_index(const Field& field, size_t end) {
  field.require(end > 0, "no index: there is nothing that it could name");
  return static_cast<uint32_t>(field.integer(0, static_cast<int64_t>(std::min<size_t>(end, UINT32_MAX)) - 1));
}

WeightRef read_weight(const Field& field, const model::CallGraph& calls) {
  WeightRef weight;
  weight.name = field.at("name").text();
  weight.kind = read_enum<WeightRef::Kind>(field.at("kind"), weight_kinds);
  const std::optional<DType> dtype = find_dtype(field.at("dtype").text());
  if (!dtype) field.at("dtype").fail("a dtype");
  weight.dtype = *dtype;
  weight.sizes = read_integers(field.at("sizes"));
  weight.strides = read_integers(field.at("strides"));
  weight.storage_offset = field.at("storage_offset").integer(0, most);
  weight.byte_offset = static_cast<size_t>(field.at("byte_offset").integer(0, most));
  weight.byte_size = static_cast<size_t>(field.at("byte_size").integer(0, most));
  weight.persistent = field.at("persistent").boolean();
  weight.input = read_index(field.at("input"), calls.inputs.size());
  const model::CallValueInfo& info = calls.values[calls.inputs[weight.input]];
  const std::vector<sym::Expr> sizes(weight.sizes.begin(), weight.sizes.end());
  field.at("input").require(info.kind == model::CallValueInfo::Kind::Tensor, "an input that is a tensor");
  field.at("dtype").require(info.dtype == weight.dtype, fmt::format("the calls' dtype {}", to_string(info.dtype)));
  field.at("sizes").require(info.sizes == sizes, "the sizes that the calls have for it");
  field.at("strides").require(weight.strides.size() == weight.sizes.size(), "as many as sizes");
  field.at("byte_offset").require(weight.byte_offset % storage_alignment == 0, "a multiple of 64");
  const auto reached = readers::bytes_reached(weight);
  field.at("byte_size").require(reached && static_cast<uint64_t>(*reached) <= weight.byte_size, "all that sizes and strides reach");
  return weight;
}

bool has_handle(const Arg& arg) {
  if (arg.as<Handle>() != nullptr) return true;
  const auto* list = arg.as<ArgList>();
  return list != nullptr && std::ranges::any_of(*list, has_handle);
}

// What the text of calls may say, but no file: it names objects of a process, or inputs that are the callee's to overwrite.
void require_calls_of_file(const model::CallGraph& calls) {
  for (const model::Call& call : calls.calls) {
    bool handles = std::ranges::any_of(call.args, has_handle);
    for (const auto& [name, value] : call.kwargs) handles = handles || has_handle(value);
    if (handles) throw_user_error("package: calls: {}: expected no handles of objects, found one", readers::printable(full_name(call)));
  }
  if (!calls.donated.empty() || !calls.frozen.empty()) throw_user_error("package: calls: expected inputs that are neither donated nor frozen");
}

// As the reader of .pt2 archives leaves them: inputs share memory where weights share a storage, and weights have their strides.
void set_input_memory(Program& program) {
  model::CallGraph& calls = program.calls;
  for (model::CallValueInfo& value : calls.values) value.storage = 0;
  calls.input_strides.clear();
  std::map<size_t, uint32_t> storages;
  for (const WeightRef& weight : program.weights) {
    model::CallValueInfo& info = calls.values[calls.inputs[weight.input]];
    info.storage = storages.try_emplace(weight.byte_offset, storages.size() + 1).first->second;
    const std::vector<sym::Expr> strides(weight.strides.begin(), weight.strides.end());
    if (strides != info.strides) calls.input_strides[weight.input] = strides;
  }
}

void read_weights(const Field& list, Program& program) {
  std::set<std::string, std::less<>> names;
  std::set<uint32_t> inputs;
  list.for_each_item([&](const Field& field) {
    WeightRef weight = read_weight(field, program.calls);
    field.at("name").require(names.insert(weight.name).second, "a name that no weight before has");
    field.at("input").require(inputs.insert(weight.input).second, "an input that no weight before is");
    program.weights.push_back(std::move(weight));
  });
  set_input_memory(program);
}

Json to_json(const InputSpec& spec) {
  return {{"kind", word_of(spec.kind, input_kinds)}, {"name", spec.name}, {"index", spec.index}, {"literal", to_json(spec.literal)}};
}

// Every input of the calls is a weight or an argument, once.
void read_inputs(const Field& list, Program& program) {
  std::set<uint32_t> seen;
  list.for_each_item([&](const Field& field) {
    InputSpec spec{read_enum<InputSpec::Kind>(field.at("kind"), input_kinds), std::string(field.at("name").text()), 0, {}};
    const Field index = field.at("index");
    if (spec.kind == InputSpec::Kind::Literal) {
      spec.literal = read_literal(field.find("literal"));
    } else {
      const bool is_weight = spec.kind == InputSpec::Kind::Weight;
      spec.index = read_index(index, is_weight ? program.weights.size() : program.calls.inputs.size());
      const uint32_t input = is_weight ? program.weights[spec.index].input : spec.index;
      index.require(seen.insert(input).second, "an input that nothing before is");
    }
    program.signature.inputs.push_back(std::move(spec));
  });
  list.require(seen.size() == program.calls.inputs.size(), fmt::format("all {} inputs of the calls", program.calls.inputs.size()));
}

Json to_json(const OutputSpec& spec) {
  return {{"kind", word_of(spec.kind, output_kinds)},
          {"index", spec.index},
          {"target", spec.target},
          {"literal", to_json(spec.literal)},
          {"is_truth", spec.is_truth}};
}

// The user's results must be what Model hands out: tensors and sizes.
void read_outputs(const Field& list, Program& program) {
  list.for_each_item([&](const Field& field) {
    OutputSpec spec;
    spec.kind = read_enum<OutputSpec::Kind>(field.at("kind"), output_kinds);
    spec.target = field.at("target").text();
    spec.is_truth = field.at("is_truth").boolean();
    if (spec.kind == OutputSpec::Kind::Literal) {
      spec.literal = read_literal(field.find("literal"));
    } else {
      const bool is_mutation = spec.kind == OutputSpec::Kind::Mutation;
      spec.index = read_index(field.at("index"), is_mutation ? program.calls.mutations.size() : program.calls.outputs.size());
      const bool is_size = !is_mutation && program.calls.outputs[spec.index].as<OperandRef>() == nullptr;
      field.at("is_truth").require(!spec.is_truth || is_size, "false, for what is not a size");
    }
    program.signature.outputs.push_back(std::move(spec));
  });
}

WeightFile read_weight_file(const Field& field) {
  WeightFile file{std::string(field.at("name").text()), static_cast<uint64_t>(field.at("size").integer(0, most)), {}};
  field.at("name").require(!file.name.empty() && file.name.find_first_of(std::string_view("/\0", 2)) == std::string::npos && file.name[0] != '.',
                           "the name of a file in the package's folder");
  file.digest = parse_public_key(field.at("digest").text(), field.at("digest").place());
  return file;
}

}  // namespace

std::string print_manifest(const Manifest& manifest) {
  const Program& program = manifest.program;
  const auto list = [](const auto& values) {
    Json json = Json::array();
    for (const auto& value : values) json.push_back(to_json(value));
    return json;
  };
  Json signature = {{"inputs", list(program.signature.inputs)},
                    {"outputs", list(program.signature.outputs)},
                    {"argument_names", program.signature.argument_names},
                    {"guards", program.signature.guards}};
  if (program.signature.in_spec) signature["in_spec"] = to_json(*program.signature.in_spec);
  if (program.signature.out_spec) signature["out_spec"] = to_json(*program.signature.out_spec);
  Json options = Json::object();
  for (const auto& [name, value] : manifest.options) options[name] = value;
  Json json = {{"library_version", manifest.library_version},
               {"torch_version", program.torch_version},
               {"name", program.name},
               {"options", std::move(options)},
               {"signature", std::move(signature)},
               {"weights", list(program.weights)},
               {"builds", list(manifest.builds)}};
  if (const auto& file = manifest.weight_file) json["weight_file"] = {{"name", file->name}, {"size", file->size}, {"digest", to_hex(file->digest)}};
  try {
    return json.dump(1);
  } catch (const Json::exception& error) {
    throw_unsupported("the model's names cannot be packaged: {}", error.what());
  }
}

Manifest read_manifest(std::string_view text, model::CallGraph calls) {
  const readers::Document document("manifest", text);
  const Field root(document);
  Manifest manifest;
  Program& program = manifest.program;
  program.calls = std::move(calls);
  require_calls_of_file(program.calls);
  manifest.library_version = readers::printable(root.at("library_version").text());
  program.torch_version = readers::printable(root.at("torch_version").text());
  program.name = readers::printable(root.at("name").text());
  root.at("options").for_each_member([&](std::string_view name, const Field& value) { manifest.options.emplace_back(name, value.text()); });
  read_weights(root.at("weights"), program);
  const Field signature = root.at("signature");
  read_inputs(signature.at("inputs"), program);
  read_outputs(signature.at("outputs"), program);
  signature.at("argument_names").for_each_item([&](const Field& name) { program.signature.argument_names.emplace_back(name.text()); });
  signature.at("guards").for_each_item([&](const Field& guard) { program.signature.guards.emplace_back(guard.text()); });
  const auto is_argument = [](const InputSpec& spec) { return spec.kind != InputSpec::Kind::Weight; };
  const auto is_result = [](const OutputSpec& spec) { return spec.kind != OutputSpec::Kind::Mutation; };
  const auto arguments = std::ranges::count_if(program.signature.inputs, is_argument);
  const auto results = std::ranges::count_if(program.signature.outputs, is_result);
  program.signature.in_spec = read_tree_if_there(signature, "in_spec", static_cast<size_t>(arguments));
  program.signature.out_spec = read_tree_if_there(signature, "out_spec", static_cast<size_t>(results));
  if (const auto file = root.find("weight_file")) manifest.weight_file = read_weight_file(*file);
  root.at("builds").for_each_item([&](const Field& build) { manifest.builds.push_back(read_build(build)); });
  return manifest;
}

void check_storages(const Program& program, size_t weight_bytes) {
  for (const WeightRef& weight : program.weights)
    if (weight.byte_offset > weight_bytes || weight.byte_size > weight_bytes - weight.byte_offset)
      throw_user_error("package: weight '{}': expected a storage inside of {} bytes of weights, found {} bytes from byte {}", readers::printable(weight.name),
                       weight_bytes, weight.byte_size, weight.byte_offset);
}

}  // namespace cxxinductor::package_file
