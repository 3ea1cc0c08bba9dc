// The kinds of devices, one row each: all that tells them apart outside of codegen/ and targets/.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "ir/dtype.h"

namespace cxxinductor {

// What eager's kernels do on the devices of a kind, where they do not do the same everywhere. A rule or an importer that states eager's
// results asks for the column, never for the kind.
struct EagerBehaviour {
  // Dtypes, sizes and strides of results (model/infer).
  bool convolutions_by_library = false;     // whatever the sizes are; otherwise small ones have kernels of ATen
  bool f64_images_channels_last = false;    // convolutions of f64 in two dimensions keep that layout
  bool statistics_like_parameters = false;  // dtype of layer and batch norms' statistics; otherwise the compute type
  bool weight_norms_in_f32 = false;         // of weights of any float
  bool group_norm_channels_last = false;    // results keep that layout
  bool batch_norm_keeps_strides = false;    // results keep all dense strides, gradients a memory format; otherwise both a memory format
  bool batch_norm_always_saves = false;     // statistics, in evaluation too
  bool batch_norm_reserves = false;         // bytes for the gradient, in a number that the library chooses
  bool embedding_bag_always_saves = false;  // the bag of each index, whatever the mode; otherwise what the mode's gradient reads
  bool lapack = false;                      // matrices are factored by LAPACK, and lie as it leaves them
  bool roll_channels_last = false;          // keeps that layout
  bool log_sigmoid_saves_power = false;     // exp(-|x|), which the gradient reads

  // Numerics.
  bool divides_by_inverse = false;              // quotients by numbers and means are products with the inverse
  bool rounds_numbers = false;                  // to narrow dtypes before kernels that do not compute in another type
  bool one_element_in_compute_type = false;     // second operands of one element of products and quotients of narrow tensors, as numbers are
  bool floor_division_rounds_steps = false;     // of narrow tensors; otherwise the floor and what follows it
  bool rounds_parameters = false;               // of activations, to the tensor's dtype
  bool f16_powers_in_f32 = false;               // pow of f16 knows no roots and rounds cubes once
  bool addcdiv_contracts = false;               // its product and sum into one operation
  bool f64_sixths_in_f32 = false;               // hardswish and hardsigmoid of f64 multiply by the f32 nearest to 1/6
  bool elu_gradient_of_nan_is_above = false;    // NaN counts as positive
  bool dropout_scale_in_f32 = false;            // 1 / (1 - p)
  bool group_norm_rereads = false;              // normalizes by statistics that are rounded to their dtype
  bool accumulates_f32_in_f64 = false;          // variances, and sums and products along a dimension that keep each step
  bool adds_gradients_in_compute_type = false;  // of pools and embeddings; otherwise each sum is rounded to the gradient's dtype
  bool scatters_in_compute_type = false;        // along a dimension, rounded once
  bool divides_expanded_means_wide = false;     // scattered means by an expanded index divide before they round
  bool sums_by_sorted_index = false;            // index_put and embedding gradients sort what they add up, in no one's order
  bool philox = false;                          // random numbers are a function of seed, offset and position

  // How fast and by which kernels.
  bool convolutions_add_bias_apart = false;  // by a kernel of its own, and sum its gradient likewise
  bool convolutions_write_given_memory = false;
  bool slow_depthwise_gradients = false;        // with regard to images, of 16-bit floats
  bool fast_aligned_products = false;           // of 16-bit matrices whose rows begin at whole vectors
  std::array<DType, 2> channels_last_dtypes{};  // of images that convolutions read faster in that layout
  DType autocast = DType::BF16;                 // that autocast takes unless told otherwise
};

struct DeviceTypeInfo {
  DeviceType type;
  std::string_view text;
  int torch_device_type;              // c10::DeviceType's number
  bool has_streams;                   // work is queued on streams, beside the host
  bool in_host_memory;                // tensors lie in memory that the host reads and writes
  bool simt;                          // kernels are threads in blocks (is_simt of ir/target.h), not loops over vectors
  bool raises_at_once;                // a failed check raises in the call that checks; otherwise whenever it is found
  std::string_view source_extension;  // of generated sources
  std::string_view torch_library;     // LibTorch's own for these devices, beside that for the CPU
  // Numerics beside eager's on the same kind of device.
  bool scatters_in_order;    // several additions to one element are in eager's order
  bool functions_bit_equal;  // transcendental functions give eager's bits; otherwise they are within a unit or two of the last one
  EagerBehaviour eager;
};

std::span<const DeviceTypeInfo> device_types();
const DeviceTypeInfo& info(DeviceType type);
inline bool has_streams(Device device) { return info(device.type).has_streams; }
inline bool in_host_memory(Device device) { return info(device.type).in_host_memory; }
inline const EagerBehaviour& eager(Device device) { return info(device.type).eager; }

}  // namespace cxxinductor
