// Reads at data-dependent indices: embedding, index_select, gather and integer index.Tensor.
#include "frontend/aten_table.h"
#include "frontend/indices.h"
#include "ir/graph/infer.h"

namespace cxxinductor::frontend {
bool is_index(const CallContext& context, ValueId id) { return context.dtype(id) == DType::I64 || context.dtype(id) == DType::I32; }

namespace {

// x[.., index, ..]: the index's dims stand where `dim` stood. Eager refuses negative indices here.
ValueId take_along(CallContext& context, ValueId x, int dim, ValueId index) {
  const int index_rank = context.rank(index);
  graph::Gather gather;
  gather.wrap = false;
  for (int d = 0; d < context.rank(x); ++d) gather.source.push_back(d < dim ? d : d == dim ? -1 : d - 1 + index_rank);
  for (int e = 0; e < index_rank; ++e) gather.index_dims.push_back(dim + e);
  return context.build.gather(x, {index}, std::move(gather), context.result().sizes);
}

Results import_embedding(CallContext& context) {
  const ValueId weight = context.tensor(0, "weight"), indices = context.tensor(1, "indices");
  if (context.rank(weight) != 2 || !is_index(context, indices)) return std::nullopt;
  return std::vector{take_along(context, weight, 0, indices)};
}

Results import_index_select(CallContext& context) {
  const ValueId x = context.tensor(0, "self"), index = context.tensor(2, "index");
  if (context.rank(x) == 0 || context.rank(index) == 0) return context.decline_rank_0();
  if (context.rank(index) != 1 || !is_index(context, index)) return std::nullopt;
  return std::vector{take_along(context, x, context.dim(1, "dim", 0, context.rank(x)), index)};
}

// gather(self, dim, index): index has self's rank; other coordinates are the result's own.
Results import_gather(CallContext& context) {
  const ValueId x = context.tensor(0, "self"), index = context.tensor(2, "index");
  const int rank = context.rank(x);
  if (rank == 0 || context.rank(index) == 0) return context.decline_rank_0();
  if (context.rank(index) != rank) return context.decline("its index is empty and has another rank");
  if (!is_index(context, index)) return std::nullopt;
  const int dim = context.dim(1, "dim", 0, rank);
  graph::Gather gather;
  gather.wrap = false;
  for (int d = 0; d < rank; ++d) {
    gather.source.push_back(d == dim ? -1 : d);
    gather.index_dims.push_back(d);
  }
  return std::vector{context.build.gather(x, {index}, std::move(gather), context.result().sizes)};
}

// The tensors of an index list by dimension of x, on its device; none when one is a mask.
std::optional<std::vector<std::optional<ValueId>>> index_list(const CallContext& context, ValueId x) {
  const Arg* arg = context.find(1, "indices");
  const ArgList* list = arg == nullptr ? nullptr : arg->as<ArgList>();
  if (list == nullptr || list->size() > static_cast<size_t>(context.rank(x))) return std::nullopt;
  std::vector<std::optional<ValueId>> indices(static_cast<size_t>(context.rank(x)));
  for (size_t d = 0; d < list->size(); ++d) {
    if ((*list)[d].is_none()) continue;
    const auto index = context.as_tensor((*list)[d]);
    if (!index || !is_index(context, *index)) return context.decline("an index of it is a mask");
    indices[d] = context.on_device_of_result(*index);
    if (!indices[d]) return std::nullopt;
  }
  return indices;
}

// x[i, :, j]
Results import_index(CallContext& context) {
  const ValueId x = context.tensor(0, "self");
  auto dims = indexed_dims(context, x);
  if (!dims) return std::nullopt;
  graph::Gather gather;
  gather.source = std::move(dims->source);
  gather.index_dims = std::move(dims->index_dims);
  return std::vector{context.build.gather(x, std::move(dims->indices), std::move(gather), context.result().sizes)};
}

}  // namespace

// Index dims stand where the first index stood if all indexed dims are adjacent, and in front if not.
std::optional<IndexedDims> indexed_dims(CallContext& context, ValueId x) {
  const auto indices = index_list(context, x);
  if (!indices) return std::nullopt;
  const int rank = context.rank(x);
  Sizes sizes;
  int first = -1, last = -1, count = 0;
  for (int d = 0; d < rank; ++d) {
    const auto& index = (*indices)[static_cast<size_t>(d)];
    if (!index) continue;
    sizes = graph::broadcast_sizes(context.assumptions(), sizes, context.value(*index).sizes);
    first = first < 0 ? d : first;
    last = d;
    ++count;
  }
  if (count == 0) return std::nullopt;
  const bool adjacent = last - first + 1 == count;
  const int place = adjacent ? first : 0, index_rank = static_cast<int>(sizes.size());
  IndexedDims dims;
  int next = adjacent ? 0 : index_rank;  // result dim of the next dimension that is not indexed
  for (int d = 0; d < rank; ++d) {
    if (const auto& index = (*indices)[static_cast<size_t>(d)]) {
      dims.source.push_back(-1 - static_cast<int>(dims.indices.size()));
      const bool same = graph::same_sizes(context.assumptions(), context.value(*index).sizes, sizes);
      dims.indices.push_back(same ? *index : context.build.expand(*index, sizes));
      if (adjacent && d == last) next += index_rank;
    } else {
      dims.source.push_back(next++);
      dims.sizes.push_back(context.value(x).sizes[static_cast<size_t>(d)]);
    }
  }
  dims.sizes.insert(dims.sizes.begin() + place, sizes.begin(), sizes.end());
  for (int e = 0; e < index_rank; ++e) dims.index_dims.push_back(place + e);
  return dims;
}

void add_indexing_rows(ImportTable& table) {
  table.emplace("aten::embedding", ImportRow{import_embedding, Accepts::Copies});
  table.emplace("aten::index_select", ImportRow{import_index_select, Accepts::Copies});
  table.emplace("aten::gather", ImportRow{import_gather, Accepts::Copies});
  for (const char* name : {"aten::index.Tensor", "aten::_unsafe_index.Tensor"})
    table.emplace(name, ImportRow{.importer = import_index, .accepts = Accepts::Copies, .host_constants = true});
}

}  // namespace cxxinductor::frontend
