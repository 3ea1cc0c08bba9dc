// Arguments of nodes: unions of one key, each a number, a name, or a list.
#include <array>

#include "readers/pt2/graph_reader.h"
#include "readers/pt2/printable.h"
#include "readers/pt2/types.h"

namespace cxxinductor::readers {

using model::CallValueInfo;

namespace {

// A list of lists of ..., of this depth, of what `read` makes of an item.
template <class Read>
Arg read_nested(const Field& field, int depth, const Read& read) {
  if (depth == 0) return read(field);
  ArgList list;
  field.for_each_item([&](const Field& item) { list.push_back(read_nested(item, depth - 1, read)); });
  return list;
}

Arg complex_number(const Field& field) { return std::complex<double>(field.at("real").real(), field.at("imag").real()); }

// Arguments that name nothing.
struct ConstantRow {
  std::string_view key;
  int depth;
  Arg (*read)(const Field&);
};
constexpr auto integer = [](const Field& f) -> Arg { return f.integer(); };
constexpr auto real = [](const Field& f) -> Arg { return f.real(); };
constexpr auto boolean = [](const Field& f) -> Arg { return f.boolean(); };
constexpr auto string = [](const Field& f) -> Arg { return std::string(f.text()); };
constexpr std::array constants{ConstantRow{"as_none", 0, [](const Field&) -> Arg { return None{}; }},
                               ConstantRow{"as_int", 0, integer},
                               ConstantRow{"as_ints", 1, integer},
                               ConstantRow{"as_int_lists", 2, integer},
                               ConstantRow{"as_float", 0, real},
                               ConstantRow{"as_floats", 1, real},
                               ConstantRow{"as_bool", 0, boolean},
                               ConstantRow{"as_bools", 1, boolean},
                               ConstantRow{"as_string", 0, string},
                               ConstantRow{"as_strings", 1, string},
                               ConstantRow{"as_complex", 0, complex_number},
                               ConstantRow{"as_scalar_type", 0, [](const Field& f) -> Arg { return read_dtype(f); }},
                               ConstantRow{"as_layout", 0, [](const Field& f) -> Arg { return read_layout(f); }},
                               ConstantRow{"as_memory_format", 0, [](const Field& f) -> Arg { return read_memory_format(f); }},
                               ConstantRow{"as_device", 0, [](const Field& f) -> Arg { return read_device(f); }}};

}  // namespace

const Arg& GraphReader::bound(const Field& name) const {
  const auto found = names_.find(std::string(name.text()));
  if (found == names_.end()) name.fail("the name of a value that is defined before");
  return found->second;
}

Arg GraphReader::tensor(const Field& tensor) const {
  const Field name = tensor.at("name");
  const Arg& value = bound(name);
  const auto* ref = value.as<OperandRef>();
  const bool is_tensor = ref != nullptr && reading_.calls.values[ref->operand].kind == CallValueInfo::Kind::Tensor;
  name.require(is_tensor, "the name of a tensor");
  return value;
}

Arg GraphReader::optional_tensor(const Field& argument) const {
  const auto [kind, value] = argument.alternative();
  if (kind == "as_none") return None{};
  argument.require(kind == "as_tensor", "as_tensor or as_none");
  return tensor(value);
}

Arg GraphReader::symbolic(const Field& argument) const {
  const auto [kind, value] = argument.alternative();
  if (kind == "as_int") return value.integer();
  if (kind == "as_float") return value.real();
  if (kind == "as_bool") return value.boolean();
  argument.require(kind == "as_name", "as_name, as_int, as_float or as_bool");
  const Arg& found = bound(value);
  const auto* ref = found.as<OperandRef>();
  const bool is_tensor = ref != nullptr && reading_.calls.values[ref->operand].kind == CallValueInfo::Kind::Tensor;
  value.require(!is_tensor, "the name of a number");
  return found;
}

Arg GraphReader::argument(const Field& argument) const {
  const auto [key, value] = argument.alternative();
  for (const ConstantRow& row : constants)
    if (row.key == key) return read_nested(value, row.depth, row.read);
  struct NamingRow {
    std::string_view key;
    int depth;
    Arg (GraphReader::*read)(const Field&) const;
  };
  static constexpr std::array naming{NamingRow{"as_tensor", 0, &GraphReader::tensor},
                                     NamingRow{"as_tensors", 1, &GraphReader::tensor},
                                     NamingRow{"as_nested_tensors", 2, &GraphReader::tensor},
                                     NamingRow{"as_optional_tensor", 0, &GraphReader::optional_tensor},
                                     NamingRow{"as_optional_tensors", 1, &GraphReader::optional_tensor},
                                     NamingRow{"as_sym_int", 0, &GraphReader::symbolic},
                                     NamingRow{"as_sym_ints", 1, &GraphReader::symbolic},
                                     NamingRow{"as_sym_float", 0, &GraphReader::symbolic},
                                     NamingRow{"as_sym_floats", 1, &GraphReader::symbolic},
                                     NamingRow{"as_sym_bool", 0, &GraphReader::symbolic},
                                     NamingRow{"as_sym_bools", 1, &GraphReader::symbolic}};
  for (const NamingRow& row : naming)
    if (row.key == key) return read_nested(value, row.depth, [&](const Field& item) { return (this->*row.read)(item); });
  if (key == "as_custom_obj") argument.unsupported("custom objects of class {}", printable(value.at("class_fqn").text()));
  argument.unsupported("arguments of kind {}", printable(key));
}

}  // namespace cxxinductor::readers
