#include "model/decompose/fragment.h"

#include <algorithm>

namespace cxxinductor::model {

const std::optional<OpRule>& RuleCache::find(const Call& call) {
  const std::string name = full_name(call);
  auto found = rules_.find(name);
  if (found == rules_.end()) found = rules_.emplace(name, OpRule::find(call.callee, call.overload, schemas_)).first;
  return found->second;
}

Arg Fragment::operator[](std::string_view name) const {
  const Arg* found = arguments_.find(name);
  return found == nullptr ? Arg() : *found;
}

CallValueInfo Fragment::info(const Arg& tensor) const {
  const auto* ref = tensor.as<OperandRef>();
  if (ref == nullptr) throw NoRule();
  return graph_.values[ref->operand];
}

std::vector<Arg> Fragment::all(std::string_view op, std::vector<Arg> args, Keywords keywords) {
  Call call;
  const size_t dot = std::min(op.find('.'), op.size());
  call.callee = op.substr(0, dot);
  call.overload = dot == op.size() ? std::string_view() : op.substr(dot + 1);
  call.args = std::move(args);
  call.kwargs = std::move(keywords);
  call.origin = call_.origin;
  const auto& rule = rules_.find(call);
  auto results = rule ? rule->infer(graph_, call, questions_) : std::nullopt;
  if (!results) throw NoRule();
  std::vector<Arg> found;
  for (CallValueInfo& info : *results) {
    info.name.clear();
    call.results.push_back(static_cast<CallValue>(graph_.values.size()));
    found.emplace_back(OperandRef{call.results.back()});
    graph_.values.push_back(std::move(info));
  }
  graph_.calls.push_back(std::move(call));
  return found;
}

Arg Fragment::operator()(std::string_view op, std::vector<Arg> args, Keywords keywords) { return all(op, std::move(args), std::move(keywords)).at(0); }

Arg Fragment::cast(const Arg& tensor, DType dtype) { return this->dtype(tensor) == dtype ? tensor : (*this)("aten::_to_copy", {tensor}, {{"dtype", dtype}}); }

Arg Fragment::wide(const Arg& tensor) { return cast(tensor, compute_type(dtype(tensor))); }

Arg Fragment::number(const Arg& value, DType dtype, const Arg& like) {
  return (*this)("aten::full", {ArgList(), value}, {{"dtype", dtype}, {"device", info(like).device}});
}

Arg Fragment::sum(const Arg& tensor, const std::vector<int64_t>& dims, bool keep) {
  return dims.empty() ? tensor : (*this)("aten::sum.dim_IntList", {tensor, to_arg(dims), keep});
}

Arg Fragment::view(const Arg& tensor, const std::vector<sym::Expr>& sizes) { return (*this)("aten::reshape", {tensor, to_arg(sizes)}); }

bool is_floating(DType dtype) { return dtype == DType::F16 || dtype == DType::BF16 || dtype == DType::F32 || dtype == DType::F64; }

Arg to_arg(sym::Expr e) { return e.is_constant() ? Arg(e.constant()) : Arg(e); }
Arg to_arg(const std::vector<sym::Expr>& list) {
  ArgList items;
  for (sym::Expr e : list) items.push_back(to_arg(e));
  return items;
}
Arg to_arg(const std::vector<int64_t>& list) {
  ArgList items;
  for (int64_t item : list) items.push_back(item);
  return items;
}

}  // namespace cxxinductor::model
