#include "readers/pt2/read_pt2.h"

#include <algorithm>

#include "ir/text_parts.h"
#include "model/verify.h"
#include "readers/pt2/archive.h"
#include "readers/pt2/graph_reader.h"
#include "readers/pt2/printable.h"
#include "readers/pt2/signature.h"

namespace cxxinductor::readers {
namespace {

constexpr int64_t schema_major = 8;  // of PyTorch 2.11's torch/_export/serde/schema.py
constexpr size_t max_metadata = 64;  // characters of a small entry

// UserError for files of PyTorch that are no exported programs. names: of entries, relative to the archive's folder.
void refuse_other_files(const std::vector<std::string>& names) {
  if (std::ranges::find(names, "data.pkl") == names.end()) return;
  if (std::ranges::any_of(names, [](const std::string& name) { return name.starts_with("code/"); }))
    throw_user_error("expected what torch.export.save wrote, found a TorchScript module: read it with torch::jit::load and give it to optimize");
  throw_user_error("expected what torch.export.save wrote, found tensors without a program, as torch.save writes: export the model");
}

std::string_view small_text(const Archive& archive, std::string_view name) {
  if (archive.get(name).size > max_metadata) throw_user_error("{}: expected at most {} bytes", name, max_metadata);
  return archive.text(name);
}

// Other files that PyTorch writes have entries that no exported program has, some of them compressed.
Archive open_archive(std::span<const std::byte> file) {
  try {
    return Archive(file);
  } catch (const UserError&) {
    refuse_other_files(entry_names(file));
    throw;
  }
}

// The name of the archive's only program.
std::string model_name(const Archive& archive) {
  if (archive.find("serialized_exported_program.json") != nullptr)
    throw_unsupported("the archive was written by a PyTorch older than 2.11: load it and call torch.export.save there");
  refuse_other_files(archive.names_in(""));
  const std::string_view format = small_text(archive, "archive_format");
  if (format != "pt2") throw_user_error("archive_format: expected pt2, found {}", printable(format));
  const std::string_view order = archive.find("byteorder") != nullptr ? small_text(archive, "byteorder") : "little";
  if (order != "little") throw_unsupported("byteorder: weights in byte order {}", printable(order));
  constexpr std::string_view suffix = ".json";
  std::vector<std::string> names;
  for (const std::string& entry : archive.names_in("models/"))
    if (entry.ends_with(suffix)) names.push_back(entry.substr(0, entry.size() - suffix.size()));
  if (names.empty() && !archive.names_in("data/aotinductor/").empty()) throw_unsupported("the archive holds compiled code and no exported program");
  if (names.size() != 1) throw_user_error("models: expected one exported program, found {}", names.size());
  return names.front();
}

void check_version(const Field& version) {
  const int64_t major = version.at("major").integer();
  if (major != schema_major) version.unsupported("version {} of the archive's schema; expected {}, which PyTorch 2.11 writes", major, schema_major);
}

// A name that a call graph may have.
std::string graph_name(std::string name) {
  for (char& c : name)
    if (!is_text_name({&c, 1})) c = '_';
  return name.empty() ? "model" : name;
}

}  // namespace

Program read_pt2(std::span<const std::byte> file, const model::SchemaSource& schemas) {
  const Archive archive = open_archive(file);
  Program program;
  program.name = model_name(archive);
  const auto parse = [&](const std::string& entry) { return Document(entry, archive.text(entry)); };
  const Document model = parse("models/" + program.name + ".json");
  const Document weight_table = parse("data/weights/" + program.name + "_weights_config.json");
  const Document constant_table = parse("data/constants/" + program.name + "_constants_config.json");

  const Field root(model), module = root.at("graph_module");
  check_version(root.at("schema_version"));
  program.torch_version = printable(root.at("torch_version").text());
  program.calls.name = graph_name(program.name);
  read_ranges(root.at("range_constraints"), program.calls.assumptions);
  if (const auto guards = root.find("guards_code")) guards->for_each_item([&](const Field& guard) { program.signature.guards.emplace_back(guard.text()); });

  Reading reading{program.calls, schemas};
  GraphReader graph(reading, module.at("graph"), "");
  Weights weights(archive, weight_table, constant_table);
  SignatureReader signature(module, graph, weights, program);
  signature.read_inputs();
  graph.read_nodes();
  signature.read_outputs();
  signature.read_trees();
  if (const ArchiveEntry* entry = archive.find("data/sample_inputs/" + program.name + ".pt")) program.sample_inputs = ByteRange{entry->offset, entry->size};
  const std::vector<std::string> problems = model::verify(program.calls);
  if (!problems.empty()) throw_user_error("{}: the graph is not valid: {}", model.entry(), printable(problems.front()));
  return program;
}

}  // namespace cxxinductor::readers
