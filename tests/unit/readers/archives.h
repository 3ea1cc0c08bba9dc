// Archives for the reader's tests: the fixtures of tests/data/pt2, taken apart, edited and put together again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "model/schema.h"
#include "readers/pt2/read_pt2.h"

namespace cxxinductor::readers {

struct ZipEntry {
  std::string name;  // without the archive's folder
  std::string bytes;
};

std::string fixture_bytes(const std::string& name);
std::vector<ZipEntry> entries_of(const std::string& zip);
// Stored entries in the folder "model/", each aligned to 64 bytes as torch aligns them.
std::string zip_of(const std::vector<ZipEntry>& entries);
std::string& entry(std::vector<ZipEntry>& entries, const std::string& name);

// Edits a JSON entry in place.
using Edit = std::function<void(nlohmann::json&)>;
void edit_json(std::vector<ZipEntry>& entries, const std::string& name, const Edit& edit);

constexpr const char* model_json = "models/model.json";
constexpr const char* weights_json = "data/weights/model_weights_config.json";

// Schemas of the ops that the fixtures call, by argument names.
class FixtureSchemas : public model::SchemaSource {
 public:
  std::optional<model::Schema> find(std::string_view callee, std::string_view overload) const override;
};

Program read(const std::string& zip);
// The error that reading gives, "Unsupported: " before one of that kind; "read" if there is none.
std::string error_of(const std::string& zip);
// That of a fixture with a JSON entry edited.
std::string edited(const std::string& fixture, const std::string& entry_name, const Edit& edit);
// A node of a model's graph. Of mlp.pt2: 0 permute, 1 addmm, 2 relu, 3 permute, 4 mm.
nlohmann::json& node_of(nlohmann::json& model, size_t i);

}  // namespace cxxinductor::readers
