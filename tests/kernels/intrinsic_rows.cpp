#include "kernels/intrinsic_rows.h"

#include <fmt/format.h>

#include <array>

namespace cxxinductor::tests {
namespace {

using Kind = Samples::Kind;
constexpr Agreement exact{}, any_nan{Agreement::Kind::BitsOrNan};
constexpr Agreement ulps(double bound) { return {Agreement::Kind::Ulps, bound}; }
constexpr Agreement within(double bound) { return {Agreement::Kind::Absolute, bound}; }

const char* type_of(Element element) {
  static constexpr const char* names[] = {"unsigned short", "unsigned int", "unsigned long long", "cxxi_f16", "cxxi_bf16", "float", "double"};
  return names[static_cast<size_t>(element)];
}

// r[i] = name(a[i]) and r[i] = name(a[i], b[i]).
IntrinsicRow unary(const std::string& name, Element element, Samples samples, Agreement agreement) {
  return {.names = name,
          .label = type_of(element),
          .body = fmt::format("r[i] = {}(a[i]);", name),
          .a = {element, 1, samples},
          .result = element,
          .agreement = agreement};
}
IntrinsicRow binary(const std::string& name, Element element, Agreement agreement) {
  return {.names = name,
          .label = type_of(element),
          .body = fmt::format("r[i] = {}(a[i], b[i]);", name),
          .a = {element},
          .b = {element},
          .result = element,
          .agreement = agreement};
}

void add_conversions(std::vector<IntrinsicRow>& rows) {
  rows.push_back({.names = "cxxi_bits_float cxxi_float_bits", .body = "r[i] = cxxi_float_bits(cxxi_bits_float(a[i]));"});
  rows.push_back({.names = "cxxi_to_float",
                  .label = "every f16",
                  .body = "r[i] = cxxi_to_float(cxxi_f16{(unsigned short)(blockIdx.x * 256 + i)});",
                  .result = Element::F32,
                  .agreement = any_nan,
                  .blocks = 256});
  rows.push_back({.names = "cxxi_to_f16", .body = "r[i] = cxxi_to_f16(a[i]);", .a = {Element::F32}, .result = Element::F16, .blocks = 64});
  rows.push_back({.names = "cxxi_to_f16",
                  .label = "near its range",
                  .body = "r[i] = cxxi_to_f16(a[i]);",
                  .a = {Element::F32, 1, {Kind::Reals, -70000, 70000}},
                  .result = Element::F16,
                  .blocks = 64});
  rows.push_back({.names = "cxxi_to_f16",
                  .label = "denormals",
                  .body = "r[i] = cxxi_to_f16(a[i]);",
                  .a = {Element::F32, 1, {Kind::Reals, -7e-5, 7e-5}},
                  .result = Element::F16,
                  .blocks = 64});
  rows.push_back({.names = "cxxi_to_bf16", .body = "r[i] = cxxi_to_bf16(a[i]);", .a = {Element::F32}, .result = Element::BF16, .blocks = 64});
  for (const char* name : {"cxxi_round_to_bf16", "cxxi_round_to_f16"}) rows.push_back(unary(name, Element::F32, {}, any_nan));
}

void add_arithmetic(std::vector<IntrinsicRow>& rows) {
  for (const Element element : {Element::F32, Element::F64}) {
    const bool single = element == Element::F32;
    for (const char* name : {"cxxi_add", "cxxi_sub", "cxxi_mul"}) rows.push_back(binary(name, element, any_nan));
    // More than the functions state: the host's results are rounded too, and so are the arguments of its sines and cosines.
    rows.push_back(unary("cxxi_rsqrt", element, {}, ulps(single ? 3 : 2)));
    for (const char* which : {"sine", "cosine"})
      rows.push_back({.names = "cxxi_sincospi",
                      .label = fmt::format("{} of {}", which, type_of(element)),
                      .body = fmt::format("{} sine, cosine; cxxi_sincospi(a[i], &sine, &cosine); r[i] = {};", type_of(element), which),
                      .a = {element, 1, {Kind::Reals, -2, 2}},
                      .result = element,
                      .agreement = within(single ? 7e-7 : 2e-15)});
  }
  constexpr double ulp_of_one = 1.1920929e-07;
  rows.push_back(unary("cxxi_sin_approx", Element::F32, {Kind::Reals, -3.14159, 3.14159}, within(3.6e-7 + ulp_of_one)));
  rows.push_back(unary("cxxi_cos_approx", Element::F32, {Kind::Reals, -3.14159, 3.14159}, within(4.2e-7 + ulp_of_one)));
  rows.push_back(unary("cxxi_tan_approx", Element::F32, {Kind::Reals, -1, 1}, within(4e-6)));  // both errors, divided by cos(1) or its square
  rows.push_back(unary("cxxi_exp_approx", Element::F32, {Kind::Reals, -80, 80}, ulps(97)));
  rows.push_back(unary("cxxi_log_approx", Element::F32, {Kind::Reals, 0.5, 2}, within(3.6e-7 + ulp_of_one)));
  rows.push_back(unary("cxxi_log_approx", Element::F32, {Kind::Reals, 2.5, 1e30}, ulps(4)));
  rows.push_back(binary("cxxi_max_nan", Element::F32, exact));
  rows.push_back(binary("cxxi_min_nan", Element::F32, exact));
  rows.push_back({.names = "cxxi_whole_product", .body = "r[i] = cxxi_whole_product(a[i], b[i]);", .result = Element::U64});
}

void add_threads(std::vector<IntrinsicRow>& rows) {
  rows.push_back({.names = "cxxi_sync_block", .body = "__shared__ unsigned int s[256]; s[i] = a[i]; cxxi_sync_block(); r[i] = s[255 - i];"});
  rows.push_back({.names = "cxxi_sync_warp", .body = "__shared__ unsigned int s[256]; s[i] = a[i]; cxxi_sync_warp(); r[i] = s[i ^ 21];"});
  rows.push_back({.names = "cxxi_fence_system", .body = "r[i] = a[i]; cxxi_fence_system(); r[i] = r[i] + 1;"});
  struct Lane {
    const char* type;
    Element element;
  };
  static constexpr std::array<Lane, 8> lanes{{{"bool", Element::U32},
                                              {"signed char", Element::U32},
                                              {"short", Element::U32},
                                              {"int", Element::U32},
                                              {"unsigned int", Element::U32},
                                              {"float", Element::F32},
                                              {"double", Element::F64},
                                              {"unsigned long long", Element::U64}}};
  for (const Lane& lane : lanes) {
    const std::string held = fmt::format("const {0} v = ({0})(a[i]); r[i] = ", lane.type);
    rows.push_back({.names = "cxxi_from_lane",
                    .label = lane.type,
                    .body = held + fmt::format("({})(cxxi_from_lane(v, blockIdx.x * 9 + 1));", type_of(lane.element)),
                    .a = {lane.element},
                    .result = lane.element});
    if (bytes_of(lane.element) == 8 || std::string_view(lane.type) == "float")
      rows.push_back(
          {.names = "cxxi_of_lane", .label = lane.type, .body = held + "cxxi_of_lane(v, blockIdx.x * 9 + 1);", .a = {lane.element}, .result = lane.element});
  }
  rows.push_back({.names = "cxxi_from_lane",
                  .label = "long long",
                  .body = "r[i] = (unsigned long long)(cxxi_from_lane((long long)(a[i]), 16));",
                  .a = {Element::U64},
                  .result = Element::U64});
  rows.push_back(
      {.names = "cxxi_uniform", .body = "r[i] = (unsigned long long)(cxxi_uniform((long long)(a[i / 32])));", .a = {Element::U64}, .result = Element::U64});
}

void add_memory(std::vector<IntrinsicRow>& rows) {
  for (const Element element : {Element::U32, Element::U64})
    rows.push_back({.names = "cxxi_compare_and_swap",
                    .label = type_of(element),
                    .body = "r[2 * i] = a[i]; r[2 * i + 1] = cxxi_compare_and_swap(r + 2 * i, i % 2 == 0 ? a[i] : b[i], b[i]);",
                    .a = {element},
                    .b = {element},
                    .result = element,
                    .results_per_thread = 2});
  rows.push_back({.names = "cxxi_compare_and_swap",
                  .label = "int",
                  .body = "int* const p = (int*)(r) + i; *p = int(a[i]); cxxi_compare_and_swap(p, int(i % 2 == 0 ? a[i] : b[i]), int(b[i]));"});
  for (const Element element : {Element::U32, Element::U64, Element::F32, Element::F64, Element::F16, Element::BF16})
    rows.push_back({.names = "cxxi_add_in_memory",
                    .label = type_of(element),
                    .body = "r[i] = a[i]; cxxi_add_in_memory(r + i, b[i]);",
                    .a = {element},
                    .b = {element},
                    .result = element,
                    .agreement = element < Element::F16 ? exact : any_nan,
                    .is_sm_90a = element == Element::BF16});
  for (const auto& [type, element] : {std::pair("int", Element::U32), {"long long", Element::U64}})
    rows.push_back({.names = "cxxi_add_in_memory",
                    .label = type,
                    .body = fmt::format("typedef {} type; r[i] = a[i]; cxxi_add_in_memory((type*)(r) + i, (type)(b[i]));", type),
                    .a = {element},
                    .b = {element},
                    .result = element});
  rows.push_back({.names = "cxxi_hide_origin", .body = "unsigned int word = a[i]; cxxi_hide_origin(word); r[i] = word;"});
  const std::string copy =
      "__shared__ uint4 s[512]; const uint4* const from = (const uint4*)(a) + 2 * i; cxxi_copy_async(s + i, from, i % 17); "
      "cxxi_commit_copies(); cxxi_copy_async(s + 256 + i, from + 1, 16); cxxi_commit_copies(); ";
  rows.push_back({.names = "cxxi_copy_async cxxi_commit_copies cxxi_wait_copies",
                  .label = "the first group",
                  .body = copy + "cxxi_wait_copies<1>(); ((uint4*)(r))[i] = s[i];",
                  .a = {Element::U32, 8},
                  .results_per_thread = 4});
  rows.push_back({.names = "cxxi_copy_async cxxi_commit_copies cxxi_wait_copies",
                  .label = "both groups",
                  .body = copy + "cxxi_wait_copies<0>(); cxxi_sync_block(); ((uint4*)(r))[2 * i] = s[255 - i]; ((uint4*)(r))[2 * i + 1] = s[511 - i];",
                  .a = {Element::U32, 8},
                  .results_per_thread = 8});
}

// What matrix instructions add up without rounding.
constexpr Samples factors{Kind::Integers, -8, 8}, sums{Kind::Integers, -1000, 1000};

void add_matrices(std::vector<IntrinsicRow>& rows) {
  for (const char* name : {"cxxi_load_matrices", "cxxi_load_matrices_transposed"})
    rows.push_back({.names = name,
                    .body = fmt::format("__shared__ uint4 s[256]; s[i] = ((const uint4*)(a))[i]; cxxi_sync_warp(); unsigned int words[4]; "
                                        "{}(words, s + (i ^ 5)); for (int w = 0; w < 4; ++w) r[4 * i + w] = words[w];",
                                        name),
                    .a = {Element::U32, 4},
                    .results_per_thread = 4});
  for (const Element element : {Element::F16, Element::BF16})
    rows.push_back(
        {.names = "cxxi_multiply_add",
         .label = type_of(element),
         .body = fmt::format("const unsigned int* const w = (const unsigned int*)(a) + 6 * i; const unsigned int left[4] = {{w[0], w[1], w[2], w[3]}}; "
                             "float sums[4] = {{b[4 * i], b[4 * i + 1], b[4 * i + 2], b[4 * i + 3]}}; cxxi_multiply_add(sums, left, w[4], w[5], {}()); "
                             "for (int e = 0; e < 4; ++e) r[4 * i + e] = sums[e];",
                             type_of(element)),
         .a = {element, 12, factors},
         .b = {Element::F32, 4, sums},
         .result = Element::F32,
         .results_per_thread = 4});
}

// A product of 64 x 64 by 64 x columns elements in shared memory, where the left factor comes first.
IntrinsicRow warpgroup_row(Element element, int columns, bool left_along_k, bool right_along_k, int swizzle) {
  const int block = swizzle / 2, depth = 64, left_elements = 64 * depth, elements = left_elements + columns * depth;
  // Along k, blocks of 32 are two tiles side by side, each with half the steps.
  const auto part = [&](const char* start, bool along_k, int extent) {
    return along_k ? fmt::format("cxxi_describe_tile({} + step * 16 / {} * {} + step * 16 % {}, 0, {}, {})", start, block, extent * block, block, 8 * swizzle,
                                 swizzle)
                   : fmt::format("cxxi_describe_tile({} + step * {}, {}, {}, {})", start, 16 * block, depth * swizzle, 8 * swizzle, swizzle);
  };
  std::string body = fmt::format(
      "CXXI_DYNAMIC_SHARED(bytes); uint4* const words = (uint4*)(bytes); const {0}* const left = (const {0}*)(bytes); const {0}* const right = left + {1};\n"
      "for (int w = i; w < {2}; w += 128) words[w] = ((const uint4*)(a))[w];\n"
      "cxxi_publish_stage(); cxxi_sync_block();\nfloat sums[{3}][4];\n"
      "#pragma unroll\nfor (int e = 0; e < {4}; ++e) sums[e / 4][e % 4] = b[{4} * i + e];\ncxxi_begin_products();\n",
      type_of(element), left_elements, elements / 8, columns / 8, columns / 2);
  body += fmt::format("#pragma unroll\nfor (int step = 0; step < 4; ++step) cxxi_multiply_add_group<{}, {}>(sums, {}, {}, {}());\n", left_along_k,
                      right_along_k, part("left", left_along_k, 64), part("right", right_along_k, columns), type_of(element));
  body += fmt::format(
      "cxxi_commit_products(); cxxi_wait_products<0>();\n#pragma unroll\nfor (int e = 0; e < {0}; ++e) cxxi_settle(sums[e / 4][e % 4]);\n"
      "#pragma unroll\nfor (int e = 0; e < {0}; ++e) r[{0} * i + e] = sums[e / 4][e % 4];",
      columns / 2);
  return {.names = "cxxi_describe_tile cxxi_publish_stage cxxi_begin_products cxxi_multiply_add_group cxxi_commit_products cxxi_wait_products cxxi_settle",
          .label = fmt::format("{}, {} columns, {}{}, swizzle {}", type_of(element), columns, left_along_k ? "k" : "m", right_along_k ? "k" : "n", swizzle),
          .body = std::move(body),
          .a = {element, elements / 128, factors},
          .b = {Element::F32, columns / 2, sums},
          .result = Element::F32,
          .results_per_thread = columns / 2,
          .threads = 128,
          .blocks = 2,
          .shared_bytes = elements * 2,
          .is_sm_90a = true};
}

void add_warpgroups(std::vector<IntrinsicRow>& rows) {
  for (const Element element : {Element::F16, Element::BF16}) {
    for (const bool left : {true, false})
      for (const bool right : {true, false})
        for (const int swizzle : {64, 128}) rows.push_back(warpgroup_row(element, 64, left, right, swizzle));
    for (const int columns : {128, 256}) rows.push_back(warpgroup_row(element, columns, true, false, 128));
  }
}

}  // namespace

const std::vector<IntrinsicRow>& intrinsic_rows() {
  static const std::vector<IntrinsicRow> rows = [] {
    std::vector<IntrinsicRow> all;
    for (const auto add_rows : {add_conversions, add_arithmetic, add_threads, add_memory, add_matrices, add_warpgroups}) add_rows(all);
    return all;
  }();
  return rows;
}

std::string kernel_name(size_t row) { return fmt::format("row_{}", row); }

std::string rows_text(bool is_sm_90a, codegen::Templates templates) {
  TextWriter out;
  for (const char* name : {"cuda/prelude.cuh", "cuda/tensor_core.cuh", "cuda/warpgroup.cuh"}) codegen::add_template(out, name, templates);
  for (size_t number = 0; number < intrinsic_rows().size(); ++number) {
    const IntrinsicRow& row = intrinsic_rows()[number];
    if (row.is_sm_90a && !is_sm_90a) continue;
    out.line("extern \"C\" __global__ void __launch_bounds__({}) {}(const {}* a, const {}* b, {}* r) {{", row.threads, kernel_name(number),
             type_of(row.a.element), type_of(row.b.element), type_of(row.result));
    out.line("  const int i = threadIdx.x, block = blockIdx.x * {};", row.threads);
    out.line("  a += block * {}; b += block * {}; r += block * {};", row.a.per_thread, row.b.per_thread, row.results_per_thread);
    out.raw_line(row.body);
    out.line("}}");
  }
  return std::move(out).take();
}

}  // namespace cxxinductor::tests
