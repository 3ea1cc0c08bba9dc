#include "unit/readers/archives.h"

#include <zlib.h>

#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>

#include "readers/pt2/archive.h"
#include "support/error.h"

namespace cxxinductor::readers {
namespace {

void put(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

// What local headers and directory records share: version, flags, method, time, date, checksum, sizes, lengths of name
// and extra field.
void put_common(std::string& out, const std::string& bytes, size_t name, size_t extra) {
  put(out, 20, 2);
  put(out, 0, 8);
  put(out, crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()), 4);
  put(out, bytes.size(), 4);
  put(out, bytes.size(), 4);
  put(out, name, 2);
  put(out, extra, 2);
}

constexpr size_t local_header_size = 30, alignment = 64, extra_header = 4;

}  // namespace

std::string fixture_bytes(const std::string& name) {
  std::ifstream file(std::string(CXXINDUCTOR_SOURCE_DIR) + "/tests/data/pt2/" + name, std::ios::binary);
  if (!file) throw std::runtime_error("no fixture " + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<ZipEntry> entries_of(const std::string& zip) {
  const Archive archive(std::as_bytes(std::span(zip)));
  std::vector<ZipEntry> entries;
  for (const std::string& name : archive.names_in("")) entries.push_back({name, std::string(archive.text(name))});
  return entries;
}

std::string zip_of(const std::vector<ZipEntry>& entries) {
  std::string out, directory;
  for (const ZipEntry& entry : entries) {
    const std::string name = "model/" + entry.name;
    const size_t offset = out.size(), header = offset + local_header_size + name.size() + extra_header;
    const size_t padding = (alignment - header % alignment) % alignment;
    out += "PK\3\4";
    put_common(out, entry.bytes, name.size(), extra_header + padding);
    out += name + "FB";
    put(out, padding, 2);
    out += std::string(padding, 'Z') + entry.bytes;
    directory += "PK\1\2";
    put(directory, 20, 2);
    put_common(directory, entry.bytes, name.size(), 0);
    directory += std::string(10, '\0');  // comment, disk, attributes
    put(directory, offset, 4);
    directory += name;
  }
  const size_t start = out.size();
  out += directory + "PK\5\6";
  put(out, 0, 4);
  put(out, entries.size(), 2);
  put(out, entries.size(), 2);
  put(out, directory.size(), 4);
  put(out, start, 4);
  put(out, 0, 2);
  return out;
}

std::string& entry(std::vector<ZipEntry>& entries, const std::string& name) {
  for (ZipEntry& candidate : entries)
    if (candidate.name == name) return candidate.bytes;
  throw std::runtime_error("no entry " + name);
}

void edit_json(std::vector<ZipEntry>& entries, const std::string& name, const Edit& edit) {
  std::string& text = entry(entries, name);
  nlohmann::json json = nlohmann::json::parse(text);
  edit(json);
  text = json.dump();
}

std::optional<model::Schema> FixtureSchemas::find(std::string_view callee, std::string_view overload) const {
  struct Row {
    std::vector<std::string> arguments;
    size_t returns = 1;
    bool list = false;
  };
  static const std::map<std::string, Row, std::less<>> rows{
      {"aten::addmm", {{"self", "mat1", "mat2", "beta", "alpha"}}},
      {"aten::permute", {{"self", "dims"}}},
      {"aten::relu", {{"self"}}},
      {"aten::mm", {{"self", "mat2"}}},
      {"aten::split_with_sizes", {{"self", "split_sizes", "dim"}, 1, true}},
      {"aten::_native_batch_norm_legit_functional", {{"input", "weight", "bias", "running_mean", "running_var", "training", "momentum", "eps"}, 5}}};
  const auto found = rows.find(callee);
  if (found == rows.end() || !overload.empty()) return std::nullopt;
  model::Schema schema;
  for (const std::string& name : found->second.arguments) {
    model::SchemaArgument argument;
    argument.name = name;
    argument.kwarg_only = name == "beta" || name == "alpha";
    schema.arguments.push_back(std::move(argument));
  }
  schema.returns.resize(found->second.returns);
  schema.returns.front().is_list = found->second.list;
  return schema;
}

Program read(const std::string& zip) { return read_pt2(std::as_bytes(std::span(zip)), FixtureSchemas()); }

std::string error_of(const std::string& zip) {
  try {
    read(zip);
    return "read";
  } catch (const Unsupported& error) {
    return std::string("Unsupported: ") + error.what();
  } catch (const UserError& error) {
    return error.what();
  }
}

std::string edited(const std::string& fixture, const std::string& entry_name, const Edit& edit) {
  std::vector<ZipEntry> entries = entries_of(fixture_bytes(fixture + ".pt2"));
  edit_json(entries, entry_name, edit);
  return error_of(zip_of(entries));
}

nlohmann::json& node_of(nlohmann::json& model, size_t i) { return model["graph_module"]["graph"]["nodes"][i]; }

}  // namespace cxxinductor::readers
