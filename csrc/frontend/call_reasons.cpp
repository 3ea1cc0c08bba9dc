#include "frontend/call_reasons.h"

#include <algorithm>
#include <span>

#include "frontend/aten_table.h"
#include "ir/callees.h"
#include "support/name_pattern.h"

namespace cxxinductor::frontend {
namespace {

// Without namespace. One that ends in * stands for all names that begin so.
using Names = std::span<const std::string_view>;

struct Reason {
  std::string_view reason;
  Names names;
  Names whole = {};  // more of them, which torch would decompose: they arrive whole, because of the reason
};

constexpr std::string_view products[] = {
    "mm",
    "addmm",
    "_addmm_activation",
    "bmm",
    "addbmm",
    "addmv",
    "_int_mm",
    "_scaled_mm",
    "_grouped_mm",
    "_weight_int8pack_mm",
    "_weight_int4pack_mm*",
    "_cdist_*",
    "_pdist_*",
    "_euclidean_dist",
    "_trilinear",
};
constexpr std::string_view whole_products[] = {"addr", "baddbmm", "dot", "mv", "vdot"};
constexpr std::string_view convolutions[] = {
    "convolution*", "_convolution*", "_conv_depthwise*", "mkldnn_convolution*", "cudnn_convolution*", "_slow_conv*", "slow_conv*", "_thnn_conv*",
    "conv_tbc*",    "im2col",        "col2im",
};
constexpr std::string_view attention[] = {
    "_scaled_dot_product_*", "_flash_attention_*", "_efficient_attention_*", "_cudnn_attention_*", "_fused_sdp_choice",
};
constexpr std::string_view whole_attention[] = {"_scaled_dot_product_flash_attention_for_cpu"};
constexpr std::string_view recurrent[] = {"_cudnn_rnn*", "_thnn_fused_*", "mkldnn_rnn_layer*"};
constexpr std::string_view whole_recurrent[] = {"gru", "lstm", "rnn_relu", "rnn_tanh"};
constexpr std::string_view linear_algebra[] = {
    "linalg_*", "_linalg_*", "cholesky*", "_cholesky*", "geqrf", "ormqr", "orgqr", "lu_*", "_lu_*", "triangular_solve", "svd", "qr",
};
constexpr std::string_view transforms[] = {"_fft_*", "fft_*"};
constexpr std::string_view orders[] = {
    "sort",      "topk",     "kthvalue", "median", "nanmedian", "mode",       "searchsorted",
    "bucketize", "_unique*", "unique_*", "histc",  "bincount",  "histogram*", "_histogramdd_*",
};
constexpr std::string_view scans[] = {"masked_scatter*", "cummax", "cummin", "_cummax_helper", "_cummin_helper", "logcumsumexp", "_logcumsumexp"};
constexpr std::string_view data_sizes[] = {"nonzero*", "masked_select", "_local_scalar_dense", "repeat_interleave", "item", "equal"};
constexpr std::string_view generators[] = {
    "rand*",    "normal*",           "uniform*",        "exponential",    "geometric",         "cauchy",  "log_normal", "multinomial", "poisson",
    "binomial", "_sample_dirichlet", "_standard_gamma", "native_dropout", "rrelu_with_noise*", "random*",
};
constexpr std::string_view whole_generators[] = {"bernoulli"};
constexpr std::string_view resampling[] = {"upsample_*", "_upsample_*", "grid_sampler*"};
constexpr std::string_view whole_resampling[] = {
    "upsample_bicubic2d",      "upsample_bilinear2d",       "upsample_linear1d",         "upsample_nearest1d",
    "upsample_nearest2d",      "upsample_nearest3d",        "upsample_trilinear3d",      "_upsample_bicubic2d_aa",
    "_upsample_bilinear2d_aa", "_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d",
};
constexpr std::string_view whole_spaces[] = {"linspace", "logspace"};
constexpr std::string_view pools[] = {
    "max_pool3d*", "avg_pool3d*", "_adaptive_avg_pool*", "adaptive_max_pool*", "fractional_max_pool*", "max_unpool*",
};
constexpr std::string_view other_functions[] = {
    "digamma", "polygamma", "igamma*", "special_*", "_dirichlet_grad", "_standard_gamma_grad", "erfinv", "i0", "gcd",
    "lcm",     "frexp",     "ldexp",   "nextafter", "angle",           "hash_tensor",
};
constexpr std::string_view whole_roundings[] = {
    "glu_backward", "huber_loss", "huber_loss_backward", "logit", "logit_backward", "special_entr", "special_log_ndtr", "special_xlog1py", "xlogy",
};
constexpr std::string_view dynamic_programs[] = {"_ctc_loss*", "ctc_loss", "multi_margin_loss*", "multilabel_margin_loss*"};
constexpr std::string_view bags[] = {"_embedding_bag*", "segment_reduce", "_segment_reduce*"};
constexpr std::string_view storages[] = {
    "set_", "resize_", "resize", "as_strided*", "diagonal", "unfold", "_sparse_*",
};
constexpr std::string_view device_copies[] = {"_to_copy"};
constexpr std::string_view copies[] = {"copy", "copy_", "clone"};
constexpr std::string_view allocations[] = {"empty*", "new_empty*", "_efficientzerotensor"};
constexpr std::string_view run_time_numbers[] = {"scalar_tensor"};
constexpr std::string_view unwritten[] = {
    "put",
    "index_reduce",
    "embedding_renorm",
    "replication_pad1d_backward",
    "replication_pad2d_backward",
    "replication_pad3d_backward",
    "tril_indices",
    "triu_indices",
    "dist",
    "batch_norm_backward",
    "view_copy",
    "permute_copy",
    "unbind_copy",
    "narrow_copy",
};
constexpr std::string_view complex_views[] = {"view_as_complex", "view_as_real", "_conj", "_neg_view"};
constexpr std::string_view assertions[] = {"_assert_*", "sym_constrain_range*"};

constexpr Reason reasons[] = {
    {"matrix products run in a library; as products and sums they would round each product", products, whole_products},
    {"convolutions run in a library", convolutions},
    {"attention is one kernel of ATen", attention, whole_attention},
    {"recurrent cells run in a library", recurrent, whole_recurrent},
    {"factorizations and solvers run in a library", linear_algebra},
    {"Fourier transforms run in a library", transforms},
    {"kernels cannot sort, search or count", orders},
    {"the IRs have no scan", scans},
    {"the sizes of its result depend on the elements of its arguments", data_sizes},
    {"ATen's kernel draws from torch's generator", generators, whole_generators},
    {"ATen's kernel weighs neighbours in an order of its own", resampling, whole_resampling},
    {"ATen's kernel counts from both ends", {}, whole_spaces},
    {"importers cover 2-d pools of fixed windows", pools},
    {"no scalar op of the IRs computes it", other_functions},
    {"one kernel of ATen, whose decomposition rounds elsewhere", {}, whole_roundings},
    {"the steps of ATen's kernel depend on one another", dynamic_programs},
    {"the bounds of its sums are data", bags},
    {"a view of memory that has no form in the IRs", storages},
    {"a copy between devices, which torch orders with its streams", device_copies},
    {"a copy of what kernels do not compute on", copies},
    {"memory of the allocator's, which nothing fills", allocations},
    {"its number is known at run time only", run_time_numbers},
    {"no importer was written for it", unwritten},
    {"a view between a complex tensor and its parts; moves no data", complex_views},
    {"an assertion, which ATen checks", assertions},
};

std::string_view name_in_aten(std::string_view callee) {
  constexpr std::string_view space = "aten::";
  return callee.starts_with(space) ? callee.substr(space.size()) : std::string_view();
}

}  // namespace

std::string_view reason_of_call(std::string_view callee) {
  if (callee == "cxxinductor::philox_state") return "advances torch's generator, for kernels that draw";
  const std::string_view name = name_in_aten(callee);
  if (starts_collective(callee) || waits_for_collective(callee)) return "a collective of torch.distributed's";
  if (name.empty()) return "a custom op";
  for (const Reason& row : reasons)
    if (matches_any(row.whole, name)) return row.reason;
  for (const Reason& row : reasons)
    if (matches_any(row.names, name)) return row.reason;
  const auto importer = aten_table().lower_bound(callee);
  const bool imported = importer != aten_table().end() && importer->first.starts_with(callee) &&
                        (importer->first.size() == callee.size() || importer->first[callee.size()] == '.');
  return imported ? "importers cover other forms of it" : "the compiler does not know it";
}

bool arrives_whole(std::string_view callee) {
  return std::any_of(std::begin(reasons), std::end(reasons), [&](const Reason& row) { return matches_any(row.whole, name_in_aten(callee)); });
}

}  // namespace cxxinductor::frontend
