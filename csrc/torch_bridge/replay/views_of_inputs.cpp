#include "torch_bridge/replay/views_of_inputs.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <set>

#include "model/effects.h"
#include "torch_bridge/dispatcher_schemas.h"
#include "torch_bridge/types.h"

namespace cxxinductor::torch_bridge {

using model::Call;
using model::CallGraph;
using model::CallValueInfo;

namespace {

bool is_plain(const CallValueInfo& info) { return info.kind == CallValueInfo::Kind::Tensor && info.storage != 0 && !info.conjugate && !info.negative; }

}  // namespace

ViewsOfInputs::ViewsOfInputs(const CallGraph& calls) : inputs_(calls) {
  const std::vector<CallValueInfo>& infos = inputs_.inputs();
  const std::set<uint32_t> written = model::written_inputs(calls, DispatcherSchemas());
  for (uint32_t o = 0; o < calls.outputs.size(); ++o) {
    const auto* ref = calls.outputs[o].as<OperandRef>();
    if (ref == nullptr || !is_plain(calls.values[ref->operand])) continue;
    const CallValueInfo& shown = calls.values[ref->operand];
    const auto of =
        std::find_if(written.begin(), written.end(), [&](uint32_t input) { return is_plain(infos[input]) && infos[input].storage == shown.storage; });
    if (of != written.end()) views_.push_back({o, *of, shown, model::show_the_same(shown, infos[*of])});
  }
}

std::vector<at::Tensor> ViewsOfInputs::make(const std::vector<c10::IValue>& inputs) const {
  std::vector<at::Tensor> made;
  if (views_.empty()) return made;
  const auto symbols = inputs_.values(inputs);
  if (!symbols) return made;  // the inputs are checked next, and refused
  const auto number = [&](sym::Expr e) { return evaluate(e, *symbols); };
  const auto numbers = [&](const std::vector<sym::Expr>& expressions) {
    std::vector<int64_t> values;
    for (sym::Expr e : expressions) values.push_back(number(e));
    return values;
  };
  for (const View& view : views_) {
    const at::Tensor& input = inputs[view.input].toTensor();
    if (view.is_input) {
      made.push_back(input);
      continue;
    }
    // The caller's tensor may start elsewhere in its memory than the one that the calls were recorded with.
    const int64_t moved = input.storage_offset() - number(inputs_.inputs()[view.input].storage_offset);
    at::Tensor tensor = at::empty({0}, input.options().dtype(to_torch(view.shown.dtype)));
    const int64_t moved_elements = moved * static_cast<int64_t>(input.element_size()) / static_cast<int64_t>(tensor.element_size());
    tensor.set_(input.storage(), number(view.shown.storage_offset) + moved_elements, numbers(view.shown.sizes), numbers(view.shown.strides));
    made.push_back(std::move(tensor));
  }
  return made;
}

}  // namespace cxxinductor::torch_bridge
