#pragma once
// Numbers and texts of known formats as JSON writes them.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "generation/constraints/expression.h"

namespace zoo {

/// The whole numbers of up to 15 digits, all others have up to 15 before and after the point.
inline constexpr int64_t kLargestWhole = 999'999'999'999'999;

/// A bound of numbers, whole.
struct NumberBound {
  int64_t value = 0;
  enum class Kind { included, excluded } kind = Kind::included;
};
/// A bound that is absent limits nothing.
struct NumberBounds {
  std::optional<NumberBound> least = {}, most = {};
};

/// Integers within bounds, which are at most kLargestWhole away from 0. No text, if there is none.
Expression json_integer(const NumberBounds& bounds);
/// Numbers within bounds; without bounds they may have an exponent.
Expression json_number(const NumberBounds& bounds);

/// The formats of texts that json_format() knows.
std::span<const std::string_view> json_formats();
/// The texts of a format (RFC 3339 for dates and times, RFC 4122, RFC 5321, RFC 1123, RFC 3986), as a regular
/// expression: a subset of them, which every validator takes. "" for an unknown one.
std::string_view json_format(std::string_view name);

}  // namespace zoo
