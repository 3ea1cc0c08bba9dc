// The tensors that an archive holds, by name: where each lies and how it is laid out there.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "model/call_graph.h"
#include "readers/pt2/archive.h"
#include "readers/pt2/json.h"
#include "readers/pt2/read_pt2.h"
#include "readers/pt2/symbols.h"

namespace cxxinductor::readers {

// Bytes of storage up to the last element, the offset included; none where that is 2^63 or more.
std::optional<int64_t> bytes_reached(const WeightRef& weight);

class Weights {
 public:
  // The tables of the model of this name; every document has to be parsed already and outlive this.
  Weights(const Archive& archive, const Document& weights, const Document& constants);

  // What the file has under this name, checked against the metadata of the graph's input. `place`: who asks.
  WeightRef read(std::string_view name, WeightRef::Kind kind, const model::CallValueInfo& input, const Field& place);
  // Equal for weights that share storage, counted from 1.
  uint32_t storage_of(const WeightRef& weight) { return storages_.try_emplace(weight.byte_offset, storages_.size() + 1).first->second; }

 private:
  struct Payload {
    Field meta;
    std::string_view folder;
  };
  void add(const Document& table, std::string_view folder);

  const Archive& archive_;
  std::map<std::string, Payload, std::less<>> payloads_;
  std::map<size_t, uint32_t> storages_;
  Symbols symbols_;
};

}  // namespace cxxinductor::readers
