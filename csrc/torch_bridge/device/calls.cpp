#include "torch_bridge/device/calls.h"

namespace cxxinductor::torch_bridge {

RecordedCalls RecordedCalls::prefix(size_t count) const {
  const End end = count == 0 ? End{} : ends[count - 1];
  RecordedCalls first;
  const auto copy = [](const auto& from, size_t length, auto& to) {
    to.assign(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(length));
  };
  copy(code.words, end.words, first.code.words);
  copy(code.numbers, end.numbers, first.code.numbers);
  copy(ends, count, first.ends);
  copy(values, end.values, first.values);
  copy(graph.values, end.values, first.graph.values);
  copy(graph.calls, count, first.graph.calls);
  for (const model::CallValue input : graph.inputs)
    if (input < end.values) first.graph.inputs.push_back(input);
  first.graph.input_sources.resize(first.graph.inputs.size());
  return first;
}

}  // namespace cxxinductor::torch_bridge
