// Passes on the graph IR, listed in pipelines.cpp. Aliasing is part of a graph's meaning: values that leave the graph keep a storage of their own,
// which no pass unites with another. The last passes let calls and scatters write in place, which those before do not expect: a graph goes through
// the passes once.
#pragma once

#include "ir/graph/graph.h"
#include "support/options.h"

namespace cxxinductor::passes {

bool remove_dead_code(graph::Graph& graph, const Options& options);
bool fold_constants(graph::Graph& graph, const Options& options);
bool propagate_indices(graph::Graph& graph, const Options& options);
bool use_causal_attention(graph::Graph& graph, const Options& options);
bool remove_no_ops(graph::Graph& graph, const Options& options);
bool eliminate_common_subexpressions(graph::Graph& graph, const Options& options);
bool share_concat_prefixes(graph::Graph& graph, const Options& options);
bool use_channels_last(graph::Graph& graph, const Options& options);
bool split_convolution_bias(graph::Graph& graph, const Options& options);
bool turn_depthwise_gradients(graph::Graph& graph, const Options& options);
bool compose_scatters(graph::Graph& graph, const Options& options);
bool reinplace_scatters(graph::Graph& graph, const Options& options);
bool reinplace_calls(graph::Graph& graph, const Options& options);
bool pad_matmuls(graph::Graph& graph, const Options& options);
bool join_random_states(graph::Graph& graph, const Options& options);
bool unblock_uploads(graph::Graph& graph, const Options& options);

}  // namespace cxxinductor::passes
