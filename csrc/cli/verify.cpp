// A model's results and updates, compiled and op by op through ATen.
#include <ATen/Context.h>
#include <ATen/ops/equal.h>

#include <iostream>
#include <set>

#include "cli/compare.h"
#include "cli/inputs.h"
#include "cli/quiet.h"
#include "readers/pt2/printable.h"
#include "support/error.h"
#include "torch_bridge/compiled_graph.h"

namespace cxxinductor::cli {
namespace {

using readers::InputSpec;

// A value that a call of a model leaves behind.
struct Effect {
  std::string name;
  c10::IValue value;
  bool declared = true;  // a result, or what the signature says is updated; an op may update others
};

// Results, then inputs and weights as they are after the call.
std::vector<Effect> effects(const Model& model, const ModelFile& file, const std::vector<c10::IValue>& inputs) {
  const readers::Program& program = file.program;
  std::set<uint32_t> updated;
  for (const auto& [input, value] : program.calls.mutations) updated.insert(input);
  std::vector<c10::IValue> given = copies(inputs);
  at::manual_seed(0);  // for models that draw random numbers
  std::vector<Effect> found;
  for (c10::IValue& output : model.run(given)) found.push_back({fmt::format("output {}", found.size()), std::move(output)});
  size_t position = 0;
  for (const InputSpec& spec : program.signature.inputs) {
    if (spec.kind == InputSpec::Kind::Weight) {
      const readers::WeightRef& weight = program.weights[spec.index];
      found.push_back({"updated " + readers::printable(weight.name), model.weight(weight.name), updated.contains(weight.input)});
      continue;
    }
    if (spec.kind == InputSpec::Kind::User) found.push_back({"updated " + readers::printable(spec.name), given[position], updated.contains(spec.index)});
    ++position;
  }
  return found;
}

bool is_same_tensor(const c10::IValue& a, const c10::IValue& b) { return !a.isTensor() || at::equal(a.toTensor(), b.toTensor()); }

}  // namespace

int verify(const Arguments& arguments) {
  const ModelFile file = read_model(arguments.file);
  const Options options = library_options(arguments);
  Options op_by_op = options;
  op_by_op.tier = "aten";
  op_by_op.dump.clear();
  const Model reference = load_quietly(arguments.file, op_by_op);
  torch_bridge::reset_counters();
  const Model model = load(arguments.file, options);
  const torch_bridge::Counters counters = torch_bridge::read_counters();

  const Inputs inputs = choose_inputs(file, arguments);
  std::cout << "inputs: " << inputs.origin << "\n";
  const std::vector<Effect> expected = effects(reference, file, inputs.values), found = effects(model, file, inputs.values);
  CXXI_CHECK(expected.size() == found.size(), "{} and {} results and inputs", expected.size(), found.size());
  bool all = true;
  for (size_t i = 0; i < expected.size(); ++i)
    if (expected[i].declared || !is_same_tensor(expected[i].value, found[i].value))
      all &= agree(expected[i].name, expected[i].value, found[i].value, arguments.tolerance);
  print_verdict(counters, all);
  return all ? success : failure;
}

}  // namespace cxxinductor::cli
