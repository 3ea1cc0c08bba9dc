#include "readers/pt2/types.h"

#include <array>
#include <limits>

#include "ir/device_types.h"
#include "ir/text_parts.h"
#include "readers/pt2/printable.h"

namespace cxxinductor::readers {
namespace {

template <class T>
struct Row {
  int number;  // in the archive
  T value;
};

constexpr std::array dtypes{Row<DType>{1, DType::U8},    Row<DType>{2, DType::I8},   Row<DType>{3, DType::I16},       Row<DType>{4, DType::I32},
                            Row<DType>{5, DType::I64},   Row<DType>{6, DType::F16},  Row<DType>{7, DType::F32},       Row<DType>{8, DType::F64},
                            Row<DType>{9, DType::C32},   Row<DType>{10, DType::C64}, Row<DType>{11, DType::C128},     Row<DType>{12, DType::Bool},
                            Row<DType>{13, DType::BF16}, Row<DType>{28, DType::U16}, Row<DType>{29, DType::F8E4M3FN}, Row<DType>{30, DType::F8E5M2}};

// The values are those of c10::Layout and c10::MemoryFormat.
constexpr std::array layouts{Row<int>{1, 1}, Row<int>{2, 2}, Row<int>{3, 4}, Row<int>{4, 5}, Row<int>{5, 6}, Row<int>{6, 3}, Row<int>{7, 0}};
constexpr std::array memory_formats{Row<int>{1, 0}, Row<int>{2, 2}, Row<int>{3, 3}, Row<int>{4, 1}};

template <class T, size_t n>
T look_up(const std::array<Row<T>, n>& rows, const Field& field, std::string_view what) {
  const int64_t number = field.integer();
  for (const Row<T>& row : rows)
    if (row.number == number) return row.value;
  field.unsupported("{} {} is not supported", what, number);
}

std::vector<sym::Expr> read_list(const Field& list, Symbols& symbols) {
  list.require(list.size() <= max_text_rank, fmt::format("at most {} dimensions", max_text_rank));
  std::vector<sym::Expr> out;
  list.for_each_item([&](const Field& item) {
    out.push_back(symbols.integer(item));
    item.require(!out.back().is_constant() || out.back().constant() >= 0, "an integer that is not negative");
  });
  return out;
}

}  // namespace

DType read_dtype(const Field& scalar_type) { return look_up(dtypes, scalar_type, "scalar type"); }
LayoutArg read_layout(const Field& layout) { return {look_up(layouts, layout, "layout")}; }
MemoryFormatArg read_memory_format(const Field& memory_format) { return {look_up(memory_formats, memory_format, "memory format")}; }

Device read_device(const Field& device) {
  const std::string_view type = device.at("type").text();
  constexpr int64_t max_index = std::numeric_limits<int8_t>::max();
  const auto index = device.find("index");
  for (const DeviceTypeInfo& row : device_types())
    if (row.text == type) return {row.type, row.has_streams && index ? static_cast<int>(index->integer(0, max_index)) : 0};
  device.at("type").unsupported("tensors on device {} are not supported", printable(type));
}

model::CallValueInfo read_tensor(const Field& meta, Symbols& symbols) {
  const Field layout = meta.at("layout");
  if (read_layout(layout).torch_layout != 0) layout.unsupported("tensors that are not strided are not supported");
  model::CallValueInfo info;
  info.dtype = read_dtype(meta.at("dtype"));
  info.device = read_device(meta.at("device"));
  info.sizes = read_list(meta.at("sizes"), symbols);
  info.strides = read_list(meta.at("strides"), symbols);
  meta.require(info.sizes.size() == info.strides.size(), "as many sizes as strides");
  info.storage_offset = symbols.integer(meta.at("storage_offset"));
  return info;
}

}  // namespace cxxinductor::readers
