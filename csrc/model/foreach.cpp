#include "model/foreach.h"

#include <algorithm>

namespace cxxinductor::model {
namespace {

const ForeachRow kRows[] = {
    {"aten::_foreach_add.Scalar", "aten::add", "Scalar"},
    {"aten::_foreach_add.ScalarList", "aten::add", "Scalar"},
    {"aten::_foreach_add.List", "aten::add", "Tensor"},
    {"aten::_foreach_add.Tensor", "aten::add", "Tensor"},
    {"aten::_foreach_sub.Scalar", "aten::sub", "Scalar"},
    {"aten::_foreach_sub.ScalarList", "aten::sub", "Scalar"},
    {"aten::_foreach_sub.List", "aten::sub", "Tensor"},
    {"aten::_foreach_mul.Scalar", "aten::mul", "Scalar"},
    {"aten::_foreach_mul.ScalarList", "aten::mul", "Scalar"},
    {"aten::_foreach_mul.List", "aten::mul", "Tensor"},
    {"aten::_foreach_mul.Tensor", "aten::mul", "Tensor"},
    {"aten::_foreach_div.Scalar", "aten::div", "Scalar"},
    {"aten::_foreach_div.ScalarList", "aten::div", "Scalar"},
    {"aten::_foreach_div.List", "aten::div", "Tensor"},
    {"aten::_foreach_div.Tensor", "aten::div", "Tensor"},
    {"aten::_foreach_pow.Scalar", "aten::pow", "Tensor_Scalar"},
    {"aten::_foreach_pow.ScalarList", "aten::pow", "Tensor_Scalar"},
    {"aten::_foreach_pow.List", "aten::pow", "Tensor_Tensor"},
    {"aten::_foreach_pow.ScalarAndTensor", "aten::pow", "Scalar"},
    {"aten::_foreach_maximum.Scalar", "aten::clamp_min", ""},
    {"aten::_foreach_maximum.ScalarList", "aten::clamp_min", ""},
    {"aten::_foreach_maximum.List", "aten::maximum", ""},
    {"aten::_foreach_minimum.Scalar", "aten::clamp_max", ""},
    {"aten::_foreach_minimum.ScalarList", "aten::clamp_max", ""},
    {"aten::_foreach_minimum.List", "aten::minimum", ""},
    {"aten::_foreach_clamp_min.Scalar", "aten::clamp_min", ""},
    {"aten::_foreach_clamp_min.ScalarList", "aten::clamp_min", ""},
    {"aten::_foreach_clamp_min.List", "aten::clamp_min", "Tensor"},
    {"aten::_foreach_clamp_max.Scalar", "aten::clamp_max", ""},
    {"aten::_foreach_clamp_max.ScalarList", "aten::clamp_max", ""},
    {"aten::_foreach_clamp_max.List", "aten::clamp_max", "Tensor"},
    {"aten::_foreach_addcmul.Scalar", "aten::addcmul", ""},
    {"aten::_foreach_addcmul.ScalarList", "aten::addcmul", ""},
    {"aten::_foreach_addcdiv.Scalar", "aten::addcdiv", ""},
    {"aten::_foreach_addcdiv.ScalarList", "aten::addcdiv", ""},
    {"aten::_foreach_lerp.Scalar", "aten::lerp", "Scalar"},
    {"aten::_foreach_lerp.ScalarList", "aten::lerp", "Scalar"},
    {"aten::_foreach_lerp.List", "aten::lerp", "Tensor"},
    {"aten::_foreach_copy", "aten::copy", ""},
    {"aten::_foreach_abs", "aten::abs", ""},
    {"aten::_foreach_exp", "aten::exp", ""},
    {"aten::_foreach_log", "aten::log", ""},
    {"aten::_foreach_neg", "aten::neg", ""},
    {"aten::_foreach_reciprocal", "aten::reciprocal", ""},
    {"aten::_foreach_rsqrt", "aten::rsqrt", ""},
    {"aten::_foreach_sigmoid", "aten::sigmoid", ""},
    {"aten::_foreach_sign", "aten::sign", ""},
    {"aten::_foreach_sqrt", "aten::sqrt", ""},
    {"aten::_foreach_tanh", "aten::tanh", ""},
};

Arg at_position(const Arg& arg, size_t position) {
  const ArgList* list = arg.as<ArgList>();
  return list == nullptr ? arg : (*list)[position];
}

}  // namespace

const ForeachRow* find_foreach(std::string_view overload) {
  const auto row = std::find_if(std::begin(kRows), std::end(kRows), [&](const ForeachRow& r) { return r.overload == overload; });
  return row == std::end(kRows) ? nullptr : row;
}

std::optional<std::vector<Call>> calls_of_foreach(const Call& call) {
  if (!call.callee.starts_with("aten::_foreach_")) return std::nullopt;
  const ForeachRow* row = find_foreach(full_name(call));
  if (row == nullptr || !call.result_is_list) return std::nullopt;
  const auto fits = [&](const Arg& arg) {
    const ArgList* list = arg.as<ArgList>();
    return list == nullptr || list->size() == call.results.size();
  };
  if (!std::all_of(call.args.begin(), call.args.end(), fits)) return std::nullopt;
  for (const auto& [keyword, arg] : call.kwargs)
    if (!fits(arg) || (keyword != "alpha" && keyword != "value")) return std::nullopt;
  std::vector<Call> calls;
  for (size_t i = 0; i < call.results.size(); ++i) {
    Call each;
    each.callee = row->callee;
    each.overload = row->each_overload;
    each.origin = call.origin;
    each.results = {call.results[i]};
    for (const Arg& arg : call.args) each.args.push_back(at_position(arg, i));
    for (const auto& [keyword, arg] : call.kwargs) each.kwargs.emplace_back(keyword, at_position(arg, i));
    // addcmul and addcdiv take their weight by name only.
    if (each.args.size() == 4 && each.overload.empty()) {
      each.kwargs.emplace_back("value", std::move(each.args.back()));
      each.args.pop_back();
    }
    calls.push_back(std::move(each));
  }
  return calls;
}

std::vector<std::string_view> foreach_overloads() {
  std::vector<std::string_view> names;
  for (const ForeachRow& row : kRows) names.push_back(row.overload);
  return names;
}

}  // namespace cxxinductor::model
