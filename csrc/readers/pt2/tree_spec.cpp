#include "readers/pt2/tree_spec.h"

#include "readers/pt2/printable.h"

namespace cxxinductor::readers {
namespace {

constexpr int64_t known_protocol = 1;

// Keys of a dict are JSON text in the context: ["a", "b"]. Others than texts stay in the context alone.
std::vector<std::string> keys_of(const Field& spec, const TreeSpec& tree) {
  const Document document(spec.at("context"));
  std::vector<std::string> keys;
  if (!document.root().is_array()) return keys;
  for (const Json& key : document.root()) {
    if (!key.is_string()) return {};
    keys.push_back(key.get_ref<const std::string&>());
  }
  spec.require(keys.size() == tree.children.size(), "as many keys as children");
  return keys;
}

std::vector<std::string> fields_of(const Field& spec, const TreeSpec& tree, const std::optional<Field>& named_tuples) {
  std::vector<std::string> fields;
  const auto definition = named_tuples ? named_tuples->find(tree.context) : std::nullopt;
  if (!definition) return fields;
  definition->at("field_names").for_each_item([&](const Field& name) { fields.emplace_back(name.text()); });
  spec.require(fields.size() == tree.children.size(), "as many children as the named tuple has fields");
  return fields;
}

TreeSpec read_node(const Field& spec, const std::optional<Field>& named_tuples) {
  TreeSpec tree;
  const auto type = spec.find("type");
  const Field children = spec.at("children_spec");
  if (!type) {
    children.require(children.size() == 0, "no children of a leaf");
    return tree;
  }
  tree.type = type->text();
  type->require(!tree.type.empty(), "the name of a type");
  if (const auto context = spec.find("context")) {
    tree.has_json_context = !context->json().is_string();
    tree.context = tree.has_json_context ? context->json().dump() : std::string(context->text());
  }
  children.for_each_item([&](const Field& child) { tree.children.push_back(read_node(child, named_tuples)); });
  if (tree.type == "builtins.dict" || tree.type == "collections.OrderedDict") tree.keys = keys_of(spec, tree);
  if (tree.type == "collections.namedtuple") tree.keys = fields_of(spec, tree, named_tuples);
  return tree;
}

Json to_json(const TreeSpec& spec) {
  if (spec.is_leaf()) return {{"type", nullptr}, {"context", nullptr}, {"children_spec", Json::array()}};
  Json children = Json::array();
  for (const TreeSpec& child : spec.children) children.push_back(to_json(child));
  return {{"type", spec.type},
          {"context", spec.has_json_context ? Json::parse(spec.context, nullptr, false) : Json(spec.context)},
          {"children_spec", std::move(children)}};
}

}  // namespace

std::string print_tree(const TreeSpec& spec) { return Json::array({known_protocol, to_json(spec)}).dump(-1, ' ', false, Json::error_handler_t::replace); }

size_t leaf_count(const TreeSpec& spec) {
  if (spec.is_leaf()) return 1;
  size_t count = 0;
  for (const TreeSpec& child : spec.children) count += leaf_count(child);
  return count;
}

TreeSpec read_tree_spec(const Field& text, const std::optional<Field>& named_tuples) {
  const Document document(text);
  const Field root(document);
  root.require(root.size() == 2, "a list of a version and a specification");
  const int64_t protocol = root.item(0).integer();
  if (protocol != known_protocol) root.item(0).unsupported("version {} of pytree specifications", protocol);
  return read_node(root.item(1), named_tuples);
}

}  // namespace cxxinductor::readers
