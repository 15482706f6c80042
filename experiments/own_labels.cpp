#include "experiments/own_labels.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "data/files/tables.h"
#include "data/text/tagging/tagged_texts.h"
#include "io/json_document.h"

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

bool are_of_words(const std::vector<std::string>& texts, const std::vector<std::string>& labels) {
  bool any_longer = false;
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto n = std::ssize(units_of(texts[i], LabelUnit::word));
    if (n != n_units(labels[i])) return false;
    any_longer = any_longer || n > 1;
  }
  return any_longer;
}

/// The problem of the labels of words: several labels of one where a separator or a list in a list occurs.
void read_words(const std::vector<std::string>& fields, Labelling& to) {
  to.of_words = true;
  to.separator = separator_of(fields);
  std::set<std::string, std::less<>> found;
  bool has_lists = false;
  for (const auto& field : fields) {
    if (is_list(field)) {
      for (const auto& unit : parse_json(field)) {
        has_lists = has_lists || unit.is_array();
        if (!unit.is_array()) found.insert(unit.is_string() ? unit.get<std::string>() : unit.dump());
        for (const auto& label : unit.is_array() ? unit : nlohmann::json::array())
          found.insert(label.is_string() ? label.get<std::string>() : label.dump());
      }
      continue;
    }
    for (const auto unit : units_of(field, LabelUnit::word)) {
      const auto several = labels_of_unit(unit, to.separator);
      has_lists = has_lists || several.size() > 1;
      if (unit != kNotCounted) found.insert(several.begin(), several.end());
    }
  }
  if (has_lists) to.problem = Problem::multi_label;
  to.n_labels = std::ssize(found);
}

/// Whether a column of numbers is to be read as numbers, not as names of classes.
bool are_amounts(const std::string& column, const std::vector<std::string>& fields) {
  constexpr size_t most_classes = 20;
  std::set<double> different;
  bool has_fraction = false;
  try {
    for (const auto& field : fields) {
      const double number = number_of(field);
      different.insert(number);
      has_fraction = has_fraction || number != std::floor(number);
    }
  } catch (const DataError&) {
    return false;
  }
  return is_called(column, {"score", "similarity", "stars"}) || has_fraction ||
         different.size() > most_classes;
}

}  // namespace

LabelsAndTexts read_labels_and_texts(const std::filesystem::path& table, const std::string& text_column,
                                     const std::string& label_column) {
  LabelsAndTexts rows;
  const auto add = [&](TableRow row) {
    rows.texts.push_back(std::move(row.fields[0]));
    rows.labels.push_back(std::move(row.fields[1]));
  };
  read_table(table, {{text_column}, {label_column}}, add, ListColumns{1});
  if (rows.texts.empty()) throw DataError(table.string() + ": the table has no rows");
  return rows;
}

int64_t n_different(const std::vector<std::string>& labels) {
  return std::ssize(std::set<std::string_view>(labels.begin(), labels.end()));
}

Labelling labelling_of(const std::vector<std::string>& texts, const std::vector<std::string>& labels,
                       const std::string& column) {
  Labelling result{.column = column};
  const bool has_lists = std::ranges::any_of(labels, is_list);
  if (has_lists || is_called(column, {"labels", "tags", "genres", "topics", "categories"})) {
    if (!texts.empty() && are_of_words(texts, labels)) {
      read_words(labels, result);
      return result;
    }
    result.problem = Problem::multi_label;
    result.separator = separator_of(labels);
    std::set<std::string> found;
    for (const auto& field : labels) {
      const auto several = labels_in(field, result.separator);
      found.insert(several.begin(), several.end());
    }
    result.n_labels = std::ssize(found);
    return result;
  }
  if (are_amounts(column, labels)) {
    result.problem = Problem::regression;
    result.n_labels = 1;
    return result;
  }
  result.n_labels = n_different(labels);
  return result;
}

}  // namespace zoo
