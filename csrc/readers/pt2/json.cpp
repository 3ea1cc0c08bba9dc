#include "readers/pt2/json.h"

#include <cmath>
#include <limits>
#include <vector>

#include "readers/pt2/printable.h"

namespace cxxinductor::readers {
namespace {

constexpr size_t max_depth = 200;
constexpr size_t max_values = 20'000'000;

// Builds a Json from the parser's events.
class TreeBuilder final : public nlohmann::json_sax<Json> {
 public:
  TreeBuilder(const Document& document, Json& root) : document_(document), root_(root) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& key) override {
    auto [member, fresh] = stack_.back()->get_ref<Json::object_t&>().try_emplace(std::move(key), nullptr);
    if (!fresh) throw_user_error("{}: an object has the key \"{}\" twice", document_.entry(), printable(member->first));
    member_ = &member->second;
    return true;
  }

  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    throw_user_error("{}: expected JSON text, found an error at byte {}", document_.entry(), position);
  }

 private:
  bool add(Json value) {
    place(std::move(value));
    return true;
  }
  bool open(Json value) {
    if (stack_.size() >= max_depth) throw_user_error("{}: expected JSON of at most {} levels", document_.entry(), max_depth);
    stack_.push_back(&place(std::move(value)));
    return true;
  }
  bool close() {
    stack_.pop_back();
    return true;
  }
  Json& place(Json value) {
    if (++count_ > max_values) throw_user_error("{}: expected at most {} JSON values", document_.entry(), max_values);
    if (stack_.empty()) return root_ = std::move(value);
    if (stack_.back()->is_array()) {
      auto& items = stack_.back()->get_ref<Json::array_t&>();
      items.push_back(std::move(value));
      return items.back();
    }
    return *member_ = std::move(value);
  }

  const Document& document_;
  Json& root_;
  std::vector<Json*> stack_;  // the containers that are open; an item of a list stays where it is while it is open
  Json* member_ = nullptr;
  size_t count_ = 0;
};

// The name of a list's item that has one: nodes and arguments are easier to find by it.
std::string name_of(const Json& item) {
  if (!item.is_object()) return {};
  const auto found = item.find("name");
  if (found == item.end() || !found->is_string() || found->get_ref<const std::string&>().empty()) return {};
  return fmt::format(" ({})", printable(found->get_ref<const std::string&>()));
}

// Appends the path from `from` to the value at this address; false if it is not in there.
bool find_path(const Json& from, const Json* to, std::string& path) {
  if (&from == to) return true;
  const size_t length = path.size();
  if (from.is_object()) {
    for (const auto& [key, value] : from.get_ref<const Json::object_t&>()) {
      path += (path.empty() ? "" : ".") + printable(key);
      if (find_path(value, to, path)) return true;
      path.resize(length);
    }
  } else if (from.is_array()) {
    for (size_t i = 0; i < from.size(); ++i) {
      path += fmt::format("[{}]{}", i, name_of(from[i]));
      if (find_path(from[i], to, path)) return true;
      path.resize(length);
    }
  }
  return false;
}

std::string shown(const Json& json) {
  if (json.is_object()) {
    const auto& members = json.get_ref<const Json::object_t&>();
    if (members.empty()) return "an empty object";
    return fmt::format("an object of {} with \"{}\"", members.size(), printable(members.begin()->first));
  }
  if (json.is_array()) return fmt::format("a list of {}", json.size());
  if (json.is_string()) return fmt::format("\"{}\"", printable(json.get_ref<const std::string&>()));
  return json.dump();
}

}  // namespace

Document::Document(std::string entry, std::string_view text) : entry_(std::move(entry)) { parse(text); }
Document::Document(const Field& text) : outer_(text.document_), text_(text.json_) { parse(text.text()); }

void Document::parse(std::string_view text) {
  TreeBuilder builder(*this, root_);
  if (!Json::sax_parse(text.begin(), text.end(), &builder)) throw_user_error("{}: expected JSON text", entry());
}

std::string Document::entry() const { return outer_ ? Field(*outer_, *text_).place() : entry_; }

std::string Field::place() const {
  std::string path;
  find_path(document_->root(), json_, path);
  return path.empty() ? document_->entry() : fmt::format("{}: {}", document_->entry(), path);
}

void Field::fail(std::string_view expected) const { throw_user_error("{}: expected {}, found {}", place(), expected, shown(*json_)); }

Field Field::at(std::string_view key) const {
  require(json_->is_object(), "an object");
  const auto found = json_->find(key);
  if (found == json_->end()) fail(fmt::format("an object with \"{}\"", key));
  return {*document_, *found};
}

std::optional<Field> Field::find(std::string_view key) const {
  require(json_->is_object(), "an object");
  const auto found = json_->find(key);
  if (found == json_->end() || found->is_null()) return std::nullopt;
  return Field(*document_, *found);
}

size_t Field::size() const {
  require(json_->is_array(), "a list");
  return json_->size();
}

Field Field::item(size_t i) const {
  if (!json_->is_array() || i >= json_->size()) fail(fmt::format("a list of at least {}", i + 1));
  return {*document_, json_->get_ref<const Json::array_t&>()[i]};
}

std::pair<std::string_view, Field> Field::alternative() const {
  require(json_->is_object() && json_->size() == 1, "an object with one key");
  const auto& [key, value] = *json_->get_ref<const Json::object_t&>().begin();
  return {key, Field(*document_, value)};
}

std::string_view Field::text() const {
  require(json_->is_string(), "a text");
  return json_->get_ref<const std::string&>();
}

int64_t Field::integer() const {
  constexpr auto largest = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  const bool fits = json_->is_number_integer() && !(json_->is_number_unsigned() && json_->get<uint64_t>() > largest);
  require(fits, "an integer of 64 bits");
  return json_->get<int64_t>();
}

int64_t Field::integer(int64_t low, int64_t high) const {
  const int64_t value = integer();
  if (value < low || value > high) fail(fmt::format("an integer from {} to {}", low, high));
  return value;
}

double Field::real() const {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (json_->is_string()) {
    const std::string_view name = text();
    if (name == "Infinity") return infinity;
    if (name == "-Infinity") return -infinity;
    if (name == "NaN") return std::numeric_limits<double>::quiet_NaN();
  }
  require(json_->is_number(), "a number");
  return json_->get<double>();
}

bool Field::boolean() const {
  require(json_->is_boolean(), "true or false");
  return json_->get<bool>();
}

}  // namespace cxxinductor::readers
