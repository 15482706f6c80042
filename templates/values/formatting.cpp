#include "templates/values/formatting.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>

#include <fmt/format.h>

#include "templates/values/members.h"
#include "templates/values/python_text.h"
#include "tokenizers/unicode/code_points.h"

namespace zoo::templates {
namespace {

constexpr int64_t most_digits = 1000, most_width = 1'000'000;

/// How a number or a text stands in its place.
struct Place {
  std::string fill = " ";
  char align = 0;  // < > ^ =, 0: not given
  char sign = '-';
  bool alternate = false;
  int64_t width = 0;
  char grouping = 0;
  std::optional<int64_t> precision;
  char type = 0;
};

std::string in_width(Budget& budget, std::string text, const Place& place, char otherwise) {
  const int64_t missing = place.width - static_cast<int64_t>(count_code_points(text));
  if (missing <= 0) return text;
  const char align = place.align ? place.align : otherwise;
  const int64_t before = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  budget.make(static_cast<size_t>(missing) * place.fill.size());
  std::string left, right;
  for (int64_t i = 0; i < before; ++i) left += place.fill;
  for (int64_t i = before; i < missing; ++i) right += place.fill;
  if (align != '=') return left + text + right;
  const size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+' || text[0] == ' ') ? 1 : 0;
  return text.substr(0, sign) + left + text.substr(sign);
}

std::string with_sign(bool is_negative, char sign, std::string digits) {
  if (is_negative) return "-" + digits;
  return sign == '-' ? digits : std::string(1, sign) + digits;
}

std::string grouped(std::string digits, char separator) {
  if (!separator) return digits;
  size_t end = digits.find_first_not_of("0123456789");
  if (end == digits.npos) end = digits.size();
  for (size_t at = end; at > 3; at -= 3) digits.insert(at - 3, 1, separator);
  return digits;
}

std::string magnitude(int64_t number, char type) {
  const uint64_t value = number < 0 ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
  constexpr std::string_view bases = "xXob";
  if (bases.find(type) == bases.npos) return std::to_string(value);
  return fmt::format(fmt::runtime(fmt::format("{{:{}}}", type)), value);
}

std::string real_digits(double number, char type, int64_t precision) {
  const double value = std::fabs(number);
  const bool is_upper = type == 'F' || type == 'E' || type == 'G';
  if (!std::isfinite(value)) {
    const std::string word = std::isnan(value) ? "nan" : "inf";
    return is_upper ? upper(word) : word;
  }
  const std::array<char, 5> format = {'%', '.', '*', type, 0};
  std::array<char, 2048> buffer;
  const int n =
      std::snprintf(buffer.data(), buffer.size(), format.data(), static_cast<int>(precision), value);
  return {buffer.data(), static_cast<size_t>(n)};
}

void check_place(const Place& place) {
  if (place.width > most_width || place.precision.value_or(0) > most_digits)
    throw Problem("a format is wider than it may be");
}

// ---- "%s" % value

class PercentFormat {
 public:
  PercentFormat(Budget& budget, const std::string& format, const Value& value)
      : budget_(budget), format_(format), value_(value) {}

  std::string text() {
    while (at_ < format_.size()) {
      const char c = format_[at_++];
      if (c != '%') {
        result_ += c;
        continue;
      }
      write_field();
    }
    const bool is_used = value_.is(Kind::tuple) ? next_ == value_.as_sequence()->items.size()
                                                : next_ > 0 || value_.as_dict() || value_.is(Kind::list);
    if (!is_used) throw Problem("%: there are more values than fields");
    return std::move(result_);
  }

 private:
  char peek() const {
    if (at_ == format_.size()) throw Problem("%: the format is cut off");
    return format_[at_];
  }

  int64_t number() {
    if (peek() == '*') {
      ++at_;
      const auto value = next_value().as_integer();
      if (!value) throw Problem("%: * wants a whole number");
      return std::clamp<int64_t>(*value, -most_width - 1, most_width + 1);
    }
    int64_t result = 0;
    while (peek() >= '0' && peek() <= '9') {
      result = std::min<int64_t>(result * 10 + (format_[at_++] - '0'), most_width + 1);
    }
    return result;
  }

  const Value& next_value() {
    if (named_) return *named_;
    if (!value_.is(Kind::tuple)) {
      if (next_++ > 0) throw Problem("%: there are fewer values than fields");
      return value_;
    }
    const auto& items = value_.as_sequence()->items;
    if (next_ == items.size()) throw Problem("%: there are fewer values than fields");
    return items[next_++];
  }

  void read_name() {
    named_ = nullptr;
    if (peek() != '(') return;
    const size_t end = format_.find(')', at_);
    const auto* const members = value_.as_dict();
    if (end == format_.npos || !members) throw Problem("%: a name wants a dictionary");
    named_ = members->find(std::string_view(format_).substr(at_ + 1, end - at_ - 1));
    if (!named_) throw Problem("%: the dictionary has no such key");
    at_ = end + 1;
  }

  void write_field() {
    read_name();
    Place place;
    bool is_left = false, is_zero = false;
    for (;; ++at_) {
      const char c = peek();
      if (c == '-') {
        is_left = true;
      } else if (c == '0') {
        is_zero = true;
      } else if (c == '+' || (c == ' ' && place.sign != '+')) {
        place.sign = c;
      } else if (c == '#') {
        place.alternate = true;
      } else if (c != ' ') {
        break;
      }
    }
    place.width = number();
    if (place.width < 0) {
      is_left = true;
      place.width = -place.width;
    }
    if (peek() == '.') {
      ++at_;
      place.precision = std::max<int64_t>(number(), 0);  // as CPython
    }
    check_place(place);
    place.type = peek();
    ++at_;
    if (place.type == '%') {
      result_ += '%';
      return;
    }
    if (is_left) {
      place.align = '<';
    } else if (is_zero && place.type != 's' && place.type != 'r' && place.type != 'c') {
      place.align = '=';
      place.fill = "0";
    }
    auto field = field_text(place, next_value());
    budget_.make(field.size());
    result_ += in_width(budget_, std::move(field), place, '>');
  }

  std::string field_text(const Place& place, const Value& value) {
    const auto is_one_of = [&](std::string_view types) { return types.find(place.type) != types.npos; };
    const auto refuse = [&] {
      require_defined(value);
      throw Problem(fmt::format("%{}: a number is expected, not {}", place.type, type_name(value)));
    };
    if (is_one_of("sr")) {
      auto text = place.type == 's' ? str(budget_, value) : repr(budget_, value);
      if (!place.precision) return text;
      return text.substr(0, byte_of_code_point(text, static_cast<size_t>(*place.precision)));
    }
    if (is_one_of("diuxXo")) {
      const bool is_decimal = is_one_of("diu");
      auto whole = value.as_integer();
      if (const auto* real = value.as<double>(); real && is_decimal && std::fabs(*real) < 9e18)
        whole = static_cast<int64_t>(*real);
      if (!whole) refuse();
      auto digits = magnitude(*whole, place.type);
      const auto wanted = static_cast<size_t>(place.precision.value_or(0));
      if (digits.size() < wanted) digits.insert(0, wanted - digits.size(), '0');
      if (place.alternate && !is_decimal) digits.insert(0, std::string("0") + place.type);
      return with_sign(*whole < 0, place.sign, digits);
    }
    if (is_one_of("eEfFgG")) {
      const auto real = value.as_number();
      if (!real) refuse();
      return with_sign(std::signbit(*real), place.sign,
                       real_digits(*real, place.type, place.precision.value_or(6)));
    }
    if (place.type != 'c') throw Problem(fmt::format("%: the type '{}' is not supported", place.type));
    const auto* const text = value.as_text();
    if (!text || count_code_points(*text) != 1) throw Problem("%c: one character is expected");
    return *text;
  }

  Budget& budget_;
  const std::string& format_;
  const Value& value_;
  const Value* named_ = nullptr;
  std::string result_;
  size_t at_ = 0, next_ = 0;
};

// ---- "{}".format(value)

Place read_place(std::string_view text) {
  Place place;
  size_t at = 0;
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  const auto peek = [&] { return at < text.size() ? text[at] : '\0'; };
  if (!text.empty()) {
    const size_t first = next_place(text, 0);
    if (first < text.size() && is_align(text[first])) {
      place.fill = text.substr(0, first);
      place.align = text[first];
      at = first + 1;
    } else if (is_align(text[0])) {
      place.align = text[at++];
    }
  }
  if (peek() == '+' || peek() == '-' || peek() == ' ') place.sign = text[at++];
  if (peek() == '#') {
    place.alternate = true;
    ++at;
  }
  if (peek() == '0') {
    ++at;
    if (!place.align) {
      place.align = '=';
      place.fill = "0";
    }
  }
  const auto number = [&] {
    int64_t result = 0;
    while (peek() >= '0' && peek() <= '9')
      result = std::min<int64_t>(result * 10 + (text[at++] - '0'), most_width + 1);
    return result;
  };
  place.width = number();
  if (peek() == ',' || peek() == '_') place.grouping = text[at++];
  if (peek() == '.') {
    ++at;
    place.precision = number();
  }
  if (peek()) place.type = text[at++];
  if (at < text.size()) throw Problem("format: a specification that is not supported");
  check_place(place);
  return place;
}

std::string placed(Budget& budget, const Value& value, std::string_view specification) {
  if (specification.empty()) return str(budget, value);
  const auto place = read_place(specification);
  if (value.as_text()) {
    if (place.type && place.type != 's') throw Problem("format: a text has the type s");
    if (place.align == '=') throw Problem("format: '=' does not align texts");
    auto text = *value.as_text();
    if (place.precision) text.resize(byte_of_code_point(text, static_cast<size_t>(*place.precision)));
    return in_width(budget, std::move(text), place, '<');
  }
  const auto whole = value.as_integer();
  const std::string_view whole_types = "dxXobn";
  if (whole && (!place.type || whole_types.find(place.type) != whole_types.npos)) {
    auto digits = grouped(magnitude(*whole, place.type), place.grouping);
    if (place.alternate && place.type && place.type != 'd' && place.type != 'n')
      digits.insert(0, std::string("0") + place.type);
    return in_width(budget, with_sign(*whole < 0, place.sign, digits), place, '>');
  }
  const auto real = value.as_number();
  const std::string_view real_types = "eEfFgG%";
  if (!real || place.alternate || (place.type && real_types.find(place.type) == real_types.npos)) {
    require_defined(value);
    throw Problem(fmt::format("format: a specification that is not supported for {}", type_name(value)));
  }
  if (!place.type && place.precision) throw Problem("format: a precision without a type is not supported");
  std::string digits;
  if (!place.type) {
    digits = real_text(std::fabs(*real));
  } else if (place.type == '%') {
    digits = real_digits(*real * 100, 'f', place.precision.value_or(6)) + "%";
  } else {
    digits = real_digits(*real, place.type, place.precision.value_or(6));
  }
  return in_width(budget, with_sign(std::signbit(*real), place.sign, grouped(digits, place.grouping)), place,
                  '>');
}

/// The next field has this value once a field has a number: none without a number may follow.
constexpr size_t numbered = SIZE_MAX;

/// The value of a field: "0", "name", "name.part", "name[key]"; "" is the next one.
Value field_value(Budget& budget, std::string_view field, const Arguments& arguments, size_t& next) {
  const size_t end = std::min(field.find_first_of(".["), field.size());
  auto first = std::string(field.substr(0, end));
  if (first.empty()) {
    if (next == numbered) throw Problem("format: fields have numbers, or none has one");
    first = std::to_string(next++);
  } else if (first[0] >= '0' && first[0] <= '9') {
    if (next != 0 && next != numbered) throw Problem("format: fields have numbers, or none has one");
    next = numbered;
  }
  Value value;
  if (std::ranges::all_of(first, [](char c) { return c >= '0' && c <= '9'; })) {
    const size_t index = first.size() > 6 ? SIZE_MAX : static_cast<size_t>(std::stoll(first));
    if (index >= arguments.positional.size()) throw Problem("format: there are fewer values than fields");
    value = arguments.positional[index];
  } else {
    const auto found =
        std::ranges::find(arguments.named, first, [](const auto& named) { return named.first; });
    if (found == arguments.named.end()) throw Problem("format: a field without a value");
    value = found->second;
  }
  for (size_t at = end; at < field.size();) {
    if (field[at] == '.') {
      const size_t stop = std::min(field.find_first_of(".[", at + 1), field.size());
      value = attribute(budget, value, std::string(field.substr(at + 1, stop - at - 1)));
      at = stop;
    } else {
      const size_t stop = field.find(']', at);
      if (stop == field.npos) throw Problem("format: ']' is missing");
      const auto key = std::string(field.substr(at + 1, stop - at - 1));
      const bool is_index = !key.empty() && key.size() < 10 &&
                            std::ranges::all_of(key, [](char c) { return c >= '0' && c <= '9'; });
      value = item(budget, value, is_index ? Value(int64_t{std::stoll(key)}) : text(budget, key));
      at = stop + 1;
      if (at < field.size() && field[at] != '.' && field[at] != '[') throw Problem("format: '.' is missing");
    }
  }
  return value;
}

}  // namespace

std::string percent_format(Budget& budget, const std::string& format, const Value& value) {
  budget.make(format.size());
  return PercentFormat(budget, format, value).text();
}

std::string brace_format(Budget& budget, const std::string& format, const Arguments& arguments) {
  budget.make(format.size());
  std::string result;
  size_t next = 0;
  for (size_t at = 0; at < format.size();) {
    const char c = format[at++];
    const bool is_doubled = at < format.size() && format[at] == c;
    if (c != '{' && c != '}') {
      result += c;
    } else if (is_doubled) {
      result += c;
      ++at;
    } else if (c == '}') {
      throw Problem("format: a single '}'");
    } else {
      const size_t end = format.find('}', at);
      if (end == format.npos) throw Problem("format: '}' is missing");
      const auto field = std::string_view(format).substr(at, end - at);
      if (field.find('{') != field.npos) throw Problem("format: fields within fields are not supported");
      at = end + 1;
      const size_t colon = field.find(':');
      auto name = field.substr(0, colon);
      const auto specification = colon == field.npos ? std::string_view() : field.substr(colon + 1);
      char conversion = 0;
      if (const size_t mark = name.find('!'); mark != name.npos) {
        if (name.size() != mark + 2) throw Problem("format: an unknown conversion");
        conversion = name[mark + 1];
        name = name.substr(0, mark);
      }
      Value value = field_value(budget, name, arguments, next);
      if (conversion == 's') {
        value = text(budget, str(budget, value));
      } else if (conversion == 'r') {
        value = text(budget, repr(budget, value));
      } else if (conversion) {
        throw Problem("format: an unknown conversion");
      }
      const auto field_text = placed(budget, value, specification);
      budget.make(field_text.size());
      result += field_text;
    }
  }
  return result;
}

std::string date_text(Budget& budget, const std::string& format, const std::tm& time) {
  budget.make(format.size() * 16);
  constexpr std::string_view known = "aAbBcdDeFHIjmMnpSTtuUwWxXyY%GVhRrCsz";
  std::string result;
  for (size_t at = 0; at < format.size();) {
    if (format[at] != '%') {
      result += format[at++];
      continue;
    }
    std::string field = "%";
    ++at;
    if (at < format.size() &&
        (format[at] == '-' || format[at] == '_' || format[at] == '^' || format[at] == '#'))
      field += format[at++];
    if (at == format.size() || known.find(format[at]) == known.npos)
      throw Problem("strftime_now: a format that is not supported");
    field += format[at++];
    std::array<char, 256> buffer;
    result.append(buffer.data(), std::strftime(buffer.data(), buffer.size(), field.c_str(), &time));
  }
  return result;
}

}  // namespace zoo::templates
