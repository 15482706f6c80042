#pragma once
// Texts with a label for each word or character, as files have them.

#include <string>
#include <string_view>
#include <vector>

#include "data/data_config.h"
#include "data/labels.h"
#include "data/rows_by_split.h"
#include "data/splits.h"

namespace zoo {

/// The label of a word or character that is not counted: neither trained on nor measured.
inline constexpr std::string_view kNotCounted = "-";

/// Stands for no labels where a word or character may have several.
inline constexpr std::string_view kNoLabels = "O";
/// The labels of a word or character that may have several.
std::vector<std::string_view> labels_of_unit(std::string_view field, std::string_view separator);

/// The words of a text, which blanks separate, or its characters (code points).
std::vector<std::string_view> units_of(std::string_view text, LabelUnit unit);

/// A text and its labels, which are as many as its units.
struct TaggedText {
  std::string text;
  std::string labels;  // single characters if the unit is the character; else separated by blanks
  LabelUnit unit = LabelUnit::word;
  std::string place;  // "FILE:LINE"
};

/// What has a label in a text for which there are no labels. LabelUnit::automatic: the character if the text
/// is one word and each of the classes is one character.
LabelUnit unit_of(std::string_view text, LabelUnit configured, const std::vector<std::string>& classes);

/// Texts as files have them: what has a label in those of tables may not be known yet (automatic).
struct TaggedRows {
  std::vector<TaggedText> texts;
  bool are_words = true;  // each text of a table is one word, and so are its labels
};

/// The rows of tables (NAME.tsv, data.text_column and data.label_column), or the sentences of files with a
/// word a line: word, blank or tab, …, label, with an empty line between sentences (the form of CoNLL-2003,
/// whose lines -DOCSTART- are skipped).
///
/// With Problem::multi_label, data.label_separator stands between the labels of a unit, and kNoLabels in the
/// place of none. Lines of JSON may have a list with the label of each unit, or a list of its labels. Throws
/// DataError with file and line.
RowsBySplit<TaggedRows> tagged_rows(const DataConfig& config, Problem problem = Problem::single_label);

/// The rows with their units. `classes` are those of the model; empty = not known yet. With
/// LabelUnit::automatic, all tables of a split have one unit: the character if each of their texts and fields
/// of labels is one word, unless a class is longer than a character. Throws DataError with file and line:
/// other numbers of labels than of units, no labels, a label that is not one of the classes.
std::vector<TaggedText> with_units(TaggedRows rows, const DataConfig& config,
                                   const std::vector<std::string>& classes,
                                   Problem problem = Problem::single_label);
/// Both for one split.
std::vector<TaggedText> read_tagged(const DataConfig& config, Split split,
                                    const std::vector<std::string>& classes,
                                    Problem problem = Problem::single_label);

/// The different labels of the texts that are counted, sorted, but `O` first, which stands outside of
/// entities, unless it stands for no labels. Throws DataError if there are none.
std::vector<std::string> classes_of(const std::vector<TaggedText>& texts,
                                    Problem problem = Problem::single_label,
                                    std::string_view separator = ",");

}  // namespace zoo
