// Recurrent layers of libraries.
#include "model/infer/table.h"

namespace cxxinductor::model {
namespace {

// One layer in one direction: output, last hidden and cell state, and a workspace that inference does not have.
InferredResults infer_mkldnn_rnn_layer(InferContext& c) {
  if (c.boolean("train")) return std::nullopt;  // the size of the workspace is the library's
  const CallValueInfo &input = c.tensor("input"), &hidden = c.tensor("hx_"), &cell = c.tensor("cx_");
  c.require_rank(input, 3, "input of a recurrent layer");
  CallValueInfo none;
  none.kind = CallValueInfo::Kind::None;
  return std::vector{contiguous_like(input, {input.sizes[0], input.sizes[1], c.expr("hidden_size")}), contiguous_like(hidden, hidden.sizes),
                     contiguous_like(cell, cell.sizes), none};
}

}  // namespace

void add_recurrent_rules(RuleTable& table) { add_rules(table, {"aten::mkldnn_rnn_layer"}, infer_mkldnn_rnn_layer); }

}  // namespace cxxinductor::model
