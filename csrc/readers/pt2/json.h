// JSON of untrusted files: parsed by nlohmann under limits, read through fields that know their place.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "support/error.h"

namespace cxxinductor::readers {

using Json = nlohmann::json;

class Field;

// A parsed entry. Limits: depth 200, 20 million values; no object has a key twice. UserError with the entry's name.
class Document {
 public:
  Document(std::string entry, std::string_view text);
  // JSON that is a text of another document, which must outlive this one; errors name that text's place as the entry.
  explicit Document(const Field& text);
  std::string entry() const;  // for errors: searches the outer document
  const Json& root() const { return root_; }

 private:
  void parse(std::string_view text);

  std::string entry_;
  const Document* outer_ = nullptr;
  const Json* text_ = nullptr;  // in outer_
  Json root_;
};

// A value of a document. Getters check the type; every error is "models/model.json: graph.nodes[3] (relu).target:
// expected .., found ..". Only valid while the document lives.
class Field {
 public:
  explicit Field(const Document& document) : Field(document, document.root()) {}

  Field at(std::string_view key) const;                   // of an object; UserError if it has no such key
  std::optional<Field> find(std::string_view key) const;  // nullopt if it is missing or null
  bool is_null() const { return json_->is_null(); }
  size_t size() const;         // of a list
  Field item(size_t i) const;  // of a list, which must have it
  // The one key of a union and its value: {"as_int": 3}.
  std::pair<std::string_view, Field> alternative() const;
  // Calls visit(key, field) for each member of an object, in the order of the keys.
  template <class Visit>
  void for_each_member(const Visit& visit) const {
    require(json_->is_object(), "an object");
    for (const auto& [key, value] : json_->get_ref<const Json::object_t&>()) visit(std::string_view(key), Field(*document_, value));
  }
  template <class Visit>
  void for_each_item(const Visit& visit) const {
    for (size_t i = 0, count = size(); i < count; ++i) visit(item(i));
  }

  const Json& json() const { return *json_; }
  std::string_view text() const;
  int64_t integer() const;
  int64_t integer(int64_t low, int64_t high) const;
  double real() const;  // also "Infinity", "-Infinity" and "NaN", as torch writes them
  bool boolean() const;

  std::string place() const;                                // for errors: searches the document
  [[noreturn]] void fail(std::string_view expected) const;  // UserError with what was found
  void require(bool holds, std::string_view expected) const {
    if (!holds) fail(expected);
  }
  template <class... Args>
  [[noreturn]] void unsupported(fmt::format_string<Args...> format, Args&&... args) const {
    throw Unsupported(fmt::format("{}: {}", place(), fmt::format(format, std::forward<Args>(args)...)));
  }
  // Runs f; errors of other layers get this place.
  template <class F>
  auto guarded(const F& f) const {
    try {
      return f();
    } catch (const UserError& error) {
      throw UserError(fmt::format("{}: {}", place(), error.what()));
    } catch (const Unsupported& error) {
      throw Unsupported(fmt::format("{}: {}", place(), error.what()));
    }
  }

 private:
  friend class Document;
  Field(const Document& document, const Json& json) : document_(&document), json_(&json) {}

  const Document* document_;
  const Json* json_;
};

}  // namespace cxxinductor::readers
