#include "data/labels.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "io/json_document.h"

namespace zoo {
namespace {

std::string_view trimmed_field(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const size_t begin = text.find_first_not_of(blanks);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

[[noreturn]] void fail_list(std::string_view field) {
  throw DataError(fmt::format("'{}' is in brackets, but no list of texts in JSON, such as [\"a\", \"b\"]",
                              excerpt(field, 60)));
}

bool is_mark(const std::string& text) {
  const auto number = find_number(text);
  return number && (*number == 0 || *number == 1);
}

[[noreturn]] void fail_marks(std::string_view field) {
  throw DataError(
      fmt::format("{} marks labels by their places in a list: write their names in place of the "
                  "ones, such as [\"a\", \"c\"]",
                  excerpt(field, 60)));
}

/// The texts of a list in JSON.
std::vector<std::string> texts_of_list(std::string_view field) {
  nlohmann::json list;
  try {
    list = parse_json(field);
  } catch (const DataError&) {
    fail_list(field);
  }
  std::vector<std::string> texts;
  for (const auto& value : list) {
    if (!value.is_string() && !value.is_number()) fail_list(field);
    texts.push_back(value.is_string() ? value.get<std::string>() : json_text(value));
  }
  const bool comes_again = std::set(texts.begin(), texts.end()).size() < texts.size();
  if (comes_again && std::ranges::all_of(texts, is_mark)) fail_marks(field);
  return texts;
}

/// The number of entries of a list of at least two marks.
std::optional<size_t> n_marks_of(std::string_view field) {
  field = trimmed_field(field);
  if (!field.starts_with('[')) return std::nullopt;
  try {
    const auto list = parse_json(field);
    if (list.size() < 2) return std::nullopt;
    for (const auto& value : list) {
      const bool is_one = value.is_boolean() || (value.is_string() && is_mark(value.get<std::string>())) ||
                          (value.is_number() && is_mark(json_text(value)));
      if (!is_one) return std::nullopt;
    }
    return list.size();
  } catch (const DataError&) {
    return std::nullopt;
  }
}

std::vector<std::string> texts_between(std::string_view field, std::string_view separator) {
  std::vector<std::string> texts;
  for (size_t begin = 0;;) {
    const size_t end = field.find(separator, begin);
    texts.emplace_back(field.substr(begin, end == field.npos ? end : end - begin));
    if (end == field.npos) return texts;
    begin = end + separator.size();
  }
}

}  // namespace

std::vector<std::string> labels_in(std::string_view field, std::string_view separator) {
  field = trimmed_field(field);
  const bool is_list = field.starts_with('[') && field.ends_with(']');
  std::vector<std::string> labels;
  for (const auto& text : is_list ? texts_of_list(field) : texts_between(field, separator)) {
    const auto label = trimmed_field(text);
    if (!label.empty() && std::ranges::find(labels, label) == labels.end()) labels.emplace_back(label);
  }
  return labels;
}

void refuse_marks(const std::vector<std::string>& fields) {
  std::optional<size_t> size;
  for (const auto& field : fields) {
    const auto n = n_marks_of(field);
    if (!n || (size && *n != *size)) return;
    size = *n;
  }
  if (size) fail_marks(fields.front());
}

std::optional<double> find_number(std::string_view field) {
  auto text = trimmed_field(field);
  const bool has_plus = text.size() > 1 && text.front() == '+' && text[1] != '-';
  if (has_plus) text.remove_prefix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) return std::nullopt;
  return number;
}

double number_of(std::string_view field) {
  constexpr double largest = 1e15;
  const auto number = find_number(field);
  if (!number) throw DataError(fmt::format("'{}' is not a number", excerpt(field, 60)));
  if (std::abs(*number) > largest)
    throw DataError(
        fmt::format("{} is too large: a number to learn is at most {:g}", excerpt(field, 60), largest));
  return *number;
}

void check_labels(std::string_view field, Problem problem, std::string_view separator) {
  if (problem != Problem::multi_label && trimmed_field(field).empty()) throw DataError("no label");
  if (problem == Problem::multi_label) labels_in(field, separator);
  if (problem == Problem::regression) number_of(field);
}

}  // namespace zoo
