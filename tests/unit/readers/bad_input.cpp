// What an author who means harm would try first, a case each, with its message. Mutations of all else: tests/fuzz/file_fuzz.cpp.
#include "unit/catch.h"
#include "unit/readers/archives.h"

namespace cxxinductor::readers {
namespace {

using Json = nlohmann::json;
using Entries = std::vector<ZipEntry>;

// The fields of the directory record of an entry: compression method at 10, sizes at 20 and 24.
std::string with_record(const std::string& name, const std::function<void(std::string& zip, size_t record)>& edit) {
  std::string zip = zip_of(entries_of(fixture_bytes("mlp.pt2")));
  edit(zip, zip.rfind("model/" + name) - 46);
  return error_of(zip);
}
void put(std::string& zip, size_t at, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) zip[at + static_cast<size_t>(i)] = static_cast<char>(value >> (8 * i));
}
uint64_t get(const std::string& zip, size_t at, int bytes) {
  uint64_t value = 0;
  for (int i = bytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(zip[at + static_cast<size_t>(i)]);
  return value;
}

}  // namespace

TEST_CASE("zip bombs: nothing is inflated, and no byte is in two entries") {
  CHECK_THAT(with_record(model_json, [](std::string& zip, size_t record) { put(zip, record + 10, 8, 2); }),
             mentions("models/model.json: expected a stored entry, found compression method 8"));
  CHECK_THAT(with_record(model_json, [](std::string& zip, size_t record) { put(zip, record + 24, 0xfffffff0, 4); }),
             mentions("models/model.json: expected equal sizes of a stored entry"));
  // A directory that names the same bytes a thousand times.
  std::string zip = zip_of(entries_of(fixture_bytes("mlp.pt2")));
  const size_t end = zip.rfind("PK\5\6"), directory = get(zip, end + 16, 4), next = zip.find("PK\1\2", directory + 4);
  const std::string record = zip.substr(directory, next - directory);
  std::string records;
  for (int i = 0; i < 1000; ++i) records += record;
  zip.replace(directory, end - directory, records);
  const size_t moved = directory + records.size();
  put(zip, moved + 8, 1000, 2);
  put(zip, moved + 10, 1000, 2);
  put(zip, moved + 12, records.size(), 4);
  CHECK_THAT(error_of(zip), mentions("the archive has two such entries"));
}

TEST_CASE("absurd sizes: of entries, of tensors, of text") {
  CHECK_THAT(with_record("data/weights/weight_0",
                         [](std::string& zip, size_t record) {
                           put(zip, record + 20, 0xfffffff0, 4);
                           put(zip, record + 24, 0xfffffff0, 4);
                         }),
             mentions("data/weights/weight_0: "));
  CHECK_THAT(edited("mlp", weights_json,
                    [](Json& m) {
                      for (Json& weight : m["config"])
                        for (Json& size : weight["tensor_meta"]["strides"]) size["as_int"] = int64_t{1} << 62;
                    }),
             mentions("2^63 bytes"));
  CHECK_THAT(
      edited("mlp", model_json,
             [](Json& m) {
               m["graph_module"]["graph"]["tensor_values"]["relu"]["sizes"][0] = {{"as_expr", {{"expr_str", std::string(70000, '(')}, {"hint", nullptr}}}};
             }),
      mentions("a shorter expression"));
  Entries entries = entries_of(fixture_bytes("mlp.pt2"));
  entry(entries, model_json) = std::string(1'000'000, '[');
  CHECK_THAT(error_of(zip_of(entries)), mentions("models/model.json: expected JSON of at most 200 levels"));
}

TEST_CASE("cycles: a value is there before the node that reads it") {
  CHECK_THAT(edited("mlp", model_json, [](Json& m) { node_of(m, 1)["inputs"][0]["arg"]["as_tensor"]["name"] = "mm"; }),
             mentions("nodes[1] (addmm).inputs[0] (self).arg.as_tensor.name: expected the name of a value that is"));
  CHECK_THAT(edited("mlp", model_json, [](Json& m) { node_of(m, 2)["inputs"][0]["arg"]["as_tensor"]["name"] = "relu"; }), mentions("found \"relu\""));
}

TEST_CASE("missing weights: of the table, of the archive") {
  CHECK_THAT(edited("mlp", weights_json, [](Json& m) { m["config"].erase(m["config"].begin()); }),
             mentions("expected the name of a weight or constant that the archive has"));
  Entries entries = entries_of(fixture_bytes("mlp.pt2"));
  std::erase_if(entries, [](const ZipEntry& e) { return e.name == "data/weights/weight_0"; });
  CHECK_THAT(error_of(zip_of(entries)), mentions("path_name: expected the name of an entry in data/weights/"));
}

TEST_CASE("wrong dtypes: unknown ones, and another than the graph's") {
  const auto with_dtype = [](int dtype) {
    return edited("mlp", weights_json, [dtype](Json& m) { m["config"].begin().value()["tensor_meta"]["dtype"] = dtype; });
  };
  CHECK_THAT(with_dtype(8), mentions("expected the graph's dtype f32"));
  CHECK_THAT(with_dtype(99), mentions("scalar type 99"));
}

TEST_CASE("operands of a higher-order operator: no list, and too few") {
  const auto with_operands = [](const Json& operands) {
    return edited("control", model_json, [&](Json& m) {
      for (Json& node : m["graph_module"]["graph"]["nodes"])
        if (node["target"] == "torch.ops.higher_order.wrap_with_autocast") node["inputs"] = operands;
    });
  };
  CHECK_THAT(with_operands(7), mentions("inputs: expected a list of at least 1, found 7"));
  CHECK_THAT(with_operands(Json::array()), mentions("inputs: expected a list of at least 1, found a list of 0"));
}

}  // namespace cxxinductor::readers
