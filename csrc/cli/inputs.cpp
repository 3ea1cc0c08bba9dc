#include "cli/inputs.h"

#include <ATen/EmptyTensor.h>
#include <c10/util/Exception.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <iterator>

#include "cli/quiet.h"
#include "readers/pt2/printable.h"
#include "support/error.h"

namespace cxxinductor::cli {
namespace {

// The unpickler takes offset, sizes and strides from the file and compares them with no storage.
void require_in_storage(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.layout() != at::kStrided || tensor.is_quantized()) throw_user_error("expected dense tensors");
  for (const at::IntArrayRef numbers : {tensor.sizes(), tensor.strides()})
    for (const int64_t number : numbers)
      if (number < 0) throw_user_error("expected sizes and strides that are not negative, found {}", number);
  const size_t reached = at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.itemsize(), static_cast<size_t>(tensor.storage_offset()));
  if (tensor.storage_offset() < 0 || reached > tensor.storage().nbytes())
    throw_user_error("expected tensors inside of their storage, found one that reaches byte {} of {}", reached, tensor.storage().nbytes());
}

void require_valid_tensors(const c10::IValue& value) {
  if (value.isTensor()) return require_in_storage(value.toTensor());
  if (value.isTuple())
    for (const c10::IValue& item : value.toTupleRef().elements()) require_valid_tensors(item);
  if (value.isList())
    for (const c10::IValue& item : value.toListRef()) require_valid_tensors(item);
  if (value.isGenericDict())
    for (const auto& item : value.toGenericDict()) require_valid_tensors(item.value());
}

// Those of a tuple or a list; the value itself otherwise.
std::vector<c10::IValue> items_of(const c10::IValue& value) {
  if (value.isTuple()) return value.toTupleRef().elements().vec();
  if (value.isList()) return value.toListRef().vec();
  return {value};
}

void add_leaves(const c10::IValue& value, const readers::TreeSpec& spec, std::vector<c10::IValue>& leaves) {
  if (spec.is_leaf()) {
    leaves.push_back(value);
    return;
  }
  const bool named = spec.type == "builtins.dict" || spec.type == "collections.OrderedDict" || spec.type == "collections.defaultdict";
  if (named ? !value.isGenericDict() : !value.isTuple() && !value.isList()) throw_user_error("expected a {}, found {}", spec.type, value.tagKind());
  if (!named) {
    const std::vector<c10::IValue> items = items_of(value);
    if (items.size() != spec.children.size()) throw_user_error("expected {} items in a {}, found {}", spec.children.size(), spec.type, items.size());
    for (size_t i = 0; i < items.size(); ++i) add_leaves(items[i], spec.children[i], leaves);
    return;
  }
  const auto dict = value.toGenericDict();
  if (spec.keys.size() != spec.children.size() || dict.size() != spec.children.size())
    throw_user_error("expected a {} of {} named items, found {}", spec.type, spec.children.size(), dict.size());
  for (size_t i = 0; i < spec.keys.size(); ++i) {
    const auto item = dict.find(spec.keys[i]);
    if (item == dict.end()) throw_user_error("expected an item '{}' in a {}", spec.keys[i], spec.type);
    add_leaves(item->value(), spec.children[i], leaves);
  }
}

}  // namespace

c10::IValue read_saved(std::span<const std::byte> bytes, const std::string& what) {
  const Quiet quiet;  // about attributes that tensors had in Python
  try {
    const auto* data = reinterpret_cast<const char*>(bytes.data());
    c10::IValue value = torch::jit::pickle_load({data, data + bytes.size()});
    require_valid_tensors(value);
    return value;
  } catch (const c10::Error& error) {
    throw_user_error("{}: expected tensors, numbers, texts and containers of them as torch.save writes them: {}", what,
                     readers::printable(error.what_without_backtrace()));
  } catch (const Error& error) {
    throw_user_error("{}: {}", what, error.what());
  }
}

std::vector<c10::IValue> read_samples(const ModelFile& file) {
  const readers::Program& program = file.program;
  const std::string what = "the file's sample inputs";
  const auto [offset, size] = *program.sample_inputs;
  if (!program.signature.in_spec) throw_user_error("{}: the signature does not say how they are nested", what);
  std::vector<c10::IValue> leaves;
  try {
    add_leaves(read_saved(file.bytes.span.subspan(offset, size), what), *program.signature.in_spec, leaves);
  } catch (const Error& error) {
    if (std::string_view(error.what()).starts_with(what)) throw;
    throw_user_error("{}: {}", what, error.what());
  }
  return leaves;
}

std::vector<c10::IValue> read_files(const std::vector<std::string>& paths) {
  std::vector<c10::IValue> values;
  for (const std::string& path : paths) {
    std::vector<c10::IValue> items = items_of(read_saved(api::map_file(path).span, path));
    values.insert(values.end(), std::make_move_iterator(items.begin()), std::make_move_iterator(items.end()));
  }
  return values;
}

Inputs choose_inputs(const ModelFile& file, const Arguments& arguments) {
  if (!arguments.inputs.empty()) {
    if (arguments.random || !arguments.sizes.empty()) throw_user_error("--inputs: expected neither --random nor --size beside it");
    return {read_files(arguments.inputs), "of " + arguments.inputs.front()};
  }
  std::string unread;
  if (file.program.sample_inputs && !arguments.random && arguments.sizes.empty()) {
    try {
      return {read_samples(file), "the file's samples"};
    } catch (const Error& error) {
      unread = std::string("; not used: ") + error.what();
    }
  }
  return {make_random_inputs(file.program, arguments.sizes, arguments.seed), "random, seed " + std::to_string(arguments.seed) + unread};
}

std::vector<c10::IValue> copies(const std::vector<c10::IValue>& values) {
  std::vector<c10::IValue> copied = values;
  for (c10::IValue& value : copied)
    if (value.isTensor() && value.toTensor().defined()) value = value.toTensor().clone();
  return copied;
}

}  // namespace cxxinductor::cli
