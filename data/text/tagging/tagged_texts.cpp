#include "data/text/tagging/tagged_texts.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "data/files/tables.h"
#include "data/files/text_files.h"

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

/// Appends the rows of a table. Their unit is not decided: automatic.
void read_tagged_table(const std::filesystem::path& path, const DataConfig& config,
                       std::vector<TaggedText>& out) {
  read_table(path, {config.text_column, {config.label_column}}, [&](TableRow row) {
    auto place = fmt::format("{}:{}", path.string(), row.number);
    if (is_blank(row.fields[0])) throw DataError(fmt::format("{}: no text", place));
    if (is_blank(row.fields[1])) throw DataError(fmt::format("{}: no labels", place));
    out.push_back({.text = std::move(row.fields[0]),
                   .labels = std::move(row.fields[1]),
                   .unit = LabelUnit::automatic,
                   .place = std::move(place)});
  });
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
LabelUnit unit_of_tables(const std::vector<TaggedText>& rows, LabelUnit configured,
                         const std::vector<std::string>& classes) {
  if (configured != LabelUnit::automatic) return configured;
  const bool are_words = std::ranges::all_of(rows, [](const TaggedText& row) {
    return row.unit != LabelUnit::automatic || (is_one_word(row.text) && is_one_word(row.labels));
  });
  return are_words && are_characters(classes) ? LabelUnit::character : LabelUnit::word;
}

/// Throws DataError unless each unit has a label, which is known, or no classes are known yet.
void check_row(const TaggedText& row, const std::set<std::string_view>& known) {
  const auto labels = units_of(row.labels, row.unit);
  if (const size_t n = units_of(row.text, row.unit).size(); n != labels.size()) {
    throw DataError(fmt::format("{}: {} {}s, but {} labels: the numbers must be equal (data.label_unit)",
                                row.place, n, name_of(row.unit), labels.size()));
  }
  if (known.empty()) return;
  const auto strange = std::ranges::find_if(
      labels, [&](const auto label) { return label != kNotCounted && !known.contains(label); });
  if (strange != labels.end()) {
    throw DataError(
        fmt::format("{}: the label '{}' does not occur in the training data", row.place, excerpt(*strange)));
  }
}

}  // namespace

std::vector<std::string_view> units_of(std::string_view text, LabelUnit unit) {
  return unit == LabelUnit::character ? characters_of(text) : words_of(text);
}

LabelUnit unit_of(std::string_view text, LabelUnit configured, const std::vector<std::string>& classes) {
  if (configured != LabelUnit::automatic) return configured;
  return is_one_word(text) && are_characters(classes) ? LabelUnit::character : LabelUnit::word;
}

std::vector<TaggedText> read_tagged(const DataConfig& config, Split split,
                                    const std::vector<std::string>& classes) {
  std::vector<TaggedText> rows;
  for (const auto& file : files_to_read(config, split)) {
    const auto path = data_path(file);
    is_table(path) ? read_tagged_table(path, config, rows) : read_tagged_lines(path, rows);
  }
  const auto unit = unit_of_tables(rows, config.label_unit, classes);
  const std::set<std::string_view> known(classes.begin(), classes.end());
  for (auto& row : rows) {
    if (row.unit == LabelUnit::automatic) row.unit = unit;
    check_row(row, known);
  }
  keep_part(config, split, rows);
  if (rows.empty()) fail_empty(config, split, "texts with labels");
  return rows;
}

std::vector<std::string> classes_of(const std::vector<TaggedText>& texts) {
  std::set<std::string, std::less<>> found;
  for (const auto& text : texts) {
    for (const auto label : units_of(text.labels, text.unit)) {
      if (label != kNotCounted && !found.contains(label)) found.emplace(label);
    }
  }
  if (found.empty()) throw DataError(fmt::format("{}: no label is counted: all are -", texts.front().place));
  std::vector<std::string> classes;
  if (found.erase("O") > 0) classes.emplace_back("O");
  classes.insert(classes.end(), found.begin(), found.end());
  return classes;
}

}  // namespace zoo
