// Defines what PyTorch's headers of fmt declare: none of PyTorch's libraries exports it. FMT_HEADER_ONLY would compile it in each unit.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {
template auto dragonbox::to_decimal(float value) noexcept -> dragonbox::decimal_fp<float>;
template auto dragonbox::to_decimal(double value) noexcept -> dragonbox::decimal_fp<double>;
template auto thousands_sep_impl(locale_ref locale) -> thousands_sep_result<char>;
template auto decimal_point_impl(locale_ref locale) -> char;
}  // namespace detail
FMT_END_NAMESPACE
