#include "ir/device_types.h"

#include <array>
#include <charconv>

namespace cxxinductor {
namespace {

constexpr EagerBehaviour eager_on_cpu{
    .f64_images_channels_last = true,
    .statistics_like_parameters = true,
    .group_norm_channels_last = true,
    .lapack = true,
    .roll_channels_last = true,
    .log_sigmoid_saves_power = true,
    .rounds_numbers = true,
    .one_element_in_compute_type = true,
    .floor_division_rounds_steps = true,
    .f16_powers_in_f32 = true,
    .accumulates_f32_in_f64 = true,
    .scatters_in_compute_type = true,
    .divides_expanded_means_wide = true,
    .channels_last_dtypes = {DType::F32, DType::BF16},
    .autocast = DType::BF16,
};

constexpr EagerBehaviour eager_on_cuda{
    .convolutions_by_library = true,
    .weight_norms_in_f32 = true,
    .batch_norm_keeps_strides = true,
    .batch_norm_always_saves = true,
    .batch_norm_reserves = true,
    .embedding_bag_always_saves = true,
    .divides_by_inverse = true,
    .rounds_parameters = true,
    .addcdiv_contracts = true,
    .f64_sixths_in_f32 = true,
    .elu_gradient_of_nan_is_above = true,
    .dropout_scale_in_f32 = true,
    .group_norm_rereads = true,
    .adds_gradients_in_compute_type = true,
    .sums_by_sorted_index = true,
    .philox = true,
    .convolutions_add_bias_apart = true,
    .convolutions_write_given_memory = true,
    .slow_depthwise_gradients = true,
    .fast_aligned_products = true,
    .channels_last_dtypes = {DType::F16, DType::BF16},
    .autocast = DType::F16,
};

constexpr std::array device_type_rows{
    DeviceTypeInfo{.type = DeviceType::Cpu,
                   .text = "cpu",
                   .torch_device_type = 0,
                   .has_streams = false,
                   .in_host_memory = true,
                   .simt = false,
                   .raises_at_once = true,
                   .source_extension = ".cpp",
                   .torch_library = "",
                   .scatters_in_order = true,
                   .functions_bit_equal = false,
                   .eager = eager_on_cpu},
    DeviceTypeInfo{.type = DeviceType::Cuda,
                   .text = "cuda",
                   .torch_device_type = 1,
                   .has_streams = true,
                   .in_host_memory = false,
                   .simt = true,
                   .raises_at_once = false,
                   .source_extension = ".cu",
                   .torch_library = "libtorch_cuda.so",
                   .scatters_in_order = false,
                   .functions_bit_equal = true,
                   .eager = eager_on_cuda},
};

}  // namespace

std::span<const DeviceTypeInfo> device_types() { return device_type_rows; }
const DeviceTypeInfo& info(DeviceType type) { return device_type_rows[static_cast<size_t>(type)]; }

std::string_view to_string(DeviceType type) { return info(type).text; }

// There is one device without streams: the host.
std::string to_string(Device device) {
  const std::string text(to_string(device.type));
  return has_streams(device) ? text + ":" + std::to_string(device.index) : text;
}

std::optional<Device> find_device(std::string_view text) {
  const std::string_view type = text.substr(0, text.find(':'));
  for (const DeviceTypeInfo& row : device_type_rows) {
    if (row.text != type) continue;
    if (text.size() == type.size()) return Device{row.type, 0};
    if (!row.has_streams) return std::nullopt;
    const std::string_view number = text.substr(type.size() + 1);
    int index = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), index);
    if (error != std::errc() || end != number.data() + number.size() || index < 0 || index > 1023) return std::nullopt;
    return Device{row.type, index};
  }
  return std::nullopt;
}

}  // namespace cxxinductor
