#include "ir/callees.h"

#include <span>

#include "support/name_pattern.h"

namespace cxxinductor {
namespace {

// Names without namespace. One that ends in * stands for all names that begin so.
using Names = std::span<const std::string_view>;

// The part after the namespace, where the op is torch's or ours and has no effect but what its schema states; else
// empty.
std::string_view functional_name(std::string_view callee) {
  for (std::string_view space : {"aten::", "prims::", "cxxinductor::"})
    if (callee.starts_with(space)) return callee.substr(space.size());
  return {};
}

// Take a storage over, return one that something else keeps, or let others wait for what they read.
// clang-format off
constexpr std::string_view keeping_names[] = {
    "set_",   "set",       "_set_*",         "set_data",      "resize*",     "_resize*", "share_memory*",
    "data",   "_pin*",     "pin_memory",     "record_stream", "_fw_primal*", "_make_d*", "_nested_*",
    "_lazy*", "_backward", "requires_grad_", "retain_grad",   "_async*",       "call_function",
};
// clang-format on

// Raise for nothing but sizes and dtypes.
// clang-format off
constexpr std::string_view total_names[] = {
    // products
    "mm",
    "addmm",
    "_addmm_activation",
    "bmm",
    "baddbmm",
    "addbmm",
    "mv",
    "addmv",
    "addr",
    "dot",
    "vdot",
    "matmul",
    "linear*",
    "_scaled_mm",
    "_int_mm",
    "_weight_int8pack_mm",
    // convolutions and attention
    "convolution*",
    "_convolution*",
    "_conv_depthwise*",
    "cudnn_convolution*",
    "mkldnn_convolution*",
    "conv*",
    "_scaled_dot_product_*",
    "scaled_dot_product_attention",
    "_flash_attention_*",
    "_efficient_attention_*",
    "_cudnn_attention_*",
    "_fused_sdp_choice",
    // norms and recurrent cells
    "native_batch_norm*",
    "_native_batch_norm*",
    "_batch_norm_*",
    "batch_norm_*",
    "cudnn_batch_norm*",
    "native_group_norm*",
    "native_layer_norm*",
    "_cudnn_rnn*",
    "_thnn_fused_*",
    "mkldnn_rnn_layer*",
    // order, scans, transforms
    "sort",
    "argsort",
    "topk",
    "kthvalue",
    "median",
    "cum*",
    "logcumsumexp",
    "_log_softmax*",
    "_softmax*",
    "_fft_*",
    // windows and images
    "avg_pool*",
    "_adaptive_avg_pool*",
    "adaptive_max_pool*",
    "max_pool*",
    "upsample_*",
    "_upsample_*",
    "grid_sampler*",
    // random numbers without a tensor of parameters
    "rand*",
    "native_dropout*",
    "normal_functional",
    "uniform",
    "philox_state",
    // moving and making
    "copy*",
    "_to_copy",
    "clone",
    "full*",
    "zeros*",
    "ones*",
    "empty*",
    "arange*",
    "view*",
    "reshape",
    "permute",
    "expand",
    "slice*",
    "select*",
    "as_strided*",
    "cat",
    "stack",
};
// clang-format on

// Read their arguments and make their results, and raise because of elements.
// clang-format off
constexpr std::string_view checked_names[] = {
    "index",          "index_*",        "gather",        "scatter*",     "take*",      "embedding*",   "nonzero*",
    "masked_*",       "unique*",        "_unique*",      "bincount",     "histc",      "histogram*",   "searchsorted*",
    "normal*",        "cauchy",         "exponential",   "geometric",    "log_normal",   "rrelu_with_noise*",
    "bucketize*",     "repeat_interleave*", "multinomial", "bernoulli*", "poisson",    "binomial",     "linalg_*",
    "_linalg_*",      "cholesky*",      "qr",            "svd",          "lu_*",       "_lu_*",        "triangular_solve",
    "inverse",        "det",            "logdet",        "slogdet",      "pinverse",   "cdist",        "_cdist_*",
    "_pdist_*",       "nll_loss*",      "ctc_loss",      "_ctc_loss*",   "mode",       "nanmedian",    "multi_margin_loss*",
    "multilabel_margin_loss*", "max_unpool*", "fractional_max_pool*", "one_hot", "isin", "tril_indices", "triu_indices",
    "dropout",        "pdist",          "renorm",        "fft_*",        "stft",       "istft",        "roll",
    "_index_*",       "put",            "diag*",        "trace",      "cross",        "kron",
    "unfold*",        "im2col",         "col2im",        "channel_shuffle", "pixel_*", "native_channel_shuffle",
    "_chunk_cat",     "_embedding_bag", "_embedding_bag_forward_only", "_foreach_*",   "_safe_softmax", "aminmax",     "angle",        "argwhere",
    "bilinear",       "binary_cross_entropy*", "block_diag", "combinations", "complex",  "conj_physical", "count_nonzero",
    "deg2rad",        "digamma",        "dist",          "erfinv",       "expand_copy", "eye",          "floor_divide",
    "frexp",          "gcd",            "geqrf",         "hardshrink",   "hash_tensor", "heaviside",    "huber_loss*",
    "i0",             "igamma",         "igammac",       "isneginf",     "isposinf",    "lcm",          "ldexp",
    "lift_fresh_copy", "linspace",      "logit",         "logspace",     "mse_loss*",   "nan_to_num",   "nansum",
    "narrow_copy",    "new_*",          "nextafter",     "norm",         "ormqr",       "permute_copy", "polar",
    "pow",            "rad2deg",        "reflection_pad*", "replication_pad*", "rot90", "smooth_l1_loss*", "soft_margin_loss*",
    "softshrink",     "special_*",      "split_with_sizes_copy", "squeeze_copy", "t_copy", "tensor_split", "transpose_copy",
    "unbind_copy",    "unsqueeze_copy", "zero",
};
// clang-format on

constexpr std::string_view names_with_library_memory[] = {"_fft_*", "fft_*", "stft", "istft"};

}  // namespace

bool is_opaque_callee(std::string_view callee) {
  const std::string_view name = functional_name(callee);
  return name.empty() || matches_any(keeping_names, name);
}

bool starts_collective(std::string_view callee) { return callee.starts_with("_c10d_functional::") && !waits_for_collective(callee); }

bool waits_for_collective(std::string_view callee) { return callee == "_c10d_functional::wait_tensor"; }

bool may_raise(std::string_view callee) { return !matches_any(total_names, functional_name(callee)); }

bool uses_library_memory(std::string_view callee) { return matches_any(names_with_library_memory, functional_name(callee)); }

bool is_reachable_from_text(std::string_view callee) {
  const std::string_view name = functional_name(callee);
  return !is_opaque_callee(callee) && (matches_any(total_names, name) || matches_any(checked_names, name));
}

}  // namespace cxxinductor
