// What is known of ops by name; of unknown ones the answers that restrict most.
#include "ir/callees.h"

#include "unit/catch.h"

using namespace cxxinductor;

TEST_CASE("ops of other namespaces are opaque, may raise and are out of reach of text") {
  for (const char* name : {"custom::op", "_c10d_functional::all_reduce", "", "aten", "higher_order::cond"}) {
    INFO(name);
    CHECK(is_opaque_callee(name));
    CHECK(may_raise(name));
    CHECK_FALSE(is_reachable_from_text(name));
  }
}

TEST_CASE("ops of ATen that raise for their elements, and those that do not") {
  for (const char* name :
       {"aten::mm", "aten::convolution_backward", "aten::_scaled_dot_product_flash_attention", "aten::sort", "aten::rand_like", "cxxinductor::philox_state"}) {
    INFO(name);
    CHECK_FALSE(may_raise(name));
    CHECK_FALSE(is_opaque_callee(name));
  }
  for (const char* name : {"aten::linalg_cholesky_ex", "aten::index.Tensor", "aten::_assert_async", "aten::multinomial"}) CHECK(may_raise(name));
}

TEST_CASE("Fourier transforms read tables of plans") {
  for (const char* name : {"aten::_fft_r2c", "aten::fft_rfft", "aten::stft"}) CHECK(uses_library_memory(name));
  for (const char* name : {"aten::mm", "aten::convolution", "custom::fft_rfft"}) CHECK_FALSE(uses_library_memory(name));
}

TEST_CASE("text reaches what reads its arguments alone") {
  for (const char* name : {"aten::mm", "aten::cumsum", "aten::linalg_qr", "aten::index"}) CHECK(is_reachable_from_text(name));
  for (const char* name : {"aten::from_file", "aten::set_", "aten::resize_", "aten::_resize_output_", "aten::_sparse_coo_tensor_unsafe", "aten::record_stream"})
    CHECK_FALSE(is_reachable_from_text(name));
}
