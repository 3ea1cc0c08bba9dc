// The pipelines, one row a pass, in the order that they run, with the reason where the order matters.
#include "passes/graph/passes.h"
#include "passes/loops/passes.h"
#include "passes/pass_manager.h"

namespace cxxinductor::passes {

std::span<const Pass<graph::Graph>> graph_pipeline() {
  static constexpr Pass<graph::Graph> rows[] = {
      // First, so that the others see only what is needed.
      {"graph-dead-code", "remove nodes that nothing needs", remove_dead_code},
      // Before constants: what it finds constant folds on.
      {"graph-propagate-indices", "make comparisons of positions constants and drop checks of indices, where extents decide them", propagate_indices},
      // Before the mask's own ops are rewritten; what made it dies after.
      {"graph-causal-attention", "set is_causal on attention whose mask is the causal one, and make no mask", use_causal_attention},
      // Before no-ops: a folded constant may make its reader one.
      {"graph-constants", "evaluate ops on constants, turn constants into immediates", fold_constants},
      {"graph-no-ops", "remove conversions, views and arithmetic that change nothing", remove_no_ops},
      // After no-ops: equal nodes may have read a value and its copy.
      {"graph-cse", "compute equal nodes once", eliminate_common_subexpressions},
      // After graph-cse: equal operands are one value.
      {"graph-concat-prefixes", "let a concatenation begin with an earlier one, where that is an output, instead of its operands", share_concat_prefixes},
      // After graph-cse: slices of one tensor are one value.
      {"graph-compose-scatters", "write through a slice of a tensor into the tensor itself", compose_scatters},
      {"graph-convolution-bias", "add the bias of a CUDA convolution in the kernel that follows, sum its gradient in the one before", split_convolution_bias},
      // Before channels-last: it makes convolutions.
      {"graph-depthwise-gradient", "take the input's gradient of a depthwise convolution by a convolution, on CUDA in 16 bits", turn_depthwise_gradients},
      // After the bias: its sum is one of the values between convolutions.
      {"graph-channels-last", "keep convolution networks in channels-last strides, on CUDA those of 16-bit types", use_channels_last,
       /*spends_memory=*/true},
      // After channels-last: cuDNN computes those depthwise convolutions that have become channels-last.
      {"graph-convolution-bias-last", "add the bias of a CUDA convolution in the kernel that follows", split_convolution_bias},
      // After graph-cse: products of one value share its padded copy.
      {"graph-pad-matmul", "give matrix products of unaligned sizes aligned operands where that pays", pad_matmuls,
       /*spends_memory=*/true},
      {"graph-random-states", "take the states of torch's generator for several draws in one call", join_random_states},
      // After constants and no-ops: what is copied may have become an input.
      {"graph-async-uploads", "copy what is made on the CPU to a GPU without waiting for its stream", unblock_uploads},
      {"graph-dead-code-last", "remove what the passes before left over", remove_dead_code},
      // What reads which version of a storage is settled. No pass after it may move or unite nodes.
      {"graph-reinplace", "let scatters write in place, after all readers of the old values, or into a copy", reinplace_scatters},
      // After the scatters: an input's storage holds what they wrote.
      {"graph-reinplace-calls", "let calls write the inputs that they mutate instead of copies", reinplace_calls},
  };
  return rows;
}

std::span<const Pass<loops::Program>> loops_pipeline() {
  static constexpr Pass<loops::Program> rows[] = {
      {"loops-indices", "fold arithmetic and checks on positions into coordinates", fold_indices},
      // After indices: positions are index expressions then.
      {"loops-one-hot", "replace sums over positions of which one counts by a choice", one_hot_to_select},
      // After indices and one-hot, which know the i64 ops.
      {"loops-narrow-integers", "compute integers of 64 bits in 32 where that is the same, on GPUs", narrow_integers},
      {"loops-elide-rounding-casts", "remove roundings that change nothing, or all between ops where numerics=fast", elide_rounding_casts},
      // Last: the others leave statements behind.
      {"loops-dead-code", "remove statements that nothing needs, compute equal ones once", remove_dead_statements},
  };
  return rows;
}

}  // namespace cxxinductor::passes
