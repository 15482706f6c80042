#include "generation/constraints/json_values.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

namespace zoo {
namespace {

constexpr int64_t kMostDigits = 15;

Expression one_of_digits(char first, char last) {
  return Expression::one_of(CodePoints({{static_cast<char32_t>(first), static_cast<char32_t>(last)}}));
}

Expression digits(int64_t least, int64_t most) {
  return Expression::repeated(one_of_digits('0', '9'), least, most);
}

Expression digits(size_t n) { return digits(static_cast<int64_t>(n), static_cast<int64_t>(n)); }

/// Numbers with as many digits as `bound`, which is a part of a number, that are not below or not above it.
enum class Side { at_least, at_most };
Expression beside(std::string_view bound, Side side) {
  if (bound.empty()) return {};
  const char digit = bound.front();
  std::vector<Expression> ways = {
      Expression::sequence({one_of_digits(digit, digit), beside(bound.substr(1), side)})};
  const bool has_more = side == Side::at_least ? digit < '9' : digit > '0';
  if (has_more) {
    const char next = static_cast<char>(side == Side::at_least ? digit + 1 : digit - 1);
    ways.push_back(
        Expression::sequence({side == Side::at_least ? one_of_digits(next, '9') : one_of_digits('0', next),
                              digits(bound.size() - 1)}));
  }
  return Expression::alternatives(std::move(ways));
}

/// Numbers from `a` to `b`, which have the same length.
Expression between(std::string_view a, std::string_view b) {
  if (a.empty()) return {};
  if (a.front() == b.front())
    return Expression::sequence({one_of_digits(a.front(), a.front()), between(a.substr(1), b.substr(1))});
  std::vector<Expression> ways = {
      Expression::sequence({one_of_digits(a.front(), a.front()), beside(a.substr(1), Side::at_least)}),
      Expression::sequence({one_of_digits(b.front(), b.front()), beside(b.substr(1), Side::at_most)})};
  const char from = static_cast<char>(a.front() + 1), to = static_cast<char>(b.front() - 1);
  if (from <= to) ways.push_back(Expression::sequence({one_of_digits(from, to), digits(a.size() - 1)}));
  return Expression::alternatives(std::move(ways));
}

/// Whole numbers from `least` ≥ 0 to `most`, without leading zeros.
Expression whole(int64_t least, int64_t most) {
  std::vector<Expression> ways;
  for (int64_t first = 0, last = 9; last <= kLargestWhole; first = last + 1, last = last * 10 + 9) {
    const int64_t from = std::max(first, least), to = std::min(last, most);
    if (from <= to) ways.push_back(between(std::to_string(from), std::to_string(to)));
  }
  return Expression::alternatives(std::move(ways));
}

/// Numbers ≥ 0 within bounds ≥ 0.
Expression fractional(NumberBound least, NumberBound most) {
  const auto point = Expression::text(".");
  const auto fraction = Expression::sequence({point, digits(1, kMostDigits)});
  const auto none =
      Expression::sequence({point, Expression::repeated(one_of_digits('0', '0'), 1, kMostDigits)});
  const auto some =
      Expression::sequence({point, Expression::repeated(one_of_digits('0', '0'), 0, kMostDigits / 2),
                            one_of_digits('1', '9'), digits(0, kMostDigits / 2)});
  const auto is_in = [](const NumberBound& bound) { return bound.kind == NumberBound::Kind::included; };
  std::vector<Expression> ways;
  if (is_in(most) && (least.value < most.value || (least.value == most.value && is_in(least))))
    ways.push_back(Expression::sequence({whole(most.value, most.value), Expression::optional(none)}));
  if (least.value < most.value) {
    const auto first = whole(least.value, least.value);
    ways.push_back(Expression::sequence({first, is_in(least) ? Expression::optional(fraction) : some}));
    if (least.value + 1 < most.value)
      ways.push_back(
          Expression::sequence({whole(least.value + 1, most.value - 1), Expression::optional(fraction)}));
  }
  return Expression::alternatives(std::move(ways));
}

Expression any_integer() {
  return Expression::sequence(
      {Expression::optional(Expression::text("-")),
       Expression::alternatives(
           {Expression::text("0"),
            Expression::sequence({one_of_digits('1', '9'), digits(0, kMostDigits - 1)})})});
}

bool is_empty(const NumberBounds& bounds) { return !bounds.least && !bounds.most; }

constexpr std::string_view kDate =
    R"(([1-9]\d{3}|0[1-9]\d{2}|00[1-9]\d|000[1-9])-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|1\d|2[0-8])))";
constexpr std::string_view kTime =
    R"(([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d))";
constexpr std::string_view kHost =
    R"([a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?(\.[a-z]([a-z0-9-]{0,30}[a-z0-9])?){1,3})";

}  // namespace

Expression json_integer(const NumberBounds& bounds) {
  if (is_empty(bounds)) return any_integer();
  const auto inner = [](const std::optional<NumberBound>& bound, int64_t otherwise, int64_t step) {
    if (!bound) return otherwise;
    return bound->value + (bound->kind == NumberBound::Kind::excluded ? step : 0);
  };
  const int64_t least = inner(bounds.least, -kLargestWhole, 1), most = inner(bounds.most, kLargestWhole, -1);
  std::vector<Expression> ways = {whole(std::max<int64_t>(least, 0), most)};
  if (least < 0) {
    ways.push_back(Expression::sequence({Expression::text("-"), whole(std::max<int64_t>(-most, 1), -least)}));
  }
  return Expression::alternatives(std::move(ways));
}

Expression json_number(const NumberBounds& bounds) {
  if (is_empty(bounds)) {
    const auto fraction = Expression::sequence({Expression::text("."), digits(1, kMostDigits)});
    const auto exponent = Expression::sequence(
        {Expression::one_of(CodePoints({{U'E', U'E'}, {U'e', U'e'}})),
         Expression::optional(Expression::one_of(CodePoints({{U'+', U'+'}, {U'-', U'-'}}))), digits(1, 2)});
    return Expression::sequence(
        {any_integer(), Expression::optional(fraction), Expression::optional(exponent)});
  }
  const NumberBound least = bounds.least.value_or(NumberBound{-kLargestWhole}),
                    most = bounds.most.value_or(NumberBound{kLargestWhole});
  const NumberBound zero{};
  std::vector<Expression> ways;
  if (most.value >= 0) ways.push_back(fractional(least.value >= 0 ? least : zero, most));
  if (least.value < 0) {
    const NumberBound from = most.value <= 0 ? NumberBound{-most.value, most.kind} : zero;
    ways.push_back(Expression::sequence(
        {Expression::text("-"), fractional(from, NumberBound{-least.value, least.kind})}));
  }
  return Expression::alternatives(std::move(ways));
}

std::span<const std::string_view> json_formats() {
  static constexpr auto names = std::to_array<std::string_view>(
      {"date", "time", "date-time", "uuid", "email", "hostname", "ipv4", "uri"});
  return names;
}

std::string_view json_format(std::string_view name) {
  static const std::string date_time = std::string(kDate) + "T" + std::string(kTime);
  static const std::string email = R"([a-zA-Z0-9]([a-zA-Z0-9_.+-]{0,30}[a-zA-Z0-9])?@)" + std::string(kHost);
  static const std::string uri = "https?://" + std::string(kHost) + R"((/[a-zA-Z0-9_.~-]{0,60}){0,8})";
  if (name == "date") return kDate;
  if (name == "time") return kTime;
  if (name == "date-time") return date_time;
  if (name == "uuid") return "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}";
  if (name == "email") return email;
  if (name == "hostname") return kHost;
  if (name == "ipv4") return R"(((25[0-5]|2[0-4]\d|1\d{2}|[1-9]?\d)\.){3}(25[0-5]|2[0-4]\d|1\d{2}|[1-9]?\d))";
  if (name == "uri") return uri;
  return "";
}

}  // namespace zoo
