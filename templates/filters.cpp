// Filters of one value.

#include "templates/filters.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

#include "base/text.h"
#include "templates/values/arguments.h"
#include "templates/values/formatting.h"
#include "templates/values/members.h"
#include "templates/values/operators.h"
#include "templates/values/python_text.h"
#include "tokenizers/unicode/characters.h"
#include "tokenizers/unicode/code_points.h"

namespace zoo::templates {
namespace {

// ---- texts

/// Each word begins with a capital letter; words end at blanks, '-' and opening brackets.
std::string title_of_words(std::string_view whole) {
  std::string result;
  for (size_t begin = 0; begin < whole.size();) {
    const auto is_break = [](char32_t c) {
      return c == '-' || c == '(' || c == '{' || c == '[' || c == '<' || is_space(c);
    };
    size_t at = begin;
    const bool breaks = is_break(next_code_point(whole, at));
    size_t end = at;
    while (at < whole.size()) {
      if (is_break(next_code_point(whole, at)) != breaks) break;
      end = at;
    }
    const auto part = whole.substr(begin, end - begin);
    const size_t first = next_place(part, 0);
    result += upper(part.substr(0, first)) + lower(part.substr(first));
    begin = end;
  }
  return result;
}

Value indent(Budget& budget, const std::string& whole, const Arguments& arguments) {
  const Bound bound("indent", arguments, {"width", "first", "blank"});
  const auto* const given = bound.find(0) ? bound.at(0).as_text() : nullptr;
  const int64_t width = given ? 0 : bound.integer(0, 4);
  if (width > 10'000) throw Problem("indent: the width is larger than 10000");
  const auto indention = given ? *given : std::string(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
  const auto with_end = whole + "\n";
  const bool blank = bound.flag(2);
  std::string result = bound.flag(1) ? indention : "";
  bool is_first = true;
  for (const auto line : split_lines(with_end, LineEnds::drop)) {
    budget.make(line.size() + indention.size() + 1);
    if (!is_first) {
      result += '\n';
      if (blank || !line.empty()) result += indention;
    }
    is_first = false;
    result += line;
  }
  return text(budget, std::move(result));
}

Value tojson(Budget& budget, const Value& value, const Arguments& arguments) {
  const Bound bound("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ascii = bound.flag(0);
  style.sorted = bound.flag(3);
  if (bound.find(1) && !bound.at(1).is_none()) {
    if (const auto* given = bound.at(1).as_text()) {
      style.indent = *given;
    } else {
      const int64_t width = bound.integer(1, 0);
      if (width > 1000) throw Problem("tojson: the indent is larger than 1000");
      style.indent = std::string(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
    }
    style.between_items = ",";
  }
  if (bound.find(2) && !bound.at(2).is_none()) {
    const auto separators = items_of(budget, bound.at(2));
    if (separators.size() != 2 || !separators[0].as_text() || !separators[1].as_text())
      throw Problem("tojson: separators are two texts");
    style.between_items = *separators[0].as_text();
    style.after_key = *separators[1].as_text();
    budget.make(style.between_items.size() + style.after_key.size());
  }
  auto result = json_text(budget, value, style);
  return text(budget, std::move(result));
}

Value word_count(std::string_view whole) {
  int64_t n = 0;
  bool within = false;
  for (size_t at = 0; at < whole.size();) {
    const char32_t c = next_code_point(whole, at);
    const bool is = is_letter(c) || is_number(c) || c == '_';
    n += is && !within;
    within = is;
  }
  return n;
}

// ---- numbers

std::string without_underscores(std::string_view digits) {
  std::string result;
  for (size_t i = 0; i < digits.size(); ++i) {
    const auto is_digit = [&](size_t at) {
      return at < digits.size() && digits[at] >= '0' && digits[at] <= '9';
    };
    if (digits[i] == '_' && i > 0 && is_digit(i - 1) && is_digit(i + 1)) continue;
    result += digits[i];
  }
  return result;
}

/// int(text, base).
std::optional<int64_t> parse_integer(std::string_view whole, int64_t base) {
  auto digits = without_underscores(strip_left(strip_right(whole, nullptr), nullptr));
  bool is_negative = false;
  if (!digits.empty() && (digits[0] == '-' || digits[0] == '+')) {
    is_negative = digits[0] == '-';
    digits.erase(0, 1);
  }
  const auto prefix = lower(digits.substr(0, 2));
  const int64_t of_prefix = prefix == "0x" ? 16 : prefix == "0o" ? 8 : prefix == "0b" ? 2 : 0;
  if (of_prefix && (base == of_prefix || base == 0)) {
    digits.erase(0, 2);
    base = of_prefix;
  }
  if (base == 0) base = 10;
  if (base < 2 || base > 36) throw Problem("int: the base is not from 2 to 36");
  if (digits.empty() || std::isalnum(static_cast<unsigned char>(digits[0])) == 0) return std::nullopt;
  int64_t number = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, static_cast<int>(base));
  if (error == std::errc::result_out_of_range) throw Problem("a whole number is larger than 64 bits");
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return is_negative ? -number : number;
}

/// float(text).
std::optional<double> parse_real(std::string_view whole) {
  auto digits = without_underscores(strip_left(strip_right(whole, nullptr), nullptr));
  double sign = 1;
  if (!digits.empty() && (digits[0] == '-' || digits[0] == '+')) {
    sign = digits[0] == '-' ? -1 : 1;
    digits.erase(0, 1);
  }
  const auto word = lower(digits);
  if (word == "inf" || word == "infinity") return sign * INFINITY;
  if (word == "nan") return NAN;
  if (digits.empty() || (std::isdigit(static_cast<unsigned char>(digits[0])) == 0 && digits[0] != '.'))
    return std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (end != digits.data() + digits.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) number = std::strtod(digits.c_str(), nullptr);
  return sign * number;
}

std::optional<int64_t> as_whole(double number) {
  if (!std::isfinite(number)) return std::nullopt;
  if (std::fabs(number) >= 9.2e18) throw Problem("a whole number is larger than 64 bits");
  return static_cast<int64_t>(number);
}

Value to_integer(const Value& value, const Arguments& arguments) {
  const Bound bound("int", arguments, {"default", "base"});
  require_defined(value);
  const Value otherwise = bound.find(0) ? bound.at(0) : Value(int64_t{0});
  std::optional<double> real;
  if (const auto* digits = value.as_text()) {
    if (const auto number = parse_integer(*digits, bound.integer(1, 10))) return *number;
    real = parse_real(*digits);
  } else {
    if (const auto number = value.as_integer()) return *number;
    real = value.as_number();
    if (real && std::isinf(*real)) throw Problem("int: infinity is no whole number");
  }
  const auto whole = real ? as_whole(*real) : std::nullopt;
  return whole ? Value(*whole) : otherwise;
}

Value to_real(const Value& value, const Arguments& arguments) {
  const Bound bound("float", arguments, {"default"});
  require_defined(value);
  const auto number = value.as_text() ? parse_real(*value.as_text()) : value.as_number();
  return number ? Value(*number) : bound.find(0) ? bound.at(0) : Value(0.0);
}

Value absolute(const Value& value) {
  require_defined(value);
  if (const auto number = value.as_integer()) return *number < 0 ? negate(value) : Value(*number);
  if (const auto* number = value.as<double>()) return std::fabs(*number);
  throw Problem(fmt::format("abs: a number is expected, not {}", type_name(value)));
}

double rounded_digits(double number, int64_t digits) {
  if (!std::isfinite(number) || digits > 300) return number;
  constexpr int64_t largest_power = 308;  // 10^309 is infinite; Python returns zero, too
  if (digits < -largest_power) return 0.0 * number;
  if (digits < 0) {
    const double unit = std::pow(10.0, static_cast<double>(-digits));
    return std::nearbyint(number / unit) * unit;
  }
  std::array<char, 1024> buffer;
  std::snprintf(buffer.data(), buffer.size(), "%.*f", static_cast<int>(digits), number);
  return std::strtod(buffer.data(), nullptr);
}

Value round(const Value& value, const Arguments& arguments) {
  const Bound bound("round", arguments, {"precision", "method"});
  const std::string method = bound.find(1) ? bound.text(1) : "common";
  const int64_t digits = bound.integer(0, 0);
  const auto number = value.as_number();
  if (!number) {
    require_defined(value);
    throw Problem(fmt::format("round: a number is expected, not {}", type_name(value)));
  }
  if (method == "common") {
    if (value.as_integer() && digits >= 0) return *value.as_integer();
    if (value.as_integer()) throw Problem("round: a whole number with a negative precision is not supported");
    return rounded_digits(*number, digits);
  }
  if (method != "ceil" && method != "floor") throw Problem("round: the method is common, ceil or floor");
  const double unit = std::pow(10.0, static_cast<double>(digits));
  return (method == "ceil" ? std::ceil(*number * unit) : std::floor(*number * unit)) / unit;
}

std::optional<Value> apply_text_filter(Budget& budget, const std::string& name, const Value& value,
                                       const Arguments& arguments) {
  const auto whole = [&] { return str(budget, value); };
  if (name == "trim") {
    const Bound bound(name, arguments, {"chars"});
    const Arguments characters{.positional = {bound.find(0) ? bound.at(0) : Value()}, .named = {}};
    const auto trimmed = call_text_method(budget, whole(), "strip", characters);
    return value.is_markup() ? markup(budget, *trimmed.as_text()) : trimmed;
  }
  if (name == "replace") {
    const Bound bound(name, arguments, {"old", "new", "count"}, 2);
    const bool has_count = bound.find(2) && !bound.at(2).is_none();
    return replace_text(budget, whole(), str(budget, bound.at(0)), str(budget, bound.at(1)),
                        has_count ? bound.integer(2, -1) : -1);
  }
  if (name == "indent") {
    if (!value.as_text()) throw Problem(fmt::format("indent: a text is expected, not {}", type_name(value)));
    return indent(budget, *value.as_text(), arguments);
  }
  if (name == "format") {
    std::vector<Value> values = arguments.positional;
    if (arguments.named.empty())
      return compute(budget, Operator::modulo, text(budget, whole()),
                     sequence(budget, Kind::tuple, std::move(values)));
    std::vector<std::pair<Value, Value>> members;
    for (const auto& [key, member] : arguments.named) members.emplace_back(text(budget, key), member);
    return compute(budget, Operator::modulo, text(budget, whole()), dict(budget, std::move(members)));
  }
  if (name == "center") {
    const Bound bound(name, arguments, {"width"});
    const Arguments width{.positional = {bound.find(0) ? bound.at(0) : Value(int64_t{80})}, .named = {}};
    return call_text_method(budget, whole(), "center", width);
  }
  using Change = Value (*)(Budget&, const std::string&);
  static constexpr std::pair<const char*, Change> changes[] = {
      {"upper", [](Budget& b, const std::string& t) { return text(b, upper(t)); }},
      {"lower", [](Budget& b, const std::string& t) { return text(b, lower(t)); }},
      {"title", [](Budget& b, const std::string& t) { return text(b, title_of_words(t)); }},
      {"capitalize", [](Budget& b, const std::string& t) { return text(b, capitalized(t)); }},
      {"string", [](Budget& b, const std::string& t) { return text(b, t); }},
      {"safe", [](Budget& b, const std::string& t) { return markup(b, t); }},
      {"escape", [](Budget& b, const std::string& t) { return markup(b, escaped(t)); }},
      {"e", [](Budget& b, const std::string& t) { return markup(b, escaped(t)); }},
      {"wordcount", [](Budget&, const std::string& t) { return word_count(t); }}};
  for (const auto& [known, change] : changes) {
    if (name != known) continue;
    const Bound nothing(name, arguments, {});
    if (value.is_markup() && (name == "string" || name == "e" || name == "escape")) return value;
    const auto bytes = whole();
    budget.make(bytes.size());
    budget.step(bytes.size() / 4);
    const auto changed = change(budget, bytes);
    return value.is_markup() && changed.as_text() ? markup(budget, *changed.as_text()) : changed;
  }
  return std::nullopt;
}

}  // namespace

Value apply_filter(Budget& budget, const std::string& name, const Value& value, const Arguments& arguments) {
  budget.step();
  if (name == "default" || name == "d") {
    const Bound bound(name, arguments, {"default_value", "boolean"});
    const bool is_missing = value.is_undefined() || (bound.flag(1) && !is_true(value));
    return !is_missing ? value : bound.find(0) ? bound.at(0) : text(budget, {});
  }
  if (name == "tojson") return tojson(budget, value, arguments);
  if (name == "int") return to_integer(value, arguments);
  if (name == "float") return to_real(value, arguments);
  if (name == "abs") return absolute(value);
  if (name == "round") return round(value, arguments);
  if (auto result = apply_sequence_filter(budget, name, value, arguments)) return *result;
  if (auto result = apply_text_filter(budget, name, value, arguments)) return *result;
  throw Problem(fmt::format("the filter '{}' does not exist or is not supported", excerpt(name, 40)));
}

}  // namespace zoo::templates
