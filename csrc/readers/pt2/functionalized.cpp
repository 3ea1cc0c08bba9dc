// Nodes that stand for ops which write to arguments: auto_functionalized and auto_functionalized_v2. They become what the
// operators do: copies of what is written, and the op on the copies.
#include "model/infer/layout.h"
#include "readers/pt2/graph_reader.h"
#include "readers/pt2/printable.h"

namespace cxxinductor::readers {

using model::Call;
using model::CallValue;
using model::CallValueInfo;
using model::Schema;
using model::SchemaArgument;

namespace {

class Functionalized {
 public:
  // values: what the node names its arguments and what they are, in order.
  Functionalized(const Field& node, Reading& reading, std::vector<std::pair<std::string, Arg>> values, Call call)
      : node_(node), reading_(reading), call_(std::move(call)) {
    for (auto& [name, value] : values)
      if (!given_.emplace(name, std::move(value)).second) node_.fail(fmt::format("an argument {} that is not given twice", printable(name)));
  }

  // Appends the calls but the last, which it returns without results. copies(): what the op wrote, none where nothing is.
  Call read(const Schema& schema, bool of_views) {
    for (const SchemaArgument& argument : schema.arguments)
      if (argument.written && !of_views) add_copies(take(argument.name));
    if (of_views) add_copies(take("_all_bases"));
    size_t next = 0;
    for (const SchemaArgument& argument : schema.arguments) {
      if (!argument.written) {
        if (const auto found = given_.find(argument.name); found != given_.end()) call_.kwargs.emplace_back(argument.name, take(argument.name));
      } else if (of_views) {
        call_.kwargs.emplace_back(argument.name, argument.is_list ? views("_" + argument.name) : view("_" + argument.name));
      } else if (argument.is_list) {
        node_.unsupported("a list of tensors that {} writes", model::full_name(call_));
      } else {
        call_.kwargs.emplace_back(argument.name, copies_.at(next++));
      }
    }
    if (!given_.empty()) node_.fail(fmt::format("arguments of {}, found {}", model::full_name(call_), printable(given_.begin()->first)));
    return std::move(call_);
  }

  const std::vector<Arg>& copies() const { return copies_; }

 private:
  Arg take(const std::string& name) {
    const auto found = given_.find(name);
    if (found == given_.end()) node_.fail(fmt::format("an argument {}", printable(name)));
    return std::move(given_.extract(found).mapped());
  }

  const CallValueInfo& info(const Arg& tensor) const { return reading_.calls.values[tensor.as<OperandRef>()->operand]; }
  bool is_tensor(const Arg& value) const { return value.as<OperandRef>() != nullptr && info(value).kind == CallValueInfo::Kind::Tensor; }

  Arg add_call(std::string callee, std::string overload, std::vector<Arg> args, CallValueInfo result) {
    Call call;
    call.callee = std::move(callee);
    call.overload = std::move(overload);
    call.args = std::move(args);
    call.origin = call_.origin;
    result.name = fmt::format("functionalized.{}", reading_.copies++);  // no name of torch's has a point
    result.storage = 0;
    reading_.calls.values.push_back(std::move(result));
    call.results = {static_cast<CallValue>(reading_.calls.values.size() - 1)};
    reading_.calls.calls.push_back(call);
    return OperandRef{call.results.front()};
  }

  static Arg list_of(const std::vector<sym::Expr>& items) {
    ArgList list;
    for (sym::Expr item : items) list.push_back(item.is_constant() ? Arg(item.constant()) : Arg(item));
    return list;
  }

  Arg as_strided(const Arg& base, const std::vector<sym::Expr>& sizes, const std::vector<sym::Expr>& strides, sym::Expr offset) {
    CallValueInfo shown = info(base);
    shown.sizes = sizes;
    shown.strides = strides;
    shown.storage_offset = offset;
    const Arg place = offset.is_constant() ? Arg(offset.constant()) : Arg(offset);
    return add_call("aten::as_strided", "", {base, list_of(sizes), list_of(strides), place}, std::move(shown));
  }

  // In the strides of the tensor, at the start of memory of its own: gaps are copied too.
  Arg copy_of(const Arg& tensor) {
    CallValueInfo copied = info(tensor);
    const sym::Expr offset = copied.storage_offset;
    copied.storage_offset = 0;
    model::ProvenSizes sizes(reading_.calls.assumptions);
    if (model::is_dense(copied, sizes)) return add_call("aten::clone", "", {tensor}, copied);
    sym::Expr length = 1;
    for (size_t d = 0; d < copied.sizes.size(); ++d) length = length + (copied.sizes[d] - 1) * copied.strides[d];
    const Arg memory = as_strided(tensor, {length}, {1}, offset);
    CallValueInfo flat = info(memory);
    flat.storage_offset = 0;
    return as_strided(add_call("aten::clone", "", {memory}, flat), copied.sizes, copied.strides, 0);
  }

  void add_copies(const Arg& value) {
    const auto* list = value.as<ArgList>();
    if (list == nullptr) return add_copy(value);
    for (const Arg& item : *list) add_copy(item);
  }
  void add_copy(const Arg& value) {
    if (!value.is_none() && !is_tensor(value)) node_.fail("tensors to write to");
    offsets_.push_back(value.is_none() ? sym::Expr(0) : info(value).storage_offset);
    copies_.push_back(value.is_none() ? Arg() : copy_of(value));
  }

  int64_t take_number(const std::string& name) {
    const Arg value = take(name);
    const auto* number = value.as<int64_t>();
    if (number == nullptr) node_.fail(fmt::format("a number as {}", printable(name)));
    return *number;
  }
  sym::Expr to_expr(const Arg& value) const {
    if (const auto* e = value.as<sym::Expr>()) return *e;
    const auto* number = value.as<int64_t>();
    if (number == nullptr) node_.fail("sizes, strides and places that are integers");
    return *number;
  }
  std::vector<sym::Expr> take_list(const std::string& name) {
    const Arg value = take(name);
    const auto* list = value.as<ArgList>();
    if (list == nullptr) node_.fail(fmt::format("a list as {}", printable(name)));
    std::vector<sym::Expr> out;
    for (const Arg& item : *list) out.push_back(to_expr(item));
    return out;
  }

  Arg views(const std::string& prefix) {
    const Arg length = take(prefix + "_length");
    if (length.is_none()) return {};
    const auto* count = length.as<int64_t>();
    if (count == nullptr || *count < 0 || static_cast<size_t>(*count) > given_.size())
      node_.fail(fmt::format("the length of a list as {}_length", printable(prefix)));
    ArgList list;
    for (int64_t i = 0; i < *count; ++i) list.push_back(view(fmt::format("{}_{}", prefix, i)));
    return list;
  }

  // Of a copy: as torch._higher_order_ops.auto_functionalize.write_view_information_to_args describes it.
  Arg view(const std::string& prefix) {
    if (given_.contains(prefix + "_base_index") && given_[prefix + "_base_index"].is_none()) {
      take(prefix + "_base_index");
      return {};
    }
    const int64_t index = take_number(prefix + "_base_index");
    if (index < 0 || static_cast<size_t>(index) >= copies_.size() || copies_[static_cast<size_t>(index)].is_none())
      node_.fail(fmt::format("the number of a base as {}_base_index", printable(prefix)));
    const Arg& base = copies_[static_cast<size_t>(index)];
    if (given_.contains(prefix + "_alias")) {
      take(prefix + "_alias");
      return base;
    }
    if (given_.contains(prefix + "_storage_offset")) {
      const auto sizes = take_list(prefix + "_size"), strides = take_list(prefix + "_stride");
      if (sizes.size() != strides.size()) node_.fail(fmt::format("as many strides as sizes of {}", printable(prefix)));
      return as_strided(base, sizes, strides, to_expr(take(prefix + "_storage_offset")) - offsets_[static_cast<size_t>(index)]);
    }
    if (!given_.contains(prefix + "_slice_dim")) return base;
    const int64_t dim = take_number(prefix + "_slice_dim");
    const sym::Expr start = to_expr(take(prefix + "_slice_start")), end = to_expr(take(prefix + "_slice_end"));
    CallValueInfo shown = info(base);
    if (dim < 0 || static_cast<size_t>(dim) >= shown.sizes.size()) node_.fail(fmt::format("a dimension as {}_slice_dim", printable(prefix)));
    shown.sizes[static_cast<size_t>(dim)] = end - start;
    shown.storage_offset = shown.storage_offset + start * shown.strides[static_cast<size_t>(dim)];
    return add_call("aten::slice", "Tensor", {base, dim, start, end}, std::move(shown));
  }

  const Field node_;
  Reading& reading_;
  Call call_;
  std::map<std::string, Arg> given_;
  std::vector<Arg> copies_;
  std::vector<sym::Expr> offsets_;  // of what they are copies of
};

}  // namespace

void GraphReader::read_functionalized(const Field& node, bool of_views) {
  const Field operands = node.at("inputs"), outputs = node.at("outputs");
  operands.require(operands.size() >= 1, "an op");
  Call call;
  read_target(operands.item(0).at("arg").at("as_operator"), call);
  const auto schema = reading_.schemas.find(call.callee, call.overload);
  if (!schema) operands.item(0).fail("an op that is registered with the dispatcher");
  call.origin = read_origin(node);
  call.autocast = autocast_;
  std::vector<std::pair<std::string, Arg>> values;
  for (size_t i = 1; i < operands.size(); ++i) values.emplace_back(operands.item(i).at("name").text(), argument(operands.item(i).at("arg")));
  Functionalized functionalized(node, reading_, std::move(values), std::move(call));
  call = functionalized.read(*schema, of_views);

  const size_t results = schema->returns.size(), before = std::max<size_t>(results, 1);
  const std::vector<Arg>& copies = functionalized.copies();
  outputs.require(outputs.size() == before + copies.size(), fmt::format("{} results", before + copies.size()));
  for (size_t r = 0; r < results; ++r) {
    if (outputs.item(r).alternative().first == "as_tensors") outputs.item(r).unsupported("a list as the result of {}", model::full_name(call));
    read_result(outputs.item(r), call);
  }
  for (size_t i = 0; i < copies.size(); ++i) {
    const auto [kind, value] = outputs.item(before + i).alternative();
    outputs.item(before + i).require(kind == (copies[i].is_none() ? "as_none" : "as_tensor"), "what the op wrote");
    if (!copies[i].is_none()) bind(value.at("name"), copies[i]);
  }
  reading_.calls.calls.push_back(std::move(call));
}

}  // namespace cxxinductor::readers
