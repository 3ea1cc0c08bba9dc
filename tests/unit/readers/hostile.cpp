// Archives that are wrong in one way each: the error names the entry or field, what was expected and what was found.
#include <ctime>

#include "unit/catch.h"
#include "unit/readers/archives.h"

namespace cxxinductor::readers {
namespace {

using Json = nlohmann::json;
using Entries = std::vector<ZipEntry>;

std::string edited_model(const Edit& edit) { return edited("mlp", model_json, edit); }
Json& graph_of(Json& model) { return model["graph_module"]["graph"]; }

std::string edited_entries(const std::function<void(Entries&)>& edit) {
  Entries entries = entries_of(fixture_bytes("mlp.pt2"));
  edit(entries);
  return error_of(zip_of(entries));
}

// With the 2- or 4-byte field at this offset of the directory record of the entry (of its local header: negative)
// changed.
std::string with_record_field(const std::string& name, int offset, uint32_t value, int bytes) {
  std::string zip = zip_of(entries_of(fixture_bytes("mlp.pt2")));
  const std::string full = "model/" + name;
  constexpr size_t local_header = 30, record = 46;
  const size_t at = offset < 0 ? zip.find(full) - local_header + static_cast<size_t>(-offset) : zip.rfind(full) - record + static_cast<size_t>(offset);
  for (int i = 0; i < bytes; ++i) zip[at + static_cast<size_t>(i)] = static_cast<char>(value >> (8 * i));
  return error_of(zip);
}

}  // namespace

TEST_CASE("archives that are taken apart and put together again read") {
  for (const char* name : {"mlp", "tied", "training", "nested", "sizes", "control"})
    CHECK(error_of(zip_of(entries_of(fixture_bytes(std::string(name) + ".pt2")))) == "read");
}

TEST_CASE("what is not a zip archive is an error") {
  CHECK_THAT(error_of(""), mentions("expected a zip archive, found 0 bytes"));
  CHECK_THAT(error_of(std::string(100000, 'P')), mentions("expected a zip archive"));
  const std::string zip = fixture_bytes("mlp.pt2");
  constexpr size_t end_record = 22;  // repeats what the 64-bit record before it says
  for (size_t size = 0; size + end_record < zip.size(); size += 7) CHECK(error_of(zip.substr(0, size)) != "read");
}

TEST_CASE("bad zip entries are errors") {
  CHECK_THAT(with_record_field(model_json, 10, 8, 2), mentions("model/models/model.json: expected a stored entry, found compression method 8"));
  CHECK_THAT(with_record_field(model_json, 8, 1, 2), mentions("not encrypted"));
  CHECK_THAT(with_record_field(model_json, 20, 5, 4), mentions("expected equal sizes of a stored entry, found 5 and"));
  CHECK_THAT(with_record_field(model_json, 16, 12345, 4), mentions("header"));  // the checksum of one header only
  CHECK_THAT(with_record_field("data/weights/weight_0", 42, 0xfffffff0, 4), mentions("weight_0: the entry's header"));
  CHECK_THAT(with_record_field("data/weights/weight_0", -8, 8, 2),
             mentions("contradicts"));  // the local header's method
  CHECK_THAT(edited_entries([](Entries& e) { e.push_back(e.front()); }), mentions("two such entries"));
  CHECK_THAT(edited_entries([](Entries& e) { e.front().name = std::string(2000, 'n'); }), mentions("names of 1 to 1024 characters"));
  CHECK_THAT(edited_entries([](Entries& e) { e.front().name[2] = '\0'; }), mentions("zero byte"));
  CHECK_THAT(edited_entries([](Entries& e) { std::erase_if(e, [](const ZipEntry& z) { return z.name == "archive_format"; }); }),
             mentions("archive_format: the archive has no such entry"));

  std::string elsewhere = zip_of(entries_of(fixture_bytes("mlp.pt2")));
  for (size_t at = elsewhere.find("model/archive_version"); at != elsewhere.npos; at = elsewhere.find("model/archive_version", at + 1)) elsewhere[at] = 'n';
  CHECK_THAT(error_of(elsewhere), mentions("expected an entry in the folder model/"));
}

TEST_CASE("entries that share bytes are errors") {
  // The directory's record of one weight names the local header of another of equal length.
  std::string zip = zip_of(entries_of(fixture_bytes("mlp.pt2")));
  const size_t first = zip.rfind("model/data/weights/weight_0"), second = zip.rfind("model/data/weights/weight_2");
  REQUIRE(first != zip.npos);
  constexpr size_t record = 46, crc = 16, sizes_end = 28, offset = 42;
  zip.replace(second - record + crc, sizes_end - crc, zip, first - record + crc, sizes_end - crc);
  zip.replace(second - record + offset, 4, zip, first - record + offset, 4);
  CHECK_THAT(error_of(zip), mentions("overlaps"));
}

TEST_CASE("what is written by others is named") {
  CHECK_THAT(edited_entries([](Entries& e) { entry(e, "archive_format") = "zip"; }), mentions("archive_format: expected pt2, found zip"));
  CHECK_THAT(edited_entries([](Entries& e) { entry(e, "byteorder") = "big"; }), mentions("Unsupported: byteorder"));
  CHECK_THAT(edited_entries([](Entries& e) { e.push_back({"models/other.json", "{}"}); }), mentions("one exported program, found 2"));
  CHECK_THAT(edited_entries([](Entries& e) {
               e.push_back({"serialized_exported_program.json", "{}"});
             }),
             mentions("Unsupported: ") && mentions("older than 2.11"));
  CHECK_THAT(edited_model([](Json& m) { m["schema_version"]["major"] = 9; }), mentions("Unsupported: ") && mentions("version 9"));
}

TEST_CASE("bad JSON is an error") {
  const auto with_text = [](const std::string& text) { return edited_entries([&](Entries& e) { entry(e, model_json) = text; }); };
  CHECK_THAT(with_text(""), mentions("models/model.json: expected JSON text"));
  CHECK_THAT(with_text("{\"a\": 1,}"), mentions("an error at byte 9"));
  CHECK_THAT(with_text("\"\xff\""), mentions("expected JSON text"));
  CHECK_THAT(with_text("{\"a\": 1, \"a\": 2}"), mentions("the key \"a\" twice"));
  CHECK_THAT(with_text(std::string(100000, '[')), mentions("at most 200 levels"));
  CHECK_THAT(with_text("[]"), mentions("models/model.json: expected an object, found a list of 0"));
  CHECK_THAT(with_text("{}"), mentions("expected an object with \"graph_module\", found an empty object"));
}

TEST_CASE("bad nodes are errors") {
  CHECK_THAT(edited_model([](Json& m) { node_of(m, 2)["target"] = 7; }), mentions("graph_module.graph.nodes[2] (relu).target: expected a text, found 7"));
  CHECK_THAT(edited_model([](Json& m) { node_of(m, 2)["target"] = "torch.ops.aten"; }), mentions("torch.ops.namespace.op.overload"));
  CHECK_THAT(edited_model([](Json& m) { node_of(m, 2)["target"] = "os.system"; }), mentions("Unsupported: ") && mentions("calls of os.system"));
  CHECK_THAT(edited_model([](Json& m) { node_of(m, 2)["target"] = "torch.ops.higher_order.cond"; }), mentions("higher_order::cond"));
  CHECK_THAT(edited_model([](Json& m) { node_of(m, 2).erase("inputs"); }), mentions("expected an object with \"inputs\""));
  CHECK_THAT(edited_model([](Json& m) { node_of(m, 2)["metadata"]["stack_trace"] = 3; }), mentions("stack_trace: expected a text"));
  CHECK(edited_model([](Json& m) { node_of(m, 2)["target"] = "torch.ops.my.relu.default"; }) == "read");  // the allow-list is elsewhere
}

TEST_CASE("bad arguments are errors") {
  const auto with_argument = [](const Json& argument) { return edited_model([&](Json& m) { node_of(m, 2)["inputs"][0]["arg"] = argument; }); };
  CHECK_THAT(with_argument({{"as_tensor", {{"name", "mm"}}}}),  // a cycle
             mentions("nodes[2] (relu).inputs[0] (self).arg.as_tensor.name: expected the name of a value that is "
                      "defined before, found \"mm\""));
  CHECK_THAT(with_argument({{"as_tensor", {{"name", "nobody"}}}}), mentions("found \"nobody\""));
  CHECK_THAT(with_argument({{"as_int", 1.5}}), mentions("expected an integer of 64 bits, found 1.5"));
  CHECK_THAT(with_argument({{"as_int", 18446744073709551615U}}), mentions("expected an integer of 64 bits"));
  CHECK_THAT(with_argument({{"as_ints", 3}}), mentions("as_ints: expected a list, found 3"));
  CHECK_THAT(with_argument({{"as_float", "seven"}}), mentions("expected a number, found \"seven\""));
  CHECK_THAT(with_argument({{"as_int", 1}, {"as_float", 1}}), mentions("expected an object with one key"));
  CHECK_THAT(with_argument({{"as_magic", 1}}), mentions("Unsupported: ") && mentions("kind as_magic"));
  CHECK_THAT(with_argument({{"as_operator", "torch.ops.aten.add"}}), mentions("kind as_operator"));
  CHECK_THAT(with_argument({{"as_scalar_type", 14}}), mentions("Unsupported: ") && mentions("scalar type 14"));
  CHECK_THAT(with_argument({{"as_device", {{"type", "meta"}}}}), mentions("device meta"));
  CHECK_THAT(with_argument({{"as_custom_obj", {{"name", "x"}, {"class_fqn", "my.Class"}}}}), mentions("class my.Class"));
  CHECK(with_argument({{"as_float", "-Infinity"}}) == "read");
  CHECK(with_argument({{"as_int", 3}}) == "read");  // numbers where a schema has Tensor stay numbers

  const auto with_input = [](const Edit& edit) { return edited_model([&](Json& m) { edit(node_of(m, 1)["inputs"]); }); };
  CHECK_THAT(with_input([](Json& i) { i[0]["name"] = "weight"; }), mentions("expected an argument of aten::addmm"));
  CHECK_THAT(with_input([](Json& i) { std::swap(i[0], i[1]); }), mentions("arguments in the order of the schema"));
  CHECK_THAT(with_input([](Json& i) { i.push_back(i[0]); }), mentions("order of the schema"));
  CHECK_THAT(with_input([](Json& i) { i[2]["kind"] = 3; }), mentions("expected an integer from 1 to 2"));
  CHECK_THAT(with_input([](Json& i) {
               i.push_back({{"name", "beta"}, {"arg", {{"as_int", 1}}}, {"kind", 2}});
               i.push_back(i.back());
             }),
             mentions("given twice"));
}

TEST_CASE("what grows faster than the file is limited") {
  CHECK_THAT(edited_model([](Json& m) {
               Json& inputs = node_of(m, 2)["inputs"];
               inputs = Json(2000, inputs[0]);
             }),
             mentions("expected at most 1024 arguments, found a list of 2000"));
  const auto with_subgraph_name = [](const std::string& name) {
    return edited("nested", model_json, [&](Json& m) { node_of(m, 0)["inputs"][1]["arg"]["as_graph"]["name"] = name; });
  };
  CHECK(with_subgraph_name("other") == "read");
  CHECK_THAT(with_subgraph_name(std::string(300, 'n')), mentions("shorter names of nested subgraphs"));
  CHECK_THAT(with_subgraph_name("a b"), mentions("expected the name of a subgraph, found \"a b\""));
}

TEST_CASE("bad subgraphs are errors") {
  const auto with_subgraph = [](const Edit& edit) { return edited("nested", model_json, [&](Json& m) { edit(node_of(m, 0)); }); };
  CHECK_THAT(with_subgraph([](Json& n) { n["inputs"].erase(2); }), mentions("operands for the subgraph"));
  CHECK_THAT(with_subgraph([](Json& n) { n["inputs"][1]["arg"] = {{"as_int", 1}}; }), mentions("an object with \"as_graph\""));
  CHECK_THAT(with_subgraph([](Json& n) { n["inputs"][2]["arg"] = {{"as_int", 1}}; }), mentions("expected a tensor"));
  CHECK_THAT(with_subgraph([](Json& n) { n["outputs"].push_back(n["outputs"][0]); }), mentions("the subgraph's 1 results"));
  CHECK_THAT(with_subgraph([](Json& n) { n["target"] = "torch.ops.higher_order.wrap_with_autocast"; }), mentions("expected cpu or cuda, found false"));
  CHECK_THAT(with_subgraph([](Json& n) { n["target"] = "torch.ops.higher_order.flex_attention"; }), mentions("higher_order::flex_attention"));
}

TEST_CASE("bad results are errors") {
  const auto with_outputs = [](const Edit& edit) { return edited_model([&](Json& m) { edit(node_of(m, 2)["outputs"]); }); };
  CHECK_THAT(with_outputs([](Json& o) { o = Json::array(); }), mentions("the 1 results of aten::relu"));
  CHECK_THAT(with_outputs([](Json& o) { o.push_back(o[0]); }), mentions("the 1 results of aten::relu, found a list of 2"));
  CHECK_THAT(with_outputs([](Json& o) { o[0]["as_tensor"]["name"] = "x"; }), mentions("a new name"));
  CHECK_THAT(with_outputs([](Json& o) { o[0]["as_tensor"]["name"] = "a b"; }), mentions("letters, digits"));
  CHECK_THAT(with_outputs([](Json& o) { o[0]["as_tensor"]["name"] = "other"; }), mentions("a tensor in tensor_values"));
  CHECK_THAT(with_outputs([](Json& o) { o[0] = {{"as_tensors", {{{"name", "relu"}}}}}; }), mentions("results that are not a list"));
  CHECK_THAT(with_outputs([](Json& o) { o[0] = {{"as_sym_int", {{"as_name", "relu"}}}}; }), mentions("sym_int_values"));
}

TEST_CASE("bad tensors are errors") {
  const auto with_tensor = [](const Edit& edit) { return edited_model([&](Json& m) { edit(graph_of(m)["tensor_values"]["relu"]); }); };
  CHECK_THAT(with_tensor([](Json& t) { t["dtype"] = 0; }), mentions("tensor_values.relu.dtype: scalar type 0"));
  CHECK_THAT(with_tensor([](Json& t) { t["layout"] = 1; }), mentions("not strided"));
  CHECK_THAT(with_tensor([](Json& t) { t["strides"].erase(0); }), mentions("as many sizes as strides"));
  CHECK_THAT(with_tensor([](Json& t) { t["sizes"][0]["as_int"] = -1; }), mentions("expected an integer that is not negative"));
  CHECK_THAT(with_tensor([](Json& t) { t["sizes"] = Json(40, {{"as_int", 1}}); }), mentions("at most 16 dimensions, found a list of 40"));
  CHECK_THAT(with_tensor([](Json& t) { t["device"] = {{"type", "cuda"}, {"index", 4096}}; }), mentions("index: expected an integer from 0 to 127"));
  const auto with_size = [&](const std::string& text) {
    return with_tensor([&](Json& t) { t["sizes"][0] = {{"as_expr", {{"expr_str", text}, {"hint", nullptr}}}}; });
  };
  CHECK_THAT(with_size("Symbol('s9', integer=True)"), mentions("read"));  // any size of a result defines its symbol
  CHECK_THAT(with_size("s0 +"), mentions("sizes[0].as_expr: line 1"));
  CHECK_THAT(with_size("FloorDiv(Symbol('s9'), Integer(0))"), mentions("division by zero"));
  CHECK_THAT(with_size("Mul(Integer(9223372036854775807), Integer(2))"), mentions("overflows"));
  CHECK_THAT(with_size(std::string(70000, '(')), mentions("a shorter expression"));
  std::string power = "Add(Symbol('a'), Symbol('b'), Symbol('c'), Symbol('d'), Symbol('e'), Symbol('f'))";
  for (int i = 0; i < 3; ++i) power = "PowByNatural(" + power + ", Integer(16))";
  CHECK_THAT(with_size(power), mentions("Unsupported: ") && mentions("terms"));
  std::string tower = "Symbol('a')", absolute = "Symbol('a')";
  for (int i = 0; i < 6; ++i) tower = "PowByNatural(" + tower + ", Integer(16))";
  for (int i = 0; i < 100; ++i) absolute = "Abs(" + absolute + ")";
  CHECK_THAT(with_size(tower), mentions("Unsupported: ") && mentions("sizes[0]") && mentions("factors"));
  CHECK_THAT(with_size(absolute), mentions("Unsupported: ") && mentions("sizes[0]") && mentions("terms and factors"));
}

TEST_CASE("bad weights are errors") {
  const auto with_weight = [](const Edit& edit) { return edited("mlp", weights_json, [&](Json& w) { edit(w["config"]["up.weight"]); }); };
  CHECK_THAT(edited("mlp", weights_json, [](Json& w) { w["config"].erase("up.weight"); }),
             mentions("parameter_name: expected the name of a weight or constant that the archive has, found \"up.weight\""));
  CHECK_THAT(with_weight([](Json& w) { w["path_name"] = "weight_9"; }), mentions("up.weight.path_name: expected the name of an entry"));
  CHECK_THAT(with_weight([](Json& w) { w["path_name"] = "weight_1"; }), mentions("an entry of 32 bytes or more instead of 16"));
  CHECK_THAT(with_weight([](Json& w) { w["use_pickle"] = true; }), mentions("Unsupported: ") && mentions("pickled"));
  CHECK_THAT(with_weight([](Json& w) { w["tensor_meta"]["dtype"] = 8; }), mentions("the graph's dtype f32"));
  CHECK_THAT(with_weight([](Json& w) { w["tensor_meta"]["sizes"][0]["as_int"] = 3; }), mentions("the sizes that the graph has"));
  CHECK_THAT(with_weight([](Json& w) { w["tensor_meta"]["strides"][0]["as_int"] = int64_t{1} << 62; }), mentions("fewer than 2^63 bytes"));
  CHECK_THAT(with_weight([](Json& w) { w["tensor_meta"]["storage_offset"]["as_int"] = 1; }), mentions("36 bytes or more instead of 32"));
  CHECK_THAT(with_weight([](Json& w) { w["tensor_meta"]["storage_offset"]["as_int"] = -1; }), mentions("not negative"));
  CHECK_THAT(with_weight([](Json& w) { w["tensor_meta"] = nullptr; }), mentions("expected an object, found null"));
  CHECK_THAT(edited_entries([](Entries& e) { entry(e, "data/weights/weight_0").pop_back(); }), mentions("instead of 31"));

  const std::string zip = fixture_bytes("mlp.pt2");
  Entries other = entries_of(zip);
  edit_json(other, weights_json, [](Json& w) {
    auto& strides = w["config"]["up.weight"]["tensor_meta"]["strides"];
    strides[0]["as_int"] = 1, strides[1]["as_int"] = 4;
  });
  CHECK(read(zip_of(other)).calls.input_strides.begin()->second == std::vector<sym::Expr>{1, 4});
}

TEST_CASE("bad signatures are errors") {
  const auto with_signature = [](const std::string& fixture, const Edit& edit) {
    return edited(fixture, model_json, [&](Json& m) { edit(m["graph_module"]["signature"]); });
  };
  CHECK_THAT(with_signature("mlp", [](Json& s) { s["input_specs"].erase(0); }), mentions("input_specs: expected 4 items"));
  CHECK_THAT(with_signature("mlp", [](Json& s) { std::swap(s["input_specs"][0], s["input_specs"][1]); }), mentions("the name that the graph's input has"));
  CHECK_THAT(with_signature("mlp", [](Json& s) { s["input_specs"][1]["parameter"]["parameter_name"] = "up.weight"; }), mentions("that no weight before has"));
  CHECK_THAT(with_signature("mlp",
                            [](Json& s) {
                              s["input_specs"][3] = {{"token", {{"arg", {{"name", "x"}}}}}};
                            }),
             mentions("expected the name of a tensor, found \"x\""));
  CHECK_THAT(with_signature("mlp", [](Json& s) { s["output_specs"][0]["user_output"]["arg"]["as_tensor"]["name"] = "x"; }),
             mentions("the value that the graph's output has"));
  CHECK_THAT(with_signature("training", [](Json& s) { s["output_specs"][0]["buffer_mutation"]["buffer_name"] = "x"; }),
             mentions("buffer_name: expected the name of an input, found \"x\""));
  CHECK_THAT(with_signature("training", [](Json& s) { s["output_specs"][1]["buffer_mutation"]["buffer_name"] = "norm.running_mean"; }),
             mentions("C7") && mentions("two final versions"));
  CHECK_THAT(with_signature("training", [](Json& s) { s["output_specs"][0]["buffer_mutation"]["buffer_name"] = "norm.num_batches_tracked"; }),
             mentions("C7") && mentions("of another type"));
}

TEST_CASE("bad ranges and trees are errors") {
  CHECK_THAT(edited("sizes", model_json, [](Json& m) { m["range_constraints"].front() = {{"min_val", 9}, {"max_val", 2}}; }), mentions("min_val is not above"));
  CHECK_THAT(edited("sizes", model_json, [](Json& m) { m["range_constraints"].front()["min_val"] = "two"; }), mentions("an integer of 64 bits"));
  const auto with_tree = [](const std::string& text) {
    return edited_model([&](Json& m) { m["graph_module"]["module_call_graph"][0]["signature"]["out_spec"] = text; });
  };
  CHECK_THAT(with_tree("[2, {}]"), mentions("out_spec") && mentions("version 2"));
  CHECK_THAT(with_tree("[1"), mentions("out_spec: expected JSON text"));
  CHECK_THAT(with_tree(R"([1, {"type": "builtins.tuple", "context": "null", "children_spec": []}])"), mentions("1 leaves, one per result"));
  CHECK_THAT(
      with_tree(R"([1, {"type": "builtins.dict", "context": "[\"a\", \"b\"]", "children_spec": [{"type": null, "context": null, "children_spec": []}]}])"),
      mentions("as many keys as children"));
  CHECK_THAT(
      with_tree(R"([1, {"type": "builtins.dict", "context": "[\"a\", \"b\"", "children_spec": [{"type": null, "context": null, "children_spec": []}]}])"),
      mentions("signature.out_spec: [1].context: expected JSON text, found an error at byte"));
}

TEST_CASE("reading a specification takes time in proportion to its size") {
  constexpr int dicts = 20'000;
  Json children = Json::array();
  const Json leaf = {{"type", nullptr}, {"context", nullptr}, {"children_spec", Json::array()}};
  for (int i = 0; i < dicts; ++i) children.push_back({{"type", "builtins.dict"}, {"context", "[\"a\"]"}, {"children_spec", {leaf}}});
  const Json tree = {1, {{"type", "builtins.tuple"}, {"context", "null"}, {"children_spec", std::move(children)}}};
  const std::clock_t start = std::clock();  // of this process alone: others may hold the cores
  CHECK_THAT(edited_model([&](Json& m) { m["graph_module"]["module_call_graph"][0]["signature"]["out_spec"] = tree.dump(); }),
             mentions("1 leaves, one per result"));
  CHECK(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC < 5);
}

}  // namespace cxxinductor::readers
