#include "readers/pt2/weights.h"

#include "readers/pt2/printable.h"
#include "readers/pt2/types.h"

namespace cxxinductor::readers {
namespace {

std::vector<int64_t> constants_of(const std::vector<sym::Expr>& list, const Field& meta) {
  std::vector<int64_t> out;
  for (sym::Expr e : list) {
    meta.require(e.is_constant(), "sizes, strides and offset that are integers");
    out.push_back(e.constant());
  }
  return out;
}

}  // namespace

std::optional<int64_t> bytes_reached(const WeightRef& weight) {
  int64_t last = weight.storage_offset;
  bool fits = true;
  for (size_t d = 0; d < weight.sizes.size(); ++d) {
    if (weight.sizes[d] == 0) return 0;
    int64_t step = 0;
    fits = fits && !__builtin_mul_overflow(weight.sizes[d] - 1, weight.strides[d], &step) && !__builtin_add_overflow(last, step, &last);
  }
  int64_t bytes = 0;
  fits = fits && !__builtin_add_overflow(last, 1, &last) && !__builtin_mul_overflow(last, byte_size(weight.dtype), &bytes);
  return fits ? std::optional(bytes) : std::nullopt;
}

Weights::Weights(const Archive& archive, const Document& weights, const Document& constants) : archive_(archive) {
  add(weights, "data/weights/");
  add(constants, "data/constants/");
}

void Weights::add(const Document& table, std::string_view folder) {
  Field(table).at("config").for_each_member([&](std::string_view name, const Field& meta) {
    const bool fresh = payloads_.emplace(name, Payload{meta, folder}).second;
    if (!fresh) meta.fail("a name that no weight has too");
  });
}

WeightRef Weights::read(std::string_view name, WeightRef::Kind kind, const model::CallValueInfo& input, const Field& place) {
  const auto found = payloads_.find(name);
  if (found == payloads_.end()) place.fail("the name of a weight or constant that the archive has");
  const Field& payload = found->second.meta;
  if (payload.at("use_pickle").boolean()) payload.unsupported("{} is a pickled object, not a plain tensor", printable(name));
  const Field meta = payload.at("tensor_meta"), path = payload.at("path_name");
  const model::CallValueInfo stored = read_tensor(meta, symbols_);

  WeightRef weight;
  weight.name = name;
  weight.kind = kind;
  weight.dtype = stored.dtype;
  weight.sizes = constants_of(stored.sizes, meta);
  weight.strides = constants_of(stored.strides, meta);
  weight.storage_offset = constants_of({stored.storage_offset}, meta).front();
  meta.require(weight.storage_offset >= 0, "a storage_offset that is not negative");
  meta.require(stored.dtype == input.dtype, fmt::format("the graph's dtype {}", to_string(input.dtype)));
  meta.require(stored.sizes == input.sizes, fmt::format("the sizes that the graph has for {}", printable(name)));

  const ArchiveEntry* entry = archive_.find(fmt::format("{}{}", found->second.folder, path.text()));
  if (entry == nullptr) path.fail(fmt::format("the name of an entry in {}", found->second.folder));
  weight.byte_offset = entry->offset;
  weight.byte_size = entry->size;
  const auto reached = bytes_reached(weight);
  meta.require(reached.has_value(), "a tensor of fewer than 2^63 bytes");
  if (static_cast<uint64_t>(*reached) > entry->size) path.fail(fmt::format("an entry of {} bytes or more instead of {}", *reached, entry->size));
  if (*reached > 0 && entry->offset % static_cast<size_t>(byte_size(weight.dtype)) != 0)
    path.fail(fmt::format("an entry at a multiple of {} bytes instead of byte {}", byte_size(weight.dtype), entry->offset));
  return weight;
}

}  // namespace cxxinductor::readers
