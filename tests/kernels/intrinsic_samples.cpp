// What rows of intrinsics are given, and when two results agree.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "kernels/intrinsic_rows.h"

namespace cxxinductor::tests {
namespace {

struct Format {
  int bytes;
  int exponent_bits = 0, mantissa_bits = 0;  // none: an integer
};
Format format_of(Element element) {
  static constexpr Format formats[] = {{2}, {4}, {8}, {2, 5, 10}, {2, 8, 7}, {4, 8, 23}, {8, 11, 52}};
  return formats[static_cast<size_t>(element)];
}
uint64_t sign_of(const Format& format) { return uint64_t{1} << (format.bytes * 8 - 1); }
uint64_t infinity_of(const Format& format) { return ((uint64_t{1} << format.exponent_bits) - 1) << format.mantissa_bits; }
bool is_nan(const Format& format, uint64_t bits) { return format.exponent_bits > 0 && (bits & (sign_of(format) - 1)) > infinity_of(format); }

std::vector<uint64_t> special_bits(const Format& format) {
  const uint64_t sign = sign_of(format);
  if (format.exponent_bits == 0) return {0, 1, 2, sign - 1, sign, sign + 1, sign | (sign - 1)};
  const uint64_t infinity = infinity_of(format), least = uint64_t{1} << format.mantissa_bits, one = infinity / 2 & ~(least - 1);
  std::vector<uint64_t> all = {0, 1, least - 1, least, one, one + 1, one + least, infinity - 1, infinity, infinity + 1, infinity + least / 2};
  if (format.bytes == 4) {
    // Halfway between two values of bf16, and of f16; where f16 rounds to infinity; halfway between its denormals.
    for (const uint64_t tie : {0x3f808000, 0x3f818000, 0x3f801000, 0x3f803000, 0x477fefff, 0x477ff000, 0x33000000, 0x33c00000}) all.push_back(tie);
  }
  const size_t positive = all.size();
  for (size_t i = 0; i < positive; ++i) all.push_back(all[i] | sign);
  return all;
}

// value: one that the format holds, where it has 16 bits.
uint64_t encode(Element element, double value) {
  const auto single = std::bit_cast<uint32_t>(static_cast<float>(value));
  switch (element) {
    case Element::U16:
    case Element::U32:
    case Element::U64:
      return static_cast<uint64_t>(static_cast<int64_t>(value));
    case Element::F16:
      return value == 0 ? 0 : (single >> 16 & 0x8000) | ((single & 0x7fffffff) - (112u << 23)) >> 13;
    case Element::BF16:
      return single >> 16;
    case Element::F32:
      return single;
    case Element::F64:
      return std::bit_cast<uint64_t>(value);
  }
  return 0;
}

double decode(Element element, uint64_t bits) {
  return element == Element::F64 ? std::bit_cast<double>(bits) : static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
}

// How many values of the format lie between two of them.
double distance(const Format& format, uint64_t a, uint64_t b) {
  const auto place = [&](uint64_t bits) {
    const double magnitude = static_cast<double>(bits & (sign_of(format) - 1));
    return bits & sign_of(format) ? -magnitude : magnitude;
  };
  return std::fabs(place(a) - place(b));
}

}  // namespace

int bytes_of(Element element) { return format_of(element).bytes; }

std::vector<unsigned char> draw_operand(const IntrinsicRow& row, const Operand& operand, uint64_t seed) {
  const Format format = format_of(operand.element);
  const size_t count = static_cast<size_t>(row.threads) * static_cast<size_t>(row.blocks * operand.per_thread);
  const std::vector<uint64_t> special = special_bits(format);
  const bool second = &operand == &row.b;  // so that both operands take all pairs of special values
  std::mt19937_64 random(seed);
  std::vector<unsigned char> bytes(count * static_cast<size_t>(format.bytes));
  for (size_t i = 0; i < count; ++i) {
    uint64_t bits = random();
    const double low = operand.samples.low, high = operand.samples.high;
    switch (operand.samples.kind) {
      case Samples::Kind::Bits:
        if (i < special.size() * special.size()) bits = special[(second ? i / special.size() : i) % special.size()];
        break;
      case Samples::Kind::Reals:
        bits = encode(operand.element, std::uniform_real_distribution(low, high)(random));
        break;
      case Samples::Kind::Integers:
        bits = encode(operand.element, std::floor(std::uniform_real_distribution(low, high + 1)(random)));
        break;
    }
    std::memcpy(bytes.data() + i * static_cast<size_t>(format.bytes), &bits, static_cast<size_t>(format.bytes));
  }
  return bytes;
}

std::string disagreement(const IntrinsicRow& row, const unsigned char* gpu, const unsigned char* host) {
  const Format format = format_of(row.result);
  uint64_t found = 0, expected = 0;
  std::memcpy(&found, gpu, static_cast<size_t>(format.bytes));
  std::memcpy(&expected, host, static_cast<size_t>(format.bytes));
  const int digits = format.bytes * 2;
  if (found == expected) return "";
  const bool bits = row.agreement.kind == Agreement::Kind::Bits;
  if (!bits && is_nan(format, found) && is_nan(format, expected)) return "";
  std::string difference = fmt::format("the GPU has {:#0{}x}, the host {:#0{}x}", found, digits + 2, expected, digits + 2);
  if (bits || row.agreement.kind == Agreement::Kind::BitsOrNan) return difference;
  const double apart =
      row.agreement.kind == Agreement::Kind::Ulps ? distance(format, found, expected) : std::fabs(decode(row.result, found) - decode(row.result, expected));
  if (!is_nan(format, found) && !is_nan(format, expected) && apart <= row.agreement.bound) return "";
  return fmt::format("{}, {} apart, at most {}", difference, apart, row.agreement.bound);
}

}  // namespace cxxinductor::tests
