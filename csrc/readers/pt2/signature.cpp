#include "readers/pt2/signature.h"

#include <array>

#include "readers/pt2/printable.h"
#include "readers/pt2/tree_spec.h"

namespace cxxinductor::readers {
namespace {

// Two lists of the archive that describe the same values, item by item.
template <class Visit>
void for_each_pair(const Field& specs, const Field& values, const Visit& visit) {
  specs.require(specs.size() == values.size(), fmt::format("{} items, as the graph has", values.size()));
  for (size_t i = 0; i < specs.size(); ++i) visit(specs.item(i), values.item(i));
}

}  // namespace

void SignatureReader::read_inputs() {
  for_each_pair(module_.at("signature").at("input_specs"), module_.at("graph").at("inputs"),
                [&](const Field& spec, const Field& input) { read_input(spec, input); });
}

void SignatureReader::read_input(const Field& spec, const Field& graph_input) {
  const auto [kind, value] = spec.alternative();
  if (kind == "parameter") return read_weight(value, "parameter_name", WeightRef::Kind::Parameter, graph_input);
  if (kind == "buffer") return read_weight(value, "buffer_name", WeightRef::Kind::Buffer, graph_input);
  if (kind == "tensor_constant") return read_weight(value, "tensor_constant_name", WeightRef::Kind::Constant, graph_input);
  if (kind == "token") return reader_.bind_token(graph_input);
  InputSpec input;
  if (kind == "constant_input") {
    input.kind = InputSpec::Kind::Literal;
    input.name = value.at("name").text();
    input.literal = reader_.argument(value.at("value"));
  } else if (kind == "user_input") {
    const auto [form, argument] = value.at("arg").alternative();
    const auto [graph_form, graph_argument] = graph_input.alternative();
    graph_input.require(form == graph_form, fmt::format("the signature's kind {}", printable(form)));
    const Field name = argument.at(form == "as_tensor" || form == "as_custom_obj" ? "name" : "as_name");
    input.name = name.text();
    input.index = static_cast<uint32_t>(program_.calls.inputs.size());
    const model::CallValue id = reader_.add_input(graph_input, input.name);
    name.require(program_.calls.values[id].name == input.name, "the name that the graph's input has");
    user_inputs_.emplace(input.name, input.index);
  } else {
    spec.unsupported("inputs of kind {}", printable(kind));
  }
  program_.signature.inputs.push_back(std::move(input));
}

void SignatureReader::read_weight(const Field& value, std::string_view name_key, WeightRef::Kind kind, const Field& graph_input) {
  const Field target = value.at(name_key), name = value.at("arg").at("name");
  const auto position = static_cast<uint32_t>(program_.calls.inputs.size());
  const model::CallValue id = reader_.add_tensor_input(graph_input.at("as_tensor"), std::string(target.text()));
  model::CallValueInfo& info = program_.calls.values[id];
  name.require(info.name == name.text(), "the name that the graph's input has");
  if (!weight_inputs_.emplace(target.text(), position).second) target.fail("a name that no weight before has");

  WeightRef weight = weights_.read(target.text(), kind, info, target);
  if (kind == WeightRef::Kind::Buffer) weight.persistent = value.at("persistent").boolean();
  weight.input = position;
  info.storage = weights_.storage_of(weight);
  const std::vector<sym::Expr> strides(weight.strides.begin(), weight.strides.end());
  if (strides != info.strides) program_.calls.input_strides[position] = strides;
  InputSpec input{InputSpec::Kind::Weight, info.name, static_cast<uint32_t>(program_.weights.size()), {}};
  program_.signature.inputs.push_back(std::move(input));
  program_.weights.push_back(std::move(weight));
}

void SignatureReader::read_outputs() {
  for_each_pair(module_.at("signature").at("output_specs"), module_.at("graph").at("outputs"),
                [&](const Field& spec, const Field& output) { read_output(spec, output); });
}

void SignatureReader::read_output(const Field& spec, const Field& graph_output) {
  using Kind = OutputSpec::Kind;
  const auto [kind, value] = spec.alternative();
  if (kind == "token") return;
  const Arg output = reader_.argument(graph_output);
  if (kind == "user_output") {
    const Field argument = value.at("arg");
    argument.require(reader_.argument(argument) == output, "the value that the graph's output has");
    return add_user_output(output, graph_output.alternative().first == "as_sym_bool");
  }
  struct Row {
    std::string_view kind, target;
    Kind meaning;
    bool of_weight;
  };
  static constexpr std::array rows{Row{"buffer_mutation", "buffer_name", Kind::Mutation, true},
                                   Row{"parameter_mutation", "parameter_name", Kind::Mutation, true},
                                   Row{"user_input_mutation", "user_input_name", Kind::Mutation, false},
                                   Row{"loss_output", "", Kind::Loss, false},
                                   Row{"gradient_to_parameter", "parameter_name", Kind::ParameterGradient, true},
                                   Row{"gradient_to_user_input", "user_input_name", Kind::InputGradient, false}};
  for (const Row& row : rows) {
    if (row.kind != kind) continue;
    const Field argument = value.at("arg");
    argument.require(reader_.tensor(argument) == output, "the value that the graph's output has");
    if (row.meaning == Kind::Mutation) return add_mutation(value.at(row.target), output, row.of_weight);
    add_user_output(output, false);
    program_.signature.outputs.back().kind = row.meaning;
    if (!row.target.empty()) program_.signature.outputs.back().target = value.at(row.target).text();
    return;
  }
  spec.unsupported("outputs of kind {}", printable(kind));
}

void SignatureReader::add_user_output(const Arg& value, bool is_truth) {
  OutputSpec output;
  if (value.as<OperandRef>() != nullptr || value.as<sym::Expr>() != nullptr) {
    output.index = static_cast<uint32_t>(program_.calls.outputs.size());
    output.is_truth = is_truth;
    program_.calls.outputs.push_back(value);
  } else {
    output.kind = OutputSpec::Kind::Literal;
    output.literal = value;
  }
  program_.signature.outputs.push_back(std::move(output));
}

void SignatureReader::add_mutation(const Field& target, const Arg& value, bool of_weight) {
  const auto& inputs = of_weight ? weight_inputs_ : user_inputs_;
  const auto found = inputs.find(target.text());
  if (found == inputs.end()) target.fail("the name of an input");
  OutputSpec output;
  output.kind = OutputSpec::Kind::Mutation;
  output.index = static_cast<uint32_t>(program_.calls.mutations.size());
  output.target = target.text();
  program_.calls.mutations.emplace_back(found->second, value.as<OperandRef>()->operand);
  program_.signature.outputs.push_back(std::move(output));
}

void SignatureReader::read_trees() {
  const auto named_tuples = module_.find("treespec_namedtuple_fields");
  Signature& signature = program_.signature;
  module_.at("module_call_graph").for_each_item([&](const Field& entry) {
    const auto call = entry.find("signature");
    if (!entry.at("fqn").text().empty() || !call) return;
    signature.in_spec = read_tree_spec(call->at("in_spec"), named_tuples);
    signature.out_spec = read_tree_spec(call->at("out_spec"), named_tuples);
    size_t arguments = 0, results = 0;
    for (const InputSpec& input : signature.inputs) arguments += input.kind != InputSpec::Kind::Weight;
    for (const OutputSpec& output : signature.outputs) results += output.kind != OutputSpec::Kind::Mutation;
    call->at("in_spec").require(leaf_count(*signature.in_spec) == arguments, fmt::format("{} leaves, one per argument", arguments));
    call->at("out_spec").require(leaf_count(*signature.out_spec) == results, fmt::format("{} leaves, one per result", results));
    if (const auto names = call->find("forward_arg_names"))
      names->for_each_item([&](const Field& name) { signature.argument_names.emplace_back(name.text()); });
  });
}

}  // namespace cxxinductor::readers
