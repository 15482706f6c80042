#include "text/batches/tagged_texts.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "data/tables.h"
#include "data/text_files.h"
#include "io/json_document.h"

namespace zoo {
namespace {

constexpr std::string_view kWordBlanks = " \t\n\r\f\v";

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t end = 0;;) {
    const size_t begin = text.find_first_not_of(kWordBlanks, end);
    if (begin == text.npos) return words;
    end = std::min(text.find_first_of(kWordBlanks, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
  }
}

std::vector<std::string_view> characters_of(std::string_view text) {
  std::vector<std::string_view> characters;
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end) {
    do ++end;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80);
    characters.push_back(text.substr(begin, end - begin));
  }
  return characters;
}

bool is_one_word(std::string_view text) { return text.find_first_of(kWordBlanks) == text.npos; }

/// Whether all of the classes are single characters; no classes are.
bool are_characters(const std::vector<std::string>& classes) {
  return std::ranges::all_of(classes, [](const auto& name) { return characters_of(name).size() == 1; });
}

/// A label in a list; a blank would end it.
std::string label_in_list(const nlohmann::json& value) {
  if (!value.is_string() && !value.is_number()) throw DataError("a list of labels has texts and numbers");
  const auto label = value.is_string() ? value.get<std::string>() : json_text(value);
  if (label.empty() || !is_one_word(label))
    throw DataError(fmt::format("the label '{}' has blanks, or is empty", excerpt(label)));
  return label;
}

/// Labels as text. A list in JSON has an entry for each unit: its label, or a list of its labels.
std::string labels_as_text(std::string field, const DataConfig& config, Problem problem) {
  if (!field.starts_with("[")) return field;
  nlohmann::json list;
  try {
    list = parse_json(field);
  } catch (const DataError&) {
    return field;  // a table of tabs, whose first label begins so
  }
  std::string text;
  for (const auto& unit : list) {
    std::string labels;
    if (!unit.is_array()) labels = label_in_list(unit);
    if (unit.is_array() && problem != Problem::multi_label)
      throw DataError("a word has a list of labels: set task.problem to multi_label");
    for (const auto& label : unit.is_array() ? unit : nlohmann::json::array())
      labels += (labels.empty() ? "" : config.label_separator) + label_in_list(label);
    text += (text.empty() ? "" : " ") + (labels.empty() ? std::string(kNoLabels) : labels);
  }
  return text;
}

/// Appends the rows of a table. Their unit is not decided: automatic.
void read_tagged_table(const std::filesystem::path& path, const DataConfig& config, Problem problem,
                       std::vector<TaggedText>& out) {
  const auto add = [&](TableRow row) {
    auto place = fmt::format("{}:{}", path.string(), row.number);
    if (is_blank(row.fields[0])) throw DataError(fmt::format("{}: no text", place));
    if (is_blank(row.fields[1])) throw DataError(fmt::format("{}: no labels", place));
    try {
      row.fields[1] = labels_as_text(std::move(row.fields[1]), config, problem);
    } catch (const DataError& error) {
      throw DataError(fmt::format("{}: {}", place, error.what()));
    }
    out.push_back({.text = std::move(row.fields[0]),
                   .labels = std::move(row.fields[1]),
                   .unit = LabelUnit::automatic,
                   .place = std::move(place)});
  };
  read_table(path, {config.text_column, {config.label_column}}, add, {.lists = {1}});
}

/// Appends the sentences of a file with a word a line.
void read_tagged_lines(const std::filesystem::path& path, std::vector<TaggedText>& out) {
  const std::string content = read_text(path);
  TaggedText sentence;
  const auto finish = [&] {
    if (!sentence.text.empty()) out.push_back(std::move(sentence));
    sentence = {};
  };
  size_t number = 0;
  for (const auto line : lines_of(content)) {
    ++number;
    const auto fields = words_of(line);
    if (fields.empty() || fields.front() == "-DOCSTART-") {
      finish();
      continue;
    }
    if (fields.size() < 2)
      throw DataError(
          fmt::format("{}:{}: no label after the word '{}'", path.string(), number, excerpt(line)));
    if (sentence.text.empty()) {
      sentence.place = fmt::format("{}:{}", path.string(), number);
    } else {
      sentence.text += ' ';
      sentence.labels += ' ';
    }
    sentence.text += fields.front();
    sentence.labels += fields.back();
  }
  finish();
}

/// The unit of the rows of tables.
LabelUnit unit_of_tables(bool are_words, LabelUnit configured, const std::vector<std::string>& classes,
                         Problem problem) {
  if (configured != LabelUnit::automatic) return configured;
  if (problem == Problem::multi_label) return LabelUnit::word;
  return are_words && are_characters(classes) ? LabelUnit::character : LabelUnit::word;
}

/// Throws DataError unless each unit has a label, which is known, or no classes are known yet.
void check_row(const TaggedText& row, const std::set<std::string_view>& known, Problem problem,
               std::string_view separator) {
  const auto labels = units_of(row.labels, row.unit);
  if (const size_t n = units_of(row.text, row.unit).size(); n != labels.size()) {
    throw DataError(fmt::format("{}: {} {}s, but {} labels: the numbers must be equal (data.label_unit)",
                                row.place, n, name_of(row.unit), labels.size()));
  }
  if (known.empty()) return;
  for (const auto unit : labels) {
    if (unit == kNotCounted) continue;
    for (const auto label : problem == Problem::multi_label ? labels_of_unit(unit, separator)
                                                            : std::vector<std::string_view>{unit}) {
      if (known.contains(label)) continue;
      throw DataError(
          fmt::format("{}: the label '{}' does not occur in the training data", row.place, excerpt(label)));
    }
  }
}

}  // namespace

std::vector<std::string_view> units_of(std::string_view text, LabelUnit unit) {
  return unit == LabelUnit::character ? characters_of(text) : words_of(text);
}

std::vector<std::string_view> labels_of_unit(std::string_view field, std::string_view separator) {
  std::vector<std::string_view> labels;
  if (field == kNoLabels) return labels;
  for (size_t begin = 0; begin <= field.size();) {
    const size_t end = std::min(field.find(separator, begin), field.size());
    if (end > begin) labels.push_back(field.substr(begin, end - begin));
    begin = end + separator.size();
  }
  return labels;
}

LabelUnit unit_of(std::string_view text, LabelUnit configured, const std::vector<std::string>& classes) {
  if (configured != LabelUnit::automatic) return configured;
  return is_one_word(text) && are_characters(classes) ? LabelUnit::character : LabelUnit::word;
}

RowsBySplit<TaggedRows> tagged_rows(const DataConfig& config, Problem problem) {
  const auto read = [config, problem](Split split) {
    TaggedRows rows;
    for (const auto& file : files_to_read(config, split)) {
      const auto path = data_path(file);
      is_table(path) ? read_tagged_table(path, config, problem, rows.texts)
                     : read_tagged_lines(path, rows.texts);
    }
    rows.are_words = std::ranges::all_of(rows.texts, [](const TaggedText& row) {
      return row.unit != LabelUnit::automatic || (is_one_word(row.text) && is_one_word(row.labels));
    });
    return rows;
  };
  const auto part = [config](const TaggedRows& all, Split split) {
    auto rows = all;
    keep_part(config, split, rows.texts);
    return rows;
  };
  const auto check = [config](const TaggedRows& rows, Split split) {
    if (rows.texts.empty()) fail_empty(config, split, "texts with labels");
  };
  return {config, {.read = read, .part = part, .check = check}};
}

std::vector<TaggedText> with_units(TaggedRows rows, const DataConfig& config,
                                   const std::vector<std::string>& classes, Problem problem) {
  const auto unit = unit_of_tables(rows.are_words, config.label_unit, classes, problem);
  const std::set<std::string_view> known(classes.begin(), classes.end());
  for (auto& row : rows.texts) {
    if (row.unit == LabelUnit::automatic) row.unit = unit;
    check_row(row, known, problem, config.label_separator);
  }
  return std::move(rows.texts);
}

std::vector<TaggedText> read_tagged(const DataConfig& config, Split split,
                                    const std::vector<std::string>& classes, Problem problem) {
  return with_units(tagged_rows(config, problem).take(split), config, classes, problem);
}

std::vector<std::string> classes_of(const std::vector<TaggedText>& texts, Problem problem,
                                    std::string_view separator) {
  std::set<std::string, std::less<>> found;
  for (const auto& text : texts) {
    for (const auto unit : units_of(text.labels, text.unit)) {
      if (unit == kNotCounted) continue;
      for (const auto label : problem == Problem::multi_label ? labels_of_unit(unit, separator)
                                                              : std::vector<std::string_view>{unit}) {
        if (!found.contains(label)) found.emplace(label);
      }
    }
  }
  if (found.empty()) throw DataError(fmt::format("{}: no label is counted: all are -", texts.front().place));
  std::vector<std::string> classes;
  if (found.erase("O") > 0) classes.emplace_back("O");
  classes.insert(classes.end(), found.begin(), found.end());
  return classes;
}

}  // namespace zoo
