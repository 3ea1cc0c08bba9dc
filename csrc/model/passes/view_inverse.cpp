#include "model/passes/view_inverse.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "support/error.h"

namespace cxxinductor::model {
namespace {

ArgList to_list(const std::vector<sym::Expr>& expressions) {
  ArgList list;
  for (sym::Expr e : expressions) list.push_back(e.is_constant() ? Arg(e.constant()) : Arg(e));
  return list;
}

Arg to_arg(sym::Expr e) { return e.is_constant() ? Arg(e.constant()) : Arg(e); }

bool is_one_of(std::string_view callee, std::initializer_list<std::string_view> names) { return std::find(names.begin(), names.end(), callee) != names.end(); }

// The arguments of a view by position and name.
class ViewArguments {
 public:
  explicit ViewArguments(const Call& call) : call_(call) {}
  const Arg* find(size_t position, std::string_view name) const {
    if (position < call_.args.size()) return call_.args[position].is_none() ? nullptr : &call_.args[position];
    for (const auto& [keyword, arg] : call_.kwargs)
      if (keyword == name) return arg.is_none() ? nullptr : &arg;
    return nullptr;
  }
  int64_t integer(size_t position, std::string_view name, int64_t otherwise) const {
    const Arg* arg = find(position, name);
    if (arg == nullptr) return otherwise;
    if (const auto* value = arg->as<int64_t>()) return *value;
    throw_unsupported("{}: argument '{}' is {}, not an integer", full_name(call_), name, to_string(*arg));
  }
  sym::Expr expr(size_t position, std::string_view name, sym::Expr otherwise) const {
    const Arg* arg = find(position, name);
    if (arg == nullptr) return otherwise;
    if (const auto* value = arg->as<int64_t>()) return *value;
    if (const auto* value = arg->as<sym::Expr>()) return *value;
    throw_unsupported("{}: argument '{}' is {}, not an integer", full_name(call_), name, to_string(*arg));
  }
  // None where it is absent.
  Arg given(size_t position, std::string_view name) const {
    const Arg* arg = find(position, name);
    return arg != nullptr ? *arg : Arg();
  }

 private:
  const Call& call_;
};

size_t wrapped(int64_t dim, size_t rank) { return static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(rank) : dim); }

// The dimensions of the base in the order of the view's.
std::vector<size_t> permutation_of(const Call& view, const ViewArguments& arguments, size_t rank) {
  std::vector<size_t> order(rank);
  for (size_t d = 0; d < rank; ++d) order[d] = d;
  if (view.callee == "aten::t") {
    std::reverse(order.begin(), order.end());
  } else if (view.callee == "aten::transpose") {
    if (rank > 0) std::swap(order[wrapped(arguments.integer(1, "dim0", 0), rank)], order[wrapped(arguments.integer(2, "dim1", 0), rank)]);
  } else {
    const ArgList* dims = view.args.size() > 1 ? view.args[1].as<ArgList>() : nullptr;
    if (dims == nullptr || dims->size() != rank) throw_unsupported("{}: expected {} dimensions", full_name(view), rank);
    for (size_t d = 0; d < rank; ++d) order[d] = wrapped(*dims->at(d).as<int64_t>(), rank);
  }
  return order;
}

ArgList inverse_permutation(const std::vector<size_t>& order) {
  ArgList inverse(order.size());
  for (size_t d = 0; d < order.size(); ++d) inverse[order[d]] = Arg(static_cast<int64_t>(d));
  return inverse;
}

Call call_of(std::string callee, std::string overload, std::vector<Arg> args) {
  Call call;
  call.callee = std::move(callee);
  call.overload = std::move(overload);
  call.args = std::move(args);
  return call;
}

// Of split and its kin: the part of the base along a dimension.
Call scatter_part(const CallGraph& graph, const Call& view, size_t result, int64_t dim, CallValue base, CallValue changed) {
  const size_t along = wrapped(dim, graph.values[base].sizes.size());
  sym::Expr start = 0;
  for (size_t r = 0; r < result; ++r) start = start + graph.values[view.results[r]].sizes[along];
  const sym::Expr end = start + graph.values[view.results[result]].sizes[along];
  return call_of("aten::slice_scatter", "", {OperandRef{base}, OperandRef{changed}, dim, to_arg(start), to_arg(end), int64_t{1}});
}

sym::Expr product(const std::vector<sym::Expr>& sizes) {
  sym::Expr all = 1;
  for (sym::Expr size : sizes) all = all * size;
  return all;
}

}  // namespace

Call inverse_of_view(const CallGraph& graph, const Call& view, size_t result, CallValue base, CallValue changed) {
  const CallValueInfo& info = graph.values[base];
  const ViewArguments arguments(view);
  const OperandRef to{base}, from{changed};
  const std::string_view callee = view.callee;
  if (is_one_of(callee, {"aten::alias", "aten::detach", "aten::lift_fresh"})) return call_of("aten::alias", "", {from});
  if (callee == "aten::view" && view.overload == "dtype") return call_of("aten::view", "dtype", {from, info.dtype});
  if (is_one_of(callee, {"aten::view", "aten::_unsafe_view", "aten::reshape", "aten::_reshape_alias", "aten::unsqueeze", "aten::squeeze"}))
    return call_of("aten::reshape", "", {from, to_list(info.sizes)});
  if (is_one_of(callee, {"aten::permute", "aten::transpose", "aten::t"}))
    return call_of("aten::permute", "", {from, inverse_permutation(permutation_of(view, arguments, info.sizes.size()))});
  if (callee == "aten::select") return call_of("aten::select_scatter", "", {to, from, arguments.integer(1, "dim", 0), arguments.given(2, "index")});
  if (callee == "aten::slice")
    return call_of("aten::slice_scatter", "",
                   {to, from, arguments.integer(1, "dim", 0), arguments.given(2, "start"), arguments.given(3, "end"), to_arg(arguments.expr(4, "step", 1))});
  if (callee == "aten::diagonal")
    return call_of("aten::diagonal_scatter", "",
                   {to, from, arguments.integer(1, "offset", 0), arguments.integer(2, "dim1", 0), arguments.integer(3, "dim2", 1)});
  if (callee == "aten::unbind") return call_of("aten::select_scatter", "", {to, from, arguments.integer(1, "dim", 0), static_cast<int64_t>(result)});
  if (is_one_of(callee, {"aten::split", "aten::split_with_sizes"})) return scatter_part(graph, view, result, arguments.integer(2, "dim", 0), base, changed);
  if (callee == "aten::view_as_real") return call_of("aten::view_as_complex", "", {from});
  if (callee == "aten::view_as_complex") return call_of("aten::view_as_real", "", {from});
  const CallValueInfo& shown = graph.values[view.results[result]];
  if (callee == "aten::expand" && sym::prove_equal(product(shown.sizes), product(info.sizes), graph.assumptions))
    return call_of("aten::reshape", "", {from, to_list(info.sizes)});
  if (callee == "aten::expand") throw_unsupported("a write to a view of aten::expand, whose elements share memory");
  if (shown.dtype != info.dtype) throw_unsupported("a write to a view of {}", full_name(view));
  return call_of("aten::as_strided_scatter", "", {to, from, to_list(shown.sizes), to_list(shown.strides), to_arg(shown.storage_offset)});
}

}  // namespace cxxinductor::model
