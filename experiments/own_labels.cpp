#include "experiments/own_labels.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "io/json_document.h"
#include "text/batches/tagged_texts.h"

namespace zoo {
namespace {

/// Whether a name, whatever the case of its letters, is one of these.
bool is_called(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, ascii_lower(name)) != names.end();
}

bool is_list(std::string_view field) { return field.starts_with('[') && field.ends_with(']'); }

bool has(const std::vector<std::string>& fields, std::string_view text) {
  return std::ranges::any_of(fields, [&](const auto& field) { return field.find(text) != field.npos; });
}

/// The first separator that occurs.
std::string separator_of(const std::vector<std::string>& fields) {
  for (const char* const separator : {"|", ";"}) {
    if (has(fields, separator)) return separator;
  }
  return ",";
}

/// The units of a field of labels for words: of a list in JSON its entries.
int64_t n_units(const std::string& field) {
  if (!is_list(field)) return std::ssize(units_of(field, LabelUnit::word));
  try {
    return std::ssize(parse_json(field));
  } catch (const DataError&) {
    return 0;
  }
}

[[noreturn]] void fail(const LabelColumn& labels, size_t row, std::string_view problem) {
  throw DataError(fmt::format("{}:{}: {}", labels.file.string(), labels.rows[row], problem));
}

/// Whether a column of this name is likely to have several labels in a field.
bool is_plural(const std::string& column) {
  return is_called(column, {"labels", "tags", "genres", "topics", "categories"});
}

/// Whether each word has a label. Throws DataError if this holds for nearly all rows.
bool are_of_words(const std::vector<std::string>& texts, const LabelColumn& labels) {
  const size_t n = texts.size();
  size_t n_equal = 0, n_longer = 0;  // rows
  std::optional<size_t> odd;         // the first row whose numbers differ
  std::set<std::string_view> fields, units;
  for (size_t i = 0; i < n; ++i) {
    const auto& field = labels.fields[i];
    const auto n_words = std::ssize(units_of(texts[i], LabelUnit::word));
    fields.insert(field);
    if (!is_list(field))
      for (const auto unit : units_of(field, LabelUnit::word)) units.insert(unit);
    if (n_words != n_units(field)) {
      if (!odd) odd = i;
      continue;
    }
    ++n_equal;
    n_longer += n_words > 1 ? 1 : 0;
  }
  if (n_longer == 0) return false;
  // A class may be several words, but then there are fewer classes than words in them.
  if (!is_plural(labels.name) && units.size() > fields.size()) return false;
  if (!odd) return true;
  constexpr size_t most_odd = 10;  // one row of so many
  if ((n - n_equal) * most_odd > n || 2 * n_longer < n) return false;
  fail(labels, *odd,
       fmt::format("{} words, but {} labels: each word of the other rows has one (column {})",
                   units_of(texts[*odd], LabelUnit::word).size(), n_units(labels.fields[*odd]),
                   excerpt(labels.name)));
}

/// The problem of the labels of words: several labels of one where a separator or a list in a list occurs.
void read_words(const std::vector<std::string>& fields, Labelling& to) {
  to.of_words = true;
  to.separator = separator_of(fields);
  std::set<std::string, std::less<>> found;
  bool has_lists = false, has_outside = false;
  for (const auto& field : fields) {
    if (is_list(field)) {
      for (const auto& unit : parse_json(field)) {
        has_lists = has_lists || unit.is_array();
        if (!unit.is_array()) found.insert(unit.is_string() ? unit.get<std::string>() : json_text(unit));
        for (const auto& label : unit.is_array() ? unit : nlohmann::json::array())
          found.insert(label.is_string() ? label.get<std::string>() : json_text(label));
      }
      continue;
    }
    for (const auto unit : units_of(field, LabelUnit::word)) {
      const auto several = labels_of_unit(unit, to.separator);
      has_lists = has_lists || several.size() > 1;
      has_outside = has_outside || unit == kNoLabels;
      if (unit != kNotCounted) found.insert(several.begin(), several.end());
    }
  }
  if (has_lists) to.problem = Problem::multi_label;
  // Of one label a word, "O" is a class like the others.
  to.n_labels = std::ssize(found) + (has_outside && !has_lists ? 1 : 0);
}

/// Whether a column of numbers is to be read as numbers, not as names of classes. Throws DataError for a
/// field that is no number among many that are.
bool are_amounts(const LabelColumn& labels) {
  constexpr size_t most_classes = 20, most_odd = 10;  // one row of so many
  const bool has_name = is_called(labels.name, {"score", "similarity", "stars"});
  const size_t n = labels.fields.size();
  size_t n_odd = 0;
  std::set<double> different;
  bool has_fraction = false;
  for (const auto& field : labels.fields) {
    const auto number = find_number(field);
    n_odd += number ? 0 : 1;
    if (!number) continue;
    different.insert(*number);
    has_fraction = has_fraction || *number != std::floor(*number);
  }
  if (!has_name && !has_fraction && different.size() <= most_classes) return false;
  if (has_name ? 2 * n_odd >= n : n_odd * most_odd > n) return false;
  for (size_t i = 0; i < n; ++i) {
    try {
      number_of(labels.fields[i]);
    } catch (const DataError& error) {
      fail(labels, i,
           fmt::format("{}; the column {} has numbers: correct this one, or leave the row out", error.what(),
                       excerpt(labels.name)));
    }
  }
  return true;
}

}  // namespace

LabelsAndTexts read_labels_and_texts(Table& table, const std::filesystem::path& file,
                                     const std::vector<std::string>& text_columns,
                                     const std::string& label_column) {
  LabelsAndTexts rows{.texts = {}, .labels = {.name = label_column, .file = file, .fields = {}, .rows = {}}};
  const auto add = [&](TableRow row) {
    for (size_t i = 1; i < row.fields.size(); ++i) rows.bytes += std::ssize(row.fields[i]);
    rows.labels.fields.push_back(std::move(row.fields[0]));
    rows.texts.push_back(std::move(row.fields[1]));
    rows.labels.rows.push_back(row.number);
  };
  std::vector<ColumnNames> columns{{label_column}};
  ColumnUses uses{.lists = {0}};
  for (const auto& column : text_columns) {
    uses.texts.push_back(columns.size());
    columns.push_back({column});
  }
  table.read(columns, add, uses);
  if (rows.texts.empty()) throw DataError(file.string() + ": the table has no rows");
  return rows;
}

int64_t n_different(const std::vector<std::string>& labels) {
  return std::ssize(std::set<std::string_view>(labels.begin(), labels.end()));
}

Labelling labelling_of(const std::vector<std::string>& texts, const LabelColumn& labels) {
  const auto& fields = labels.fields;
  Labelling result{.column = labels.name};
  try {
    refuse_marks(fields);
  } catch (const DataError& error) {
    fail(labels, 0, error.what());
  }
  if (!texts.empty() && are_of_words(texts, labels)) {
    read_words(fields, result);
    return result;
  }
  const bool has_several = is_plural(labels.name) &&
                           (has(fields, "|") || has(fields, ";") || has(fields, ",") ||
                            std::ranges::any_of(fields, [](const auto& field) { return field.empty(); }));
  if (has_several || std::ranges::any_of(fields, is_list)) {
    result.problem = Problem::multi_label;
    result.separator = separator_of(fields);
    std::set<std::string> found;
    for (size_t i = 0; i < fields.size(); ++i) {
      try {
        const auto several = labels_in(fields[i], result.separator);
        found.insert(several.begin(), several.end());
      } catch (const DataError& error) {
        fail(labels, i, error.what());
      }
    }
    result.n_labels = std::ssize(found);
    return result;
  }
  if (are_amounts(labels)) {
    result.problem = Problem::regression;
    result.n_labels = 1;
    return result;
  }
  result.n_labels = n_different(fields);
  return result;
}

}  // namespace zoo
