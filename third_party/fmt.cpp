// Makes a library from fmt's headers (fmt 12): its code, and the templates that the headers only declare.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE

template FMT_API auto locale_ref::get() const -> std::locale;

namespace detail {

template FMT_API auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto decimal_point_impl(locale_ref) -> char;
template FMT_API auto dragonbox::to_decimal(float) noexcept -> dragonbox::decimal_fp<float>;
template FMT_API auto dragonbox::to_decimal(double) noexcept -> dragonbox::decimal_fp<double>;

}  // namespace detail
FMT_END_NAMESPACE
