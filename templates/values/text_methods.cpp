// Methods of texts.

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "templates/values/arguments.h"
#include "templates/values/formatting.h"
#include "templates/values/members.h"
#include "tokenizers/unicode/characters.h"
#include "tokenizers/unicode/code_points.h"

namespace zoo::templates {
namespace {

Value text_list(Budget& budget, const std::vector<std::string_view>& parts) {
  std::vector<Value> items;
  items.reserve(parts.size());
  for (const auto part : parts) items.push_back(text(budget, std::string(part)));
  return list(budget, std::move(items));
}

enum class Side { left, right };

/// Where the first blank begins, or where the last one ends.
size_t place_of_blank(std::string_view text, Side side) {
  if (side == Side::left) {
    for (size_t at = 0, after = 0; at < text.size(); at = after) {
      if (is_space(next_code_point(text, after))) return at;
    }
  } else {
    for (size_t at = text.size(), before = at; at > 0; at = before) {
      if (is_space(previous_code_point(text, before))) return at;
    }
  }
  return text.npos;
}

/// The parts between separators, or between blanks without one, after at most `most` splits from a side.
std::vector<std::string_view> parts_of(std::string_view text, const std::string* separator, Side side,
                                       int64_t most) {
  const bool from_left = side == Side::left;
  const size_t gap = separator ? separator->size() : 0;  // blanks are stripped
  std::vector<std::string_view> parts;
  for (;;) {
    if (!separator) text = from_left ? strip_left(text, nullptr) : strip_right(text, nullptr);
    if (!separator && text.empty()) break;
    const size_t at = std::ssize(parts) == most ? text.npos
                      : !separator              ? place_of_blank(text, side)
                      : from_left               ? text.find(*separator)
                                                : text.rfind(*separator);
    if (at == text.npos) {
      parts.push_back(text);
      break;
    }
    const auto before = text.substr(0, at), after = text.substr(at + gap);
    parts.push_back(from_left ? before : after);
    text = from_left ? after : before;
  }
  if (!from_left) std::ranges::reverse(parts);
  return parts;
}

Value split(Budget& budget, const std::string& text, const std::string& name, const Arguments& arguments) {
  const Bound bound(name, arguments, {"sep", "maxsplit"});
  const auto* const separator = bound.text_or_none(0);
  const int64_t most = bound.integer(1, -1);
  if (separator && separator->empty()) throw Problem(fmt::format("{}: the separator is empty", name));
  budget.read(text.size() * (separator ? separator->size() / 64 + 1 : 2));
  return text_list(budget, parts_of(text, separator, name == "split" ? Side::left : Side::right, most));
}

Value partition(Budget& budget, const std::string& whole, const std::string& name,
                const Arguments& arguments) {
  const Bound bound(name, arguments, {"sep"}, 1);
  const auto& separator = bound.text(0);
  if (separator.empty()) throw Problem(fmt::format("{}: the separator is empty", name));
  budget.read(whole.size() * (separator.size() / 64 + 1));
  const bool from_right = name == "rpartition";
  const size_t at = from_right ? whole.rfind(separator) : whole.find(separator);
  std::vector<Value> items;
  const auto add = [&](std::string part) { items.push_back(text(budget, std::move(part))); };
  if (at == whole.npos) {
    add(from_right ? "" : whole);
    add("");
    add(from_right ? whole : "");
  } else {
    add(whole.substr(0, at));
    add(separator);
    add(whole.substr(at + separator.size()));
  }
  return sequence(budget, Kind::tuple, std::move(items));
}

/// A part of a text, and where it begins.
struct Part {
  std::string_view text;
  size_t begin;
  bool is_beyond;  // it begins after the end
};

Part part_of(Budget& budget, const std::string& text, const Bound& bound, size_t begin, size_t end) {
  const auto is_given = [&](size_t i) { return bound.find(i) && !bound.at(i).is_none(); };
  if (!is_given(begin) && !is_given(end)) return {text, 0, false};
  budget.read(text.size());
  const auto n = static_cast<int64_t>(count_code_points(text));
  const auto place = [&](size_t i, int64_t otherwise) {
    const int64_t at = is_given(i) ? bound.integer(i, 0) : otherwise;
    return at < 0 ? std::max(at + n, int64_t{0}) : at;
  };
  const int64_t from = place(begin, 0), to = std::min(place(end, n), n);
  if (from > n || to < from) return {{}, text.size(), true};
  const size_t first = byte_of_code_point(text, static_cast<size_t>(from));
  const size_t last = byte_of_code_point(text, static_cast<size_t>(to));
  return {std::string_view(text).substr(first, last - first), first, false};
}

Value find(Budget& budget, const std::string& whole, const std::string& name, const Arguments& arguments) {
  const Bound bound(name, arguments, {"sub", "start", "end"}, 1);
  const auto& wanted = bound.text(0);
  budget.read(whole.size() * (wanted.size() / 64 + 1));
  const auto [part, begin, is_beyond] = part_of(budget, whole, bound, 1, 2);
  if (name == "count") {
    if (is_beyond) return int64_t{0};
    if (wanted.empty()) return static_cast<int64_t>(count_code_points(part)) + 1;
    int64_t n = 0;
    for (size_t at = part.find(wanted); at != part.npos; at = part.find(wanted, at + wanted.size())) ++n;
    return n;
  }
  const bool from_right = name[0] == 'r';
  const size_t at = is_beyond ? part.npos : from_right ? part.rfind(wanted) : part.find(wanted);
  if (at != part.npos)
    return static_cast<int64_t>(count_code_points(std::string_view(whole).substr(0, begin + at)));
  if (name.ends_with("index")) throw Problem(fmt::format("{}: the text has no such part", name));
  return int64_t{-1};
}

Value has_end(Budget& budget, const std::string& whole, const std::string& name, const Arguments& arguments) {
  const Bound bound(name, arguments, {"affix", "start", "end"}, 1);
  const auto part = part_of(budget, whole, bound, 1, 2);
  const auto fits = [&](const std::string& affix) {
    budget.step(1 + affix.size() / 64);
    if (part.is_beyond) return false;
    return name == "startswith" ? part.text.starts_with(affix) : part.text.ends_with(affix);
  };
  if (!bound.at(0).is(Kind::tuple)) return fits(bound.text(0));
  for (const auto& affix : bound.at(0).as_sequence()->items) {
    if (!affix.as_text()) throw Problem(fmt::format("{}: a tuple of texts is expected", name));
    if (fits(*affix.as_text())) return true;
  }
  return false;
}

Value padded(Budget& budget, const std::string& whole, const std::string& name, const Arguments& arguments) {
  const Bound bound(name, arguments, {"width", "fillchar"}, 1);
  const std::string fill = bound.find(1) ? bound.text(1) : " ";
  if (count_code_points(fill) != 1) throw Problem(fmt::format("{}: one character fills the width", name));
  const auto n = static_cast<int64_t>(count_code_points(whole));
  const int64_t width = std::max<int64_t>(bound.integer(0, 0), 0), missing = std::max<int64_t>(width - n, 0);
  // As CPython: if the number of blanks and the width are odd, the left side gets one blank more.
  const int64_t before = name == "ljust"   ? 0
                         : name == "rjust" ? missing
                                           : missing / 2 + (missing & width & 1);
  if (missing > static_cast<int64_t>(budget.limits().value_bytes) / 4)
    throw Problem("the template makes more text than it may");
  budget.make(static_cast<size_t>(missing) * fill.size());
  std::string result;
  for (int64_t i = 0; i < before; ++i) result += fill;
  result += whole;
  for (int64_t i = before; i < missing; ++i) result += fill;
  return text(budget, std::move(result));
}

Value zero_filled(Budget& budget, const std::string& whole, const Arguments& arguments) {
  const Bound bound("zfill", arguments, {"width"}, 1);
  const int64_t width = std::max<int64_t>(bound.integer(0, 0), 0);
  const int64_t missing = width - static_cast<int64_t>(count_code_points(whole));
  if (missing <= 0) return text(budget, whole);
  if (missing > static_cast<int64_t>(budget.limits().value_bytes))
    throw Problem("the template makes more text than it may");
  budget.make(static_cast<size_t>(missing));
  const size_t sign = !whole.empty() && (whole[0] == '-' || whole[0] == '+') ? 1 : 0;
  return text(budget,
              whole.substr(0, sign) + std::string(static_cast<size_t>(missing), '0') + whole.substr(sign));
}

std::string swapped_case(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const char32_t c = next_code_point(text, at);
    const auto letter = text.substr(begin, at - begin);
    result += is_upper(c) ? lower(letter) : is_lower(c) ? upper(letter) : std::string(letter);
  }
  return result;
}

bool is_digit(char32_t c) {
  const bool is_raised = c == 0xB2 || c == 0xB3 || c == 0xB9 || c == 0x2070 || (c >= 0x2074 && c <= 0x2079) ||
                         (c >= 0x2080 && c <= 0x2089);
  return is_raised || is_decimal(c);
}

/// Whether the text is not empty and all of its characters are of a kind.
template <class Is>
bool all_are(std::string_view text, const Is& is) {
  for (size_t at = 0; at < text.size();) {
    if (!is(next_code_point(text, at))) return false;
  }
  return !text.empty();
}

/// isupper() and islower(): there is a letter with a case, and none has the other one.
template <class Is, class Other>
bool all_cased_are(std::string_view text, const Is& is, const Other& other) {
  bool found = false;
  for (size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (other(c)) return false;
    found = found || is(c);
  }
  return found;
}

std::optional<bool> property(std::string_view text, const std::string& name) {
  if (name == "isspace") return all_are(text, is_space);
  if (name == "isalpha") return all_are(text, is_letter);
  if (name == "isdecimal") return all_are(text, is_decimal);
  if (name == "isdigit") return all_are(text, is_digit);
  if (name == "isnumeric") return all_are(text, is_number);
  if (name == "isalnum") return all_are(text, [](char32_t c) { return is_letter(c) || is_number(c); });
  if (name == "isupper") return all_cased_are(text, is_upper, is_lower);
  if (name == "islower") return all_cased_are(text, is_lower, is_upper);
  if (name == "isascii") return text.empty() || all_are(text, [](char32_t c) { return c < 0x80; });
  if (name == "isprintable") return text.empty() || all_are(text, is_printable);
  return std::nullopt;
}

}  // namespace

Value join_texts(Budget& budget, const std::string& separator, const Value& items) {
  std::string result;
  bool is_first = true;
  for (const auto& item : items_of(budget, items)) {
    const auto* const part = item.as_text();
    if (!part) throw Problem(fmt::format("join: an item is of type {}, not str", type_name(item)));
    budget.make(part->size() + separator.size());
    if (!is_first) result += separator;
    is_first = false;
    result += *part;
  }
  return text(budget, std::move(result));
}

Value replace_text(Budget& budget, const std::string& whole, const std::string& from, const std::string& to,
                   int64_t count) {
  budget.read(whole.size() * (from.size() / 64 + 1));
  std::string result;
  size_t at = 0;
  for (int64_t n = 0; n != count; ++n) {
    // An empty part is before each character and at the end.
    const size_t found = !from.empty()       ? whole.find(from, at)
                         : n == 0            ? 0
                         : at < whole.size() ? next_place(whole, at)
                                             : whole.npos;
    if (found == whole.npos) break;
    budget.step();
    budget.make(to.size());
    result += whole.substr(at, found - at) + to;
    at = found + from.size();
  }
  result += whole.substr(at);
  return text(budget, std::move(result));
}

Value call_text_method(Budget& budget, const std::string& whole, const std::string& name,
                       const Arguments& arguments) {
  budget.read(whole.size());
  const auto new_text = [&](std::string_view bytes) { return text(budget, std::string(bytes)); };
  if (name == "strip" || name == "lstrip" || name == "rstrip") {
    const Bound bound(name, arguments, {"chars"});
    const auto* const characters = bound.text_or_none(0);
    if (characters) budget.step(characters->size());
    std::string_view rest = whole;
    if (name != "rstrip") rest = strip_left(rest, characters);
    if (name != "lstrip") rest = strip_right(rest, characters);
    budget.step((whole.size() - rest.size()) / 16);
    return new_text(rest);
  }
  if (name == "split" || name == "rsplit") return split(budget, whole, name, arguments);
  if (name == "partition" || name == "rpartition") return partition(budget, whole, name, arguments);
  if (name == "startswith" || name == "endswith") return has_end(budget, whole, name, arguments);
  if (name == "find" || name == "rfind" || name == "index" || name == "rindex" || name == "count")
    return find(budget, whole, name, arguments);
  if (name == "ljust" || name == "rjust" || name == "center") return padded(budget, whole, name, arguments);
  if (name == "zfill") return zero_filled(budget, whole, arguments);
  if (name == "format") return text(budget, brace_format(budget, whole, arguments));
  if (name == "join") {
    const Bound bound(name, arguments, {"iterable"}, 1);
    return join_texts(budget, whole, bound.at(0));
  }
  if (name == "replace") {
    const Bound bound(name, arguments, {"old", "new", "count"}, 2);
    return replace_text(budget, whole, bound.text(0), bound.text(1), bound.integer(2, -1));
  }
  if (name == "removeprefix" || name == "removesuffix") {
    const Bound bound(name, arguments, {"affix"}, 1);
    std::string_view rest = whole;
    const auto& affix = bound.text(0);
    if (name == "removeprefix" && rest.starts_with(affix)) rest.remove_prefix(affix.size());
    if (name == "removesuffix" && rest.ends_with(affix)) rest.remove_suffix(affix.size());
    return new_text(rest);
  }
  if (name == "splitlines") {
    const Bound bound(name, arguments, {"keepends"});
    return text_list(budget, split_lines(whole, bound.flag(0) ? LineEnds::keep : LineEnds::drop));
  }
  const Bound nothing(name, arguments, {});
  budget.step(whole.size() / 4);
  if (name == "upper") return text(budget, upper(whole));
  if (name == "lower") return text(budget, lower(whole));
  if (name == "title") return text(budget, title(whole));
  if (name == "capitalize") return text(budget, capitalized(whole));
  if (name == "swapcase") return text(budget, swapped_case(whole));
  if (const auto is = property(whole, name)) return *is;
  throw Problem(fmt::format("the method '{}' of str is not supported", name));
}

}  // namespace zoo::templates
