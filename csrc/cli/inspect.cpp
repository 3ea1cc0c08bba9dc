// What a file declares; nothing is compiled.
#include <fmt/ranges.h>

#include <iostream>
#include <map>

#include "api/signature.h"
#include "cli/model_file.h"
#include "package/container.h"
#include "readers/pt2/printable.h"
#include "support/error.h"

namespace cxxinductor::cli {
namespace {

using readers::InputSpec;
using readers::OutputSpec;
using readers::Program;
using readers::WeightRef;

void print_signature(const Program& program) {
  std::cout << "\ninputs\n";
  for (const InputSpec& spec : program.signature.inputs)
    if (spec.kind != InputSpec::Kind::Weight) std::cout << "  " << readers::printable(api::input_type(program, spec)) << "\n";
  std::cout << "\noutputs\n";
  for (const OutputSpec& spec : program.signature.outputs) {
    const bool updates = spec.kind == OutputSpec::Kind::Mutation;
    std::cout << "  " << readers::printable(updates ? "updates " + spec.target : api::output_type(program, spec)) << "\n";
  }
}

std::string_view kind_text(const WeightRef& weight) {
  switch (weight.kind) {
    case WeightRef::Kind::Parameter:
      return "parameter";
    case WeightRef::Kind::Buffer:
      return weight.persistent ? "buffer" : "buffer, not saved";
    case WeightRef::Kind::Constant:
      return "constant";
  }
  return "?";
}

void print_weights(const Program& program) {
  std::map<size_t, size_t> storages;
  for (const WeightRef& weight : program.weights) storages[weight.byte_offset] = weight.byte_size;
  int64_t bytes = 0;
  for (const auto& [offset, size] : storages) bytes += static_cast<int64_t>(size);
  std::cout << "\nweights: " << program.weights.size() << ", " << size_text(bytes) << "\n";
  for (const WeightRef& weight : program.weights) {
    const Device device = program.calls.values[program.calls.inputs[weight.input]].device;
    std::cout << fmt::format("  {}: {}[{}] on {} ({})\n", readers::printable(weight.name), to_string(weight.dtype), fmt::join(weight.sizes, ", "),
                             to_string(device), kind_text(weight));
  }
}

// What a package holds beside the model; nothing for other files.
void print_sections(const std::string& path) {
  const api::Bytes file = api::map_file(path);
  if (!package_file::is_package(file.span)) return;
  const package_file::Container container(file.span);
  std::cout << "\npackage of " << size_text(static_cast<int64_t>(file.span.size())) << ", "
            << (container.signer() ? "signed with key " + package_file::to_hex(*container.signer()) : "not signed") << "\n";
  for (const package_file::Section& section : container.sections())
    std::cout << fmt::format("  {} {}: {}\n", to_string(section.kind), section.name, size_text(static_cast<int64_t>(section.size)));
}

// Of a graph, then of the subgraphs of its control flow.
void print_ops(const model::CallGraph& calls, const std::string& place) {
  std::map<std::string, int64_t> counts;
  for (const model::Call& call : calls.calls) ++counts[full_name(call)];
  std::cout << "\nops" << place << ": " << calls.calls.size() << " calls of " << counts.size() << " ops\n";
  for (const auto& [op, count] : counts) std::cout << fmt::format("  {:5} x {}\n", count, readers::printable(op));
  for (const auto& [name, subgraph] : calls.subgraphs) print_ops(*subgraph, " in subgraph @" + readers::printable(name));
}

void print_symbols(const Program& program) {
  const sym::Assumptions& assumptions = program.calls.assumptions;
  if (assumptions.ranges().empty() && program.signature.guards.empty()) return;
  std::cout << "\nsymbols\n";
  for (const auto& [symbol, range] : assumptions.ranges()) {
    std::string text = symbol;
    if (range.low != sym::Interval().low) text = fmt::format("{} <= {}", range.low, text);
    if (range.high != sym::Interval().high) text += fmt::format(" <= {}", range.high);
    if (const int64_t divisor = assumptions.divisor(symbol); divisor != 1) text += fmt::format(", a multiple of {}", divisor);
    std::cout << "  " << text << "\n";
  }
  for (const std::string& guard : program.signature.guards) std::cout << "  the export assumed " << readers::printable(guard) << "\n";
}

}  // namespace

int inspect(const Arguments& arguments) {
  const ModelFile file = read_model(arguments.file);
  std::cout << "model '" << readers::printable(file.program.name) << "', exported by PyTorch " << file.program.torch_version
            << (file.program.sample_inputs ? ", with sample inputs" : "") << "\n";
  print_signature(file.program);
  print_weights(file.program);
  print_ops(file.program.calls, "");
  print_symbols(file.program);
  print_sections(arguments.file);
  return success;
}

}  // namespace cxxinductor::cli
